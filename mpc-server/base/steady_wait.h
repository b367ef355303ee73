// SPDX-License-Identifier: Apache-2.0
//
// Times and waits for which it is nothing that the machine's clock is set meanwhile: absl's wait until a
// time of the wall clock, which set back by a day is a day longer.
#ifndef MPC_SERVER_BASE_STEADY_WAIT_H_
#define MPC_SERVER_BASE_STEADY_WAIT_H_

#include <algorithm>
#include <chrono>
#include <condition_variable>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace mpckdc {

// What is longer is infinite, and a time_point would not hold it.
inline constexpr absl::Duration kLongestWait = absl::Hours(24 * 365);

// For what is measured within this process: goes on with the time that passes, whoever sets the clock.
// As absl::Now() was when it was first asked for, so that no time looks like the machine's start.
inline absl::Time SteadyNow() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  static const absl::Time start = absl::Now() - absl::FromChrono(since);
  return start + absl::FromChrono(since);
}

class SteadyCondition {
 public:
  // With `mutex` held, which is released meanwhile. Returns when SignalAll() was called, when the
  // time is over, or for no reason.
  void WaitFor(absl::Mutex* mutex, absl::Duration time) {
    Lock lock{mutex};
    changed_.wait_for(lock, absl::ToChronoNanoseconds(std::min(time, kLongestWait)));
  }
  // The same, until a time of SteadyNow().
  void WaitUntil(absl::Mutex* mutex, absl::Time time) { WaitFor(mutex, time - SteadyNow()); }
  void Wait(absl::Mutex* mutex) { WaitFor(mutex, kLongestWait); }
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
    const absl::Time end = SteadyNow() + time;
    const absl::MutexLock lock(&mutex_);
    while (!notified_) {
      if (SteadyNow() >= end) return false;
      changed_.WaitUntil(&mutex_, end);
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
