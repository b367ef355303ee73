// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/sim/runner.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <fstream>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/sim/world.h"

namespace mpckdc::sim {
namespace {

constexpr uint64_t kChunk = 20;
// A seed takes a fraction of a second. One that does not end is a failure too.
constexpr unsigned kLongestSeedSeconds = 300;

struct Chunk {
  uint64_t first, count;
};

volatile sig_atomic_t interrupted = 0;
void OnSignal(int) { interrupted = 1; }

// ---- One worker process ----

// A worker's report on its chunk; when the process died, one on the seed that killed it. The
// program is this one, even if its file has been replaced meanwhile.
absl::StatusOr<Report> RunChunk(const Chunk& chunk, Lying lying) {
  const std::string command =
      absl::StrCat("exec /proc/", getpid(), "/exe --worker --first=", chunk.first,
                   " --seeds=", chunk.count, lying == Lying::kOneServer ? " --liar" : "");
  std::FILE* const from = popen(command.c_str(), "r");
  if (from == nullptr) return absl::ErrnoToStatus(errno, "starting a worker");
  std::string output;
  char bytes[65536];
  for (size_t n; (n = std::fread(bytes, 1, sizeof(bytes), from)) > 0;) output.append(bytes, n);
  const int status = pclose(from);
  const std::vector<std::string> lines = absl::StrSplit(output, '\n', absl::SkipEmpty());
  if (!lines.empty()) {
    absl::StatusOr<Report> report = Report::FromJson(lines.back());
    if (report.ok()) return report;
  }
  Report report;
  report.first = chunk.first + (lines.empty() ? 0 : lines.size() - 1);
  report.seeds = 1;
  report.failures[report.first] =
      WIFSIGNALED(status)
          ? absl::StrCat("the process died: ", strsignal(WTERMSIG(status)), "; run it alone to see")
          : absl::StrCat("the process ended with status ", WEXITSTATUS(status));
  return report;
}

// ---- The state of a series ----

// Chunks begin at multiples of kChunk, so that overlapping series share them.
std::deque<Chunk> ChunksOf(const Series& series) {
  std::deque<Chunk> chunks;
  const uint64_t end = series.first + series.seeds;
  for (uint64_t at = series.first; at < end;) {
    const uint64_t next = std::min(end, (at / kChunk + 1) * kChunk);
    chunks.push_back({at, next - at});
    at = next;
  }
  return chunks;
}

// Adds the chunks that an earlier run did, and takes them off the list. A last line that was cut
// short by a crash is not one.
void TakeDone(const std::string& file, std::deque<Chunk>* chunks, Report* sum) {
  std::map<std::pair<uint64_t, uint64_t>, Report> done;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    absl::StatusOr<Report> report = Report::FromJson(line);
    if (report.ok()) done[{report->first, report->seeds}] = *std::move(report);
  }
  std::erase_if(*chunks, [&](const Chunk& chunk) {
    const auto it = done.find({chunk.first, chunk.count});
    if (it != done.end()) sum->Add(it->second);
    return it != done.end();
  });
}

class ProgressLine {
 public:
  explicit ProgressLine(uint64_t before, uint64_t all)
      : terminal_(isatty(STDERR_FILENO) != 0), before_(before), all_(all) {}
  ~ProgressLine() {
    if (terminal_) std::fprintf(stderr, "\r\033[K");
  }

  void Show(const Report& sum) {
    const absl::Time now = absl::Now();
    if (now < next_) return;
    next_ = now + (terminal_ ? absl::Milliseconds(500) : absl::Seconds(15));
    const double seconds = absl::ToDoubleSeconds(now - start_);
    const double rate = static_cast<double>(sum.seeds - before_) / std::max(seconds, 0.001);
    const auto left = static_cast<double>(all_ - sum.seeds);
    const std::string time =
        rate > 0 ? absl::FormatDuration(absl::Seconds(static_cast<int64_t>(left / rate))) : "?";
    const std::string text = absl::StrFormat(
        "%d of %d seeds (%d%%), %.0f a second, %s left, %d failed", sum.seeds, all_,
        100 * sum.seeds / std::max<uint64_t>(all_, 1), rate, time, sum.failures.size());
    std::fprintf(stderr, terminal_ ? "\r\033[K%s" : "%s\n", text.c_str());
  }

