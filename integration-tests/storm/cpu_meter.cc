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

absl::StatusOr<CpuMeter> CpuMeter::Watch(std::vector<WatchedProcess> processes) {
  CpuMeter meter;
  for (const WatchedProcess& process : processes) {
    if (CpuSecondsOf(process.pid) < 0) {
      return absl::NotFoundError(
          absl::StrCat("--pid ", process.name, "=", process.pid, ": no such process"));
    }
    if (std::find(meter.names_.begin(), meter.names_.end(), process.name) == meter.names_.end()) {
      meter.names_.push_back(process.name);
    }
  }
  meter.processes_ = std::move(processes);
  return meter;
}

CpuMeter::Reading CpuMeter::Read() const {
  Reading reading;
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  reading.own = Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
  for (const std::string& name : names_) {
    double sum = 0;
    for (const WatchedProcess& process : processes_) {
      if (process.name != name) continue;
      const double seconds = CpuSecondsOf(process.pid);
      sum += seconds < 0 ? std::nan("") : seconds;
    }
    reading.others.push_back(sum);
  }
  return reading;
}

}  // namespace mpckdc::storm
