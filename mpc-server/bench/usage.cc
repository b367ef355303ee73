// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/usage.h"

#include <sys/resource.h>
#include <time.h>

#include <cstdio>
#include <cstring>

namespace mpckdc::bench {
namespace {

int64_t Ns(const timeval& t) { return t.tv_sec * 1'000'000'000LL + t.tv_usec * 1000LL; }

}  // namespace

Usage UsageOfProcess() {
  rusage u = {};
  getrusage(RUSAGE_SELF, &u);
  return {Ns(u.ru_utime) + Ns(u.ru_stime), static_cast<uint64_t>(u.ru_minflt)};
}

int64_t MonotonicNs() {
  timespec t = {};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

// VmHWM and not ru_maxrss: the latter survives exec(), so it would tell the parent's size.
Resident ResidentBytes() {
  Resident found;
  FILE* file = std::fopen("/proc/self/status", "r");
  if (file == nullptr) return found;
  char line[256];
  unsigned long kib = 0;
  while (std::fgets(line, sizeof(line), file) != nullptr) {
    if (std::sscanf(line, "VmRSS: %lu kB", &kib) == 1) found.now = kib << 10;
    if (std::sscanf(line, "VmHWM: %lu kB", &kib) == 1) found.peak = kib << 10;
  }
  std::fclose(file);
  return found;
}

bool ResetResidentPeak() {
  FILE* file = std::fopen("/proc/self/clear_refs", "w");
  if (file == nullptr) return false;
  const bool written = std::fputs("5", file) >= 0;
  return std::fclose(file) == 0 && written;
}

}  // namespace mpckdc::bench
