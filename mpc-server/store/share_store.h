// SPDX-License-Identifier: Apache-2.0
//
// Where a server keeps its shares: each record sealed by itself (sealer.h), in the tables of an
// engine (kv.h). Every call that returns OK after a change has made it durable. Calls are
// thread-safe and may block on the disk.
//
// A key's life: Stage (durable, not usable) -> Commit (usable) -> Retire (usable for a while,
// unless Restore takes that back) -> CollectRetired, which deletes it, or leaves its base key alone
// for the password history. A staged key that is never committed is
// dropped by Abort or ExpireStaged. Delete ends a committed one at once.
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
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/store/epochs.h"
#include "mpc-server/store/fellows.h"
#include "mpc-server/store/key_record.h"
#include "mpc-server/store/kv.h"
#include "mpc-server/store/replay_entry.h"
#include "mpc-server/store/record_cache.h"
#include "mpc-server/store/sealer.h"
#include "mpc-server/store/store_keys.h"

namespace mpckdc {

using TransactionId = std::array<uint8_t, 16>;

// A GCM nonce read as a 96-bit big-endian number: comparing the arrays compares the numbers.
using NonceMark = std::array<uint8_t, 12>;

enum class KeyState { kCommitted, kStaged };

// Whoever has a key deleted names it twice: by a mistake in the one it would be somebody else's.
struct NamedKey {
  Handle handle{};
  std::string principal;  // unparsed, with realm
  // Of a key to retire: its user's password history names it. It is never collected, only reduced.
  bool for_history = false;
};

// The mark of a retired key (retired.h).
struct RetiredMark {
  absl::Time since;
  bool for_history = false;
  bool reduced = false;  // to its base key; for_history as well

  friend bool operator==(const RetiredMark&, const RetiredMark&) = default;
};

// What was done to a key whose grace time was over: it is gone, or reduced.
struct CollectedKey : NamedKey {
  bool reduced = false;
};

// What a call about named keys did. A key that is not there is neither changed nor refused.
struct NamedKeysDone {
  struct Refused {
    Handle handle{};
    std::string why;
  };

  size_t changed = 0;
  std::vector<Refused> refused;
};

// A key that shall be another principal's under another handle (renamed.cc).
struct RenamedKey {
  NamedKey from;  // for_history: the new one can be compared, and does nothing else
  Handle to{};
  int32_t salt_type = 0;  // its words, which the new name would not give
  std::string salt;
};

struct RenamedKeys {
  size_t staged = 0;
  absl::flat_hash_set<PrincipalId> lineages;  // of those
  std::vector<Handle> unknown;  // of the old ones, for the history alone: they are collected
};

class ShareStore {
 public:
  struct Options {
    StoreIdentity identity;
    StoreKeys keys;
    RandomSource* random = nullptr;  // thread-safe; outlives the store
    size_t cache_bytes = 0;          // of records kept in memory, if the engine is remote
    int triple = 0;                  // this machine's among its party's (fellows.h)
  };

  // Makes an empty engine the store of this identity. Errors that name both sides: another realm's,
  // party's or cluster's store; a key file that does not fit.
  static absl::StatusOr<std::unique_ptr<ShareStore>> Open(std::shared_ptr<KvEngine> engine,
                                                          Options options);
  ~ShareStore();

  StoreMeta Meta() const;
  int triple() const { return triple_; }
  // Of this machine's triple: what its nonces carry, and its sessions agree on.
  uint16_t cluster() const;
  // Marks the realm as initialised; false when it was already.
  absl::StatusOr<bool> MarkInitialised();

