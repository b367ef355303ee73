// SPDX-License-Identifier: Apache-2.0
// The paper's microbenchmark: what the CPU time of a block at one party goes to. The whole is
// measured by running the protocol, communication by running the channel alone, the local parts by
// running the engine's functions alone. What the parts do not explain is printed as such: caches
// that the parts find warm and the whole does not, the runner.
#ifndef MPC_SERVER_BENCH_BREAKDOWN_H_
#define MPC_SERVER_BENCH_BREAKDOWN_H_

#include <string>

#include "mpc-server/bench/print.h"

namespace mpckdc::bench {

// Adds the parts to `result`, which has the floor; returns them as text.
std::string Breakdown(const BenchSetup& s, ordered_json* result);

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_BREAKDOWN_H_
