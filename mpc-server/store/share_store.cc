// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/store/share_store.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/store/key_table.h"
#include "mpc-server/store/record_codec.h"
#include "mpc-server/store/retired.h"
#include "mpc-server/store/staging.h"

namespace mpckdc {
namespace {

namespace rf = record_format;

std::string Describe(const StoreIdentity& id) {
  return absl::StrCat("realm ", id.realm, ", party ", id.party, ", cluster ", id.cluster);
}

absl::Status UnknownHandle(const Handle& handle) {
  return absl::NotFoundError(absl::StrCat("no key ", HandleText(handle)));
}

absl::Status AlreadyCommitted() {
  return absl::FailedPreconditionError("the transaction is committed already");
}

absl::Status Damaged(const Handle& handle, const absl::Status& why) {
  return absl::DataLossError(absl::StrCat("the record of key ", HandleText(handle),
                                          " is damaged: ", why.message()));
}

// Each record is well-formed and no handle occurs twice.
absl::Status CheckStageArguments(absl::Span<const KeyRecord> records) {
  std::set<Handle> seen;
  for (const KeyRecord& record : records) {
    if (absl::Status status = CheckKeyRecord(record); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("key ", HandleText(record.info.handle), ": ",
                                                     status.message()));
    }
    if (!seen.insert(record.info.handle).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("key ", HandleText(record.info.handle), " is given twice"));
    }
  }
  return absl::OkStatus();
}

std::vector<Handle> HandlesOf(absl::Span<const KeyRecord> records) {
  std::vector<Handle> handles;
  for (const KeyRecord& record : records) handles.push_back(record.info.handle);
  return handles;
}

absl::Status CheckNotCommitted(const KvTxn& txn, absl::Span<const KeyRecord> records) {
  RETURN_IF_ERROR(PrefetchKeys(txn, HandlesOf(records), /*records=*/false));
  for (const KeyRecord& record : records) {
    const Handle& handle = record.info.handle;
    const absl::Status old = txn.Get(rf::kKeys, AsText(handle)).status();
    if (old.ok()) {
      return absl::AlreadyExistsError(absl::StrCat("key ", HandleText(handle), " exists already"));
    }
    if (!absl::IsNotFound(old)) return old;
  }
  return absl::OkStatus();
}

// A write that counts: the number holds once the write is durable.
absl::StatusOr<size_t> WriteAndCount(KvEngine& engine, absl::string_view what,
                                     absl::FunctionRef<absl::StatusOr<size_t>(KvTxn&)> body) {
  size_t count = 0;
  RETURN_IF_ERROR(engine.Write(what, [&](KvTxn& txn) {
    const absl::StatusOr<size_t> counted = body(txn);
    if (counted.ok()) count = *counted;
    return counted.status();
  }));
  return count;
}

}  // namespace

// ---- Whose store it is ----

ShareStore::ShareStore(std::shared_ptr<KvEngine> engine, Options options)
    : engine_(std::move(engine)),
      triple_(options.triple),
      sealer_(std::move(options.keys), std::move(options.identity), options.random),
      cache_(engine_->remote() ? std::make_unique<RecordCache>(options.cache_bytes) : nullptr) {
  if (cache_ != nullptr) engine_->OnKeysChanged([cache = cache_.get()] { cache->Clear(); });
}

ShareStore::~ShareStore() {
  if (cache_ != nullptr) engine_->OnKeysChanged(nullptr);
}

absl::StatusOr<std::unique_ptr<ShareStore>> ShareStore::Open(std::shared_ptr<KvEngine> engine,
                                                             Options options) {
  std::unique_ptr<ShareStore> store(new ShareStore(std::move(engine), std::move(options)));
  RETURN_IF_ERROR(store->Load());
  return store;
}