  // ---- Keys. All or nothing for each call. ----
  // Adds to the transaction; a handle that it already holds is replaced (a repeated call). The
  // shares are of `epoch`: the store's own, or the one before while the store is rewriting.
  // FailedPrecondition: of another.
  absl::Status Stage(const TransactionId& txn, absl::Span<const KeyRecord> records, uint64_t epoch,
                     absl::Time now);
  // Of the epoch in which the store is; for the thread that changes it.
  absl::Status Stage(const TransactionId& txn, absl::Span<const KeyRecord> records,
                     absl::Time now) {
    return Stage(txn, records, Epoch().epoch, now);
  }
  // Stages copies of committed keys as those of `principal`, as of `epoch`; the old ones stay as they
  // are. Aborted: this server is in another epoch, in which a copy would not fit those of the two
  // others. FailedPrecondition, PermissionDenied: a key that is not `from`'s, is retired, or may not
  // have that name.
  absl::StatusOr<RenamedKeys> StageRenamed(const TransactionId& txn,
                                           absl::Span<const RenamedKey> keys,
                                           const std::string& principal, uint64_t epoch,
                                           absl::Time now);
  // Returns the number of keys. FailedPrecondition, DataLoss: of a key that was to be renamed, the old
  // one was deleted meanwhile, or got another gate. Committing again within limits::kStagedKeyLife
  // returns the same.
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

  // ---- Keys that are no longer wanted (retired.cc). A key of another principal is refused. ----
  // Marks them; one that is marked already keeps its time. They stay usable. One that was kept for
  // the history and is not any more is collected as the others are.
  absl::StatusOr<NamedKeysDone> Retire(absl::Span<const NamedKey> keys, absl::Time now);
  // Takes the marks away; a reduced key is refused.
  absl::StatusOr<NamedKeysDone> Restore(absl::Span<const NamedKey> keys);
  absl::StatusOr<NamedKeysDone> DeleteNamed(absl::Span<const NamedKey> keys);  // at once
  // Deletes those that were retired before that time, the oldest first, `most` of them at most, and
  // reduces those among them that are kept for the history; returns which.
  absl::StatusOr<std::vector<CollectedKey>> CollectRetired(absl::Time before, size_t most);
  // Those whose handles are `first` or greater, in their order, until `visit` returns false.
  using RetiredVisitor =
      absl::FunctionRef<bool(const absl::StatusOr<KeyInfo>&, const RetiredMark&)>;
  absl::Status ForEachRetired(const Handle& first, RetiredVisitor visit) const;
  absl::StatusOr<size_t> CountRetired() const;

  // Changes nothing and names the handle unless all are committed (NotFound) and keys of the
  // principal (FailedPrecondition). Staged copies of them are dropped: their renaming fails.
  absl::Status SetGate(absl::string_view principal, absl::Span<const Handle> handles, Gate gate);

  // Calls `visit` for each key in the order of handles (staged: of transactions) until it returns
  // false. A damaged record is visited as its error.
  using Visitor = absl::FunctionRef<bool(const absl::StatusOr<KeyInfo>&)>;
  absl::Status ForEach(KeyState state, Visitor visit) const { return Visit(state, "", visit); }
  // The same for the committed keys whose handles are `first` or greater.
  absl::Status ForEachFrom(const Handle& first, Visitor visit) const;
  absl::StatusOr<size_t> Count(KeyState state) const;

