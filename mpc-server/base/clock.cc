// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/base/clock.h"

#include "absl/time/clock.h"

namespace mpckdc {
namespace {

class RealClock : public Clock {
 public:
  absl::Time Now() override { return absl::Now(); }
  void SleepUntil(absl::Time when) override {
    for (absl::Time now = Now(); now < when; now = Now()) absl::SleepFor(when - now);
  }
};

}  // namespace

Clock& SystemClock() {
  static RealClock clock;
  return clock;
}

}  // namespace mpckdc
