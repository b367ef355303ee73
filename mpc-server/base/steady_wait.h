// SPDX-License-Identifier: Apache-2.0
//
// Waits that end in time when the machine's clock is set back meanwhile: absl's wait until a time of
// the wall clock, by a day for a day.
#ifndef MPC_SERVER_BASE_STEADY_WAIT_H_
#define MPC_SERVER_BASE_STEADY_WAIT_H_

#include <algorithm>
#include <chrono>
#include <condition_variable>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace mpckdc {

// What is longer is infinite, and a time_point would not hold it.
inline constexpr absl::Duration kLongestWait = absl::Hours(24 * 365);

class SteadyCondition {
 public:
  // With `mutex` held, which is released meanwhile. Returns when SignalAll() was called, when the
  // time is over, or for no reason.
  void WaitFor(absl::Mutex* mutex, absl::Duration time) {
    Lock lock{mutex};
    changed_.wait_for(lock, absl::ToChronoNanoseconds(std::min(time, kLongestWait)));
  }
  void SignalAll() { changed_.notify_all(); }

 private:
  // What std wants of a mutex.
  struct Lock {
    void lock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex->Lock(); }
    void unlock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex->Unlock(); }
    absl::Mutex* mutex;
  };

  std::condition_variable_any changed_;
};

// As absl::Notification.
class SteadyNotification {
 public:
  void Notify() {
    const absl::MutexLock lock(&mutex_);
    notified_ = true;
    changed_.SignalAll();
  }
  bool HasBeenNotified() const {
    const absl::MutexLock lock(&mutex_);
    return notified_;
  }
  // Whether it has been notified.
  bool WaitFor(absl::Duration time) const {
    const auto end = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(std::min(time, kLongestWait));
    const absl::MutexLock lock(&mutex_);
    while (!notified_) {
      const absl::Duration left = absl::FromChrono(end - std::chrono::steady_clock::now());
      if (left <= absl::ZeroDuration()) return false;
      changed_.WaitFor(&mutex_, left);
    }
    return true;
  }

 private:
  mutable absl::Mutex mutex_;
  mutable SteadyCondition changed_;
  bool notified_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_BASE_STEADY_WAIT_H_
