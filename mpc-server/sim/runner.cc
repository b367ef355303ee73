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
#include <iostream>
#include <memory>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
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
  ~Worker() { Stop(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  absl::Status Start();
  void Stop();
  absl::Status Give(const Chunk& chunk);
  bool busy() const { return chunk_.count > 0; }
  int fd() const { return out_; }
  // Reads what has come. A chunk's report when it is done; when the worker died, a report on the
  // seeds up to the one that killed it, and `rest` is what remains.
  absl::StatusOr<Report> Read(Chunk* rest);

 private:
  Report Died(Chunk* rest);

  pid_t pid_ = -1;
  int in_ = -1, out_ = -1;
  std::string buffer_;
  Chunk chunk_{0, 0};
  uint64_t seed_ = 0;  // under way
};

absl::Status Worker::Start() {
  int to[2], from[2];
  if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) {
    return absl::UnavailableError(absl::StrCat("pipe: ", std::strerror(errno)));
  }
  pid_ = fork();
  if (pid_ == 0) {
    // A process group of its own: Ctrl-C is the parent's, which lets chunks end.
    setpgid(0, 0);
    dup2(to[0], 0);
    dup2(from[1], 1);
    execl("/proc/self/exe", "mpc-sim", "--worker", static_cast<char*>(nullptr));
    _exit(127);
  }
  close(to[0]);
  close(from[1]);
  in_ = to[1];
  out_ = from[0];
  buffer_.clear();
  if (pid_ < 0) return absl::UnavailableError(absl::StrCat("fork: ", std::strerror(errno)));
  return absl::OkStatus();
}

void Worker::Stop() {
  if (in_ >= 0) close(in_);
  if (out_ >= 0) close(out_);
  in_ = out_ = -1;
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_ = -1;
}

absl::Status Worker::Give(const Chunk& chunk) {
  chunk_ = chunk;
  seed_ = chunk.first;
  const std::string line = absl::StrCat(chunk.first, " ", chunk.count, "\n");
  if (write(in_, line.data(), line.size()) == static_cast<ssize_t>(line.size())) {
    return absl::OkStatus();
  }
  return absl::UnavailableError("a worker does not listen");
}

// The seeds before the one that ended it ran well, but their counts died with the worker: they are
// run again.
Report Worker::Died(Chunk* rest) {
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  Report report;
  report.first = seed_;
  report.seeds = 1;
  report.failures[seed_] =
      WIFSIGNALED(status)
          ? absl::StrCat("the process died: ", strsignal(WTERMSIG(status)), "; run it alone to see")
          : absl::StrCat("the process ended with status ", WEXITSTATUS(status));
  *rest = chunk_;
  chunk_.count = 0;
  return report;
}

absl::StatusOr<Report> Worker::Read(Chunk* rest) {
  char bytes[65536];
  const ssize_t n = read(out_, bytes, sizeof(bytes));
  if (n <= 0) return Died(rest);
  buffer_.append(bytes, static_cast<size_t>(n));
  size_t end;
  while ((end = buffer_.find('\n')) != std::string::npos) {
    const std::string line = buffer_.substr(0, end);
    buffer_.erase(0, end + 1);
    if (absl::StartsWith(line, "seed ")) {
      if (!absl::SimpleAtoi(line.substr(5), &seed_)) return absl::DataLossError(line);
      continue;
    }
    chunk_.count = 0;
    rest->count = 0;
    return Report::FromJson(line);
  }
  return absl::DeadlineExceededError("more to come");
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
  absl::Status Hear(Worker& worker);
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
  if (worker.fd() < 0) {
    if (absl::Status s = worker.Start(); !s.ok()) return s;
  }
  const Chunk chunk = chunks_.front();
  chunks_.pop_front();
  return worker.Give(chunk);
}

absl::Status SeriesRunner::Hear(Worker& worker) {
  Chunk rest{0, 0};
  const absl::StatusOr<Report> report = worker.Read(&rest);
  if (absl::IsDeadlineExceeded(report.status())) return absl::OkStatus();
  if (!report.ok()) return report.status();
  Keep(*report);
  if (rest.count == 0) return absl::OkStatus();
  // Without the seed that killed it.
  const uint64_t bad = report->first;
  if (bad > rest.first) chunks_.push_front({rest.first, bad - rest.first});
  if (bad + 1 < rest.first + rest.count) {
    chunks_.push_front({bad + 1, rest.first + rest.count - bad - 1});
  }
  worker.Stop();
  return absl::OkStatus();
}

absl::Status SeriesRunner::Run() {
  while (true) {
    std::vector<pollfd> fds;
    std::vector<Worker*> polled;
    for (Worker& worker : workers_) {
      if (absl::Status s = Feed(worker); !s.ok()) return s;
      if (!worker.busy()) continue;
      fds.push_back({worker.fd(), POLLIN, 0});
      polled.push_back(&worker);
    }
    if (fds.empty()) break;
    poll(fds.data(), fds.size(), 500);
    for (size_t i = 0; i < fds.size(); ++i) {
      if (fds[i].revents == 0) continue;
      if (absl::Status s = Hear(*polled[i]); !s.ok()) return s;
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
  signal(SIGPIPE, SIG_IGN);
  struct sigaction action {};
  action.sa_handler = OnSignal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second Ctrl-C ends it at once
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  SeriesRunner runner(series, std::move(chunks), &progress);
  if (absl::Status s = runner.Run(); !s.ok()) return s;
  return progress;
}

int RunWorker() {
  for (std::string line; std::getline(std::cin, line);) {
    Chunk chunk{0, 0};
    if (std::sscanf(line.c_str(), "%lu %lu", &chunk.first, &chunk.count) != 2) return 2;
    Report report;
    report.first = chunk.first;
    for (uint64_t seed = chunk.first; seed < chunk.first + chunk.count; ++seed) {
      std::printf("seed %lu\n", seed);
      std::fflush(stdout);
      alarm(kLongestSeedSeconds);
      report.Add(seed, World({.seed = seed}).Run());
    }
    std::printf("%s\n", report.ToJson().c_str());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace mpckdc::sim
