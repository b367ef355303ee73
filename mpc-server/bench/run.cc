// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include <cstdlib>
#include <fstream>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/bench/measure.h"
#include "mpc-server/bench/options.h"
#include "mpc-server/bench/party.h"
#include "mpc-server/bench/print.h"
#include "mpc-server/key/enctype.h"

namespace mpckdc::bench {
namespace {

int Fail(const absl::Status& s, int code) {
  std::cerr << "mpc-bench: " << s.message() << "\n";
  return code;
}

// Threads of this process draw zero shares with the instruction set that the process started with.
absl::Status SetIsaOfThreads(const Options& o) {
  if (o.placement != Placement::kThreads) return absl::OkStatus();
  setenv("MPCKDC_ISA", std::string(IsaName(o.setups.front().isa)).c_str(), 1);
  for (const BenchSetup& s : o.setups) {
    if (s.isa == BestIsa()) continue;
    return absl::InvalidArgumentError(
        "--parties=threads takes one --isa at a time: call mpc-bench once for each");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Parties>> OpenParties(const std::string& program,
                                                     const Options& o, const BenchSetup& setup) {
  if (o.placement == Placement::kProcesses) {
    return OpenInProcesses(setup, program, o);
  }
  ASSIGN_OR_RETURN(RingsOfThree rings, ConnectInProcess(setup, o.peer));
  return OpenOnThreads(setup, std::move(rings), absl::Seconds(o.round_timeout_s));
}

// Starts three parties, measures, ends them.
absl::StatusOr<ordered_json> MeasureOne(const std::string& program, const Options& o,
                                        const BenchSetup& setup) {
  ASSIGN_OR_RETURN(std::unique_ptr<Parties> parties, OpenParties(program, o, setup));
  const bool floor = o.command == "channel" || o.command == "breakdown" || o.with_floor;
  return Measure(setup, {o.command != "channel", floor, o.seconds, o.runs}, *parties);
}

// A login under one of the enctypes 17 to 20 beside one under the CTR enctypes: measured right
// after it, on a batch of as many logins, with keys of the same size.
BenchSetup CtrSetup(const BenchSetup& login) {
  BenchSetup ctr = login;
  ctr.unit = Unit::kBlock;
  ctr.bits = FindEnctype(login.enctype)->key_bytes == 16 ? AesBits::k128 : AesBits::k256;
  ctr.lanes = login.lanes * kCtrBlocks;
  ctr.sbox = std::nullopt;
  return ctr;
}

// A line when it is measured.
int MeasureAll(const std::string& program, const Options& o) {
  ordered_json all = Heading(o.command);
  if (o.command == "table2") all["paper"] = PaperJson();
  const auto print = [&o](const std::string& text) {
    if (!o.json) std::cout << text << std::flush;
  };
  if (!o.brief) print(absl::StrCat(MachineText(), "\n"));
  print(TableHead(o.command));
  if (o.command == "table2") print(PaperText());
  bool verified = true;
  for (const BenchSetup& setup : o.setups) {
    absl::StatusOr<ordered_json> result = MeasureOne(program, o, setup);
    if (!result.ok()) return Fail(result.status(), 1);
    verified = verified && result->value("verified", true);
    if (o.command == "rfc3962") {
      absl::StatusOr<ordered_json> ctr = MeasureOne(program, o, CtrSetup(setup));
      if (!ctr.ok()) return Fail(ctr.status(), 1);
      verified = verified && (*ctr)["verified"];
      (*result)["ctr"] = CtrJson(*ctr, *result);
    }
    if (o.command == "table2") (*result)["times_the_paper_per_core_s"] = TimesThePaper(*result);
    print(o.command == "breakdown" ? Breakdown(setup, &*result) : TableLine(o.command, *result));
    all["results"].push_back(*std::move(result));
  }
  if (o.json) std::cout << all.dump(2) << "\n";
  if (!o.save.empty()) {
    std::ofstream file(o.save);
    file << all.dump(2) << "\n" << std::flush;
    if (!file) return Fail(absl::UnavailableError(absl::StrCat("cannot write ", o.save)), 1);
  }
  return verified ? 0 : Fail(absl::DataLossError("outputs differ from OpenSSL's"), 1);
}

}  // namespace

int RunBench(const std::string& program, absl::Span<const std::string> arguments) {
  signal(SIGPIPE, SIG_IGN);  // a party that ended is an error, not a signal
  absl::StatusOr<Options> o = ParseOptions(arguments);
  if (!o.ok()) return Fail(o.status(), 2);
  if (o->answer.has_value()) return std::cout << *o->answer, 0;
  if (absl::Status s = SetIsaOfThreads(*o); !s.ok()) return Fail(s, 2);
  if (o->command == "party") return RunParty(*o, std::cin, std::cout);
  return MeasureAll(program, *o);
}

}  // namespace mpckdc::bench
