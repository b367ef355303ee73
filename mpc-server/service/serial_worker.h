// SPDX-License-Identifier: Apache-2.0
//
// One thread that runs what it is given, in order. Administrative calls wait for the disk here and
// not on the threads that serve KDCs.
#ifndef MPC_SERVER_SERVICE_SERIAL_WORKER_H_
#define MPC_SERVER_SERVICE_SERIAL_WORKER_H_

#include <deque>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

namespace mpckdc {

class SerialWorker {
 public:
  SerialWorker() : thread_([this] { Run(); }) {}
  // Runs what is queued, then ends.
  ~SerialWorker() {
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
    }
    thread_.join();
  }

  void Post(absl::AnyInvocable<void()> work) {
    absl::MutexLock lock(&mutex_);
    queue_.push_back(std::move(work));
  }

 private:
  void Run() {
    for (;;) {
      absl::AnyInvocable<void()> work;
      {
        absl::MutexLock lock(&mutex_);
        mutex_.Await(absl::Condition(this, &SerialWorker::Ready));
        if (queue_.empty()) return;
        work = std::move(queue_.front());
        queue_.pop_front();
      }
      work();
    }
  }
  bool Ready() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !queue_.empty(); }

  absl::Mutex mutex_;
  std::deque<absl::AnyInvocable<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_SERIAL_WORKER_H_
