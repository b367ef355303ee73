// SPDX-License-Identifier: Apache-2.0
//
// A share store without a disk, for simulation and tests. Behaves as LmdbShareStore does towards its
// callers; Snapshot() and Restore() stand for the disk's contents across a simulated crash.
#ifndef MPC_SERVER_TESTING_MEMORY_SHARE_STORE_H_
#define MPC_SERVER_TESTING_MEMORY_SHARE_STORE_H_

#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "mpc-server/store/share_store.h"
#include "mpc-server/store/staging.h"

namespace mpckdc {

class MemoryShareStore : public ShareStore {
 public:
  explicit MemoryShareStore(StoreIdentity identity);

  StoreMeta Meta() const override;
  absl::StatusOr<bool> MarkInitialised() override;
  absl::Status Stage(const TransactionId& txn, absl::Span<const KeyRecord> records,
                     absl::Time now) override;
  absl::StatusOr<size_t> Commit(const TransactionId& txn, absl::Time now) override;
  absl::StatusOr<size_t> Abort(const TransactionId& txn) override;
  absl::StatusOr<size_t> ExpireStaged(absl::Time before) override;
  absl::StatusOr<KeyRecord> Get(const Handle& handle) const override;
  absl::StatusOr<KeyRecord> GetStaged(const TransactionId& txn, const Handle& handle) const override;
  absl::StatusOr<size_t> Delete(absl::Span<const Handle> handles) override;
  absl::Status SetGate(absl::Span<const Handle> handles, Gate gate) override;
  absl::Status ForEach(KeyState state, Visitor visit) const override;
  absl::Status ForEachFrom(const Handle& first, Visitor visit) const override;
  absl::StatusOr<size_t> Count(KeyState state) const override;
  absl::StatusOr<NonceMark> ReadNonceMark() const override;
  absl::Status ReserveNonceMark(const NonceMark& mark) override;
  absl::Status AddReplayEntries(absl::Span<const ReplayEntry> entries) override;
  absl::Status LoadReplayEntries(absl::FunctionRef<void(const ReplayEntry&)> visit) const override;
  absl::StatusOr<size_t> PruneReplayEntries(absl::Time now) override;
  absl::StatusOr<SecretBytes> ReadItem(absl::string_view name) const override;
  absl::Status WriteItem(absl::string_view name, absl::Span<const uint8_t> value) override;

  // Everything the store holds.
  struct State {
    StoreMeta meta;
    std::map<Handle, KeyRecord> keys;
    std::map<std::pair<TransactionId, Handle>, KeyRecord> staged;
    std::map<TransactionId, StagingState> transactions;
    NonceMark mark{};
    std::map<std::pair<Handle, std::array<uint8_t, 12>>, absl::Time> replay;
    std::map<std::string, SecretBytes> items;
  };
  State Snapshot() const;
  void Restore(State state);

  // Makes every change fail with `status` until it is set to OK again.
  void FailWrites(absl::Status status);

 private:
  absl::Status CheckStageable(const TransactionId& txn, absl::Span<const KeyRecord> records) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t DropStaged(const TransactionId& txn) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_);
  absl::Status write_status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_MEMORY_SHARE_STORE_H_
