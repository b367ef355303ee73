// SPDX-License-Identifier: Apache-2.0
//
// A run: warm-up, then stages (one, or those of a ramp), then waiting for what is in flight.
#ifndef INTEGRATION_TESTS_STORM_RUN_H_
#define INTEGRATION_TESTS_STORM_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "integration-tests/storm/cpu_meter.h"
#include "integration-tests/storm/schedule.h"
#include "integration-tests/storm/tally.h"
#include "integration-tests/storm/users.h"
#include "integration-tests/storm/worker.h"

namespace mpckdc::storm {

struct RunPlan {
  LoadPlan load;               // in_flight is that of all threads together
  absl::Duration warm_up;
  std::vector<Stage> stages;
  int64_t count = 0;           // logins; 0: the stages' lengths decide
  absl::Duration knee_p99;     // a ramp's step with a larger p99 is beyond the knee
  bool show_progress = false;
};

// One stage as it was seen from outside: what ended in its time, and what the CPUs did meanwhile.
struct StageResult {
  double rate = 0;             // asked for; 0: closed loop
  double seconds = 0;
  uint64_t offered = 0;        // logins that were due
  uint64_t ok = 0;             // that ended well in these seconds
  uint64_t ended = 0;          // that were answered in these seconds
  bool kept = false;           // the KDC kept up
  Tally tally;                 // of the logins that began in this stage
  CpuMeter::Reading cpu;       // spent in these seconds
};

struct RunResult {
  std::vector<StageResult> stages;
  StageResult total;           // all of them
  Series series;               // warm-up included
  bool is_ramp = false;
  double knee_per_s = 0;       // of the last stage that kept up; 0: none
};

absl::StatusOr<RunResult> Run(const RunPlan& plan, std::vector<User>& users, const CpuMeter& cpu);

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_RUN_H_
