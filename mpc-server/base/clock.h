// SPDX-License-Identifier: Apache-2.0
// Time as an injected interface, so that sim/ can run three parties under a simulated clock.
#ifndef MPC_SERVER_BASE_CLOCK_H_
#define MPC_SERVER_BASE_CLOCK_H_

#include "absl/time/time.h"

namespace mpckdc {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() = 0;
  // Returns at or after `when`.
  virtual void SleepUntil(absl::Time when) = 0;
  void Sleep(absl::Duration d) { SleepUntil(Now() + d); }
};

// The machine's wall clock. Stateless, shared by all.
Clock& SystemClock();

}  // namespace mpckdc

#endif  // MPC_SERVER_BASE_CLOCK_H_
