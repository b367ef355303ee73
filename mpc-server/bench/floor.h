// SPDX-License-Identifier: Apache-2.0
// The messages of a batch of blocks and nothing else: the same sizes, rounds and overlap as the
// protocol's, from and into buffers that nobody computes or reads. What it costs is the least that
// this channel needs for these messages.
#ifndef MPC_SERVER_BENCH_FLOOR_H_
#define MPC_SERVER_BENCH_FLOOR_H_

#include <memory>

#include "mpc-server/bench/workload.h"

namespace mpckdc::bench {

// The sessions of its rings must have Randomness::kKeyed: its messages have what is exchanged.
std::unique_ptr<TeamWork> MakeFloor(const BenchSetup& setup, size_t lanes);

// Payload sizes of the rounds of a part of `lanes` blocks, in order.
std::vector<size_t> RoundSizes(const BenchSetup& setup, size_t lanes);

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_FLOOR_H_
