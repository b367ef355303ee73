// SPDX-License-Identifier: Apache-2.0
//
// What runs an engine and how it waits for local events, injected so that sim/ can run three
// engines as fibers of one thread under a simulated clock. One Executor is one thread. Waiting
// for the network is the PeerLink's and its channels' business.
#ifndef MPC_SERVER_AGREE_EXECUTOR_H_
#define MPC_SERVER_AGREE_EXECUTOR_H_

#include <string>
#include <thread>

#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "mpc-server/base/clock.h"
#include "mpc-server/base/steady_wait.h"

namespace mpckdc {

// The calling thread has its turn after those of the process that did not call this.
void YieldToOthers(int niceness);

class Executor {
 public:
  virtual ~Executor() = default;

  virtual void Start(const std::string& name, absl::AnyInvocable<void()> body) = 0;
  // Returns when the body has returned; at once when nothing was started.
  virtual void Join() = 0;

  // Called by the body with `mu` held, which it releases while it waits: returns when Wake() was
  // called since it was entered, at `deadline` by the injected clock, or for no reason.
  virtual void Wait(absl::Mutex* mu, absl::Time deadline) = 0;
  // From any thread, with or without that mutex.
  virtual void Wake() = 0;
};

// std::thread and a condition variable.
class ThreadExecutor : public Executor {
 public:
  // `niceness`: by how much the thread yields to the process's others (setpriority(2)).
  explicit ThreadExecutor(Clock* clock, int niceness = 0) : clock_(clock), niceness_(niceness) {}
  ~ThreadExecutor() override;

  void Start(const std::string& name, absl::AnyInvocable<void()> body) override;
  void Join() override;
  void Wait(absl::Mutex* mu, absl::Time deadline) override;
  void Wake() override;

 private:
  Clock* const clock_;
  const int niceness_;
  SteadyCondition woken_;
  std::thread thread_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_AGREE_EXECUTOR_H_