  // ---- Share epochs (epochs.h). By one thread at a time, but for Epoch(). ----
  EpochState Epoch() const;
  // Whether the key file lets the store leave its epoch.
  absl::Status CheckRefreshable() const { return sealer_.CheckKeysChangeable(); }
  // Keeps the seed of a refresh into the next epoch; one that was prepared before is forgotten.
  // FailedPrecondition: the store is still rewriting.
  absl::Status PrepareEpoch(const RefreshId& id, const RefreshSeed& seed);
  absl::Status AbandonEpoch();  // what was prepared, if anything was
  // Reads again what Epoch() says, before it is told to others: a write whose outcome was not known
  // may have happened.
  absl::Status ReloadEpoch();
  // For an epoch of which it is not known when it began: the first.
  absl::Status NoteEpochBegin(absl::Time now);
  // From now on all shares are of the next epoch. FailedPrecondition: it was not prepared.
  absl::Status EnterEpoch(absl::Time now);
  // For a store that never held a key of the realm: the same, into any epoch. FailedPrecondition:
  // it did.
  absl::Status PrepareJoin(const RefreshId& id, uint64_t into);
  // No key, staged or committed, and not initialised.
  absl::StatusOr<bool> IsEmpty() const;
  // Of a store that is receiving: keys of the present epoch; what it has stays. FailedPrecondition
  // otherwise.
  struct Received {
    KeyRecord record;
    std::optional<RetiredMark> retired{};
  };
  absl::Status Receive(absl::Span<const Received> keys);
  // The mark of each of them that is retired, as of one moment. A damaged mark is none.
  absl::StatusOr<std::vector<std::optional<RetiredMark>>> MarksOf(
      absl::Span<const Handle> handles) const;
  // A store that was put back from a copy of the present epoch: what it lacks is to be received.
  absl::Status BeginReceiving();
  absl::Status EndReceiving();
  // Which of them are not committed here.
  absl::StatusOr<std::vector<Handle>> Lacking(absl::Span<const Handle> handles) const;
  // Of the committed keys that are `first` or greater, in their order; `most` of them at most.
  absl::StatusOr<std::vector<Handle>> HandlesFrom(const Handle& first, size_t most) const;
  // Where they lie on the disk: in the order of the places a rewriting changes fewest pages.
  struct KeyPlace {
    uint64_t place;  // 0: of a store of version 1 (key_table.h)
    Handle handle;
    auto operator<=>(const KeyPlace&) const = default;
  };
  absl::StatusOr<std::vector<KeyPlace>> PlacesFrom(const Handle& first, size_t most) const;
  // Of a store that is rewriting: those that are of the epoch before become of the present one. A
  // damaged record stays as it is.
  struct Rewritten {
    size_t written = 0, damaged = 0;
  };
  // What of it takes computing, by a read before: a login's claim waits while a write is under way.
  struct Renewals {
    struct Record {
      std::string of, renewed;  // sealed, as it was and as it becomes; both empty: there is nothing
    };
    bool Holds(size_t i, absl::Span<const uint8_t> sealed, uint64_t epoch_now) const;
    uint64_t epoch = 0;
    std::vector<Record> records;
  };
  // Appends those of these handles. What goes wrong is found, and said, by Rewrite().
  void Renew(absl::Span<const Handle> handles, Renewals* renewals) const;
  // `renewals`: of the first of the handles, in their order. What is not there, or changed since, is
  // computed now.
  absl::StatusOr<Rewritten> Rewrite(absl::Span<const Handle> handles, const Renewals& renewals);
  absl::StatusOr<Rewritten> Rewrite(absl::Span<const Handle> handles) {
    return Rewrite(handles, Renewals());
  }
  // The same for what is staged.
  absl::StatusOr<size_t> RewriteStaged();
  // Nothing but damaged records is of the epoch before: its seed and its key end here.
  absl::Status EndRefresh();
  // Of which the key file has the key.
  std::vector<uint64_t> KeyEpochs() const { return sealer_.KeyEpochs(); }
  // What EndRefresh() does last, if it could not: nothing, otherwise.
  absl::Status EraseOldKeys();

  // ---- Other machines of the party on the same store (fellows.h, share_store_fellows.cc) ----
  // Makes this machine's triple the one that changes the epoch; the calls above fail at those of
  // another triple from then on: Unavailable.
  absl::Status TakeOver();
  // Sees what other machines have changed, but for another epoch, which is only noticed.
  absl::Status Look();
  // Noticed: the store is in another epoch than Epoch(). Reads of keys fail, UNAVAILABLE, until
  // ReloadEpoch().
  bool passed() const { return passed_; }
  // FailedPrecondition: another machine is of the same triple.
  absl::Status NoteFellow(absl::Time now);
  absl::StatusOr<std::vector<Fellow>> Fellows() const;
  absl::Status ForgetFellow(int triple);
  bool shared() const { return engine_->remote(); }

