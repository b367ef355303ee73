// SPDX-License-Identifier: Apache-2.0
//
// Where a server keeps its shares: each record sealed by itself (sealer.h), in the tables of an
// engine (kv.h). Every call that returns OK after a change has made it durable. Calls are
// thread-safe and may block on the disk.
//
// A key's life: Stage (durable, not usable) -> Commit (usable) -> Delete. A staged key that is
// never committed is dropped by Abort or ExpireStaged.
//
// Errors:
//   NotFound           no such handle, transaction or item
//   AlreadyExists      the handle is committed, or staged by another transaction
//   FailedPrecondition the call does not fit the state (the transaction is finished)
//   DataLoss           a record is damaged; the text names the handle
//   ResourceExhausted  disk or map full; nothing of the call was kept, nothing older was lost
#ifndef MPC_SERVER_STORE_SHARE_STORE_H_
#define MPC_SERVER_STORE_SHARE_STORE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/store/key_record.h"
#include "mpc-server/store/kv.h"
#include "mpc-server/store/record_cache.h"
#include "mpc-server/store/sealer.h"
#include "mpc-server/store/store_keys.h"

namespace mpckdc {

using TransactionId = std::array<uint8_t, 16>;

// A GCM nonce read as a 96-bit big-endian number: comparing the arrays compares the numbers.
using NonceMark = std::array<uint8_t, 12>;

// A pre-auth message that was accepted: (key, nonce), kept until no server's clock accepts it.
struct ReplayEntry {
  Handle handle{};
  std::array<uint8_t, 12> nonce{};
  absl::Time expires;

  friend bool operator==(const ReplayEntry&, const ReplayEntry&) = default;
};

enum class KeyState { kCommitted, kStaged };

class ShareStore {
 public:
  struct Options {
    StoreIdentity identity;
    StoreKeys keys;
    RandomSource* random = nullptr;  // thread-safe; outlives the store
    size_t cache_bytes = 0;          // of records kept in memory, if the engine is remote
  };

  // Makes an empty engine the store of this identity. Errors that name both sides: another realm's,
  // party's or cluster's store; a key file that does not fit.
  static absl::StatusOr<std::unique_ptr<ShareStore>> Open(std::shared_ptr<KvEngine> engine,
                                                          Options options);
  ~ShareStore();

  StoreMeta Meta() const;
  // Marks the realm as initialised; false when it was already.
  absl::StatusOr<bool> MarkInitialised();

  // ---- Keys. All or nothing for each call. ----
  // Adds to the transaction; a handle that it already holds is replaced (a repeated call).
  absl::Status Stage(const TransactionId& txn, absl::Span<const KeyRecord> records, absl::Time now);
  // Returns the number of keys. Committing again within limits::kStagedKeyLife returns the same.
  absl::StatusOr<size_t> Commit(const TransactionId& txn, absl::Time now);
  // Returns the number of staged keys dropped, 0 when the transaction is unknown.
  absl::StatusOr<size_t> Abort(const TransactionId& txn);
  // Drops the transactions that staged nothing since `before`, and forgets those committed before.
  absl::StatusOr<size_t> ExpireStaged(absl::Time before);

  absl::StatusOr<KeyRecord> Get(const Handle& handle) const;  // committed keys only
  // The same for many, as of one moment: of a remote engine one round trip if they are cached and
  // no server of the party changed keys since, and three otherwise.
  std::vector<absl::StatusOr<KeyRecord>> GetMany(absl::Span<const Handle> handles) const;
  absl::StatusOr<KeyRecord> GetStaged(const TransactionId& txn, const Handle& handle) const;
  // Deletes those of the handles that are committed; returns how many were.
  absl::StatusOr<size_t> Delete(absl::Span<const Handle> handles);
  // NotFound, naming the handle and changing nothing, unless all are committed.
  absl::Status SetGate(absl::Span<const Handle> handles, Gate gate);

  // Calls `visit` for each key in the order of handles (staged: of transactions) until it returns
  // false. A damaged record is visited as its error.
  using Visitor = absl::FunctionRef<bool(const absl::StatusOr<KeyInfo>&)>;
  absl::Status ForEach(KeyState state, Visitor visit) const { return Visit(state, "", visit); }
  // The same for the committed keys whose handles are `first` or greater.
  absl::Status ForEachFrom(const Handle& first, Visitor visit) const;
  absl::StatusOr<size_t> Count(KeyState state) const;

  // ---- Nonces ----
  // No nonce at or above the mark was ever used by this server. All zero in a new store.
  absl::StatusOr<NonceMark> ReadNonceMark() const;
  // Raises the mark; nonces below it may be used once this returned. A mark that is not higher than
  // the stored one is FailedPrecondition.
  absl::Status ReserveNonceMark(const NonceMark& mark);

  // ---- Replay entries of pre-auth ----
  // Durable when it returns: call it before the jobs' outputs leave the server.
  absl::Status AddReplayEntries(absl::Span<const ReplayEntry> entries);
  absl::Status LoadReplayEntries(absl::FunctionRef<void(const ReplayEntry&)> visit) const;
  absl::StatusOr<size_t> PruneReplayEntries(absl::Time now);  // drops the expired

  // ---- Small named secrets of this server (its package key) ----
  absl::StatusOr<SecretBytes> ReadItem(absl::string_view name) const;
  absl::Status WriteItem(absl::string_view name, absl::Span<const uint8_t> value);

 protected:
  ShareStore(std::shared_ptr<KvEngine> engine, Options options);
  absl::Status Load();

 private:
  absl::Status LoadOrCreateMeta(KvTxn& txn, StoreMeta* meta) const;
  absl::Status CheckEverything() const;
  absl::Status Visit(KeyState state, absl::string_view from, Visitor visit) const;
  std::string SealKey(uint64_t epoch, const KeyRecord& record) const;
  // Opens and decodes (record_codec.h) what the engine had under the handle.
  template <class T>
  absl::StatusOr<T> OpenKey(const Handle& handle, absl::StatusOr<absl::Span<const uint8_t>> sealed,
                            absl::StatusOr<T> (*decode)(const Handle&,
                                                        absl::Span<const uint8_t>)) const;
  absl::Status GetMany(absl::Span<const Handle> handles,
                       absl::Span<absl::StatusOr<KeyRecord>> records) const;
  absl::StatusOr<NonceMark> ReadMark(const KvTxn& txn) const;

  const std::shared_ptr<KvEngine> engine_;
  const Sealer sealer_;
  const std::unique_ptr<RecordCache> cache_;  // null: the engine is as near as memory
  mutable absl::Mutex mutex_;  // held while a write is waited for, so never taken inside one
  StoreMeta meta_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_SHARE_STORE_H_
