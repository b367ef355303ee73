// SPDX-License-Identifier: Apache-2.0
// Measures one setup: warms up, finds out how long a batch takes, runs, repeats, verifies.
#ifndef MPC_SERVER_BENCH_MEASURE_H_
#define MPC_SERVER_BENCH_MEASURE_H_

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "mpc-server/bench/kernel_costs.h"
#include "mpc-server/bench/parties.h"

namespace mpckdc::bench {

Spread SpreadOf(std::vector<double> values);

// What the runs of one kind of work gave.
struct Result {
  uint64_t batches = 0;  // of all runs
  Spread blocks_per_s;
  Spread blocks_per_cpu_s;  // CPU of the three parties together
  // From a batch's start at a party to its outputs there, the latest of the three parties.
  double p50_ms = 0, p99_ms = 0;
  double bytes_per_block_per_party = 0;          // frames with their headers
  double payload_bytes_per_block_per_party = 0;
  double rounds = 0;                             // of a batch
  double messages = 0;                           // sent for a batch by a party
  double minor_faults_per_batch = 0;             // of a party
  bool cost_as_declared = false;  // rounds, payload and messages are exactly what is declared

  double cpu_ns_per_block_per_party() const {
    return 1e9 / (kParties * blocks_per_cpu_s.median);
  }
};

struct Measurement {
  BenchSetup setup;
  std::optional<Result> aes, floor;
  bool verified = false;      // after every run of AES
  size_t verified_lanes = 0;  // each time
  // Bytes per block and party, of the party that has most: the peak beyond the idle, connected
  // process, and the same less the keys and inputs, which are there anyway.
  double memory_per_block = 0, memory_without_keys_per_block = 0;
  uint64_t idle_bytes = 0;
};

struct MeasureOptions {
  bool aes = true, floor = false;
  double seconds = 2;  // for each kind of work
  int runs = 3;
};

absl::StatusOr<Measurement> Measure(const BenchSetup& setup, const MeasureOptions& options,
                                    Parties& parties);

// What one batch makes a party send, all teams together. Rounds are those of one.
DeclaredSends DeclaredOfAll(const BenchSetup& setup);

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_MEASURE_H_
