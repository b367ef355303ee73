// SPDX-License-Identifier: Apache-2.0
//
// The part of the share store that changes epochs (epochs.h).
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/store/key_table.h"
#include "mpc-server/store/record_codec.h"
#include "mpc-server/store/retired.h"
#include "mpc-server/store/share_store.h"
#include "mpc-server/store/staging.h"

namespace mpckdc {
namespace {

namespace rf = record_format;

constexpr size_t kStagedPerWrite = 256;

}  // namespace

// ---- What holds now ----

absl::StatusOr<ShareStore::Loaded> ShareStore::StateIn(const KvTxn& txn) const {
  Loaded loaded;
  EpochState& state = loaded.state;
  ASSIGN_OR_RETURN(const StoreMeta meta, MetaIn(txn));
  state.epoch = meta.epoch;
  loaded.initialised = meta.initialised;
  absl::StatusOr<StoredRefresh> refresh = RefreshIn(txn);
  if (refresh.ok() && refresh->entered) {
    state.rewriting = true;
    loaded.seed = refresh->seed;
  } else if (refresh.ok()) {
    state.prepared = refresh->id;
  } else if (!absl::IsNotFound(refresh.status())) {
    return refresh.status();
  }
  state.receiving = txn.Get(rf::kMeta, rf::kNameReceiving).ok();
  ASSIGN_OR_RETURN(state.steward, StewardIn(txn));
  const absl::StatusOr<SecretBytes> plain = ItemIn(txn, rf::kNameEpoch);
  if (absl::IsNotFound(plain.status())) return loaded;
  if (!plain.ok()) return plain.status();
  ASSIGN_OR_RETURN(const EpochBegin begin, DecodeEpochBegin(*plain));
  state.began_by = begin.began_by;
  state.began = begin.began;
  return loaded;
}

void ShareStore::Believe(const Loaded& loaded) {
  {
    const absl::MutexLock lock(&mutex_);
    // What was read may be from before MarkInitialised(), and no realm ceases to be one.
    meta_.initialised |= loaded.initialised;
  }
  SetEpoch(loaded.state, loaded.seed);
  passed_ = false;
  // One that ended, and the key file was not written any more; where that cannot be done now it is
  // tried again (agree/epoch_duties.h).
  EraseOldKeys().IgnoreError();
}

absl::Status ShareStore::LoadEpoch() {
  std::unique_ptr<const KvTxn> txn;
  ASSIGN_OR_RETURN(txn, engine_->BeginRead());
  ASSIGN_OR_RETURN(const Loaded loaded, StateIn(*txn));
  txn.reset();
  Believe(loaded);
  return absl::OkStatus();
}

absl::Status ShareStore::EraseOldKeys() {
  const EpochState state = Epoch();
  return state.rewriting ? absl::OkStatus() : sealer_.EraseKeysBefore(state.epoch);
}

EpochState ShareStore::Epoch() const {
  const absl::MutexLock lock(&epoch_mutex_);
  return epoch_;
}

EpochView ShareStore::View() const {
  const absl::MutexLock lock(&epoch_mutex_);
  return {epoch_.epoch, seed_};
}

void ShareStore::SetEpoch(const EpochState& state, std::shared_ptr<const RefreshSeed> seed) {
  const absl::MutexLock lock(&epoch_mutex_);
  epoch_ = state;
  seed_ = std::move(seed);
}

absl::StatusOr<StoreMeta> ShareStore::MetaIn(const KvTxn& txn) const {
  ASSIGN_OR_RETURN(const absl::Span<const uint8_t> record, txn.Get(rf::kMeta, rf::kNameIdentity));
  ASSIGN_OR_RETURN(const StoreMeta meta, Sealer::ReadIdentity(record));
  if (engine_->remote() && meta.epoch != key_checked_) RETURN_IF_ERROR(AdoptKey(txn, meta.epoch));
  return meta;
}

absl::StatusOr<uint64_t> ShareStore::EpochIn(const KvTxn& txn) const {
  ASSIGN_OR_RETURN(const StoreMeta meta, MetaIn(txn));
  return meta.epoch;
}

absl::StatusOr<StoredRefresh> ShareStore::RefreshIn(const KvTxn& txn) const {
  ASSIGN_OR_RETURN(const absl::Span<const uint8_t> sealed, txn.Get(rf::kMeta, rf::kNameRefresh));
  const absl::StatusOr<SecretBytes> plain = sealer_.Open(rf::Kind::kItem, rf::kNameRefresh, sealed);
  if (plain.ok()) return DecodeRefresh(*plain);
  return absl::DataLossError(
      absl::StrCat("the share store's note of a refresh is damaged: ", plain.status().message()));
}

absl::StatusOr<EpochView> ShareStore::ViewIn(const KvTxn& txn) const {
  EpochView view;
  ASSIGN_OR_RETURN(view.epoch, EpochIn(txn));
  absl::StatusOr<StoredRefresh> refresh = RefreshIn(txn);
  if (absl::IsNotFound(refresh.status())) return view;
  if (!refresh.ok()) return refresh.status();
  if (refresh->entered) view.seed = refresh->seed;
  return view;
}

// ---- Records of two epochs ----

absl::StatusOr<KeyRecord> ShareStore::OpenShares(const Handle& handle,
                                                 absl::StatusOr<absl::Span<const uint8_t>> sealed,
                                                 const EpochView& view) const {
  ASSIGN_OR_RETURN(KeyRecord record, OpenKey(handle, sealed, DecodeKeyRecord));
  const uint64_t epoch = Sealer::EpochOf(*sealed);
  if (epoch == view.epoch) return record;
  if (epoch + 1 != view.epoch || view.seed == nullptr) {
    return absl::DataLossError(absl::StrCat("the record of key ", HandleText(handle),
                                            " is of share epoch ", epoch, ", the store is in ",
                                            view.epoch));
  }
  RefreshRecord(*view.seed, view.epoch, sealer_.identity().party, record);
  return record;
}

absl::StatusOr<std::optional<std::string>> ShareStore::Renewed(const Handle& handle,
                                                               absl::Span<const uint8_t> sealed,
                                                               const EpochView& view) const {
  if (Sealer::EpochOf(sealed) == view.epoch) return std::nullopt;
  ASSIGN_OR_RETURN(const KeyRecord record, OpenShares(handle, sealed, view));
  return SealKey(view.epoch, record);
}

// ---- From one epoch to the next ----

// Whether the disk is where this process believes it to be. It is not after a write whose outcome was
// not known, or if another process writes too: nothing of a refresh may be changed then.
absl::Status ShareStore::CheckStill(const KvTxn& txn, const EpochState& state) const {
  ASSIGN_OR_RETURN(const uint64_t epoch, EpochIn(txn));
  const absl::StatusOr<StoredRefresh> refresh = RefreshIn(txn);
  if (!refresh.ok() && !absl::IsNotFound(refresh.status())) return refresh.status();
  const bool rewriting = refresh.ok() && refresh->entered;
  const std::optional<RefreshId> prepared =
      refresh.ok() && !refresh->entered ? std::optional<RefreshId>(refresh->id) : std::nullopt;
  if (epoch == state.epoch && rewriting == state.rewriting && prepared == state.prepared) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrCat("the share store is in epoch ", epoch, rewriting ? ", rewriting" : "",
                   ", and not as this server believed: it looks again when it meets the two others"));
}