absl::Status ShareStore::Load() {
  StoreMeta meta;
  RETURN_IF_ERROR(engine_->Write("open", [&](KvTxn& txn) { return LoadOrCreateMeta(txn, &meta); }));
  {
    absl::MutexLock lock(&mutex_);
    meta_ = std::move(meta);
  }
  RETURN_IF_ERROR(LoadEpoch());
  return engine_->Doubt().empty() ? absl::OkStatus() : CheckEverything();
}

absl::Status ShareStore::LoadOrCreateMeta(KvTxn& txn, StoreMeta* meta) const {
  absl::StatusOr<absl::Span<const uint8_t>> record = txn.Get(rf::kMeta, rf::kNameIdentity);
  if (absl::IsNotFound(record.status())) {
    *meta = {sealer_.identity(), 1, false, rf::kStoreVersion};
    if (!sealer_.HasKey(meta->epoch)) {
      return absl::FailedPreconditionError(absl::StrCat(
          sealer_.key_origin(),
          " holds no key for epoch 1, that of a new store: is the data where this "
          "server looks for it? If it is lost move the key file away and see \"A server "
          "lost its disk\" in deploy/runbooks/epochs.md"));
    }
    return txn.Put(rf::kMeta, rf::kNameIdentity, sealer_.SealIdentity(*meta));
  }
  if (!record.ok()) return record.status();
  ASSIGN_OR_RETURN(StoreMeta read, Sealer::ReadIdentity(*record));
  if (read.identity != sealer_.identity()) {
    return absl::FailedPreconditionError(absl::StrCat(
        engine_->remote() ? "the database" : "the data directory", " holds the shares of ",
        Describe(read.identity), "; the configuration says ", Describe(sealer_.identity())));
  }
  *meta = read;
  RETURN_IF_ERROR(engine_->remote() ? AdoptKey(txn, meta->epoch) : sealer_.CheckIdentity(*record));
  if (meta->format_version == rf::kStoreVersion) return absl::OkStatus();
  // Keys from now on go where an older program would not find them: it must refuse the store.
  meta->format_version = rf::kStoreVersion;
  return txn.Put(rf::kMeta, rf::kNameIdentity, sealer_.SealIdentity(*meta));
}

// Reads all there is.
absl::Status ShareStore::CheckEverything() const {
  absl::Status result;
  const auto visit = [&result](const absl::StatusOr<KeyInfo>& info) {
    result.Update(info.status());
    return result.ok();
  };
  for (KeyState state : {KeyState::kCommitted, KeyState::kStaged}) {
    result.Update(ForEach(state, visit));
  }
  result.Update(ReadNonceMark().status());
  result.Update(LoadReplayEntries([](const ReplayEntry&) {}));
  if (result.ok()) return result;
  return absl::DataLossError(absl::StrCat(engine_->Doubt(), ": ", result.message()));
}

StoreMeta ShareStore::Meta() const {
  absl::MutexLock lock(&mutex_);
  StoreMeta meta = meta_;
  meta.epoch = View().epoch;
  return meta;
}

absl::StatusOr<bool> ShareStore::MarkInitialised() {
  absl::MutexLock lock(&mutex_);
  bool was = false;
  StoreMeta meta;
  RETURN_IF_ERROR(engine_->Write("initialise the realm", [&](KvTxn& txn) -> absl::Status {
    ASSIGN_OR_RETURN(meta, MetaIn(txn));
    was = meta.initialised;
    meta.initialised = true;
    if (was) return absl::OkStatus();
    return txn.Put(rf::kMeta, rf::kNameIdentity, sealer_.SealIdentity(meta));
  }));
  meta_.initialised = true;
  return !was;
}

// ---- Keys ----

std::string ShareStore::SealKey(uint64_t epoch, const KeyRecord& record) const {
  return sealer_.Seal(rf::Kind::kKey, epoch, AsText(record.info.handle), EncodeKeyRecord(record));
}

