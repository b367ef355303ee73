// SPDX-License-Identifier: Apache-2.0
//
// mpc-sim [--seeds N] [--first-seed S] [--verbose]: runs seeds S, S+1, ... and prints each failure
// with its seed. Exit status 1 when any seed failed.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "absl/strings/numbers.h"
#include "mpc-server/sim/world.h"

namespace mpckdc::sim {
namespace {

struct Arguments {
  uint64_t seeds = 100;
  uint64_t first = 1;
  bool verbose = false;
};

bool Parse(int argc, char** argv, Arguments* out) {
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const bool number = arg == "--seeds" || arg == "--first-seed";
    if (number && i + 1 < argc &&
        absl::SimpleAtoi(argv[i + 1], arg == "--seeds" ? &out->seeds : &out->first)) {
      ++i;
    } else if (arg == "--verbose") {
      out->verbose = true;
    } else {
      return false;
    }
  }
  return true;
}

int Main(const Arguments& args) {
  uint64_t failed = 0;
  std::map<std::string, int> faults, verdicts;
  int logins = 0, logins_ok = 0;
  for (uint64_t seed = args.first; seed < args.first + args.seeds; ++seed) {
    const Outcome outcome = World({.seed = seed}).Run();
    for (const auto& [name, count] : outcome.faults) faults[name] += count;
    for (const auto& [name, count] : outcome.verdicts) verdicts[name] += count;
    logins += outcome.logins;
    logins_ok += outcome.logins_ok;
    if (!outcome.violations.empty()) {
      ++failed;
      std::printf("seed %llu FAILED: %s\n", static_cast<unsigned long long>(seed),
                  outcome.violations[0].c_str());
    }
    if (args.verbose || (!outcome.violations.empty() && args.seeds == 1)) {
      for (const std::string& line : outcome.log) std::printf("  %s\n", line.c_str());
    }
    if (seed % 100 == 0) std::fprintf(stderr, "seed %llu\n", static_cast<unsigned long long>(seed));
  }
  std::printf("%llu seeds, %llu failed; %d of %d logins succeeded under faults\n",
              static_cast<unsigned long long>(args.seeds), static_cast<unsigned long long>(failed),
              logins_ok, logins);
  for (const auto& [name, count] : faults) std::printf("  fault %s: %d\n", name.c_str(), count);
  for (const auto& [name, count] : verdicts) std::printf("  %s: %d\n", name.c_str(), count);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace mpckdc::sim

int main(int argc, char** argv) {
  mpckdc::sim::Arguments args;
  if (!mpckdc::sim::Parse(argc, argv, &args)) {
    std::fprintf(stderr, "usage: mpc-sim [--seeds N] [--first-seed S] [--verbose]\n");
    return 2;
  }
  return mpckdc::sim::Main(args);
}
