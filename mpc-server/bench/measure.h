// SPDX-License-Identifier: Apache-2.0
// Measures one setup: warms up, finds out how long a batch takes, runs, repeats, verifies.
#ifndef MPC_SERVER_BENCH_MEASURE_H_
#define MPC_SERVER_BENCH_MEASURE_H_

#include <nlohmann/json.hpp>
#include <vector>

#include "absl/status/statusor.h"
#include "mpc-server/bench/parties.h"

namespace mpckdc::bench {

using nlohmann::ordered_json;

// Over the runs.
struct Spread {
  double min = 0, median = 0, max = 0;
};
Spread SpreadOf(std::vector<double> values);

struct MeasureOptions {
  bool lanes = true, floor = false;  // one of them at least
  double seconds = 2;  // for each kind of work
  int runs = 3;
};

// The fields that doc/bench.md explains; of the floor under "floor" if lanes are measured as well.
absl::StatusOr<ordered_json> Measure(const BenchSetup& setup, const MeasureOptions& options,
                                     Parties& parties);

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_MEASURE_H_
