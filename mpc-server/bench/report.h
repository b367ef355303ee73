// SPDX-License-Identifier: Apache-2.0
// What the parties say about a run, before anything is computed from it.
#ifndef MPC_SERVER_BENCH_REPORT_H_
#define MPC_SERVER_BENCH_REPORT_H_

#include <array>
#include <cstdint>
#include <vector>

#include "mpc-server/share/circuit.h"
#include "mpc-server/wire/ring.h"

namespace mpckdc::bench {

// One worker of one party over all batches of a run.
struct WorkerReport {
  std::vector<int64_t> latency_ns;  // of each batch
  Cost cost;                        // as the runner counted it
  uint64_t frames = 0;              // sent, as the channel counted
  uint64_t bytes = 0;               // sent, frame headers included
};

struct PartyReport {
  std::vector<WorkerReport> workers;
  int64_t start_ns = 0, end_ns = 0;  // MonotonicNs() around the whole run
};

struct RunReport {
  std::array<PartyReport, kParties> parties;
  uint32_t batches = 0;
  int64_t cpu_ns = 0;         // the three parties together, user and system
  uint64_t minor_faults = 0;  // the three parties together
};

// Of one party's process, or of a third of the process that holds all three.
struct MemoryReport {
  uint64_t idle_bytes = 0;  // resident: connected, no keys yet
  uint64_t peak_bytes = 0;  // resident, at most, since then
  uint64_t key_bytes = 0;   // of the batch's keys and inputs, which a server has anyway
};

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_REPORT_H_