template <class T>
absl::StatusOr<T> ShareStore::OpenKey(
    const Handle& handle, absl::StatusOr<absl::Span<const uint8_t>> sealed,
    absl::StatusOr<T> (*decode)(const Handle&, absl::Span<const uint8_t>)) const {
  if (absl::IsNotFound(sealed.status())) return UnknownHandle(handle);
  if (absl::IsDataLoss(sealed.status())) return Damaged(handle, sealed.status());
  if (!sealed.ok()) return sealed.status();
  absl::StatusOr<SecretBytes> plain = sealer_.Open(rf::Kind::kKey, AsText(handle), *sealed);
  if (!plain.ok()) return Damaged(handle, plain.status());
  absl::StatusOr<T> decoded = decode(handle, *plain);
  if (!decoded.ok()) return Damaged(handle, decoded.status());
  return decoded;
}

absl::Status ShareStore::Stage(const TransactionId& id, absl::Span<const KeyRecord> records,
                               uint64_t epoch, absl::Time now) {
  RETURN_IF_ERROR(CheckStageArguments(records));
  return engine_->Write("stage keys", [&](KvTxn& txn) -> absl::Status {
    // What is sealed as of the epoch before is refreshed when it is read, as all such records are.
    ASSIGN_OR_RETURN(const EpochView view, ViewIn(txn));
    if (epoch != view.epoch && !(epoch + 1 == view.epoch && view.seed != nullptr)) {
      return absl::FailedPreconditionError(
          absl::StrCat("the shares are of epoch ", epoch, ", this server is in epoch ", view.epoch,
                       ": they were refreshed meanwhile; do it again"));
    }
    return StageIn(txn, id, records, epoch, now);
  });
}

absl::Status ShareStore::StageIn(KvTxn& txn, const TransactionId& id,
                                 absl::Span<const KeyRecord> records, uint64_t epoch,
                                 absl::Time now) const {
  Staging staging(txn, id);
  absl::StatusOr<Staging::State> state = staging.Read();
  if (absl::IsNotFound(state.status())) state = Staging::State{};
  if (!state.ok()) return state.status();
  if (state->committed) return AlreadyCommitted();
  RETURN_IF_ERROR(CheckNotCommitted(txn, records));
  RETURN_IF_ERROR(staging.CheckFree(records));
  for (const KeyRecord& record : records) {
    ASSIGN_OR_RETURN(bool added, staging.Put(record, SealKey(epoch, record)));
    if (added) ++state->keys;
  }
  state->time = now;
  return staging.Write(*state);
}

absl::StatusOr<size_t> ShareStore::Commit(const TransactionId& id, absl::Time now) {
  return WriteAndCount(*engine_, "commit keys", [&](KvTxn& txn) -> absl::StatusOr<size_t> {
    Staging staging(txn, id);
    absl::StatusOr<Staging::State> state = staging.Read();
    if (absl::IsNotFound(state.status())) {
      return absl::NotFoundError(
          "no such transaction: it was never staged here, was aborted, or has expired");
    }
    if (!state.ok()) return state.status();
    if (state->committed) return state->keys;
    auto staged = staging.Keys();
    if (!staged.ok()) return staged.status();
    if (staged->size() != state->keys) {
      return absl::DataLossError(absl::StrCat(
          "the transaction staged ", state->keys, " keys but ", staged->size(),
          " are there, unless keys that it was to rename were deleted or got another gate: abort it and "
          "begin anew"));
    }
    std::vector<Handle> handles;
    for (const auto& key : *staged) handles.push_back(key.first);
    if (absl::Status s = PrefetchKeys(txn, handles, /*records=*/false); !s.ok()) return s;
    ASSIGN_OR_RETURN(const EpochView view, ViewIn(txn));
    // They move as they are, after each was opened: a damaged one fails the commit. One of the
    // epoch before becomes one of the present.
    for (auto& [handle, sealed] : *staged) {
      absl::Status s = OpenKey(handle, AsBytes(sealed), DecodeKeyRecord).status();
      if (s.ok()) s = CheckCopy(txn, view, handle, sealed);
      if (!s.ok()) return s;
      ASSIGN_OR_RETURN(const auto renewed, Renewed(handle, AsBytes(sealed), view));
      s = PutKey(txn, AsText(handle), renewed.value_or(sealed));
      if (!s.ok()) return s;
    }
    RETURN_IF_ERROR(staging.DropKeys().status());
    RETURN_IF_ERROR(staging.Write({true, now, state->keys}));
    return state->keys;
  });
}

