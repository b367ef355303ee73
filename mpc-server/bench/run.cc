// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/run.h"

#include <signal.h>

#include <cstdlib>
#include <fstream>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "mpc-server/bench/commands.h"
#include "mpc-server/bench/machine.h"
#include "mpc-server/bench/measure.h"
#include "mpc-server/bench/options.h"
#include "mpc-server/bench/party_command.h"
#include "mpc-server/bench/print.h"

namespace mpckdc::bench {
namespace {

int Fail(const absl::Status& s, int code) {
  std::cerr << "mpc-bench: " << s.message() << "\n";
  return code;
}

// Threads of this process draw zero shares with the instruction set that the process started with.
absl::Status SetIsaOfThreads(const Options& o) {
  if (o.placement != Placement::kThreads || o.isas.empty()) return absl::OkStatus();
  setenv("MPCKDC_ISA", std::string(IsaName(o.isas.front())).c_str(), 1);
  if (o.isas.size() == 1 && BestIsa() == o.isas.front()) return absl::OkStatus();
  return absl::InvalidArgumentError("--parties=threads takes one --isa at a time");
}

absl::StatusOr<std::unique_ptr<Parties>> OpenParties(const std::string& program,
                                                     const Options& o, const BenchSetup& setup) {
  if (o.placement == Placement::kProcesses) {
    return OpenInProcesses(setup, {program, o.launch, o.addresses, o.tuning});
  }
  absl::StatusOr<RingsOfThree> rings = ConnectInProcess(setup, o.tuning);
  if (!rings.ok()) return rings.status();
  return OpenOnThreads(setup, *std::move(rings), o.tuning.round_timeout);
}

absl::StatusOr<Measurement> MeasureOne(const std::string& program, const Options& o,
                                       const BenchSetup& setup, const MeasureOptions& what) {
  absl::StatusOr<std::unique_ptr<Parties>> parties = OpenParties(program, o, setup);
  if (!parties.ok()) return parties.status();
  return Measure(setup, what, **parties);
}

int Finish(const Options& o, const ordered_json& data, bool verified) {
  if (o.json) std::cout << data.dump(2) << "\n";
  if (!o.save.empty()) {
    std::ofstream file(o.save);
    file << data.dump(2) << "\n" << std::flush;
    if (!file) return Fail(absl::UnavailableError(absl::StrCat("cannot write ", o.save)), 1);
  }
  if (!verified) std::cerr << "mpc-bench: outputs differ from OpenSSL's\n";
  return verified ? 0 : 1;
}

std::string TableHead(const Options& o) {
  if (o.command == "hmac") return HmacTableHead();
  return o.command == "aes" ? AesTableHead(o.with_floor) : ChannelTableHead();
}
std::string TableLine(const Options& o, const Measurement& m) {
  if (o.command == "hmac") return HmacTableLine(m);
  return o.command == "aes" ? AesTableLine(m) : ChannelTableLine(m);
}

// aes, hmac and channel: a line when it is measured.
int RunTable(const Options& o, const MeasureSetup& measure) {
  const bool aes = o.command != "channel";
  ordered_json all = Heading(o.command);
  if (!o.json) {
    std::cout << HeadingText(o.brief) << TableHead(o) << std::flush;
  }
  bool verified = true;
  for (const BenchSetup& setup : Setups(o)) {
    absl::StatusOr<Measurement> m =
        measure(setup, {aes, !aes || o.with_floor, o.seconds, o.runs});
    if (!m.ok()) return Fail(m.status(), 1);
    verified = verified && (!aes || m->verified);
    all["results"].push_back(MeasurementJson(*m));
    if (!o.json) std::cout << TableLine(o, *m) << std::flush;
  }
  return Finish(o, all, verified);
}

int RunFindings(const Options& o, const absl::StatusOr<Findings>& found) {
  if (!found.ok()) return Fail(found.status(), 1);
  if (!o.json) std::cout << found->text;
  return Finish(o, found->data, found->verified);
}

}  // namespace

int RunBench(const std::string& program, absl::Span<const std::string> arguments) {
  signal(SIGPIPE, SIG_IGN);  // a party that ended is an error, not a signal
  absl::StatusOr<Options> o = ParseOptions(arguments);
  if (!o.ok()) return Fail(o.status(), 2);
  if (o->help) return std::cout << HelpText(), 0;
  if (o->version) {
    std::cout << "mpc-bench " << MPCKDC_VERSION << ": " << HeadingText(false);
    return 0;
  }
  if (absl::Status s = SetIsaOfThreads(*o); !s.ok()) return Fail(s, 2);
  if (o->command == "party") return RunParty(*o, std::cin, std::cout);
  const MeasureSetup measure = [&](const BenchSetup& setup, const MeasureOptions& what) {
    return MeasureOne(program, *o, setup, what);
  };
  if (o->command == "breakdown") return RunFindings(*o, Breakdown(*o, measure));
  if (o->command == "rfc3962") return RunFindings(*o, Rfc3962(*o, measure));
  if (o->command == "table2") return RunFindings(*o, Table2(*o, measure));
  return RunTable(*o, measure);
}

}  // namespace mpckdc::bench
