// SPDX-License-Identifier: Apache-2.0
//
// The share store's engine without a disk, for tests and the simulation. Snapshot() and Restore()
// stand for the disk's contents across a simulated crash.
#ifndef MPC_SERVER_TESTING_MEMORY_ENGINE_H_
#define MPC_SERVER_TESTING_MEMORY_ENGINE_H_

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "mpc-server/store/kv.h"

namespace mpckdc {

class MemoryEngine : public KvEngine {
 public:
  using Table = std::map<std::string, std::string, std::less<>>;
  // Everything that was committed. Copies share their tables: a change copies the table first.
  using State = std::array<std::shared_ptr<const Table>, record_format::kTables>;

  MemoryEngine();
  explicit MemoryEngine(State state) : state_(std::move(state)) {}

  absl::StatusOr<std::unique_ptr<const KvTxn>> BeginRead() const override;
  absl::Status Write(absl::string_view what, Body body) override;

  State Snapshot() const;
  void Restore(State state);
  // Makes every change fail with `status` until it is set to OK again.
  void FailWrites(absl::Status status);
  // The next change of that name is made and answered with `status`: as where a database commits
  // and its answer is lost, or it says that its standby may not have it.
  void LoseAnswer(std::string what, absl::Status status);

 private:
  absl::Mutex writer_;
  mutable absl::Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_);
  absl::Status write_status_ ABSL_GUARDED_BY(mutex_);
  std::string lost_ ABSL_GUARDED_BY(mutex_);
  absl::Status lost_status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_MEMORY_ENGINE_H_
