// SPDX-License-Identifier: Apache-2.0
// What this process has used so far, as the kernel counts it.
#ifndef MPC_SERVER_BENCH_USAGE_H_
#define MPC_SERVER_BENCH_USAGE_H_

#include <cstdint>

namespace mpckdc::bench {

struct Usage {
  int64_t cpu_ns = 0;         // user and system, all threads
  uint64_t minor_faults = 0;  // pages touched for the first time, mostly

  friend Usage operator-(const Usage& a, const Usage& b) {
    return {a.cpu_ns - b.cpu_ns, a.minor_faults - b.minor_faults};
  }
};
Usage UsageOfProcess();

// CLOCK_MONOTONIC: the same in all processes of a machine.
int64_t MonotonicNs();

struct Resident {
  uint64_t now = 0;   // bytes
  uint64_t peak = 0;  // bytes, since ResetResidentPeak()
};
Resident ResidentBytes();
// False: the kernel does not allow it; the peak then counts from the process's start.
bool ResetResidentPeak();

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_USAGE_H_
