// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/cpu_meter.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace mpckdc::storm {
namespace {

double CpuSecondsOf(pid_t pid) {
  std::string line;
  std::getline(std::ifstream(absl::StrCat("/proc/", pid, "/stat")), line);
  return CpuSecondsOfStat(line, sysconf(_SC_CLK_TCK));
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

}  // namespace

absl::StatusOr<WatchedProcess> ParseWatchedProcess(absl::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
  WatchedProcess process;
  if (parts.size() != 2 || parts[0].empty() || !absl::SimpleAtoi(parts[1], &process.pid) ||
      process.pid <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--pid \"", text, "\" is not NAME=PID, as kdc=1234"));
  }
  process.name = parts[0];
  return process;
}

double CpuSecondsOfStat(absl::string_view line, long ticks_per_second) {
  // pid (name) state ...: the name may hold anything, a parenthesis too.
  const size_t name_end = line.rfind(')');
  if (name_end == absl::string_view::npos) return -1;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(line.substr(name_end + 1), ' ', absl::SkipEmpty());
  constexpr size_t kUtime = 11, kStime = 12;  // 14th and 15th of proc(5), two of them before ')'
  uint64_t utime = 0, stime = 0;
  if (fields.size() <= kStime || !absl::SimpleAtoi(fields[kUtime], &utime) ||
      !absl::SimpleAtoi(fields[kStime], &stime)) {
    return -1;
  }
  return static_cast<double>(utime + stime) / static_cast<double>(ticks_per_second);
}

absl::Status CheckRunning(const std::vector<WatchedProcess>& processes) {
  for (const auto& [name, pid] : processes) {
    if (CpuSecondsOf(pid) >= 0) continue;
    return absl::NotFoundError(absl::StrCat("--pid ", name, "=", pid, ": no such process"));
  }
  return absl::OkStatus();
}

CpuTimes ReadCpu(const std::vector<WatchedProcess>& processes) {
  CpuTimes times;
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  times.own = Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
  for (const auto& [name, pid] : processes) {
    const double seconds = CpuSecondsOf(pid);
    auto sum = std::find_if(times.others.begin(), times.others.end(),
                            [&](const auto& other) { return other.first == name; });
    if (sum == times.others.end()) sum = times.others.insert(sum, {name, 0});
    sum->second += seconds < 0 ? std::nan("") : seconds;
  }
  return times;
}

}  // namespace mpckdc::storm
