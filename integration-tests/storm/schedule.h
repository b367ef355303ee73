// SPDX-License-Identifier: Apache-2.0
//
// When logins begin in an open loop: a Poisson process, so users come whether or not others have
// been answered. Several threads with a share of the rate each make one process of the whole rate.
#ifndef INTEGRATION_TESTS_STORM_SCHEDULE_H_
#define INTEGRATION_TESTS_STORM_SCHEDULE_H_

#include <cstdint>
#include <random>
#include <vector>

#include "absl/time/time.h"

namespace mpckdc::storm {

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

// `steps` rates from `from` to `to`, evenly spaced, each for `length`.
inline std::vector<Stage> RampStages(double from, double to, int steps, absl::Duration length) {
  std::vector<Stage> stages;
  for (int i = 0; i < steps; ++i) {
    const double share = steps == 1 ? 0 : static_cast<double>(i) / (steps - 1);
    stages.push_back({from + (to - from) * share, length});
  }
  return stages;
}

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_SCHEDULE_H_