absl::StatusOr<size_t> ShareStore::Abort(const TransactionId& id) {
  return WriteAndCount(*engine_, "abort keys", [&](KvTxn& txn) -> absl::StatusOr<size_t> {
    Staging staging(txn, id);
    absl::StatusOr<Staging::State> state = staging.Read();
    if (absl::IsNotFound(state.status())) return size_t{0};
    if (!state.ok()) return state.status();
    if (state->committed) return AlreadyCommitted();
    return staging.Drop();
  });
}

absl::StatusOr<size_t> ShareStore::ExpireStaged(absl::Time before) {
  return WriteAndCount(*engine_, "expire staged keys", [&](KvTxn& txn) -> absl::StatusOr<size_t> {
    ASSIGN_OR_RETURN(const auto old, Staging::Before(txn, before));
    size_t keys = 0;
    for (const TransactionId& id : old) {
      absl::StatusOr<size_t> dropped = Staging(txn, id).Drop();
      if (!dropped.ok()) return dropped;
      keys += *dropped;
    }
    return keys;
  });
}

std::vector<absl::StatusOr<KeyRecord>> ShareStore::GetMany(absl::Span<const Handle> handles) const {
  const EpochView view = View();
  std::vector<absl::StatusOr<KeyRecord>> records(handles.size(), absl::UnknownError("not read"));
  if (const absl::Status s = GetMany(handles, view, absl::MakeSpan(records)); !s.ok()) {
    std::fill(records.begin(), records.end(), s);
  }
  // A refresh ended in between, and with it its seed and its key.
  const bool ended = view.seed != nullptr && View().seed == nullptr;
  for (size_t i = 0; i < handles.size(); ++i) {
    if (ended && absl::IsDataLoss(records[i].status())) records[i] = Get(handles[i]);
    if (absl::IsNotFound(records[i].status()) && Epoch().receiving) {
      records[i] = absl::UnavailableError(
          absl::StrCat("key ", HandleText(handles[i]),
                       " has not come yet from the two other servers: this one is being rebuilt"));
    }
  }
  return records;
}

// By the view from before the transaction: if that is of no refresh, none was under way then. What
// is cached is of the view's epoch: EnterEpoch() empties the cache.
absl::Status ShareStore::GetMany(absl::Span<const Handle> handles, const EpochView& view,
                                 absl::Span<absl::StatusOr<KeyRecord>> records) const {
  ASSIGN_OR_RETURN(std::unique_ptr<const KvTxn> txn, engine_->BeginRead());
  uint64_t version = 0;
  std::vector<size_t> missing;
  if (cache_ != nullptr) {
    ASSIGN_OR_RETURN(version, txn->KeyVersion());
    RETURN_IF_ERROR(CheckNotPassed(*txn, version, view));
  }
  for (size_t i = 0; i < handles.size(); ++i) {
    const auto cached = cache_ != nullptr ? cache_->Find(version, handles[i]) : nullptr;
    if (cached != nullptr) {
      records[i] = *cached;
    } else {
      missing.push_back(i);
    }
  }
  if (missing.empty()) return absl::OkStatus();
  std::vector<Handle> wanted;
  for (const size_t i : missing) wanted.push_back(handles[i]);
  ASSIGN_OR_RETURN(const auto sealed, GetKeys(*txn, wanted));
  for (size_t m = 0; m < missing.size(); ++m) {
    absl::StatusOr<KeyRecord>& record = records[missing[m]];
    record = OpenShares(wanted[m], ViewOf(sealed[m]), view);
    if (cache_ == nullptr || !record.ok()) continue;
    cache_->Add(version, wanted[m], std::make_shared<const KeyRecord>(*record));
  }
  return absl::OkStatus();
}

