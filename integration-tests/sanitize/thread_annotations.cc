// SPDX-License-Identifier: Apache-2.0
//
// Debian's abseil is compiled without the thread sanitizer, which therefore sees nothing of
// absl::Mutex: all that it protects would be told as races. In its builds (cmake/sanitize.cmake)
// the calls of our code go through here (ld --wrap) and say what happens. Conditions that the
// library evaluates while it waits are not looked at.
#include <sanitizer/tsan_interface.h>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

namespace {

void Locking(void* mutex) { __tsan_mutex_pre_lock(mutex, __tsan_mutex_not_static); }
void Locked(void* mutex) { __tsan_mutex_post_lock(mutex, __tsan_mutex_not_static, 0); }
void Unlocking(void* mutex) { __tsan_mutex_pre_unlock(mutex, 0); }
void Unlocked(void* mutex) { __tsan_mutex_post_unlock(mutex, 0); }

// Around a call that gives the mutex away and has it again when it returns.
class Waiting {
 public:
  explicit Waiting(void* mutex) : mutex_(mutex) {
    Unlocking(mutex_);
    Unlocked(mutex_);
    Locking(mutex_);
  }
  ~Waiting() { Locked(mutex_); }

 private:
  void* const mutex_;
};

}  // namespace

#pragma GCC diagnostic ignored "-Wreturn-type-c-linkage"

// As the linker names them; Debian's abseil has an inline namespace.
#define REAL(name) __real__ZN4absl7debian3##name
#define WRAP(name) __wrap__ZN4absl7debian3##name

extern "C" {

using absl::BlockingCounter;
using absl::Condition;
using absl::CondVar;
using absl::Duration;
using absl::Mutex;
using absl::Notification;
using absl::Time;

void REAL(5Mutex4LockEv)(Mutex*);
void WRAP(5Mutex4LockEv)(Mutex* mutex) {
  Locking(mutex);
  REAL(5Mutex4LockEv)(mutex);
  Locked(mutex);
}
void REAL(5Mutex6UnlockEv)(Mutex*);
void WRAP(5Mutex6UnlockEv)(Mutex* mutex) {
  Unlocking(mutex);
  REAL(5Mutex6UnlockEv)(mutex);
  Unlocked(mutex);
}
void REAL(5Mutex8LockWhenERKNS0_9ConditionE)(Mutex*, const Condition*);
void WRAP(5Mutex8LockWhenERKNS0_9ConditionE)(Mutex* mutex, const Condition* condition) {
  Locking(mutex);
  REAL(5Mutex8LockWhenERKNS0_9ConditionE)(mutex, condition);
  Locked(mutex);
}
void REAL(5Mutex5AwaitERKNS0_9ConditionE)(Mutex*, const Condition*);
void WRAP(5Mutex5AwaitERKNS0_9ConditionE)(Mutex* mutex, const Condition* condition) {
  const Waiting waiting(mutex);
  REAL(5Mutex5AwaitERKNS0_9ConditionE)(mutex, condition);
}
bool REAL(5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE)(Mutex*, const Condition*,
                                                                    Duration);
bool WRAP(5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE)(Mutex* mutex,
                                                                    const Condition* condition,
                                                                    Duration timeout) {
  const Waiting waiting(mutex);
  return REAL(5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE)(mutex, condition, timeout);
}
bool REAL(5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE)(Mutex*, const Condition*, Time);
bool WRAP(5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE)(Mutex* mutex,
                                                                 const Condition* condition,
                                                                 Time deadline) {
  const Waiting waiting(mutex);
  return REAL(5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE)(mutex, condition, deadline);
}

void REAL(7CondVar4WaitEPNS0_5MutexE)(CondVar*, Mutex*);
void WRAP(7CondVar4WaitEPNS0_5MutexE)(CondVar* variable, Mutex* mutex) {
  const Waiting waiting(mutex);
  REAL(7CondVar4WaitEPNS0_5MutexE)(variable, mutex);
}
bool REAL(7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE)(CondVar*, Mutex*, Duration);
bool WRAP(7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE)(CondVar* variable, Mutex* mutex,
                                                                Duration timeout) {
  const Waiting waiting(mutex);
  return REAL(7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE)(variable, mutex, timeout);
}
bool REAL(7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE)(CondVar*, Mutex*, Time);
bool WRAP(7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE)(CondVar* variable, Mutex* mutex,
                                                             Time deadline) {
  const Waiting waiting(mutex);
  return REAL(7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE)(variable, mutex, deadline);
}

bool REAL(15BlockingCounter14DecrementCountEv)(BlockingCounter*);
bool WRAP(15BlockingCounter14DecrementCountEv)(BlockingCounter* counter) {
  __tsan_release(counter);
  return REAL(15BlockingCounter14DecrementCountEv)(counter);
}
void REAL(15BlockingCounter4WaitEv)(BlockingCounter*);
void WRAP(15BlockingCounter4WaitEv)(BlockingCounter* counter) {
  REAL(15BlockingCounter4WaitEv)(counter);
  __tsan_acquire(counter);
}

void REAL(12Notification6NotifyEv)(Notification*);
void WRAP(12Notification6NotifyEv)(Notification* notification) {
  __tsan_release(notification);
  REAL(12Notification6NotifyEv)(notification);
}

}  // extern "C"

// Of a const method the name begins otherwise.
extern "C" {
void __real__ZNK4absl7debian312Notification19WaitForNotificationEv(const Notification*);
void __wrap__ZNK4absl7debian312Notification19WaitForNotificationEv(
    const Notification* notification) {
  __real__ZNK4absl7debian312Notification19WaitForNotificationEv(notification);
  __tsan_acquire(const_cast<Notification*>(notification));
}
bool __real__ZNK4absl7debian312Notification30WaitForNotificationWithTimeoutENS0_8DurationE(
    const Notification*, Duration);
bool __wrap__ZNK4absl7debian312Notification30WaitForNotificationWithTimeoutENS0_8DurationE(
    const Notification* notification, Duration timeout) {
  const bool notified =
      __real__ZNK4absl7debian312Notification30WaitForNotificationWithTimeoutENS0_8DurationE(
          notification, timeout);
  if (notified) __tsan_acquire(const_cast<Notification*>(notification));
  return notified;
}
}
