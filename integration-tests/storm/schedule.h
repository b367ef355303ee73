// SPDX-License-Identifier: Apache-2.0
//
// When logins begin in an open loop: a Poisson process, so users come whether or not others have
// been answered. Several threads with a part of the rate each make one process of the whole rate.
#ifndef INTEGRATION_TESTS_STORM_SCHEDULE_H_
#define INTEGRATION_TESTS_STORM_SCHEDULE_H_

#include <cstdint>
#include <random>
#include <vector>

#include "absl/time/time.h"

namespace mpckdc::storm {

class PoissonSchedule {
 public:
  PoissonSchedule(uint64_t seed, double rate, absl::Time begin);

  // When the next login is due.
  absl::Time next() const { return next_; }
  void Advance();
  // Another rate from now on. The process has no memory, so the gap under way is drawn anew.
  void SetRate(double rate, absl::Time now);
  double rate() const { return rate_; }

 private:
  void DrawAfter(absl::Time begin);

  std::mt19937_64 random_;
  double rate_;
  absl::Time next_;
};

// One step of a run: a rate (0: closed loop) for a time.
struct Stage {
  double rate = 0;
  absl::Duration length;
};

// `steps` rates from `from` to `to`, evenly spaced, each for `length`.
std::vector<Stage> RampStages(double from, double to, int steps, absl::Duration length);

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_SCHEDULE_H_