absl::StatusOr<KeyRecord> ShareStore::Get(const Handle& handle) const {
  return std::move(GetMany({&handle, 1})[0]);
}

absl::StatusOr<std::optional<CopiedFrom>> ShareStore::CopiedOf(
    const Handle& handle, absl::Span<const uint8_t> sealed) const {
  return OpenKey(handle, sealed, DecodeCopied);
}

absl::StatusOr<KeyInfo> ShareStore::InfoOf(const KvTxn& txn, const Handle& handle) const {
  return OpenKey(handle, GetKey(txn, AsText(handle)), DecodeKeyInfo);
}

absl::StatusOr<KeyRecord> ShareStore::GetStaged(const TransactionId& id,
                                                const Handle& handle) const {
  ASSIGN_OR_RETURN(std::unique_ptr<const KvTxn> txn, engine_->BeginRead());
  // The store's, whatever epoch this process has heard of: nothing is computed with it.
  ASSIGN_OR_RETURN(const EpochView view, ViewIn(*txn));
  const absl::StatusOr<std::string> name = Staging::Find(*txn, id, handle);
  if (absl::IsNotFound(name.status())) return UnknownHandle(handle);
  RETURN_IF_ERROR(name.status());
  return OpenShares(handle, txn->Get(rf::kStaged, *name), view);
}

absl::StatusOr<size_t> ShareStore::Delete(absl::Span<const Handle> handles) {
  return WriteAndCount(*engine_, "delete keys", [&](KvTxn& txn) -> absl::StatusOr<size_t> {
    size_t deleted = 0;
    if (absl::Status s = PrefetchKeys(txn, handles, /*records=*/true); !s.ok()) return s;
    RETURN_IF_ERROR(
        DropCopiesOf(txn, absl::flat_hash_set<Handle>(handles.begin(), handles.end())));
    for (const Handle& handle : handles) {
      absl::Status s = DeleteKey(txn, AsText(handle));
      if (absl::IsNotFound(s)) continue;
      if (s.ok()) s = UnmarkRetired(txn, handle).status();
      if (!s.ok()) return s;
      ++deleted;
    }
    return deleted;
  });
}

absl::Status ShareStore::SetGate(absl::string_view principal, absl::Span<const Handle> handles,
                                 Gate gate) {
  return engine_->Write("set the gate of keys", [&](KvTxn& txn) -> absl::Status {
    ASSIGN_OR_RETURN(const EpochView view, ViewIn(txn));
    RETURN_IF_ERROR(PrefetchKeys(txn, handles, /*records=*/true));
    // A copy is committed at the three servers one after the other, and none must have another gate.
    RETURN_IF_ERROR(
        DropCopiesOf(txn, absl::flat_hash_set<Handle>(handles.begin(), handles.end())));
    for (const Handle& handle : handles) {
      ASSIGN_OR_RETURN(KeyRecord record, OpenShares(handle, GetKey(txn, AsText(handle)), view));
      if (record.info.principal != principal) {
        return absl::FailedPreconditionError(absl::StrCat("key ", HandleText(handle), " is one of ",
                                                          record.info.principal, ", not of ",
                                                          principal));
      }
      record.info.gate = gate;
      RETURN_IF_ERROR(PutKey(txn, AsText(handle), SealKey(view.epoch, record)));
    }
    return absl::OkStatus();
  });
}

absl::Status ShareStore::Visit(KeyState state, absl::string_view from, Visitor visit) const {
  ASSIGN_OR_RETURN(std::unique_ptr<const KvTxn> txn, engine_->BeginRead());
  RETURN_IF_ERROR(EpochIn(*txn).status());
  const bool committed = state == KeyState::kCommitted;
  const auto one = [&](absl::string_view key, absl::StatusOr<absl::Span<const uint8_t>> record) {
    std::optional<StagedName> name;
    if (!committed) {
      name = ParseStagedKey(key);
    } else if (key.size() == sizeof(Handle)) {
      ByteReader(AsBytes(key)).Into(name.emplace().handle);
    }
    if (!name.has_value()) return visit(absl::DataLossError("a key record has a damaged name"));
    return visit(OpenKey(name->handle, std::move(record), DecodeKeyInfo));
  };
  return committed ? ScanKeys(*txn, from, one) : txn->Scan(rf::kStaged, from, one);
}

