// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/schedule.h"

namespace mpckdc::storm {

PoissonSchedule::PoissonSchedule(uint64_t seed, double rate, absl::Time begin)
    : random_(seed), rate_(rate) {
  DrawAfter(begin);
}

void PoissonSchedule::DrawAfter(absl::Time begin) {
  next_ = begin + absl::Seconds(std::exponential_distribution<double>(rate_)(random_));
}

void PoissonSchedule::Advance() { DrawAfter(next_); }

void PoissonSchedule::SetRate(double rate, absl::Time now) {
  rate_ = rate;
  DrawAfter(now);
}

std::vector<Stage> RampStages(double from, double to, int steps, absl::Duration length) {
  std::vector<Stage> stages;
  for (int i = 0; i < steps; ++i) {
    const double share = steps == 1 ? 0 : static_cast<double>(i) / (steps - 1);
    stages.push_back({from + (to - from) * share, length});
  }
  return stages;
}

}  // namespace mpckdc::storm
