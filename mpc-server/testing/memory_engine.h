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
  // For SharedMemoryEngine: its reads know the version of the keys.
  std::unique_ptr<const KvTxn> BeginSharedRead() const;
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
  uint64_t version_ ABSL_GUARDED_BY(mutex_) = 1;
  absl::Status write_status_ ABSL_GUARDED_BY(mutex_);
  std::string lost_ ABSL_GUARDED_BY(mutex_);
  absl::Status lost_status_ ABSL_GUARDED_BY(mutex_);
};

// The same store as one machine of a party sees it that shares it with others. One writes at a
// time, also replay entries, which a database lets pass beside the rest.
class SharedMemoryEngine : public KvEngine {
 public:
  SharedMemoryEngine(std::shared_ptr<MemoryEngine> engine, std::array<uint8_t, 16> name)
      : engine_(std::move(engine)), name_(name) {}

  absl::StatusOr<std::unique_ptr<const KvTxn>> BeginRead() const override {
    return engine_->BeginSharedRead();
  }
  absl::Status Write(absl::string_view what, Body body) override {
    return engine_->Write(what, body);  // serialised, as a database's are
  }
  bool remote() const override { return true; }
  std::array<uint8_t, 16> Name() const override { return name_; }

 private:
  const std::shared_ptr<MemoryEngine> engine_;
  const std::array<uint8_t, 16> name_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_MEMORY_ENGINE_H_