  // A line that stays.
  void Say(const std::string& text) {
    std::fprintf(stderr, "%s%s\n", terminal_ ? "\r\033[K" : "", text.c_str());
  }

 private:
  const bool terminal_;
  const uint64_t before_, all_;
  const absl::Time start_ = absl::Now();
  absl::Time next_ = absl::InfinitePast();
};

// ---- Running ----

class SeriesRunner {
 public:
  SeriesRunner(const Series& series, std::deque<Chunk> chunks, Progress* progress)
      : chunks_(std::move(chunks)),
        progress_(progress),
        line_(progress->sum.seeds, series.seeds),
        lying_(series.lying),
        state_(series.state_file.empty() ? nullptr : std::fopen(series.state_file.c_str(), "a")) {}
  ~SeriesRunner() {
    if (state_ != nullptr) std::fclose(state_);
  }

  absl::Status Run(int jobs) {
    std::vector<std::thread> threads;
    for (int i = 0; i < jobs; ++i) threads.emplace_back([this] { Work(); });
    for (std::thread& thread : threads) thread.join();
    const absl::MutexLock lock(&mu_);
    progress_->interrupted = interrupted && !chunks_.empty();
    return status_;
  }

 private:
  // One chunk after the other, each in a process.
  void Work() {
    const absl::MutexLock lock(&mu_);
    while (!chunks_.empty() && !interrupted && status_.ok()) {
      const Chunk chunk = chunks_.front();
      chunks_.pop_front();
      mu_.Unlock();
      const absl::StatusOr<Report> report = RunChunk(chunk, lying_);
      mu_.Lock();
      if (!report.ok()) {
        status_ = report.status();
      } else if (interrupted && report->seeds != chunk.count) {
        chunks_.push_front(chunk);  // it died of the same Ctrl-C
      } else {
        Keep(chunk, *report);
      }
    }
  }

  void Keep(const Chunk& chunk, const Report& report) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    progress_->sum.Add(report);
    for (const auto& [seed, what] : report.failures) {
      line_.Say(absl::StrCat("seed ", seed, " FAILED: ", what));
    }
    if (state_ != nullptr) {
      std::fprintf(state_, "%s\n", report.ToJson().c_str());
      std::fflush(state_);
    }
    line_.Show(progress_->sum);
    if (report.seeds == chunk.count) return;
    // The counts of the other seeds died with the process: they are run again, without the bad one.
    const uint64_t bad = report.first, end = chunk.first + chunk.count;
    if (bad > chunk.first) chunks_.push_front({chunk.first, bad - chunk.first});
    if (bad + 1 < end) chunks_.push_front({bad + 1, end - bad - 1});
  }

  absl::Mutex mu_;
  std::deque<Chunk> chunks_ ABSL_GUARDED_BY(mu_);
  Progress* const progress_ ABSL_PT_GUARDED_BY(mu_);
  ProgressLine line_ ABSL_GUARDED_BY(mu_);
  const Lying lying_;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
  std::FILE* const state_;
};

}  // namespace

absl::StatusOr<Progress> RunSeries(const Series& series) {
  Progress progress;
  std::deque<Chunk> chunks = ChunksOf(series);
  if (!series.state_file.empty()) TakeDone(series.state_file, &chunks, &progress.sum);
  struct sigaction action {};
  action.sa_handler = OnSignal;
  // The second Ctrl-C ends it at once.
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  SeriesRunner runner(series, std::move(chunks), &progress);
  RETURN_IF_ERROR(runner.Run(series.jobs));
  return progress;
}

int RunWorker(uint64_t first, uint64_t seeds, Lying lying) {
  Report report;
  report.first = first;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    std::printf("seed %lu\n", seed);
    std::fflush(stdout);
    alarm(kLongestSeedSeconds);
    report.Add(seed, World({.seed = seed, .lying = lying}).Run());
  }
  std::printf("%s\n", report.ToJson().c_str());
  return 0;
}

}  // namespace mpckdc::sim
