// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/sim/runner.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
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

class Worker {
 public:
  Worker() = default;
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  absl::Status Start(const Chunk& chunk);
  bool busy() const { return pid_ > 0; }
  int fd() const { return out_; }
  const Chunk& chunk() const { return chunk_; }
  // Reads what has come; false at the end of it.
  bool Read();
  // Then: the chunk's report; when the process died, a report on the seed that killed it.
  Report End();

 private:
  pid_t pid_ = -1;
  int out_ = -1;
  std::string output_;
  Chunk chunk_{0, 0};
};

Worker::~Worker() {
  if (!busy()) return;
  kill(pid_, SIGKILL);
  End();
}

absl::Status Worker::Start(const Chunk& chunk) {
  int from[2];
  if (pipe2(from, O_CLOEXEC) != 0) {
    return absl::UnavailableError(absl::StrCat("pipe: ", std::strerror(errno)));
  }
  const std::string first = absl::StrCat("--first=", chunk.first);
  const std::string seeds = absl::StrCat("--seeds=", chunk.count);
  pid_ = fork();
  if (pid_ == 0) {
    // A process group of its own: Ctrl-C is the parent's, which lets chunks end.
    setpgid(0, 0);
    dup2(from[1], 1);
    execl("/proc/self/exe", "mpc-sim", "--worker", first.c_str(), seeds.c_str(), nullptr);
    _exit(127);
  }
  close(from[1]);
  out_ = from[0];
  output_.clear();
  chunk_ = chunk;
  if (pid_ < 0) return absl::UnavailableError(absl::StrCat("fork: ", std::strerror(errno)));
  return absl::OkStatus();
}

bool Worker::Read() {
  char bytes[65536];
  const ssize_t n = read(out_, bytes, sizeof(bytes));
  if (n > 0) output_.append(bytes, static_cast<size_t>(n));
  return n > 0;
}

Report Worker::End() {
  int status = 0;
  waitpid(std::exchange(pid_, -1), &status, 0);
  close(std::exchange(out_, -1));
  const std::vector<std::string> lines = absl::StrSplit(output_, '\n', absl::SkipEmpty());
  if (!lines.empty()) {
    absl::StatusOr<Report> report = Report::FromJson(lines.back());
    if (report.ok()) return *std::move(report);
  }
  Report report;
  report.first = chunk_.first + (lines.empty() ? 0 : lines.size() - 1);
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
  std::deque<Chunk> left;
  for (const Chunk& chunk : *chunks) {
    const auto it = done.find({chunk.first, chunk.count});
    if (it == done.end()) {
      left.push_back(chunk);
    } else {
      sum->Add(it->second);
    }
  }
  *chunks = std::move(left);
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
      : chunks_(std::move(chunks)), progress_(progress),
        line_(progress->sum.seeds, series.seeds),
        state_(series.state_file.empty() ? nullptr
                                         : std::fopen(series.state_file.c_str(), "a")),
        workers_(static_cast<size_t>(series.jobs)) {}
  ~SeriesRunner() {
    if (state_ != nullptr) std::fclose(state_);
  }

  absl::Status Run();

 private:
  absl::Status Feed(Worker& worker);
  void Hear(Worker& worker);
  void Keep(const Report& report);

  std::deque<Chunk> chunks_;
  Progress* const progress_;
  ProgressLine line_;
  std::FILE* const state_;
  std::vector<Worker> workers_;
};

void SeriesRunner::Keep(const Report& report) {
  progress_->sum.Add(report);
  for (const auto& [seed, what] : report.failures) {
    line_.Say(absl::StrCat("seed ", seed, " FAILED: ", what));
  }
  if (state_ == nullptr) return;
  std::fprintf(state_, "%s\n", report.ToJson().c_str());
  std::fflush(state_);
}

absl::Status SeriesRunner::Feed(Worker& worker) {
  if (worker.busy() || chunks_.empty() || interrupted) return absl::OkStatus();
  const Chunk chunk = chunks_.front();
  chunks_.pop_front();
  return worker.Start(chunk);
}

void SeriesRunner::Hear(Worker& worker) {
  if (worker.Read()) return;
  const Chunk chunk = worker.chunk();
  const Report report = worker.End();
  Keep(report);
  if (report.seeds == chunk.count) return;
  // The counts of the other seeds died with the process: they are run again, without the bad one.
  const uint64_t bad = report.first, end = chunk.first + chunk.count;
  if (bad > chunk.first) chunks_.push_front({chunk.first, bad - chunk.first});
  if (bad + 1 < end) chunks_.push_front({bad + 1, end - bad - 1});
}

absl::Status SeriesRunner::Run() {
  while (true) {
    std::vector<pollfd> fds;
    std::vector<Worker*> polled;
    for (Worker& worker : workers_) {
      RETURN_IF_ERROR(Feed(worker));
      if (!worker.busy()) continue;
      fds.push_back({worker.fd(), POLLIN, 0});
      polled.push_back(&worker);
    }
    if (fds.empty()) break;
    poll(fds.data(), fds.size(), 500);
    for (size_t i = 0; i < fds.size(); ++i) {
      if (fds[i].revents != 0) Hear(*polled[i]);
    }
    line_.Show(progress_->sum);
    if (interrupted) break;
  }
  progress_->interrupted = interrupted && !chunks_.empty();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Progress> RunSeries(const Series& series) {
  Progress progress;
  std::deque<Chunk> chunks = ChunksOf(series);
  if (!series.state_file.empty()) TakeDone(series.state_file, &chunks, &progress.sum);
  struct sigaction action {};
  action.sa_handler = OnSignal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second Ctrl-C ends it at once
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  SeriesRunner runner(series, std::move(chunks), &progress);
  RETURN_IF_ERROR(runner.Run());
  return progress;
}

int RunWorker(uint64_t first, uint64_t seeds) {
  Report report;
  report.first = first;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    std::printf("seed %lu\n", seed);
    std::fflush(stdout);
    alarm(kLongestSeedSeconds);
    report.Add(seed, World({.seed = seed}).Run());
  }
  std::printf("%s\n", report.ToJson().c_str());
  return 0;
}

}  // namespace mpckdc::sim
