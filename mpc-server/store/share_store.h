// SPDX-License-Identifier: Apache-2.0
//
// Where a server keeps its shares. Two implementations: LmdbShareStore (lmdb_share_store.h) and
// MemoryShareStore (memory_share_store.h; simulation and tests). Every call that returns OK after a
// change has made it durable. Calls are thread-safe and may block on the disk.
//
// A key's life: Stage (durable, not usable) -> Commit (usable) -> Delete. A staged key that is never
// committed is dropped by Abort or ExpireStaged.
//
// Errors, the same for both:
//   NotFound           no such handle, transaction or item
//   AlreadyExists      the handle is committed, or staged by another transaction
//   FailedPrecondition the call does not fit the state (realm not initialised, transaction finished)
//   DataLoss           a record is damaged; the text names the handle
//   ResourceExhausted  disk or map full; nothing of the call was kept, nothing older was lost
#ifndef MPC_SERVER_STORE_SHARE_STORE_H_
#define MPC_SERVER_STORE_SHARE_STORE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/store/key_record.h"

namespace mpckdc {

using TransactionId = std::array<uint8_t, 16>;

// A GCM nonce read as a 96-bit big-endian number: comparing the arrays compares the numbers.
using NonceMark = std::array<uint8_t, 12>;

// What a store belongs to. It never changes once written.
struct StoreIdentity {
  std::string realm;
  int party = 0;  // 0, 1 or 2
  uint16_t cluster = 0;

  friend bool operator==(const StoreIdentity&, const StoreIdentity&) = default;
};

struct StoreMeta {
  StoreIdentity identity;
  uint64_t epoch = 1;        // share epoch: all three servers must have the same
  bool initialised = false;  // InitRealm was called
  uint32_t format_version = 0;
};

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
  virtual ~ShareStore() = default;

  virtual StoreMeta Meta() const = 0;
  // Marks the realm as initialised; false when it was already.
  virtual absl::StatusOr<bool> MarkInitialised() = 0;

  // ---- Keys. All or nothing for each call. ----
  // Adds to the transaction; a handle that it already holds is replaced (a repeated call).
  virtual absl::Status Stage(const TransactionId& txn, absl::Span<const KeyRecord> records,
                             absl::Time now) = 0;
  // Returns the number of keys. Committing again within limits::kStagedKeyLife returns the same.
  virtual absl::StatusOr<size_t> Commit(const TransactionId& txn, absl::Time now) = 0;
  // Returns the number of staged keys dropped, 0 when the transaction is unknown.
  virtual absl::StatusOr<size_t> Abort(const TransactionId& txn) = 0;
  // Drops the transactions that staged nothing since `before`, and forgets those committed before.
  virtual absl::StatusOr<size_t> ExpireStaged(absl::Time before) = 0;

  virtual absl::StatusOr<KeyRecord> Get(const Handle& handle) const = 0;  // committed keys only
  virtual absl::StatusOr<KeyRecord> GetStaged(const TransactionId& txn,
                                              const Handle& handle) const = 0;
  // Deletes those of the handles that are committed; returns how many were.
  virtual absl::StatusOr<size_t> Delete(absl::Span<const Handle> handles) = 0;
  // NotFound, naming the handle and changing nothing, unless all are committed.
  virtual absl::Status SetGate(absl::Span<const Handle> handles, Gate gate) = 0;

  // Calls `visit` for each key in the order of handles (staged: of transactions) until it returns
  // false. A damaged record is visited as its error.
  using Visitor = absl::FunctionRef<bool(const absl::StatusOr<KeyInfo>&)>;
  virtual absl::Status ForEach(KeyState state, Visitor visit) const = 0;
  // The same for the committed keys whose handles are `first` or greater.
  virtual absl::Status ForEachFrom(const Handle& first, Visitor visit) const = 0;
  virtual absl::StatusOr<size_t> Count(KeyState state) const = 0;

  // ---- Nonces ----
  // No nonce at or above the mark was ever used by this server. All zero in a new store.
  virtual absl::StatusOr<NonceMark> ReadNonceMark() const = 0;
  // Raises the mark; nonces below it may be used once this returned. A mark that is not higher than
  // the stored one is FailedPrecondition.
  virtual absl::Status ReserveNonceMark(const NonceMark& mark) = 0;

  // ---- Replay entries of pre-auth ----
  // Durable when it returns: call it before the jobs' outputs leave the server.
  virtual absl::Status AddReplayEntries(absl::Span<const ReplayEntry> entries) = 0;
  virtual absl::Status LoadReplayEntries(
      absl::FunctionRef<void(const ReplayEntry&)> visit) const = 0;
  virtual absl::StatusOr<size_t> PruneReplayEntries(absl::Time now) = 0;  // drops the expired

  // ---- Small named secrets of this server (its package key) ----
  virtual absl::StatusOr<SecretBytes> ReadItem(absl::string_view name) const = 0;
  virtual absl::Status WriteItem(absl::string_view name, absl::Span<const uint8_t> value) = 0;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_SHARE_STORE_H_
