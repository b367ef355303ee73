// SPDX-License-Identifier: Apache-2.0
//
// Debian's abseil is compiled without the thread sanitizer, which therefore sees nothing of
// absl::Mutex: all that it protects would be told as races. In its builds (cmake/sanitize.cmake)
// this library stands before abseil's wherever names are looked up: what our code calls, and what
// gRPC does, comes through here and is told. Conditions that abseil evaluates while it waits are
// not looked at.
#include <dlfcn.h>
#include <grpc/grpc.h>
#include <sanitizer/tsan_interface.h>

#include <optional>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

namespace {

// What is told around a call.
struct Locked {
  explicit Locked(void* m) : mutex(m) { __tsan_mutex_pre_lock(mutex, __tsan_mutex_not_static); }
  ~Locked() { __tsan_mutex_post_lock(mutex, __tsan_mutex_not_static, 0); }
  void* const mutex;
};
struct Unlocked {
  explicit Unlocked(void* m) : mutex(m) { __tsan_mutex_pre_unlock(mutex, 0); }
  ~Unlocked() { __tsan_mutex_post_unlock(mutex, 0); }
  void* const mutex;
};
struct Waited {  // gives the mutex away and has it again when it returns
  explicit Waited(void* mutex) {
    { const Unlocked unlocked(mutex); }
    locked.emplace(mutex);
  }
  std::optional<Locked> locked;
};
struct Released {
  explicit Released(void* what) { __tsan_release(what); }
};
struct Acquired {
  explicit Acquired(const void* w) : what(const_cast<void*>(w)) {}
  ~Acquired() { __tsan_acquire(what); }
  void* const what;
};

// abseil calls itself by the same names: the call from outside has told it all.
thread_local int depth = 0;

template <class What>
class Told {
 public:
  template <class Of>
  explicit Told(Of* of) {
    if (depth++ == 0) what_.emplace(of);
  }
  ~Told() { --depth; }

 private:
  std::optional<What> what_;
};

template <class Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

using absl::BlockingCounter;
using absl::Condition;
using absl::CondVar;
using absl::Duration;
using absl::Mutex;
using absl::Notification;
using absl::Time;

// PREFIX and NAME are what the linker calls it; Debian's abseil has an inline namespace.
#define TELL(PREFIX, NAME, RESULT, WHAT, OF, PARAMETERS, ARGUMENTS)                   \
  extern "C" RESULT PREFIX##4absl7debian3##NAME PARAMETERS {                          \
    static auto* const real = Real<RESULT PARAMETERS>(#PREFIX "4absl7debian3" #NAME); \
    const Told<WHAT> told(OF);                                                        \
    return real ARGUMENTS;                                                            \
  }

TELL(_ZN, 5Mutex4LockEv, void, Locked, mutex, (Mutex* mutex), (mutex))
TELL(_ZN, 5Mutex6UnlockEv, void, Unlocked, mutex, (Mutex* mutex), (mutex))
TELL(_ZN, 5Mutex8LockWhenERKNS0_9ConditionE, void, Locked, mutex,
     (Mutex* mutex, const Condition* condition), (mutex, condition))
TELL(_ZN, 5Mutex5AwaitERKNS0_9ConditionE, void, Waited, mutex,
     (Mutex* mutex, const Condition* condition), (mutex, condition))
TELL(_ZN, 5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE, bool, Waited, mutex,
     (Mutex* mutex, const Condition* condition, Duration timeout), (mutex, condition, timeout))
TELL(_ZN, 5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE, bool, Waited, mutex,
     (Mutex* mutex, const Condition* condition, Time deadline), (mutex, condition, deadline))

TELL(_ZN, 7CondVar4WaitEPNS0_5MutexE, void, Waited, mutex, (CondVar* variable, Mutex* mutex),
     (variable, mutex))
TELL(_ZN, 7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE, bool, Waited, mutex,
     (CondVar* variable, Mutex* mutex, Duration timeout), (variable, mutex, timeout))
TELL(_ZN, 7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE, bool, Waited, mutex,
     (CondVar* variable, Mutex* mutex, Time deadline), (variable, mutex, deadline))

TELL(_ZN, 15BlockingCounter14DecrementCountEv, bool, Released, counter, (BlockingCounter* counter),
     (counter))
TELL(_ZN, 15BlockingCounter4WaitEv, void, Acquired, counter, (BlockingCounter* counter), (counter))

TELL(_ZN, 12Notification6NotifyEv, void, Released, notification, (Notification* notification),
     (notification))
TELL(_ZNK, 12Notification19WaitForNotificationEv, void, Acquired, notification,
     (const Notification* notification), (notification))
TELL(_ZNK, 12Notification30WaitForNotificationWithTimeoutENS0_8DurationE, bool, Acquired,
     notification, (const Notification* notification, Duration timeout), (notification, timeout))

extern "C" bool _ZN4absl7debian35Mutex7TryLockEv(Mutex* mutex) {
  static auto* const real = Real<bool(Mutex*)>("_ZN4absl7debian35Mutex7TryLockEv");
  constexpr unsigned kTry = __tsan_mutex_not_static | __tsan_mutex_try_lock;
  __tsan_mutex_pre_lock(mutex, kTry);
  const bool locked = real(mutex);
  __tsan_mutex_post_lock(mutex, locked ? kTry : kTry | __tsan_mutex_try_lock_failed, 0);
  return locked;
}

// gRPC keeps what it is given with a batch in queues without locks until it hands the tag back.
extern "C" grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* ops, size_t count,
                                                 void* tag, void* reserved) {
  static auto* const real = Real<decltype(grpc_call_start_batch)>("grpc_call_start_batch");
  if (tag != nullptr) __tsan_release(tag);
  return real(call, ops, count, tag, reserved);
}

extern "C" grpc_event grpc_completion_queue_next(grpc_completion_queue* queue,
                                                 gpr_timespec deadline, void* reserved) {
  static auto* const real = Real<decltype(grpc_completion_queue_next)>("grpc_completion_queue_next");
  const grpc_event event = real(queue, deadline, reserved);
  if (event.type == GRPC_OP_COMPLETE && event.tag != nullptr) __tsan_acquire(event.tag);
  return event;
}

extern "C" grpc_event grpc_completion_queue_pluck(grpc_completion_queue* queue, void* tag,
                                                  gpr_timespec deadline, void* reserved) {
  static auto* const real =
      Real<decltype(grpc_completion_queue_pluck)>("grpc_completion_queue_pluck");
  const grpc_event event = real(queue, tag, deadline, reserved);
  if (event.type == GRPC_OP_COMPLETE) __tsan_acquire(tag);
  return event;
}
