// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/store/share_store.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/store/key_table.h"
#include "mpc-server/store/record_codec.h"
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

std::string ReplayKey(absl::Time expires) {
  std::string key;
  AppendUint(key, static_cast<uint64_t>(std::max<int64_t>(0, absl::ToUnixMicros(expires))), 8);
  return key;
}

ReplayEntry ReplayEntryOf(absl::string_view key) {
  ByteReader in(AsBytes(key));
  ReplayEntry entry;
  entry.expires = absl::FromUnixMicros(static_cast<int64_t>(in.Uint(8)));
  in.Into(entry.handle);
  in.Into(entry.nonce);
  return entry;
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
  return engine_->Doubt().empty() ? absl::OkStatus() : CheckEverything();
}

absl::Status ShareStore::LoadOrCreateMeta(KvTxn& txn, StoreMeta* meta) const {
  absl::StatusOr<absl::Span<const uint8_t>> record = txn.Get(rf::kMeta, rf::kNameIdentity);
  if (absl::IsNotFound(record.status())) {
    *meta = {sealer_.identity(), 1, false, rf::kStoreVersion};
    if (!sealer_.HasKey(meta->epoch)) {
      return absl::FailedPreconditionError(
          absl::StrCat(sealer_.key_origin(), " holds no key for epoch 1, that of a new store"));
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
  RETURN_IF_ERROR(sealer_.CheckIdentity(*record));
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
  return meta_;
}

absl::StatusOr<bool> ShareStore::MarkInitialised() {
  absl::MutexLock lock(&mutex_);
  if (meta_.initialised) return false;
  StoreMeta meta = meta_;
  meta.initialised = true;
  RETURN_IF_ERROR(engine_->Write("initialise the realm", [&](KvTxn& txn) {
    return txn.Put(rf::kMeta, rf::kNameIdentity, sealer_.SealIdentity(meta));
  }));
  meta_ = meta;
  return true;
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
                               absl::Time now) {
  RETURN_IF_ERROR(CheckStageArguments(records));
  const uint64_t epoch = Meta().epoch;
  return engine_->Write("stage keys", [&](KvTxn& txn) -> absl::Status {
    Staging staging(txn, id);
    absl::StatusOr<Staging::State> state = staging.Read();
    if (absl::IsNotFound(state.status())) state = Staging::State{};
    if (!state.ok()) return state.status();
    if (state->committed) return AlreadyCommitted();
    RETURN_IF_ERROR(CheckNotCommitted(txn, records));
    RETURN_IF_ERROR(staging.CheckFree(records));
    for (const KeyRecord& record : records) {
      ASSIGN_OR_RETURN(bool added, staging.Put(record.info.handle, SealKey(epoch, record)));
      if (added) ++state->keys;
    }
    state->time = now;
    return staging.Write(*state);
  });
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
    const auto staged = staging.Keys();
    if (!staged.ok()) return staged.status();
    if (staged->size() != state->keys) {
      return absl::DataLossError(absl::StrCat("the transaction staged ", state->keys, " keys but ",
                                              staged->size(),
                                              " are there: abort it and enrol again"));
    }
    std::vector<Handle> handles;
    for (const auto& key : *staged) handles.push_back(key.first);
    if (absl::Status s = PrefetchKeys(txn, handles, /*records=*/false); !s.ok()) return s;
    // They move as they are, after each was opened: a damaged one fails the commit.
    for (const auto& [handle, sealed] : *staged) {
      absl::Status s = OpenKey(handle, AsBytes(sealed), DecodeKeyRecord).status();
      if (s.ok()) s = PutKey(txn, AsText(handle), sealed);
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
  std::vector<absl::StatusOr<KeyRecord>> records(handles.size(), absl::UnknownError("not read"));
  if (const absl::Status s = GetMany(handles, absl::MakeSpan(records)); !s.ok()) {
    std::fill(records.begin(), records.end(), s);
  }
  return records;
}

absl::Status ShareStore::GetMany(absl::Span<const Handle> handles,
                                 absl::Span<absl::StatusOr<KeyRecord>> records) const {
  ASSIGN_OR_RETURN(std::unique_ptr<const KvTxn> txn, engine_->BeginRead());
  uint64_t version = 0;
  std::vector<size_t> missing;
  if (cache_ != nullptr) {
    ASSIGN_OR_RETURN(version, txn->KeyVersion());
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
    record = OpenKey(wanted[m], ViewOf(sealed[m]), DecodeKeyRecord);
    if (cache_ == nullptr || !record.ok()) continue;
    cache_->Add(version, wanted[m], std::make_shared<const KeyRecord>(*record));
  }
  return absl::OkStatus();
}

absl::StatusOr<KeyRecord> ShareStore::Get(const Handle& handle) const {
  if (cache_ != nullptr) return std::move(GetMany({&handle, 1})[0]);
  ASSIGN_OR_RETURN(std::unique_ptr<const KvTxn> txn, engine_->BeginRead());
  return OpenKey(handle, GetKey(*txn, AsText(handle)), DecodeKeyRecord);
}

absl::StatusOr<KeyRecord> ShareStore::GetStaged(const TransactionId& id,
                                                const Handle& handle) const {
  ASSIGN_OR_RETURN(std::unique_ptr<const KvTxn> txn, engine_->BeginRead());
  return OpenKey(handle, txn->Get(rf::kStaged, StagedKey(id, handle)), DecodeKeyRecord);
}

absl::StatusOr<size_t> ShareStore::Delete(absl::Span<const Handle> handles) {
  return WriteAndCount(*engine_, "delete keys", [&](KvTxn& txn) -> absl::StatusOr<size_t> {
    size_t deleted = 0;
    if (absl::Status s = PrefetchKeys(txn, handles, /*records=*/true); !s.ok()) return s;
    for (const Handle& handle : handles) {
      absl::Status s = DeleteKey(txn, AsText(handle));
      if (absl::IsNotFound(s)) continue;
      if (!s.ok()) return s;
      ++deleted;
    }
    return deleted;
  });
}

absl::Status ShareStore::SetGate(absl::Span<const Handle> handles, Gate gate) {
  const uint64_t epoch = Meta().epoch;
  return engine_->Write("set the gate of keys", [&](KvTxn& txn) -> absl::Status {
    RETURN_IF_ERROR(PrefetchKeys(txn, handles, /*records=*/true));
    for (const Handle& handle : handles) {
      ASSIGN_OR_RETURN(KeyRecord record,
                       OpenKey(handle, GetKey(txn, AsText(handle)), DecodeKeyRecord));
      record.info.gate = gate;
      RETURN_IF_ERROR(PutKey(txn, AsText(handle), SealKey(epoch, record)));
    }
    return absl::OkStatus();
  });
}

absl::Status ShareStore::Visit(KeyState state, absl::string_view from, Visitor visit) const {
  ASSIGN_OR_RETURN(std::unique_ptr<const KvTxn> txn, engine_->BeginRead());
  const bool committed = state == KeyState::kCommitted;
  const size_t skip = committed ? 0 : sizeof(TransactionId);
  const auto one = [&](absl::string_view key, absl::StatusOr<absl::Span<const uint8_t>> record) {
    Handle handle;
    if (key.size() != skip + handle.size()) {
      return visit(absl::DataLossError("a key record has a damaged name"));
    }
    ByteReader(AsBytes(key.substr(skip))).Into(handle);
    return visit(OpenKey(handle, std::move(record), DecodeKeyInfo));
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

absl::StatusOr<NonceMark> ShareStore::ReadMark(const KvTxn& txn) const {
  NonceMark mark{};
  absl::StatusOr<absl::Span<const uint8_t>> sealed = txn.Get(rf::kMeta, rf::kNameMark);
  if (absl::IsNotFound(sealed.status())) return mark;
  if (!sealed.ok()) return sealed.status();
  absl::StatusOr<SecretBytes> plain = sealer_.Open(rf::Kind::kMark, rf::kNameMark, *sealed);
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
  const uint64_t epoch = Meta().epoch;
  return engine_->Write("raise nonce mark", [&](KvTxn& txn) -> absl::Status {
    ASSIGN_OR_RETURN(NonceMark old, ReadMark(txn));
    if (mark <= old) return absl::FailedPreconditionError("the nonce mark can only rise");
    return txn.Put(rf::kMeta, rf::kNameMark,
                   sealer_.Seal(rf::Kind::kMark, epoch, rf::kNameMark, mark));
  });
}

// ---- Replay entries ----

absl::Status ShareStore::AddReplayEntries(absl::Span<const ReplayEntry> entries) {
  if (entries.empty()) return absl::OkStatus();
  std::vector<KvTxn::Entry> rows;
  for (const ReplayEntry& entry : entries) {
    rows.emplace_back(
        absl::StrCat(ReplayKey(entry.expires), AsText(entry.handle), AsText(entry.nonce)), "");
  }
  return engine_->Write("write replays",
                        [&](KvTxn& txn) { return txn.InsertNew(rf::kReplay, rows).status(); });
}

absl::Status ShareStore::LoadReplayEntries(
    absl::FunctionRef<void(const ReplayEntry&)> visit) const {
  ASSIGN_OR_RETURN(std::unique_ptr<const KvTxn> txn, engine_->BeginRead());
  absl::Status result;
  absl::Status scanned = txn->Scan(rf::kReplay, "", [&](absl::string_view key, auto) {
    if (key.size() != rf::kReplayKeyBytes) {
      result = absl::DataLossError("a replay entry of the share store is damaged");
      return false;
    }
    visit(ReplayEntryOf(key));
    return true;
  });
  result.Update(scanned);
  return result;
}

absl::StatusOr<size_t> ShareStore::PruneReplayEntries(absl::Time now) {
  return WriteAndCount(*engine_, "drop old replays", [&](KvTxn& txn) -> absl::StatusOr<size_t> {
    const std::string end = ReplayKey(now);
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

absl::StatusOr<SecretBytes> ShareStore::ReadItem(absl::string_view name) const {
  ASSIGN_OR_RETURN(std::unique_ptr<const KvTxn> txn, engine_->BeginRead());
  const std::string key = absl::StrCat(rf::kItemPrefix, name);
  ASSIGN_OR_RETURN(absl::Span<const uint8_t> sealed, txn->Get(rf::kMeta, key));
  absl::StatusOr<SecretBytes> plain = sealer_.Open(rf::Kind::kItem, key, sealed);
  if (plain.ok()) return plain;
  return absl::DataLossError(absl::StrCat("the item ", name, " of the share store is damaged: ",
                                          plain.status().message()));
}

absl::Status ShareStore::WriteItem(absl::string_view name, absl::Span<const uint8_t> value) {
  const std::string key = absl::StrCat(rf::kItemPrefix, name);
  const uint64_t epoch = Meta().epoch;
  return engine_->Write("write an item", [&](KvTxn& txn) {
    return txn.Put(rf::kMeta, key, sealer_.Seal(rf::Kind::kItem, epoch, key, value));
  });
}

}  // namespace mpckdc
