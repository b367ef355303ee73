// SPDX-License-Identifier: Apache-2.0
//
// Long work has a ring and a thread of its own: messages under keys of enctypes 17 to 20 take some
// thousand rounds or some megabytes, those under gcm keys some forty rounds. The engine agrees on
// both kinds of batch, gives the long ones away, and goes on with the others:
//
//   engine   agree 7 | agree 8, compute, answer | agree 9, compute, answer | judge 7, answer | ..
//   long     ........ compute 7 ...............................................|
//
// Only computing is given away. Whatever judges, counts or answers stays the engine's thread's.
#ifndef MPC_SERVER_AGREE_LONG_RING_H_
#define MPC_SERVER_AGREE_LONG_RING_H_

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "mpc-server/agree/batch_run.h"
#include "mpc-server/agree/executor.h"

namespace mpckdc {

class LongRing {
 public:
  // `mu` is the one on which the engine sleeps.
  LongRing(absl::Mutex* mu, Executor* thread, Executor* engine)
      : mu_(*mu), thread_(*thread), engine_(*engine) {}

  void Start(const std::string& name);
  // After the engine's thread has ended.
  void Stop();

  // ---- The engine's thread ----

  // A batch was given and is not finished.
  bool busy() const { return run_ != nullptr; }
  const BatchRun* run() const { return run_.get(); }
  // Not while it is busy.
  void Give(std::unique_ptr<BatchRun> run);
  // The batch was computed and waits to be finished. Needs the engine's mutex.
  bool Computed() const { return done_; }
  // Finishes the batch if it was computed; OK when there is nothing to finish.
  absl::Status FinishComputed();
  // The same after waiting for it.
  absl::Status WaitAndFinish();

 private:
  void Main();

  absl::Mutex& mu_;
  Executor& thread_;
  Executor& engine_;
  std::unique_ptr<BatchRun> run_;
  BatchRun* given_ ABSL_GUARDED_BY(mu_) = nullptr;  // until it was computed
  bool done_ = false;                               // by mu_ as well
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status computed_ ABSL_GUARDED_BY(mu_);
};

}  // namespace mpckdc

#endif  // MPC_SERVER_AGREE_LONG_RING_H_
