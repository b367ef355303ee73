// SPDX-License-Identifier: Apache-2.0
//
// CPU time of other processes, all their threads together, those that have ended too.
#ifndef INTEGRATION_TESTS_STORM_CPU_METER_H_
#define INTEGRATION_TESTS_STORM_CPU_METER_H_

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mpckdc::storm {

// --pid NAME=PID; several processes may have one name (a KDC's workers), their times are added.
struct WatchedProcess {
  std::string name;
  pid_t pid = 0;
};
absl::StatusOr<WatchedProcess> ParseWatchedProcess(absl::string_view text);

// utime + stime of a line of /proc/PID/stat, in seconds; negative when it is no such line.
double CpuSecondsOfStat(absl::string_view line, long ticks_per_second);

// An error when one of them does not run.
absl::Status CheckRunning(const std::vector<WatchedProcess>& processes);

struct CpuTimes {
  double own = 0;                                      // seconds, of this process
  std::vector<std::pair<std::string, double>> others;  // by name; NaN when one has ended
};
CpuTimes ReadCpu(const std::vector<WatchedProcess>& processes);

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_CPU_METER_H_
