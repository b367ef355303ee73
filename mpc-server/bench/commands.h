// SPDX-License-Identifier: Apache-2.0
// The commands that print more than a line per setup.
#ifndef MPC_SERVER_BENCH_COMMANDS_H_
#define MPC_SERVER_BENCH_COMMANDS_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "mpc-server/bench/measure.h"
#include "mpc-server/bench/options.h"
#include "mpc-server/bench/print.h"

namespace mpckdc::bench {

// Starts three parties, measures, ends them.
using MeasureSetup = std::function<absl::StatusOr<Measurement>(const BenchSetup& setup,
                                                               const MeasureOptions& options)>;

// What a command found: one of the two is printed.
struct Findings {
  ordered_json data;
  std::string text;
  bool verified = true;
};

// The paper's microbenchmark: what the CPU time of a block at one party goes to.
absl::StatusOr<Findings> Breakdown(const Options& options, const MeasureSetup& measure);

// Logins under enctypes 17 to 20, beside those under the CTR enctypes in the same run.
absl::StatusOr<Findings> Rfc3962(const Options& options, const MeasureSetup& measure);

// The paper's Table 2 for this machine.
absl::StatusOr<Findings> Table2(const Options& options, const MeasureSetup& measure);

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_COMMANDS_H_