absl::Status ShareStore::ReloadEpoch() {
  const absl::MutexLock lock(&changing_);
  return LoadEpoch();
}

absl::Status ShareStore::NoteEpochBegin(absl::Time now) {
  const absl::MutexLock changing(&changing_);
  EpochState state = Epoch();
  state.began = now;
  RETURN_IF_ERROR(engine_->Write("note the epoch's beginning", [&](KvTxn& txn) -> absl::Status {
    ASSIGN_OR_RETURN(const uint64_t epoch, EpochIn(txn));
    if (epoch != state.epoch) return absl::OkStatus();  // the engine was faster
    return txn.Put(rf::kMeta, rf::kNameEpoch,
                   sealer_.Seal(rf::Kind::kItem, state.epoch, rf::kNameEpoch,
                                EncodeEpochBegin({state.began_by, now})));
  }));
  const absl::MutexLock lock(&epoch_mutex_);
  if (epoch_.epoch == state.epoch) epoch_.began = now;
  return absl::OkStatus();
}

// Under the key of the epoch that is left.
absl::Status ShareStore::PutRefresh(KvTxn& txn, uint64_t epoch, const StoredRefresh& refresh) const {
  return txn.Put(
      rf::kMeta, rf::kNameRefresh,
      sealer_.Seal(rf::Kind::kItem, epoch, rf::kNameRefresh, EncodeRefresh(refresh)));
}

