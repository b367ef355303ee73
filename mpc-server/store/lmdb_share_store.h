// SPDX-License-Identifier: Apache-2.0
//
// The share store on disk: one LMDB file, each record sealed (doc/share_store_format.md). One
// process at a time has a data directory open.
#ifndef MPC_SERVER_STORE_LMDB_SHARE_STORE_H_
#define MPC_SERVER_STORE_LMDB_SHARE_STORE_H_

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/store/key_table.h"
#include "mpc-server/store/lmdb.h"
#include "mpc-server/store/sealer.h"
#include "mpc-server/store/share_store.h"
#include "mpc-server/store/store_keys.h"

namespace mpckdc {

class LmdbShareStore : public ShareStore {
 public:
  struct Options {
    std::string folder;  // exists; the store is FOLDER/shares.mdb
    StoreIdentity identity;
    StoreKeys keys;
    RandomSource* random = nullptr;  // thread-safe; outlives the store
    uint64_t map_bytes = 0;
  };

  // Creates the store when the folder holds none. Errors that name both sides: another realm's,
  // party's or cluster's store; a key file that does not fit; a folder another process has open.
  static absl::StatusOr<std::unique_ptr<LmdbShareStore>> Open(Options options);
  // Whether `folder` holds a store already (then a missing key file must not be replaced).
  static bool Exists(const std::string& folder);
  ~LmdbShareStore() override;

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

 private:
  enum Database { kMeta, kKeys, kStaged, kTransactions, kReplay, kRecords };

  LmdbShareStore(int lock_fd, std::unique_ptr<LmdbEnv> env, Sealer sealer)
      : lock_fd_(lock_fd), env_(std::move(env)), sealer_(std::move(sealer)) {}

  absl::Status LoadOrCreateMeta();
  absl::Status CheckEverything() const;
  uint64_t Epoch() const { return Meta().epoch; }
  MDB_dbi Db(Database database) const { return env_->Dbi(database); }
  KeyTable Keys() const { return KeyTable(Db(kKeys), Db(kRecords)); }

  absl::Status Visit(KeyState state, absl::string_view from, Visitor visit) const;
  absl::StatusOr<SecretBytes> OpenKeyPlain(const Handle& handle,
                                           absl::Span<const uint8_t> sealed) const;
  absl::StatusOr<KeyRecord> OpenKey(const Handle& handle, absl::Span<const uint8_t> sealed) const;
  absl::StatusOr<KeyInfo> OpenInfo(const Handle& handle, absl::Span<const uint8_t> sealed) const;
  absl::Status CheckStageable(const LmdbTxn& txn, const TransactionId& id,
                              absl::Span<const KeyRecord> records) const;
  absl::StatusOr<size_t> DropStaged(LmdbTxn& txn, const TransactionId& id) const;
  absl::StatusOr<size_t> MoveStaged(LmdbTxn& txn, const TransactionId& id) const;
  absl::StatusOr<NonceMark> ReadMark(const LmdbTxn& txn) const;

  const int lock_fd_;
  const std::unique_ptr<LmdbEnv> env_;
  const Sealer sealer_;
  mutable absl::Mutex mutex_;
  StoreMeta meta_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_LMDB_SHARE_STORE_H_
