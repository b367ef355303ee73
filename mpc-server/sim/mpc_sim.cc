// SPDX-License-Identifier: Apache-2.0
//
// mpc-sim: simulated realms, one per seed. doc/simulation.md; `mpc-sim --help`.
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/flags/usage_config.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/job/digest.h"
#include "mpc-server/sim/lies.h"
#include "mpc-server/sim/runner.h"
#include "mpc-server/sim/world.h"

ABSL_FLAG(uint64_t, seeds, 1000, "how many seeds to run");
ABSL_FLAG(uint64_t, first, 1, "the first one");
ABSL_FLAG(int, jobs, 0, "worker processes; 0: as many as processors");
ABSL_FLAG(bool, verbose, false, "run in this process, print what happened in each run");
ABSL_FLAG(std::string, commit, "unknown", "named in the report: git describe --always --dirty");
ABSL_FLAG(std::string, state_dir, "",
          "keep finished seeds here, per commit and program, and go on from there; "
          "empty: begin anew");
ABSL_FLAG(std::string, json, "", "write the report to this file too");
ABSL_FLAG(bool, liar, false, "in place of faults one server of each realm lies");
ABSL_FLAG(uint64_t, lies, 0,
          "instead of whole realms: so many short computations, in each of which one server lies");
ABSL_FLAG(bool, worker, false, "internal: report on these seeds to mpc-sim");

namespace mpckdc::sim {
namespace {

const char kUsage[] =
    "simulates whole realms under faults, one per seed.\n\n"
    "  mpc-sim --seeds=1000 --jobs=2        seeds 1 to 1000\n"
    "  mpc-sim --first=17 --seeds=1 --verbose\n"
    "                                       seed 17 again, with all that happened\n"
    "  mpc-sim --lies=1000000               one server lies, a million times\n\n"
    "Three production engines, a KDC and an administrator run under a simulated clock, network\n"
    "and disk. A seed decides everything, so a seed that failed fails again in the same way, with\n"
    "the same program. Exit status: 0 all held, 1 a seed failed, 2 wrong use, 130 interrupted\n"
    "(the same command goes on when --state_dir is given). mpc-server/doc/simulation.md says what "
    "is\n"
    "modelled and asserted.";

// The file of finished chunks: another program, or another commit, begins anew.
std::string StateFile(const std::string& dir, const std::string& commit) {
  if (dir.empty()) return "";
  mkdir(dir.c_str(), 0755);
  std::ifstream self("/proc/self/exe", std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(self), {});
  const Digest digest = Sha256(bytes);
  std::string name = absl::StrCat(dir, "/", commit, "-");
  for (size_t i = 0; i < 6; ++i) absl::StrAppend(&name, absl::Hex(digest[i], absl::kZeroPad2));
  return absl::StrCat(name, ".jsonl");
}

int RunVerbosely(uint64_t first, uint64_t seeds, Lying lying) {
  Report sum;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    const Outcome outcome = World({.seed = seed, .lying = lying}).Run();
    sum.Add(seed, outcome);
    std::printf("seed %lu: %s\n", seed, outcome.violations.empty() ? "all held" : "FAILED");
    for (const std::string& line : outcome.log) std::printf("  %s\n", line.c_str());
  }
  if (seeds > 1) std::printf("%s", sum.Summary().c_str());
  return sum.failures.empty() ? 0 : 1;
}

int Print(const Progress& progress, const Series& series, const std::string& commit) {
  const Report& sum = progress.sum;
  std::printf("%s", sum.Summary().c_str());
  for (const auto& [seed, what] : sum.failures) {
    std::printf("seed %lu at commit %s FAILED: %s\n", seed, commit.c_str(), what.c_str());
    std::printf("  replay: mpc-sim --first=%lu --seeds=1 --verbose\n", seed);
  }
  std::printf("%lu of %lu seeds from %lu at commit %s: %zu failed\n", sum.seeds, series.seeds,
              series.first, commit.c_str(), sum.failures.size());
  if (progress.interrupted) {
    std::printf(series.state_file.empty() ? "interrupted\n"
                                          : "interrupted; the same command goes on from here\n");
    return 130;
  }
  return sum.failures.empty() ? 0 : 1;
}

// Semi-honest servers let lies through: a run that sees none of it would see nothing in active mode
// either.
int TellLies(uint64_t first, uint64_t lies, int jobs) {
  const LieCounts counts = RunLies(first, lies, jobs);
  std::printf("%s", counts.Summary().c_str());
  if (TestedSecurity() == Security::kActive) return counts.failures == 0 ? 0 : 1;
  std::printf("semi-honest servers: failures are what there is to see\n");
  return counts.failures > 0 ? 0 : 1;
}

int Main() {
  const uint64_t first = absl::GetFlag(FLAGS_first), seeds = absl::GetFlag(FLAGS_seeds);
  const Lying lying = absl::GetFlag(FLAGS_liar) ? Lying::kOneServer : Lying::kNobody;
  if (absl::GetFlag(FLAGS_worker)) return RunWorker(first, seeds, lying);
  if (absl::GetFlag(FLAGS_verbose)) return RunVerbosely(first, seeds, lying);
  const std::string commit = absl::GetFlag(FLAGS_commit);
  const int processors = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const int jobs = absl::GetFlag(FLAGS_jobs) > 0 ? absl::GetFlag(FLAGS_jobs) : processors;
  if (const uint64_t lies = absl::GetFlag(FLAGS_lies); lies > 0) return TellLies(first, lies, jobs);
  const Series series{
      first, seeds, jobs,
      lying == Lying::kNobody ? StateFile(absl::GetFlag(FLAGS_state_dir), commit) : "", lying};
  const absl::StatusOr<Progress> progress = RunSeries(series);
  if (!progress.ok()) {
    std::fprintf(stderr, "mpc-sim: %s\n", std::string(progress.status().message()).c_str());
    return 2;
  }
  const std::string json = absl::GetFlag(FLAGS_json);
  if (!json.empty()) {
    Report named = progress->sum;
    named.first = first;
    std::ofstream(json) << named.ToJson() << "\n";
  }
  return Print(*progress, series, commit);
}

}  // namespace
}  // namespace mpckdc::sim

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(mpckdc::sim::kUsage);
  absl::FlagsUsageConfig config;
  config.contains_help_flags = [](absl::string_view file) {
    return absl::EndsWith(file, "mpc_sim.cc");
  };
  absl::SetFlagsUsageConfig(config);
  if (absl::ParseCommandLine(argc, argv).size() > 1) {
    std::fprintf(stderr, "mpc-sim: unexpected argument; see mpc-sim --help\n");
    return 2;
  }
  return mpckdc::sim::Main();
}