  // ---- Nonces ----
  // No nonce at or above the mark was ever used by this server. All zero in a new store.
  absl::StatusOr<NonceMark> ReadNonceMark() const;
  // Raises the mark; nonces below it may be used once this returned. A mark that is not higher than
  // the stored one is FailedPrecondition.
  absl::Status ReserveNonceMark(const NonceMark& mark);

  // ---- Replay entries of pre-auth ----
  // Adds those that are not there, and returns what stands under the others in their place: their
  // claim becomes what `change(index, claim)` says, unless that is nothing. All of it is one
  // transaction, and `change` may be asked more than once. The messages differ. Durable when it
  // returns: call it before the jobs' outputs leave the server.
  using ChangeClaim =
      absl::FunctionRef<std::optional<ReplayClaim>(size_t index, const ReplayClaim& claim)>;
  absl::StatusOr<std::vector<std::optional<ReplayClaim>>> ClaimReplayEntries(
      absl::Span<const ReplayEntry> entries, ChangeClaim change);
  absl::Status LoadReplayEntries(absl::FunctionRef<void(const ReplayEntry&)> visit) const;
  absl::StatusOr<size_t> PruneReplayEntries(absl::Time now);  // drops the expired

  // ---- For administrators: of a remote engine, and of what is kept of it in memory ----
  std::optional<DatabaseState> Database() const { return engine_->Database(); }
  std::optional<uint64_t> DiskBytes() const { return engine_->DiskBytes(); }
  std::optional<RecordCache::Use> CacheUse() const {
    return cache_ == nullptr ? std::nullopt : std::optional(cache_->Usage());
  }

  // ---- Small named secrets of this server (its package key) ----
  absl::StatusOr<SecretBytes> ReadItem(absl::string_view name) const;
  absl::Status WriteItem(absl::string_view name, absl::Span<const uint8_t> value);
  // What is there; the value if there is nothing, which is written.
  absl::StatusOr<SecretBytes> ReadOrWriteItem(absl::string_view name,
                                              absl::Span<const uint8_t> value);

 protected:
  ShareStore(std::shared_ptr<KvEngine> engine, Options options);
  absl::Status Load();

 private:
  absl::Status LoadOrCreateMeta(KvTxn& txn, StoreMeta* meta) const;
  absl::Status CheckEverything() const;
  absl::Status Visit(KeyState state, absl::string_view from, Visitor visit) const;
  absl::StatusOr<KeyInfo> InfoOf(const KvTxn& txn, const Handle& handle) const;
  // Of a key that stays for the history: what is left of it.
  absl::Status Reduce(KvTxn& txn, const EpochView& view, const Handle& handle) const;
  // A write that does `change` to each of the keys that is there and its principal's; it returns
  // whether it changed something, FailedPrecondition where it refuses.
  absl::StatusOr<NamedKeysDone> ChangeNamed(
      absl::string_view what, absl::Span<const NamedKey> keys,
      absl::FunctionRef<absl::StatusOr<bool>(KvTxn&, const NamedKey&)> change,
      bool deletes = false);
  std::string SealKey(uint64_t epoch, const KeyRecord& record) const;
  absl::StatusOr<KeyRecord> RenamedIn(const KvTxn& txn, const EpochView& view,
                                      const RenamedKey& key, const std::string& principal) const;
  // Of a staged key that is to be committed: of a copy, whether that of which it is one is still there.
  absl::Status CheckCopy(const KvTxn& txn, const EpochView& view, const Handle& handle,
                         absl::string_view sealed) const;
  absl::StatusOr<std::optional<CopiedFrom>> CopiedOf(const Handle& handle,
                                                     absl::Span<const uint8_t> sealed) const;
  // Of staged ones.
  absl::Status DropCopiesOf(KvTxn& txn, const absl::flat_hash_set<Handle>& gone) const;
  // Adds to the transaction what is sealed as of `epoch`.
  absl::Status StageIn(KvTxn& txn, const TransactionId& id, absl::Span<const KeyRecord> records,
                       uint64_t epoch, absl::Time now) const;
  // Opens and decodes (record_codec.h) what the engine had under the handle.
  template <class T>
  absl::StatusOr<T> OpenKey(const Handle& handle, absl::StatusOr<absl::Span<const uint8_t>> sealed,
                            absl::StatusOr<T> (*decode)(const Handle&,
                                                        absl::Span<const uint8_t>)) const;
  absl::Status GetMany(absl::Span<const Handle> handles, const EpochView& view,
                       absl::Span<absl::StatusOr<KeyRecord>> records) const;
  absl::StatusOr<NonceMark> ReadMark(const KvTxn& txn) const;

