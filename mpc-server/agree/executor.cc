// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/executor.h"

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <utility>

namespace mpckdc {

void YieldToOthers(int niceness) {
  // Linux has a niceness for each thread. One that cannot be changed is no reason not to run.
  (void)setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + niceness);
}

ThreadExecutor::~ThreadExecutor() { Join(); }

void ThreadExecutor::Start(const std::string& name, absl::AnyInvocable<void()> body) {
  thread_ = std::thread([niceness = niceness_, body = std::move(body)]() mutable {
    if (niceness != 0) YieldToOthers(niceness);
    body();
  });
  pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
}

void ThreadExecutor::Join() {
  if (thread_.joinable()) thread_.join();
}

void ThreadExecutor::Wait(absl::Mutex* mu, absl::Time deadline) {
  // The injected clock may run apart from the machine's: wait for the difference.
  const absl::Duration left = std::max(deadline - clock_->Now(), absl::ZeroDuration());
  woken_.WaitFor(mu, left);
}

void ThreadExecutor::Wake() { woken_.SignalAll(); }

}  // namespace mpckdc
