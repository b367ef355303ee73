// SPDX-License-Identifier: Apache-2.0
//
// Many seeds on several worker processes, a chunk of them each. A worker is this program again; a
// seed that kills its worker (a failed assertion) is a failed seed like others. Chunks of seeds that are done are lines
// of a file, so an interrupted series goes on where it was.
#ifndef MPC_SERVER_SIM_RUNNER_H_
#define MPC_SERVER_SIM_RUNNER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "mpc-server/sim/report.h"
#include "mpc-server/sim/world.h"

namespace mpckdc::sim {

struct Series {
  uint64_t first = 1;
  uint64_t seeds = 100;
  int jobs = 1;
  std::string state_file;  // empty: nothing is kept
  Lying lying = Lying::kNobody;
};

// The chunks of a series that are done; stops early, without an error, when interrupted.
struct Progress {
  Report sum;
  bool interrupted = false;
};
absl::StatusOr<Progress> RunSeries(const Series& series);

// A worker: says "seed N" before each of its seeds, and its report as one line of JSON in the end.
int RunWorker(uint64_t first, uint64_t seeds, Lying lying);

}  // namespace mpckdc::sim

#endif  // MPC_SERVER_SIM_RUNNER_H_