  absl::StatusOr<SecretBytes> ItemIn(const KvTxn& txn, absl::string_view name) const;

  // ---- share_store_epochs.cc ----
  struct Loaded {
    EpochState state;
    std::shared_ptr<const RefreshSeed> seed;
    bool initialised = false;
  };
  absl::StatusOr<Loaded> StateIn(const KvTxn& txn) const;
  void Believe(const Loaded& loaded);
  absl::Status LoadEpoch();
  absl::Status Forget(EpochState* state);
  EpochView View() const;
  void SetEpoch(const EpochState& state, std::shared_ptr<const RefreshSeed> seed);
  // As the transaction sees them: what a write goes by. The epoch's key is here when they return.
  absl::StatusOr<StoreMeta> MetaIn(const KvTxn& txn) const;
  absl::StatusOr<uint64_t> EpochIn(const KvTxn& txn) const;
  absl::Status CheckStill(const KvTxn& txn, const EpochState& state) const;
  absl::Status PutRefresh(KvTxn& txn, uint64_t epoch, const StoredRefresh& refresh) const;
  absl::StatusOr<StoredRefresh> RefreshIn(const KvTxn& txn) const;  // NotFound: there is none
  absl::StatusOr<EpochView> ViewIn(const KvTxn& txn) const;
  absl::StatusOr<KeyRecord> OpenShares(const Handle& handle,
                                       absl::StatusOr<absl::Span<const uint8_t>> sealed,
                                       const EpochView& view) const;
  // The sealed record as one of the view's epoch; nothing: it is one.
  absl::StatusOr<std::optional<std::string>> Renewed(const Handle& handle,
                                                     absl::Span<const uint8_t> sealed,
                                                     const EpochView& view) const;
  absl::Status ResealMeta(KvTxn& txn, uint64_t epoch) const;

  // ---- share_store_fellows.cc ----
  absl::StatusOr<int> StewardIn(const KvTxn& txn) const;
  absl::Status CheckSteward(const KvTxn& txn) const;
  absl::Status Passed() const;
  absl::Status AdoptKey(const KvTxn& txn, uint64_t epoch) const;
  absl::Status CheckNotPassed(const KvTxn& txn, uint64_t version, const EpochView& view) const;

  const std::shared_ptr<KvEngine> engine_;
  const int triple_;
  mutable Sealer sealer_;  // its keys change with the epoch, whoever notices that first
  const std::unique_ptr<RecordCache> cache_;  // null: the engine is as near as memory
  mutable absl::Mutex mutex_;  // held while a write is waited for, so never taken inside one
  StoreMeta meta_ ABSL_GUARDED_BY(mutex_);
  absl::Mutex changing_;              // held by whoever changes the epoch; taken before the others
  mutable absl::Mutex epoch_mutex_;  // held for a moment only
  EpochState epoch_ ABSL_GUARDED_BY(epoch_mutex_);
  std::shared_ptr<const RefreshSeed> seed_ ABSL_GUARDED_BY(epoch_mutex_);  // while rewriting
  // Of the keys of a shared store, under which it was in epoch_.epoch.
  mutable uint64_t present_version_ ABSL_GUARDED_BY(epoch_mutex_) = ~uint64_t{0};
  mutable std::atomic<uint64_t> key_checked_{0};  // the epoch whose store key is known to be right
  mutable std::atomic<bool> passed_{false};
  std::atomic<bool> noted_{false};  // NoteFellow() wrote this machine's note
};

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_SHARE_STORE_H_