absl::Status ShareStore::ForEachFrom(const Handle& first, Visitor visit) const {
  return Visit(KeyState::kCommitted, AsText(first), visit);
}

absl::StatusOr<size_t> ShareStore::Count(KeyState state) const {
  ASSIGN_OR_RETURN(std::unique_ptr<const KvTxn> txn, engine_->BeginRead());
  return txn->Count(state == KeyState::kCommitted ? rf::kKeys : rf::kStaged);
}

// ---- Nonces ----

uint16_t ShareStore::cluster() const {
  return static_cast<uint16_t>(sealer_.identity().cluster + triple_);
}

namespace {

// Each triple has nonces of its own, and so a mark of its own.
std::string MarkName(int triple) {
  return triple == 0 ? rf::kNameMark : absl::StrCat(rf::kNameMark, "/", triple);
}

}  // namespace

absl::StatusOr<NonceMark> ShareStore::ReadMark(const KvTxn& txn) const {
  NonceMark mark{};
  const std::string name = MarkName(triple_);
  absl::StatusOr<absl::Span<const uint8_t>> sealed = txn.Get(rf::kMeta, name);
  if (absl::IsNotFound(sealed.status())) return mark;
  if (!sealed.ok()) return sealed.status();
  absl::StatusOr<SecretBytes> plain = sealer_.Open(rf::Kind::kMark, name, *sealed);
  if (!plain.ok() || plain->size() != mark.size()) {
    return absl::DataLossError(absl::StrCat("the nonce mark of the share store is damaged: ",
                                            plain.ok() ? "wrong size" : plain.status().message()));
  }
  ByteReader(*plain).Into(mark);
  return mark;
}

absl::StatusOr<NonceMark> ShareStore::ReadNonceMark() const {
  ASSIGN_OR_RETURN(std::unique_ptr<const KvTxn> txn, engine_->BeginRead());
  return ReadMark(*txn);
}

absl::Status ShareStore::ReserveNonceMark(const NonceMark& mark) {
  return engine_->Write("raise nonce mark", [&](KvTxn& txn) -> absl::Status {
    ASSIGN_OR_RETURN(const uint64_t epoch, EpochIn(txn));
    ASSIGN_OR_RETURN(NonceMark old, ReadMark(txn));
    if (mark <= old) return absl::FailedPreconditionError("the nonce mark can only rise");
    const std::string name = MarkName(triple_);
    return txn.Put(rf::kMeta, name, sealer_.Seal(rf::Kind::kMark, epoch, name, mark));
  });
}

// ---- Replay entries ----

absl::StatusOr<std::vector<std::optional<ReplayClaim>>> ShareStore::ClaimReplayEntries(
    absl::Span<const ReplayEntry> entries, ChangeClaim change) {
  std::vector<std::optional<ReplayClaim>> claims(entries.size());
  if (entries.empty()) return claims;
  std::vector<KvTxn::Entry> rows;
  rows.reserve(entries.size());
  for (const ReplayEntry& entry : entries) {
    rows.emplace_back(ReplayKey(entry), EncodeReplayClaim(entry.claim));
  }
  RETURN_IF_ERROR(engine_->Write("write replays", [&](KvTxn& txn) -> absl::Status {
    ASSIGN_OR_RETURN(const auto found, txn.InsertNew(rf::kReplay, rows));
    for (size_t i = 0; i < rows.size(); ++i) {
      claims[i].reset();
      if (!found[i].has_value()) continue;
      claims[i] = DecodeReplayClaim(*found[i]);
      const std::optional<ReplayClaim> changed = change(i, *claims[i]);
      if (!changed.has_value()) continue;
      RETURN_IF_ERROR(txn.Put(rf::kReplay, rows[i].first, EncodeReplayClaim(*changed)));
    }
    return absl::OkStatus();
  }));
  return claims;
}

