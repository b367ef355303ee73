// SPDX-License-Identifier: Apache-2.0
//
// Many fibers on one thread under a simulated clock. A fiber runs until it waits; what runs next is
// decided by simulated time and order of arrival alone, so a run is a function of its seed.
#ifndef MPC_SERVER_SIM_FIBERS_H_
#define MPC_SERVER_SIM_FIBERS_H_

#include <ucontext.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"

namespace mpckdc::sim {

class Fiber;

class Scheduler {
 public:
  explicit Scheduler(absl::Time start);
  ~Scheduler();

  absl::Time now() const { return now_; }

  Fiber* Spawn(std::string name, absl::AnyInvocable<void()> body);
  // Calls `event` at `when` outside any fiber; it must not wait.
  void At(absl::Time when, absl::AnyInvocable<void()> event);

  // The running fiber stops until `deadline`, or until Wake() is called for it.
  void Wait(absl::Time deadline);
  void Sleep(absl::Duration d) { SleepUntil(now_ + d); }
  void SleepUntil(absl::Time when);
  void Wake(Fiber* fiber);
  Fiber* current() const { return current_; }
  bool Done(const Fiber* fiber) const;
  // The fiber does not run before `until`, whatever happens (SIGSTOP); an earlier `until` than the
  // last one lets it go on (SIGCONT).
  void Pause(Fiber* fiber, absl::Time until);
  absl::Time PausedUntil(const Fiber* fiber) const;
  // The running fiber lets others go first; a paused one goes on when its pause ends.
  void Yield() { Wait(now_); }

  // Runs fibers and events until simulated `end`, or until nothing is left to do.
  void RunUntil(absl::Time end);

 private:
  struct Event {
    absl::Time when;
    uint64_t order;
    absl::AnyInvocable<void()> run;
    bool operator<(const Event& other) const {  // of a heap: the latest is the least
      return when != other.when ? when > other.when : order > other.order;
    }
  };
  void SwitchTo(Fiber* fiber);
  void* TakeStack();
  void MakeReady(Fiber* fiber);

  absl::Time now_;
  uint64_t order_ = 0;
  std::vector<Event> events_;  // a heap
  std::deque<Fiber*> ready_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<void*> spare_stacks_;
  Fiber* current_ = nullptr;
  ucontext_t main_{};
};

}  // namespace mpckdc::sim

#endif  // MPC_SERVER_SIM_FIBERS_H_
