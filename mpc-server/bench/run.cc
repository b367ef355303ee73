// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/run.h"

#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "absl/strings/str_cat.h"
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
                                                     const Options& o, const Setup& setup) {
  if (o.placement == Placement::kProcesses) {
    return OpenInProcesses(setup, {program, o.launch, o.addresses, o.tuning});
  }
  absl::StatusOr<Rings> rings = ConnectInProcess(setup, o.tuning);
  if (!rings.ok()) return rings.status();
  return OpenOnThreads(setup, *std::move(rings), o.tuning.round_timeout);
}

// aes and channel.
int RunTable(const std::string& program, const Options& o) {
  const bool aes = o.command == "aes";
  ordered_json all = Heading(o.command);
  if (!o.json) {
    std::cout << HeadingText() << (aes ? AesTableHead(o.with_floor) : ChannelTableHead())
              << std::flush;
  }
  bool good = true;
  for (const Setup& setup : Setups(o)) {
    absl::StatusOr<std::unique_ptr<Parties>> parties = OpenParties(program, o, setup);
    if (!parties.ok()) return Fail(parties.status(), 1);
    absl::StatusOr<Measurement> m =
        Measure(setup, {aes, !aes || o.with_floor, o.seconds, o.runs}, **parties);
    if (!m.ok()) return Fail(m.status(), 1);
    good = good && (!aes || m->verified);
    all["results"].push_back(MeasurementJson(*m));
    if (!o.json) std::cout << (aes ? AesTableLine(*m) : ChannelTableLine(*m)) << std::flush;
  }
  if (o.json) std::cout << all.dump(2) << "\n";
  if (!good) std::cerr << "mpc-bench: outputs differ from OpenSSL's AES\n";
  return good ? 0 : 1;
}

}  // namespace

int RunBench(const std::string& program, absl::Span<const std::string> arguments) {
  signal(SIGPIPE, SIG_IGN);  // a party that ended is an error, not a signal
  absl::StatusOr<Options> o = ParseOptions(arguments);
  if (!o.ok()) return Fail(o.status(), 2);
  if (o->help) return std::cout << HelpText(), 0;
  if (o->version) return std::cout << "mpc-bench " << MPCKDC_VERSION << " " << Commit() << "\n", 0;
  if (absl::Status s = SetIsaOfThreads(*o); !s.ok()) return Fail(s, 2);
  if (o->command == "party") return RunParty(*o, std::cin, std::cout);
  return RunTable(program, *o);
}

}  // namespace mpckdc::bench
