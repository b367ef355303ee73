// SPDX-License-Identifier: Apache-2.0
//
// What one simulated machine gives an engine: a clock that can be set off and a thread that is a
// fiber; and the dice from which everything that happens in a run is thrown.
#ifndef MPC_SERVER_SIM_MACHINE_H_
#define MPC_SERVER_SIM_MACHINE_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "mpc-server/agree/executor.h"
#include "mpc-server/base/clock.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/sim/fibers.h"

namespace mpckdc::sim {

// Uniform numbers from a seed, for everything that is not cryptography.
class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  uint64_t Below(uint64_t n) {
    uint8_t bytes[8];
    random_.Fill(bytes);
    uint64_t value;
    std::memcpy(&value, bytes, 8);
    return value % n;
  }
  bool Chance(double p) { return static_cast<double>(Below(1 << 30)) < p * (1 << 30); }
  absl::Duration Between(absl::Duration a, absl::Duration b) {
    const auto span = static_cast<uint64_t>(absl::ToInt64Nanoseconds(b - a));
    return a + absl::Nanoseconds(static_cast<int64_t>(Below(span + 1)));
  }

 private:
  SeededRandomForTest random_;
};

class SimClock : public Clock {
 public:
  explicit SimClock(Scheduler* scheduler) : scheduler_(scheduler) {}
  absl::Time Now() override { return scheduler_->now() + offset_; }
  void SleepUntil(absl::Time when) override { scheduler_->SleepUntil(when - offset_); }
  // This clock's time in the simulation's.
  absl::Time Global(absl::Time local) const { return local - offset_; }
  void Set(absl::Duration offset) { offset_ = offset; }

 private:
  Scheduler* const scheduler_;
  absl::Duration offset_;
};

// The engine's thread as a fiber.
class SimExecutor : public Executor {
 public:
  SimExecutor(Scheduler* scheduler, SimClock* clock) : scheduler_(scheduler), clock_(clock) {}

  void Start(const std::string& name, absl::AnyInvocable<void()> body) override {
    fiber_ = scheduler_->Spawn(name, std::move(body));
  }
  void Join() override {
    while (fiber_ != nullptr && !scheduler_->Done(fiber_)) {
      scheduler_->Sleep(absl::Milliseconds(1));
    }
  }
  void Wait(absl::Mutex* mu, absl::Time deadline) override {
    mu->Unlock();
    scheduler_->Wait(clock_->Global(deadline));
    mu->Lock();
  }
  // Only a wait that is under way is ended: the body looks at its state before each wait.
  void Wake() override { scheduler_->Wake(fiber_); }
  Fiber* fiber() const { return fiber_; }

 private:
  Scheduler* const scheduler_;
  SimClock* const clock_;
  Fiber* fiber_ = nullptr;
};

}  // namespace mpckdc::sim

#endif  // MPC_SERVER_SIM_MACHINE_H_