absl::Status ShareStore::PrepareEpoch(const RefreshId& id, const RefreshSeed& seed) {
  const absl::MutexLock changing(&changing_);
  EpochState state = Epoch();
  if (state.rewriting) {
    return absl::FailedPreconditionError("the records of the last refresh are still being written");
  }
  // Whose key may have been read with the key file since: no two refreshes have one.
  if (state.prepared.has_value() && !engine_->remote()) RETURN_IF_ERROR(Forget(&state));
  RETURN_IF_ERROR(sealer_.AddKey(state.epoch + 1));
  StoredRefresh refresh{false, false, state.epoch + 1, id, nullptr, nullptr};
  refresh.seed = std::make_shared<const RefreshSeed>(seed.Get());
  // Of several machines each has its own of an earlier attempt; the one that counts goes into the
  // key files when the epoch is entered.
  if (engine_->remote()) refresh.key = sealer_.DrawKey();
  RETURN_IF_ERROR(engine_->Write("prepare a refresh", [&](KvTxn& txn) -> absl::Status {
    RETURN_IF_ERROR(CheckStill(txn, state));
    RETURN_IF_ERROR(CheckSteward(txn));
    return PutRefresh(txn, state.epoch, refresh);
  }));
  state.prepared = id;
  SetEpoch(state, nullptr);
  return absl::OkStatus();
}

absl::StatusOr<bool> ShareStore::IsEmpty() const {
  if (Meta().initialised) return false;
  for (const KeyState state : {KeyState::kCommitted, KeyState::kStaged}) {
    ASSIGN_OR_RETURN(const size_t keys, Count(state));
    if (keys > 0) return false;
  }
  return true;
}

absl::Status ShareStore::PrepareJoin(const RefreshId& id, uint64_t into) {
  const absl::MutexLock changing(&changing_);
  ASSIGN_OR_RETURN(const bool empty, IsEmpty());
  if (!empty) {
    return absl::FailedPreconditionError(
        "this server has keys, or was initialised: only an empty store joins a realm. Stop it, "
        "move its data directory away and start it again");
  }
  EpochState state = Epoch();
  RETURN_IF_ERROR(sealer_.AddKey(into));
  const StoredRefresh refresh{false,  true, into, id, std::make_shared<const RefreshSeed>(),
                              nullptr};
  RETURN_IF_ERROR(engine_->Write("prepare to join an epoch", [&](KvTxn& txn) -> absl::Status {
    RETURN_IF_ERROR(CheckStill(txn, state));
    RETURN_IF_ERROR(CheckSteward(txn));
    return PutRefresh(txn, state.epoch, refresh);
  }));
  state.prepared = id;
  SetEpoch(state, nullptr);
  return absl::OkStatus();
}

absl::Status ShareStore::AbandonEpoch() {
  const absl::MutexLock changing(&changing_);
  EpochState state = Epoch();
  return state.prepared.has_value() ? Forget(&state) : absl::OkStatus();
}

// And the key that was drawn for it, under which nothing was sealed. Once that is durable only: the
// store must never be in an epoch whose key is gone.
absl::Status ShareStore::Forget(EpochState* state) {
  RETURN_IF_ERROR(engine_->Write("abandon a refresh", [&](KvTxn& txn) -> absl::Status {
    RETURN_IF_ERROR(CheckStill(txn, *state));
    RETURN_IF_ERROR(CheckSteward(txn));
    return txn.Delete(rf::kMeta, rf::kNameRefresh);
  }));
  state->prepared.reset();
  SetEpoch(*state, nullptr);
  return engine_->remote() ? absl::OkStatus() : sealer_.EraseKeysAfter(state->epoch);
}

