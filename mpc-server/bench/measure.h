// SPDX-License-Identifier: Apache-2.0
// Measures one setup: warms up, finds out how long a batch takes, runs, repeats, verifies.
#ifndef MPC_SERVER_BENCH_MEASURE_H_
#define MPC_SERVER_BENCH_MEASURE_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "mpc-server/bench/parties.h"

namespace mpckdc::bench {

// Over the runs.
struct Spread {
  double min = 0, median = 0, max = 0;
};
Spread SpreadOf(std::vector<double> values);

// What the runs of one kind of work gave.
struct Result {
  uint64_t batches = 0;  // of all runs
  Spread lanes_per_s;
  Spread lanes_per_cpu_s;  // CPU of the three parties together
  // From a batch's start at a party to its outputs there, the latest of the three parties.
  double p50_ms = 0, p99_ms = 0, max_ms = 0;
  double bytes_per_lane_per_party = 0;          // frames with their headers
  double payload_bytes_per_lane_per_party = 0;
  double rounds = 0;                            // of a batch
  double messages = 0;                          // sent for a batch by a party
  double minor_faults_per_batch = 0;            // of a party
  bool cost_as_declared = false;  // rounds, payload and messages are exactly what is declared

  double cpu_ns_per_lane_per_party() const { return 1e9 / (kParties * lanes_per_cpu_s.median); }
};

struct Measurement {
  BenchSetup setup;
  std::optional<Result> lanes, floor;
  bool verified = false;      // after every run of the protocol
  size_t verified_lanes = 0;  // each time
  // Bytes per lane and party, of the party that has most: the peak beyond the idle, connected
  // process, and the same less the keys and inputs, which are there anyway.
  double memory_per_lane = 0, memory_without_keys_per_lane = 0;
  uint64_t idle_bytes = 0;

  std::shared_ptr<const Measurement> ctr;  // of logins: as many under the CTR enctypes (run.cc)
};

struct MeasureOptions {
  bool lanes = true, floor = false;
  double seconds = 2;  // for each kind of work
  int runs = 3;
};

absl::StatusOr<Measurement> Measure(const BenchSetup& setup, const MeasureOptions& options,
                                    Parties& parties);

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_MEASURE_H_