absl::Status ShareStore::LoadReplayEntries(
    absl::FunctionRef<void(const ReplayEntry&)> visit) const {
  ASSIGN_OR_RETURN(std::unique_ptr<const KvTxn> txn, engine_->BeginRead());
  absl::Status result;
  absl::Status scanned = txn->Scan(rf::kReplay, "", [&](absl::string_view key, auto value) {
    if (key.size() != rf::kReplayKeyBytes) {
      result = absl::DataLossError("a replay entry of the share store is damaged");
      return false;
    }
    visit(ReplayEntryOf(key, AsText(value)));
    return true;
  });
  result.Update(scanned);
  return result;
}

absl::StatusOr<size_t> ShareStore::PruneReplayEntries(absl::Time now) {
  return WriteAndCount(*engine_, "drop old replays", [&](KvTxn& txn) -> absl::StatusOr<size_t> {
    const std::string end = ReplayKeysUntil(now);
    std::vector<std::string> expired;
    absl::Status s = txn.ScanNames(rf::kReplay, "", [&](absl::string_view key) {
      if (key >= end) return false;
      expired.emplace_back(key);
      return true;
    });
    for (const std::string& key : expired) {
      if (s.ok()) s = txn.Delete(rf::kReplay, key);
    }
    if (!s.ok()) return s;
    return expired.size();
  });
}

// ---- Items ----

// `name` with its prefix.
absl::StatusOr<SecretBytes> ShareStore::ItemIn(const KvTxn& txn, absl::string_view name) const {
  ASSIGN_OR_RETURN(absl::Span<const uint8_t> sealed, txn.Get(rf::kMeta, name));
  absl::StatusOr<SecretBytes> plain = sealer_.Open(rf::Kind::kItem, name, sealed);
  if (plain.ok()) return plain;
  return absl::DataLossError(
      absl::StrCat("the item ", absl::StripPrefix(name, rf::kItemPrefix),
                   " of the share store is damaged: ", plain.status().message()));
}

absl::StatusOr<SecretBytes> ShareStore::ReadItem(absl::string_view name) const {
  ASSIGN_OR_RETURN(std::unique_ptr<const KvTxn> txn, engine_->BeginRead());
  RETURN_IF_ERROR(EpochIn(*txn).status());
  return ItemIn(*txn, absl::StrCat(rf::kItemPrefix, name));
}

absl::StatusOr<SecretBytes> ShareStore::ReadOrWriteItem(absl::string_view name,
                                                        absl::Span<const uint8_t> value) {
  const std::string key = absl::StrCat(rf::kItemPrefix, name);
  SecretBytes item;
  RETURN_IF_ERROR(engine_->Write("write an item", [&](KvTxn& txn) -> absl::Status {
    ASSIGN_OR_RETURN(const uint64_t epoch, EpochIn(txn));
    absl::StatusOr<SecretBytes> there = ItemIn(txn, key);
    if (!there.ok() && !absl::IsNotFound(there.status())) return there.status();
    item = there.ok() ? *std::move(there) : SecretBytes(value.begin(), value.end());
    if (there.ok()) return absl::OkStatus();
    return txn.Put(rf::kMeta, key, sealer_.Seal(rf::Kind::kItem, epoch, key, value));
  }));
  return item;
}

absl::Status ShareStore::WriteItem(absl::string_view name, absl::Span<const uint8_t> value) {
  const std::string key = absl::StrCat(rf::kItemPrefix, name);
  return engine_->Write("write an item", [&](KvTxn& txn) -> absl::Status {
    ASSIGN_OR_RETURN(const uint64_t epoch, EpochIn(txn));
    return txn.Put(rf::kMeta, key, sealer_.Seal(rf::Kind::kItem, epoch, key, value));
  });
}

}  // namespace mpckdc