// The nonce mark and the items of this server, under the new key. The seed dies with the old one.
absl::Status ShareStore::ResealMeta(KvTxn& txn, uint64_t epoch) const {
  std::vector<std::pair<std::string, std::string>> records;
  RETURN_IF_ERROR(txn.Scan(rf::kMeta, "", [&](absl::string_view key, auto value) {
    if (key != rf::kNameIdentity && key != rf::kNameRefresh) {
      records.emplace_back(std::string(key), std::string(AsText(value)));
    }
    return true;
  }));
  for (const auto& [name, sealed] : records) {
    const rf::Kind kind =
        absl::StartsWith(name, rf::kItemPrefix) ? rf::Kind::kItem : rf::Kind::kMark;
    const absl::StatusOr<SecretBytes> plain = sealer_.Open(kind, name, AsBytes(sealed));
    if (!plain.ok()) {
      return absl::DataLossError(absl::StrCat(
          "the record ", name, " of the share store is damaged: ", plain.status().message()));
    }
    RETURN_IF_ERROR(txn.Put(rf::kMeta, name, sealer_.Seal(kind, epoch, name, *plain)));
  }
  return absl::OkStatus();
}

absl::Status ShareStore::EnterEpoch(absl::Time now) {
  const absl::MutexLock changing(&changing_);
  EpochState state = Epoch();
  if (!state.prepared.has_value()) {
    return absl::FailedPreconditionError("no refresh was prepared");
  }
  StoreMeta meta = Meta();
  StoredRefresh refresh;
  const absl::Status written = engine_->Write("enter an epoch", [&](KvTxn& txn) -> absl::Status {
    RETURN_IF_ERROR(CheckStill(txn, state));
    RETURN_IF_ERROR(CheckSteward(txn));
    ASSIGN_OR_RETURN(refresh, RefreshIn(txn));
    RETURN_IF_ERROR(refresh.key != nullptr ? sealer_.AdoptKey(refresh.into, *refresh.key)
                                           : sealer_.AddKey(refresh.into));
    refresh.entered = true;
    meta.epoch = refresh.into;
    RETURN_IF_ERROR(ResealMeta(txn, meta.epoch));
    if (refresh.joining) {
      meta.initialised = true;
      RETURN_IF_ERROR(txn.Delete(rf::kMeta, rf::kNameRefresh));
      RETURN_IF_ERROR(txn.Put(rf::kMeta, rf::kNameReceiving,
                              sealer_.Seal(rf::Kind::kItem, meta.epoch, rf::kNameReceiving, {})));
    } else {
      RETURN_IF_ERROR(PutRefresh(txn, state.epoch, refresh));
    }
    RETURN_IF_ERROR(txn.Put(rf::kMeta, rf::kNameEpoch,
                            sealer_.Seal(rf::Kind::kItem, meta.epoch, rf::kNameEpoch,
                                         EncodeEpochBegin({*state.prepared, now}))));
    return txn.Put(rf::kMeta, rf::kNameIdentity, sealer_.SealIdentity(meta));
  });
  if (!written.ok()) {
    LoadEpoch().IgnoreError();  // it may have happened all the same
    return written;
  }
  key_checked_ = meta.epoch;
  EpochState entered;
  entered.steward = state.steward;
  entered.epoch = meta.epoch;
  entered.began_by = *state.prepared;
  entered.began = now;
  entered.rewriting = !refresh.joining;
  entered.receiving = refresh.joining;
  SetEpoch(entered, refresh.joining ? nullptr : refresh.seed);
  if (cache_ != nullptr) cache_->Clear();  // of shares of the epoch before
  if (!refresh.joining) return absl::OkStatus();
  {
    const absl::MutexLock lock(&mutex_);
    meta_.initialised = true;
  }
  return sealer_.EraseKeysBefore(meta.epoch);
}

// ---- Keys from the two others ----

absl::Status ShareStore::Receive(absl::Span<const Received> keys) {
  return engine_->Write("receive keys", [&](KvTxn& txn) -> absl::Status {
    if (!txn.Get(rf::kMeta, rf::kNameReceiving).ok()) {
      return absl::FailedPreconditionError("this server is not receiving keys");
    }
    ASSIGN_OR_RETURN(const uint64_t epoch, EpochIn(txn));
    std::vector<Handle> handles;
    for (const Received& key : keys) handles.push_back(key.record.info.handle);
    RETURN_IF_ERROR(PrefetchKeys(txn, handles, /*records=*/false));
    for (const auto& [record, retired] : keys) {
      const absl::Status have = txn.Get(rf::kKeys, AsText(record.info.handle)).status();
      if (have.ok()) continue;
      if (!absl::IsNotFound(have)) return have;
      RETURN_IF_ERROR(PutKey(txn, AsText(record.info.handle), SealKey(epoch, record)));
      const bool reduced = record.info.key_class == KeyClass::kHistory;
      if (!retired.has_value() && !reduced) continue;
      const RetiredMark mark = retired.value_or(RetiredMark{.since = absl::UnixEpoch()});
      RETURN_IF_ERROR(
          MarkRetired(txn, record.info.handle, mark.since, mark.for_history || reduced).status());
      if (reduced) RETURN_IF_ERROR(MarkReduced(txn, record.info.handle));
    }
    return absl::OkStatus();
  });
}

