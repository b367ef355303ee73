// SPDX-License-Identifier: Apache-2.0
// The command line of mpc-bench, and all that it does for one.
#ifndef MPC_SERVER_BENCH_OPTIONS_H_
#define MPC_SERVER_BENCH_OPTIONS_H_

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mpc-server/bench/setup.h"
#include "mpc-server/wire/tls_channel.h"

namespace mpckdc::bench {

struct Options {
  std::string command;  // aes, hmac, rfc3962, channel, breakdown, table2 or party
  std::optional<std::string> answer;  // to --help and its like: print it and end
  std::vector<BenchSetup> setups;     // each combination that was asked for, in order

  Placement placement = Placement::kProcesses;
  double seconds = 2;   // of measuring, per combination
  int runs = 3;         // that the seconds are divided into
  bool with_floor = false;
  bool json = false;
  bool brief = false;
  std::string save;     // a file for the JSON
  double round_timeout_s = 60;
  std::vector<std::string> launch;
  std::array<std::string, kParties> addresses;

  TlsPeerOptions peer;  // of command party; how its sockets are tuned, of all
};

// Arguments without the program's name. Errors name the option and what it takes.
absl::StatusOr<Options> ParseOptions(absl::Span<const std::string> arguments);

// The arguments that make a party process of this setup; parsing them gives it back.
std::vector<std::string> PartyArguments(const BenchSetup& setup, int party);

// The whole of mpc-bench (run.cc). `program` is this program's file, which is started anew for each
// party; `arguments` come without the program's name. Exit status: 0; 1 when something failed or
// was not verified; 2 for a bad command line.
int RunBench(const std::string& program, absl::Span<const std::string> arguments);

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_OPTIONS_H_
