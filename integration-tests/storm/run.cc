// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/run.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "integration-tests/storm/catch_up.h"

namespace mpckdc::storm {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(20);
constexpr rlim_t kOtherDescriptors = 256;  // and the ports that linger after a resend

// A socket per login in flight.
void RaiseDescriptorLimit(size_t in_flight, int threads) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = in_flight + kOtherDescriptors +
                        static_cast<rlim_t>(threads) * limits::kMaxLingering;
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = wanted;
  limit.rlim_max = std::max(limit.rlim_max, wanted);
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return;  // root may
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);  // what is missing then, a socket's error says
}

// One line that is written over, on a terminal.
class Progress {
 public:
  Progress(bool shown, const Control& control) : shown_(shown), control_(control) {}
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
  const bool shown_;
  const Control& control_;
  uint64_t last_ok_ = 0;
  absl::Time last_ = absl::InfinitePast();
  absl::Time next_ = absl::InfinitePast();
};

// The threads of a run.
class Crew {
 public:
  Crew(const RunPlan& plan, std::vector<User>& users, Control* control, absl::Time begin) {
    const int threads = plan.load.threads;
    results_.resize(threads);
    for (int i = 0; i < threads; ++i) {
      LoadPlan part = plan.load;
      part.stages = plan.stages.size() + 1;
      part.in_flight = (plan.load.in_flight + threads - 1 - i) / threads;
      workers_.push_back(std::make_unique<Worker>(part, i, &users, control, begin));
    }
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this, i] {
        results_[i] = workers_[i]->Run();
        ++ended_;
      });
    }
  }

  bool AnyEnded() const { return ended_ > 0; }
  bool AllEnded() const { return ended_ == static_cast<int>(threads_.size()); }

  absl::Status Join() {
    for (std::thread& thread : threads_) thread.join();
    for (const absl::Status& result : results_) {
      if (!result.ok()) return result;
    }
    return absl::OkStatus();
  }

  std::vector<std::unique_ptr<Worker>>& workers() { return workers_; }

 private:
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::thread> threads_;
  std::vector<absl::Status> results_;
  std::atomic<int> ended_{0};
};

struct Snapshot {
  absl::Time at;
  uint64_t started, ok, ended;
  CpuMeter::Reading cpu;
};

Snapshot Look(const Control& control, const CpuMeter& cpu) {
  return {MonotonicNow(), control.started, control.ok, control.ended, cpu.Read()};
}

StageResult Between(const Snapshot& from, const Snapshot& to, double rate) {
  StageResult r;
  r.rate = rate;
  r.seconds = absl::ToDoubleSeconds(to.at - from.at);
  r.offered = to.started - from.started;
  r.ok = to.ok - from.ok;
  r.ended = to.ended - from.ended;
  r.cpu.own = to.cpu.own - from.cpu.own;
  for (size_t i = 0; i < to.cpu.others.size(); ++i) {
    r.cpu.others.push_back(to.cpu.others[i] - from.cpu.others[i]);
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
  Runner(const RunPlan& plan, std::vector<User>& users, const CpuMeter& cpu)
      : plan_(plan), users_(users), cpu_(cpu), progress_(plan.show_progress, control_) {}

  absl::StatusOr<RunResult> Run() {
    const double first_rate = plan_.stages.front().rate;
    control_.rate = first_rate;
    RaiseDescriptorLimit(plan_.load.in_flight, plan_.load.threads);
    result_.is_ramp = plan_.stages.size() > 1;
    Crew crew(plan_, users_, &control_, MonotonicNow());
    if (plan_.warm_up > absl::ZeroDuration()) {
      control_.stage = kWarmUpStage;
      Sleep(crew, plan_.warm_up, "warm-up");
    }
    const Snapshot begin = Look(control_, cpu_);
    RunStages(crew);
    const Snapshot end = Look(control_, cpu_);
    control_.stop = true;
    while (!crew.AllEnded()) {
      progress_.Tick(MonotonicNow(), "waiting for the last answers");
      absl::SleepFor(kTick);
    }
    if (absl::Status s = crew.Join(); !s.ok()) return s;
    CatchUp(crew);
    result_.total = Between(begin, end, first_rate);
    AddUp(crew);
    return std::move(result_);
  }

 private:
  void RunStages(Crew& crew) {
    // Between the stages nothing begins, so that whoever counts down the count sees its stage.
    if (plan_.count > 0) control_.may_begin = 0;
    Snapshot before = Look(control_, cpu_);
    for (size_t i = 0; i < plan_.stages.size() && !crew.AnyEnded(); ++i) {
      const Stage& stage = plan_.stages[i];
      control_.rate = stage.rate;
      control_.stage = static_cast<int>(i) + 1;
      if (plan_.count > 0) control_.may_begin = plan_.count;
      Sleep(crew, stage.length,
            stage.rate > 0 ? absl::StrFormat("%.0f logins/s", stage.rate) : "running");
      const Snapshot after = Look(control_, cpu_);
      result_.stages.push_back(Between(before, after, stage.rate));
      before = after;
      if (plan_.stages.size() > 1 && !AnsweredEnough(result_.stages.back())) break;
    }
  }

  // While the crew's ports are still its own. Over TCP a connection that was given up answers
  // nobody; and a KDC that never said anything will not now.
  void CatchUp(Crew& crew) {
    bool any_resent = false;
    for (const std::unique_ptr<Worker>& worker : crew.workers()) {
      any_resent = any_resent || worker->any_retired();
    }
    if (!any_resent || plan_.load.tcp || control_.ended == 0) return;
    WaitUntilCaughtUp(plan_.load, users_.front(), limits::kCatchUp);
  }

  // With a count: until as many have begun and nothing is in flight.
  bool CountIsDone() const {
    return plan_.count > 0 && control_.may_begin <= 0 && control_.in_flight == 0;
  }

  void Sleep(const Crew& crew, absl::Duration length, absl::string_view stage) {
    const absl::Time end = MonotonicNow() + length;
    while (!crew.AnyEnded()) {
      const absl::Time now = MonotonicNow();
      if (now >= end || CountIsDone()) return;
      progress_.Tick(now, stage);
      absl::SleepFor(std::min(kTick, end - now));
    }
  }

  void AddUp(Crew& crew) {
    for (const std::unique_ptr<Worker>& worker : crew.workers()) {
      result_.series.Merge(worker->series());
      for (size_t i = 0; i < result_.stages.size(); ++i) {
        result_.stages[i].tally.Merge(worker->tallies()[i + 1]);
      }
    }
    for (StageResult& stage : result_.stages) {
      result_.total.tally.Merge(stage.tally);
      stage.kept = KeptUp(stage, plan_.knee_p99);
      if (stage.kept) {
        result_.knee_per_s =
            std::max(result_.knee_per_s, static_cast<double>(stage.ok) / stage.seconds);
      }
    }
    result_.total.kept = result_.stages.back().kept;
  }

  const RunPlan& plan_;
  std::vector<User>& users_;
  const CpuMeter& cpu_;
  Control control_;
  Progress progress_;
  RunResult result_;
};

}  // namespace

absl::StatusOr<RunResult> Run(const RunPlan& plan, std::vector<User>& users, const CpuMeter& cpu) {
  return Runner(plan, users, cpu).Run();
}

}  // namespace mpckdc::storm
