// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/run.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "integration-tests/storm/limits.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc::storm {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(10);

// One line that is written over, on a terminal.
class Progress {
 public:
  explicit Progress(const Control& control) : control_(control) {}
  ~Progress() {
    if (shown_) fprintf(stderr, "\r\033[K");
  }

  void Tick(absl::Time now, absl::string_view stage) {
    if (!shown_ || now < next_) return;
    const uint64_t ok = control_.ok;
    const double rate = static_cast<double>(ok - last_ok_) / absl::ToDoubleSeconds(now - last_);
    if (last_ != absl::InfinitePast()) {
      const std::string line =
          absl::StrFormat("%s: %d logins, %.0f/s, %d in flight, %d in trouble", stage, ok, rate,
                          control_.in_flight.load(), control_.trouble.load());
      fprintf(stderr, "\r\033[K%s", line.c_str());
    }
    last_ok_ = ok;
    last_ = now;
    next_ = now + limits::kProgressInterval;
  }

 private:
  const bool shown_ = isatty(STDERR_FILENO) == 1;
  const Control& control_;
  uint64_t last_ok_ = 0;
  absl::Time last_ = absl::InfinitePast();
  absl::Time next_ = absl::InfinitePast();
};

struct Snapshot {
  absl::Time at;
  uint64_t started, ok, ended;
  CpuTimes cpu;
};

StageResult Between(const Snapshot& from, const Snapshot& to, double rate) {
  StageResult r = {.rate = rate,
                   .seconds = absl::ToDoubleSeconds(to.at - from.at),
                   .offered = to.started - from.started,
                   .ok = to.ok - from.ok,
                   .ended = to.ended - from.ended,
                   .tally = {},
                   .cpu = to.cpu};
  r.cpu.own -= from.cpu.own;
  for (size_t i = 0; i < r.cpu.others.size(); ++i) {
    r.cpu.others[i].second -= from.cpu.others[i].second;
  }
  return r;
}

// As far as can be known while it runs: whether the KDC answered what was due. The rest (p99, what
// is lost later) is judged at the end.
bool AnsweredEnough(const StageResult& stage) {
  return static_cast<double>(stage.ended) >=
         limits::kKneeShareAnswered * static_cast<double>(stage.offered);
}

bool KeptUp(const StageResult& stage, absl::Duration knee_p99) {
  return AnsweredEnough(stage) && stage.tally.lost == 0 && stage.tally.shed == 0 &&
         stage.tally.login.count() > 0 && stage.tally.login.Percentile(99) <= knee_p99;
}

class Runner {
 public:
  Runner(const Options& o, Load& load, Control& control)
      : o_(o), stages_(StagesOf(o)), load_(load), control_(control), progress_(control) {}

  absl::StatusOr<RunResult> Run() {
    result_.is_ramp = stages_.size() > 1;
    if (o_.warm_up > absl::ZeroDuration()) {
      control_.stage = kWarmUpStage;
      Sleep(o_.warm_up, "warm-up");
    }
    const Snapshot begin = Look();
    RunStages();
    const Snapshot end = Look();
    control_.stop = true;
    while (!load_.HasEnded()) {
      progress_.Tick(MonotonicNow(), "waiting for the last answers");
      absl::SleepFor(kTick);
    }
    result_.total = Between(begin, end, stages_.front().rate);
    std::vector<Tally> tallies(stages_.size() + 1);
    RETURN_IF_ERROR(load_.End(tallies, result_.series));
    AddUp(tallies);
    return std::move(result_);
  }

 private:
  Snapshot Look() const {
    return {MonotonicNow(), control_.started, control_.ok, control_.ended, ReadCpu(o_.processes)};
  }

  void RunStages() {
    // Between the stages nothing begins, so that whoever counts down the count sees its stage.
    if (o_.count > 0) control_.may_begin = 0;
    Snapshot before = Look();
    for (size_t i = 0; i < stages_.size() && !load_.HasFailed(); ++i) {
      const Stage& stage = stages_[i];
      control_.rate = stage.rate;
      control_.stage = static_cast<int>(i) + 1;
      if (o_.count > 0) control_.may_begin = o_.count;
      Sleep(stage.length,
            stage.rate > 0 ? absl::StrFormat("%.0f logins/s", stage.rate) : "running");
      const Snapshot after = Look();
      result_.stages.push_back(Between(before, after, stage.rate));
      before = after;
      if (stages_.size() > 1 && !AnsweredEnough(result_.stages.back())) break;
    }
  }

  // With a count: until as many have begun and nothing is in flight.
  bool CountIsDone() const {
    return o_.count > 0 && control_.may_begin <= 0 && control_.in_flight == 0;
  }

  void Sleep(absl::Duration length, absl::string_view stage) {
    const absl::Time end = MonotonicNow() + length;
    while (!load_.HasFailed()) {
      const absl::Time now = MonotonicNow();
      if (now >= end || CountIsDone()) return;
      load_.Tick();
      progress_.Tick(now, stage);
      absl::SleepFor(std::min(kTick, end - now));
    }
  }

  void AddUp(std::vector<Tally>& tallies) {
    for (size_t i = 0; i < result_.stages.size(); ++i) {
      StageResult& stage = result_.stages[i];
      stage.tally = std::move(tallies[i + 1]);
      result_.total.tally.Merge(stage.tally);
      stage.kept = KeptUp(stage, o_.knee_p99);
      if (!stage.kept) continue;
      result_.knee_per_s =
          std::max(result_.knee_per_s, static_cast<double>(stage.ok) / stage.seconds);
    }
    result_.total.kept = !result_.stages.empty() && result_.stages.back().kept;
  }

  const Options& o_;
  const std::vector<Stage> stages_;
  Load& load_;
  Control& control_;
  Progress progress_;
  RunResult result_;
};

}  // namespace

absl::Time MonotonicNow() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return absl::TimeFromTimespec(now);
}

// It is in flight before it is counted down: who sees that none may begin and none is in flight
// knows that all are done.
bool Control::MayBegin() {
  if (may_begin <= 0) return false;
  ++in_flight;
  if (may_begin.fetch_sub(1) > 0) return true;
  --in_flight;
  return false;
}

std::vector<Stage> StagesOf(const Options& o) {
  const absl::Duration length = o.count > 0 ? limits::kMaxDuration : o.duration;
  if (o.ramp_to == 0) return {{o.rate, length}};
  std::vector<Stage> stages;
  for (int i = 0; i < o.ramp_steps; ++i) {
    stages.push_back({o.rate + (o.ramp_to - o.rate) * i / (o.ramp_steps - 1), length});
  }
  return stages;
}

absl::StatusOr<RunResult> Run(const Options& options, Load& load, Control& control) {
  return Runner(options, load, control).Run();
}

}  // namespace mpckdc::storm
