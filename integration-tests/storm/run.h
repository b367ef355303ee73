// SPDX-License-Identifier: Apache-2.0
//
// A run: warm-up, then stages (one, or those of a ramp), then waiting for what is in flight.
#ifndef INTEGRATION_TESTS_STORM_RUN_H_
#define INTEGRATION_TESTS_STORM_RUN_H_

#include <atomic>
#include <cstdint>
#include <random>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "integration-tests/storm/cpu_meter.h"
#include "integration-tests/storm/options.h"
#include "integration-tests/storm/tally.h"

namespace mpckdc::storm {

// By a clock that nobody sets: not comparable with absl::Now().
absl::Time MonotonicNow();

// When logins begin in an open loop: a Poisson process, so users come whether or not others have
// been answered. Several threads with a share of the rate each make one process of the whole rate.
class PoissonSchedule {
 public:
  PoissonSchedule(uint64_t seed, double rate, absl::Time begin) : random_(seed) {
    SetRate(rate, begin);
  }

  // When the next login is due.
  absl::Time next() const { return next_; }
  void Advance() { next_ += absl::Seconds(gap_(random_)); }
  // Another rate from now on. The process has no memory, so the gap under way is drawn anew.
  void SetRate(double rate, absl::Time now) {
    gap_ = std::exponential_distribution<double>(rate);
    next_ = now;
    Advance();
  }

 private:
  std::mt19937_64 random_;
  std::exponential_distribution<double> gap_;
  absl::Time next_;
};

// One step of a run: a rate (0: closed loop) for a time.
struct Stage {
  double rate = 0;
  absl::Duration length;
};

// Of a ramp, evenly spaced rates.
std::vector<Stage> StagesOf(const Options& options);

// Values of Control::stage; the stages that are measured follow.
inline constexpr int kNoStage = -1;    // nothing begins yet
inline constexpr int kWarmUpStage = 0;

// What a load is told, and what it says while it runs.
struct Control {
  std::atomic<int> stage{kNoStage};
  std::atomic<double> rate{0};           // of all threads together
  std::atomic<bool> stop{false};         // nothing new begins
  std::atomic<int64_t> may_begin{INT64_MAX};  // --count: how many logins still may

  std::atomic<uint64_t> started{0};      // and shed ones
  std::atomic<uint64_t> ok{0};
  std::atomic<uint64_t> ended{0};        // answered
  std::atomic<uint64_t> trouble{0};      // failed, wrong, lost, shed
  std::atomic<uint64_t> in_flight{0};

  // Whether one login more may begin; it is then in flight.
  bool MayBegin();
};

// Logins at a KDC (Crew, worker.h), or login jobs at three servers (JobLoad).
class Load {
 public:
  virtual ~Load() = default;
  virtual void Tick() {}                   // every few milliseconds
  virtual bool HasFailed() const { return false; }
  virtual bool HasEnded() const = 0;       // after Control::stop
  // Then: adds what was counted, by stage. An error is one of this machine.
  virtual absl::Status End(std::vector<Tally>& tallies, Series& series) = 0;
};

// One stage as it was seen from outside: what ended in its time, and what the CPUs did meanwhile.
struct StageResult {
  double rate = 0;             // asked for; 0: closed loop
  double seconds = 0;
  uint64_t offered = 0;        // logins that were due
  uint64_t ok = 0;             // that ended well in these seconds
  uint64_t ended = 0;          // that were answered in these seconds
  bool kept = false;           // the KDC kept up
  Tally tally;                 // of the logins that began in this stage
  CpuTimes cpu;                // spent in these seconds
};

struct RunResult {
  std::vector<StageResult> stages;
  StageResult total;           // all of them
  Series series;               // warm-up included
  bool is_ramp = false;
  double knee_per_s = 0;       // of the last stage that kept up; 0: none
};

absl::StatusOr<RunResult> Run(const Options& options, Load& load, Control& control);

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_RUN_H_