absl::Status ShareStore::BeginReceiving() {
  const absl::MutexLock changing(&changing_);
  if (Epoch().receiving) return absl::OkStatus();
  RETURN_IF_ERROR(engine_->Write("begin receiving keys", [&](KvTxn& txn) -> absl::Status {
    ASSIGN_OR_RETURN(const uint64_t epoch, EpochIn(txn));
    return txn.Put(rf::kMeta, rf::kNameReceiving,
                   sealer_.Seal(rf::Kind::kItem, epoch, rf::kNameReceiving, {}));
  }));
  const absl::MutexLock lock(&epoch_mutex_);
  epoch_.receiving = true;
  return absl::OkStatus();
}

absl::Status ShareStore::EndReceiving() {
  const absl::MutexLock changing(&changing_);
  EpochState state = Epoch();
  if (!state.receiving) return absl::OkStatus();
  RETURN_IF_ERROR(engine_->Write("end receiving keys", [&](KvTxn& txn) -> absl::Status {
    return txn.Delete(rf::kMeta, rf::kNameReceiving);
  }));
  const absl::MutexLock lock(&epoch_mutex_);
  epoch_.receiving = false;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Handle>> ShareStore::Lacking(absl::Span<const Handle> handles) const {
  ASSIGN_OR_RETURN(std::unique_ptr<const KvTxn> txn, engine_->BeginRead());
  std::vector<std::string> keys;
  keys.reserve(handles.size());
  for (const Handle& handle : handles) keys.emplace_back(AsText(handle));
  ASSIGN_OR_RETURN(const KvTxn::Values values, txn->GetMany(rf::kKeys, keys));
  std::vector<Handle> lacking;
  for (size_t i = 0; i < handles.size(); ++i) {
    if (!values[i].has_value()) lacking.push_back(handles[i]);
  }
  return lacking;
}

absl::StatusOr<std::vector<Handle>> ShareStore::HandlesFrom(const Handle& first,
                                                            size_t most) const {
  ASSIGN_OR_RETURN(std::unique_ptr<const KvTxn> txn, engine_->BeginRead());
  std::vector<Handle> handles;
  if (most == 0) return handles;
  RETURN_IF_ERROR(txn->ScanNames(rf::kKeys, AsText(first), [&](absl::string_view key) {
    if (key.size() == sizeof(Handle)) ByteReader(AsBytes(key)).Into(handles.emplace_back());
    return handles.size() < most;
  }));
  return handles;
}

// ---- Until nothing is of the epoch before ----

absl::StatusOr<std::vector<ShareStore::KeyPlace>> ShareStore::PlacesFrom(const Handle& first,
                                                                         size_t most) const {
  ASSIGN_OR_RETURN(std::unique_ptr<const KvTxn> txn, engine_->BeginRead());
  std::vector<KeyPlace> places;
  if (most == 0) return places;
  RETURN_IF_ERROR(txn->Scan(rf::kKeys, AsText(first), [&](absl::string_view key, auto value) {
    if (key.size() != sizeof(Handle)) return true;  // List() names it
    KeyPlace& place = places.emplace_back();
    ByteReader(AsBytes(key)).Into(place.handle);
    const bool is_place = value.size() == rf::kPlaceBytes;
    place.place = is_place ? ByteReader(value).Uint(rf::kPlaceBytes) : 0;
    return places.size() < most;
  }));
  return places;
}

void ShareStore::Renew(absl::Span<const Handle> handles, Renewals* renewals) const {
  const size_t begin = renewals->records.size();
  renewals->records.resize(begin + handles.size());
  const absl::StatusOr<std::unique_ptr<const KvTxn>> txn = engine_->BeginRead();
  if (!txn.ok()) return;
  const absl::StatusOr<EpochView> view = ViewIn(**txn);
  if (!view.ok() || !PrefetchKeys(**txn, handles, /*records=*/true).ok()) return;
  if (begin == 0) renewals->epoch = view->epoch;
  if (renewals->epoch != view->epoch) return;
  for (size_t i = 0; i < handles.size(); ++i) {
    const absl::StatusOr<absl::Span<const uint8_t>> sealed = GetKey(**txn, AsText(handles[i]));
    if (!sealed.ok()) continue;
    absl::StatusOr<std::optional<std::string>> renewed = Renewed(handles[i], *sealed, *view);
    if (!renewed.ok() || !renewed->has_value()) continue;
    renewals->records[begin + i] = {std::string(AsText(*sealed)), **std::move(renewed)};
  }
}

// Whether it is still the record that was read: each has a random nonce.
bool ShareStore::Renewals::Holds(size_t i, absl::Span<const uint8_t> sealed,
                                 uint64_t epoch_now) const {
  return epoch_now == epoch && i < records.size() && !records[i].of.empty() &&
         records[i].of == AsText(sealed);
}

absl::StatusOr<ShareStore::Rewritten> ShareStore::Rewrite(absl::Span<const Handle> handles,
                                                          const Renewals& renewals) {
  Rewritten done;
  RETURN_IF_ERROR(engine_->Write("refresh keys", [&](KvTxn& txn) -> absl::Status {
    done = {};
    ASSIGN_OR_RETURN(const EpochView view, ViewIn(txn));
    RETURN_IF_ERROR(PrefetchKeys(txn, handles, /*records=*/true));
    for (size_t i = 0; i < handles.size(); ++i) {
      const Handle& handle = handles[i];
      const absl::StatusOr<absl::Span<const uint8_t>> sealed = GetKey(txn, AsText(handle));
      if (absl::IsNotFound(sealed.status())) continue;  // deleted meanwhile
      if (sealed.ok() && renewals.Holds(i, *sealed, view.epoch)) {
        RETURN_IF_ERROR(PutKey(txn, AsText(handle), renewals.records[i].renewed));
        ++done.written;
        continue;
      }
      const absl::StatusOr<std::optional<std::string>> renewed =
          sealed.ok() ? Renewed(handle, *sealed, view) : sealed.status();
      if (absl::IsDataLoss(renewed.status())) {
        ++done.damaged;
        continue;
      }
      if (!renewed.ok()) return renewed.status();
      if (!renewed->has_value()) continue;  // enrolled since, or written before a restart
      RETURN_IF_ERROR(PutKey(txn, AsText(handle), **renewed));
      ++done.written;
    }
    return absl::OkStatus();
  }));
  return done;
}

absl::StatusOr<size_t> ShareStore::RewriteStaged() {
  size_t damaged = 0;
  std::string from;
  for (bool more = true; more;) {
    RETURN_IF_ERROR(engine_->Write("refresh staged keys", [&](KvTxn& txn) -> absl::Status {
      ASSIGN_OR_RETURN(const EpochView view, ViewIn(txn));
      std::vector<std::pair<std::string, std::string>> some;
      RETURN_IF_ERROR(txn.Scan(rf::kStaged, from, [&](absl::string_view key, auto value) {
        some.emplace_back(std::string(key), std::string(AsText(value)));
        return some.size() < kStagedPerWrite;
      }));
      more = some.size() == kStagedPerWrite;
      for (const auto& [key, sealed] : some) {
        from = key + '\0';  // the least key above it
        const std::optional<StagedName> name = ParseStagedKey(key);
        if (!name.has_value()) continue;
        const auto renewed = Renewed(name->handle, AsBytes(sealed), view);
        if (!renewed.ok()) ++damaged;
        if (!renewed.ok() || !renewed->has_value()) continue;
        RETURN_IF_ERROR(txn.Put(rf::kStaged, key, **renewed));
      }
      return absl::OkStatus();
    }));
  }
  return damaged;
}

absl::Status ShareStore::EndRefresh() {
  const absl::MutexLock changing(&changing_);
  EpochState state = Epoch();
  if (state.rewriting) {
    RETURN_IF_ERROR(engine_->Write("end a refresh", [&](KvTxn& txn) -> absl::Status {
      RETURN_IF_ERROR(CheckStill(txn, state));
      return txn.Delete(rf::kMeta, rf::kNameRefresh);
    }));
    state.rewriting = false;
    SetEpoch(state, nullptr);
  }
  return sealer_.EraseKeysBefore(state.epoch);
}

}  // namespace mpckdc
