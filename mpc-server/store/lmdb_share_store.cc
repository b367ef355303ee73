// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/store/lmdb_share_store.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/store/record_codec.h"
#include "mpc-server/store/record_format.h"
#include "mpc-server/store/staging.h"

namespace mpckdc {
namespace {

namespace rf = record_format;

constexpr const char* kNames[] = {rf::kDbMeta, rf::kDbKeys, rf::kDbStaged, rf::kDbTransactions,
                                  rf::kDbReplay, rf::kDbRecords};

std::string DataPath(const std::string& folder) { return folder + "/shares.mdb"; }

absl::StatusOr<int> LockFolder(const std::string& folder) {
  const std::string path = folder + "/lock";
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) {
    const std::string text = absl::StrCat("cannot open ", path, ": ", strerror(errno));
    if (errno == EACCES || errno == EPERM) return absl::PermissionDeniedError(text);
    return absl::UnavailableError(text);
  }
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  const int error = errno;
  close(fd);
  if (error != EWOULDBLOCK) {
    return absl::UnavailableError(absl::StrCat("cannot lock ", path, ": ", strerror(error)));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("another mpc-server has the data directory ", folder, " open"));
}

// LMDB's first pages are not written in one piece: a power failure during the first start would leave
// a file that no later start accepts. So a new file gets its name when it is complete.
absl::Status CreateFile(const std::string& folder, uint64_t map_bytes) {
  const std::string path = DataPath(folder), fresh = path + ".new";
  const auto failed = [&path] {
    return absl::UnavailableError(absl::StrCat("cannot create ", path, ": ", strerror(errno)));
  };
  for (const std::string& left : {fresh, fresh + "-lock"}) {
    if (unlink(left.c_str()) != 0 && errno != ENOENT) return failed();
  }
  absl::Status made = LmdbEnv::Open(fresh, map_bytes, kNames).status();  // closed again, and synced
  if (!made.ok()) return made;
  unlink((fresh + "-lock").c_str());
  if (rename(fresh.c_str(), path.c_str()) != 0) return failed();
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return failed();
  const bool synced = fsync(fd) == 0;
  close(fd);
  return synced ? absl::OkStatus() : failed();
}

std::string Describe(const StoreIdentity& id) {
  return absl::StrCat("realm ", id.realm, ", party ", id.party, ", cluster ", id.cluster);
}

std::string StagedKey(const TransactionId& txn, const Handle& handle) {
  return absl::StrCat(AsText(txn), AsText(handle));
}

template <class Array>
Array ToArray(absl::string_view bytes) {
  Array out{};
  assert(bytes.size() == out.size());
  std::copy(bytes.begin(), bytes.end(), out.begin());
  return out;
}

std::string ReplayKey(absl::Time expires) {
  std::string key;
  AppendUint(key, static_cast<uint64_t>(std::max<int64_t>(0, absl::ToUnixMicros(expires))), 8);
  return key;
}

std::string ReplayKey(const ReplayEntry& entry) {
  return absl::StrCat(ReplayKey(entry.expires), AsText(entry.handle), AsText(entry.nonce));
}

std::string EncodeTxn(const StagingState& state) {
  std::string out;
  AppendUint(out, state.committed ? rf::kTxnCommitted : rf::kTxnStaged, 1);
  AppendUint(out, static_cast<uint64_t>(absl::ToUnixMicros(state.time)), 8);
  AppendUint(out, state.keys, 4);
  return out;
}

absl::StatusOr<StagingState> ReadTxn(const LmdbTxn& txn, MDB_dbi dbi, const TransactionId& id) {
  absl::StatusOr<absl::Span<const uint8_t>> value = txn.Get(dbi, AsText(id));
  if (!value.ok()) return value.status();
  if (value->size() != rf::kTxnBytes) {
    return absl::DataLossError("a transaction record of the share store is damaged");
  }
  ByteReader in(*value);
  StagingState state;
  state.committed = in.Uint(1) == rf::kTxnCommitted;
  state.time = absl::FromUnixMicros(static_cast<int64_t>(in.Uint(8)));
  state.keys = in.Uint(4);
  return state;
}

absl::Status Damaged(const Handle& handle, const absl::Status& why) {
  return absl::DataLossError(absl::StrCat("the record of key ", HandleText(handle),
                                          " is damaged: ", why.message()));
}

}  // namespace

bool LmdbShareStore::Exists(const std::string& folder) {
  return access(DataPath(folder).c_str(), F_OK) == 0;
}

absl::StatusOr<std::unique_ptr<LmdbShareStore>> LmdbShareStore::Open(Options options) {
  absl::StatusOr<int> lock = LockFolder(options.folder);
  if (!lock.ok()) return lock.status();
  if (!Exists(options.folder)) {
    if (absl::Status s = CreateFile(options.folder, options.map_bytes); !s.ok()) {
      close(*lock);
      return s;
    }
  }
  absl::StatusOr<std::unique_ptr<LmdbEnv>> env =
      LmdbEnv::Open(DataPath(options.folder), options.map_bytes, kNames);
  if (!env.ok()) {
    close(*lock);
    return env.status();
  }
  std::unique_ptr<LmdbShareStore> store(new LmdbShareStore(
      *lock, *std::move(env),
      Sealer(std::move(options.keys), std::move(options.identity), options.random)));
  if (absl::Status status = store->LoadOrCreateMeta(); !status.ok()) return status;
  if (store->env_->was_short()) {
    if (absl::Status status = store->CheckEverything(); !status.ok()) return status;
  }
  return store;
}

LmdbShareStore::~LmdbShareStore() { close(lock_fd_); }

absl::Status LmdbShareStore::LoadOrCreateMeta() {
  absl::MutexLock lock(&mutex_);
  return env_->Write([&](LmdbTxn& txn) {
    mutex_.AssertHeld();
    absl::StatusOr<absl::Span<const uint8_t>> record = txn.Get(Db(kMeta), rf::kNameIdentity);
    if (absl::IsNotFound(record.status())) {
      meta_ = {sealer_.identity(), 1, false, rf::kStoreVersion};
      if (!sealer_.HasKey(meta_.epoch)) {
        return absl::FailedPreconditionError(
            absl::StrCat(sealer_.key_origin(), " holds no key for epoch 1, that of a new store"));
      }
      return txn.Put(Db(kMeta), rf::kNameIdentity, sealer_.SealIdentity(meta_));
    }
    if (!record.ok()) return record.status();
    absl::StatusOr<StoreMeta> meta = Sealer::ReadIdentity(*record);
    if (!meta.ok()) return meta.status();
    if (meta->identity != sealer_.identity()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the data directory holds the shares of ", Describe(meta->identity),
                       "; the configuration says ", Describe(sealer_.identity())));
    }
    meta_ = *meta;
    if (absl::Status s = sealer_.CheckIdentity(*record); !s.ok()) return s;
    if (meta_.format_version == rf::kStoreVersion) return absl::OkStatus();
    // Keys from now on go where an older program would not find them: it must refuse the store.
    meta_.format_version = rf::kStoreVersion;
    return txn.Put(Db(kMeta), rf::kNameIdentity, sealer_.SealIdentity(meta_));
  });
}

// After a file was found too short: reads all there is.
absl::Status LmdbShareStore::CheckEverything() const {
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
  return absl::DataLossError(
      absl::StrCat("the share store file was cut short: ", result.message()));
}

StoreMeta LmdbShareStore::Meta() const {
  absl::MutexLock lock(&mutex_);
  return meta_;
}

absl::StatusOr<bool> LmdbShareStore::MarkInitialised() {
  absl::MutexLock lock(&mutex_);
  if (meta_.initialised) return false;
  StoreMeta meta = meta_;
  meta.initialised = true;
  absl::Status status = env_->Write([&](LmdbTxn& txn) {
    return txn.Put(Db(kMeta), rf::kNameIdentity, sealer_.SealIdentity(meta));
  });
  if (!status.ok()) return status;
  meta_ = meta;
  return true;
}

absl::Status LmdbShareStore::CheckStageable(const LmdbTxn& txn, const TransactionId& id,
                                            absl::Span<const KeyRecord> records) const {
  absl::StatusOr<size_t> staged = txn.Count(Db(kStaged));
  if (!staged.ok()) return staged.status();
  if (*staged + records.size() > limits::kMaxStagedKeys) return TooManyStaged();
  for (const KeyRecord& record : records) {
    absl::StatusOr<absl::Span<const uint8_t>> old =
        txn.Get(Db(kKeys), AsText(record.info.handle));
    if (old.ok()) return HandleCommitted(record.info.handle);
    if (!absl::IsNotFound(old.status())) return old.status();
  }
  Handle taken{};
  bool found = false;
  absl::Status status = txn.Scan(Db(kStaged), "", [&](absl::string_view key, auto) {
    if (key.substr(0, id.size()) == AsText(id)) return true;
    taken = ToArray<Handle>(key.substr(id.size()));
    found = std::any_of(records.begin(), records.end(),
                        [&](const KeyRecord& r) { return r.info.handle == taken; });
    return !found;
  });
  return found ? HandleStaged(taken) : status;
}

absl::Status LmdbShareStore::Stage(const TransactionId& id, absl::Span<const KeyRecord> records,
                                   absl::Time now) {
  if (absl::Status status = CheckStageArguments(records); !status.ok()) return status;
  const uint64_t epoch = Epoch();
  return env_->Write([&](LmdbTxn& txn) -> absl::Status {
    absl::StatusOr<StagingState> state = ReadTxn(txn, Db(kTransactions), id);
    if (absl::IsNotFound(state.status())) state = StagingState{};
    if (!state.ok()) return state.status();
    if (state->committed) return AlreadyCommitted();
    if (absl::Status s = CheckStageable(txn, id, records); !s.ok()) return s;
    for (const KeyRecord& record : records) {
      const std::string key = StagedKey(id, record.info.handle);
      const bool replaces = txn.Get(Db(kStaged), key).ok();
      absl::Status s = txn.Put(Db(kStaged), key,
                               sealer_.Seal(rf::Kind::kKey, epoch, AsText(record.info.handle),
                                            EncodeKeyRecord(record)));
      if (!s.ok()) return s;
      if (!replaces) ++state->keys;
    }
    state->time = now;
    return txn.Put(Db(kTransactions), AsText(id), EncodeTxn(*state));
  });
}

// Moves the staged records as they are, after opening each: a damaged one fails the commit.
absl::StatusOr<size_t> LmdbShareStore::MoveStaged(LmdbTxn& txn, const TransactionId& id) const {
  std::vector<std::pair<Handle, std::string>> found;
  absl::Status status = txn.Scan(
      Db(kStaged), AsText(id), [&](absl::string_view key, absl::Span<const uint8_t> value) {
        if (key.substr(0, id.size()) != AsText(id)) return false;
        found.emplace_back(ToArray<Handle>(key.substr(id.size())), std::string(AsText(value)));
        return true;
      });
  for (const auto& [handle, sealed] : found) {
    if (status.ok()) status = OpenKey(handle, AsBytes(sealed)).status();
    if (status.ok()) status = Keys().Put(txn, AsText(handle), sealed);
    if (status.ok()) status = txn.Delete(Db(kStaged), StagedKey(id, handle));
  }
  if (!status.ok()) return status;
  return found.size();
}

absl::StatusOr<size_t> LmdbShareStore::Commit(const TransactionId& id, absl::Time now) {
  size_t keys = 0;
  absl::Status status = env_->Write([&](LmdbTxn& txn) -> absl::Status {
    absl::StatusOr<StagingState> state = ReadTxn(txn, Db(kTransactions), id);
    if (absl::IsNotFound(state.status())) return UnknownTransaction();
    if (!state.ok()) return state.status();
    keys = state->keys;
    if (state->committed) return absl::OkStatus();
    absl::StatusOr<size_t> moved = MoveStaged(txn, id);
    if (!moved.ok()) return moved.status();
    if (*moved != state->keys) return StagedKeysMissing(state->keys, *moved);
    return txn.Put(Db(kTransactions), AsText(id), EncodeTxn({true, now, state->keys}));
  });
  if (!status.ok()) return status;
  return keys;
}

absl::StatusOr<size_t> LmdbShareStore::DropStaged(LmdbTxn& txn, const TransactionId& id) const {
  std::vector<std::string> found;
  absl::Status status = txn.Scan(Db(kStaged), AsText(id), [&](absl::string_view key, auto) {
    if (key.substr(0, id.size()) != AsText(id)) return false;
    found.emplace_back(key);
    return true;
  });
  for (const std::string& key : found) {
    if (status.ok()) status = txn.Delete(Db(kStaged), key);
  }
  if (status.ok()) status = txn.Delete(Db(kTransactions), AsText(id));
  if (!status.ok()) return status;
  return found.size();
}

absl::StatusOr<size_t> LmdbShareStore::Abort(const TransactionId& id) {
  size_t keys = 0;
  absl::Status status = env_->Write([&](LmdbTxn& txn) -> absl::Status {
    absl::StatusOr<StagingState> state = ReadTxn(txn, Db(kTransactions), id);
    if (absl::IsNotFound(state.status())) return absl::OkStatus();
    if (!state.ok()) return state.status();
    if (state->committed) return AlreadyCommitted();
    absl::StatusOr<size_t> dropped = DropStaged(txn, id);
    if (!dropped.ok()) return dropped.status();
    keys = *dropped;
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return keys;
}

absl::StatusOr<size_t> LmdbShareStore::ExpireStaged(absl::Time before) {
  size_t keys = 0;
  absl::Status status = env_->Write([&](LmdbTxn& txn) -> absl::Status {
    std::vector<TransactionId> found;
    absl::Status s = txn.Scan(Db(kTransactions), "", [&](absl::string_view key, auto) {
      found.push_back(ToArray<TransactionId>(key));
      return true;
    });
    if (!s.ok()) return s;
    for (const TransactionId& id : found) {
      absl::StatusOr<StagingState> state = ReadTxn(txn, Db(kTransactions), id);
      if (!state.ok()) return state.status();
      if (state->time >= before) continue;
      absl::StatusOr<size_t> dropped = DropStaged(txn, id);
      if (!dropped.ok()) return dropped.status();
      keys += *dropped;
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return keys;
}

absl::StatusOr<SecretBytes> LmdbShareStore::OpenKeyPlain(const Handle& handle,
                                                         absl::Span<const uint8_t> sealed) const {
  absl::StatusOr<SecretBytes> plain = sealer_.Open(rf::Kind::kKey, AsText(handle), sealed);
  if (!plain.ok()) return Damaged(handle, plain.status());
  return plain;
}

absl::StatusOr<KeyRecord> LmdbShareStore::OpenKey(const Handle& handle,
                                                  absl::Span<const uint8_t> sealed) const {
  absl::StatusOr<SecretBytes> plain = OpenKeyPlain(handle, sealed);
  if (!plain.ok()) return plain.status();
  absl::StatusOr<KeyRecord> record = DecodeKeyRecord(handle, *plain);
  if (!record.ok()) return Damaged(handle, record.status());
  return record;
}

absl::StatusOr<KeyInfo> LmdbShareStore::OpenInfo(const Handle& handle,
                                                 absl::Span<const uint8_t> sealed) const {
  absl::StatusOr<SecretBytes> plain = OpenKeyPlain(handle, sealed);
  if (!plain.ok()) return plain.status();
  absl::StatusOr<KeyInfo> info = DecodeKeyInfo(handle, *plain);
  if (!info.ok()) return Damaged(handle, info.status());
  return info;
}

absl::StatusOr<KeyRecord> LmdbShareStore::Get(const Handle& handle) const {
  absl::StatusOr<LmdbTxn> txn = env_->BeginRead();
  if (!txn.ok()) return txn.status();
  absl::StatusOr<absl::Span<const uint8_t>> sealed = Keys().Get(*txn, AsText(handle));
  if (absl::IsNotFound(sealed.status())) return UnknownHandle(handle);
  if (absl::IsDataLoss(sealed.status())) return Damaged(handle, sealed.status());
  if (!sealed.ok()) return sealed.status();
  return OpenKey(handle, *sealed);
}

absl::StatusOr<KeyRecord> LmdbShareStore::GetStaged(const TransactionId& id,
                                                    const Handle& handle) const {
  absl::StatusOr<LmdbTxn> txn = env_->BeginRead();
  if (!txn.ok()) return txn.status();
  absl::StatusOr<absl::Span<const uint8_t>> sealed =
      txn->Get(Db(kStaged), StagedKey(id, handle));
  if (absl::IsNotFound(sealed.status())) return UnknownHandle(handle);
  if (!sealed.ok()) return sealed.status();
  return OpenKey(handle, *sealed);
}

absl::StatusOr<size_t> LmdbShareStore::Delete(absl::Span<const Handle> handles) {
  size_t deleted = 0;
  absl::Status status = env_->Write([&](LmdbTxn& txn) -> absl::Status {
    for (const Handle& handle : handles) {
      absl::Status s = Keys().Delete(txn, AsText(handle));
      if (absl::IsNotFound(s)) continue;
      if (!s.ok()) return s;
      ++deleted;
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return deleted;
}

absl::Status LmdbShareStore::SetGate(absl::Span<const Handle> handles, Gate gate) {
  const uint64_t epoch = Epoch();
  return env_->Write([&](LmdbTxn& txn) -> absl::Status {
    for (const Handle& handle : handles) {
      absl::StatusOr<absl::Span<const uint8_t>> sealed = Keys().Get(txn, AsText(handle));
      if (absl::IsNotFound(sealed.status())) return UnknownHandle(handle);
      if (absl::IsDataLoss(sealed.status())) return Damaged(handle, sealed.status());
      if (!sealed.ok()) return sealed.status();
      absl::StatusOr<KeyRecord> record = OpenKey(handle, *sealed);
      if (!record.ok()) return record.status();
      record->info.gate = gate;
      absl::Status s = Keys().Put(
          txn, AsText(handle),
          sealer_.Seal(rf::Kind::kKey, epoch, AsText(handle), EncodeKeyRecord(*record)));
      if (!s.ok()) return s;
    }
    return absl::OkStatus();
  });
}

absl::Status LmdbShareStore::Visit(KeyState state, absl::string_view from, Visitor visit) const {
  absl::StatusOr<LmdbTxn> txn = env_->BeginRead();
  if (!txn.ok()) return txn.status();
  const MDB_dbi dbi = Db(state == KeyState::kCommitted ? kKeys : kStaged);
  const size_t skip = state == KeyState::kCommitted ? 0 : sizeof(TransactionId);
  return txn->Scan(dbi, from, [&](absl::string_view key, absl::Span<const uint8_t> value) {
    if (key.size() != skip + sizeof(Handle)) {
      return visit(absl::DataLossError("a key record has a damaged name"));
    }
    const Handle handle = ToArray<Handle>(key.substr(skip));
    if (state == KeyState::kStaged) return visit(OpenInfo(handle, value));
    absl::StatusOr<absl::Span<const uint8_t>> sealed = Keys().Follow(*txn, value);
    return visit(sealed.ok() ? OpenInfo(handle, *sealed) : Damaged(handle, sealed.status()));
  });
}

absl::Status LmdbShareStore::ForEach(KeyState state, Visitor visit) const {
  return Visit(state, "", visit);
}

absl::Status LmdbShareStore::ForEachFrom(const Handle& first, Visitor visit) const {
  return Visit(KeyState::kCommitted, AsText(first), visit);
}

absl::StatusOr<size_t> LmdbShareStore::Count(KeyState state) const {
  absl::StatusOr<LmdbTxn> txn = env_->BeginRead();
  if (!txn.ok()) return txn.status();
  return txn->Count(Db(state == KeyState::kCommitted ? kKeys : kStaged));
}

absl::StatusOr<NonceMark> LmdbShareStore::ReadMark(const LmdbTxn& txn) const {
  absl::StatusOr<absl::Span<const uint8_t>> sealed = txn.Get(Db(kMeta), rf::kNameMark);
  if (absl::IsNotFound(sealed.status())) return NonceMark{};
  if (!sealed.ok()) return sealed.status();
  absl::StatusOr<SecretBytes> plain = sealer_.Open(rf::Kind::kMark, rf::kNameMark, *sealed);
  if (plain.ok() && plain->size() == sizeof(NonceMark)) return ToArray<NonceMark>(AsText(*plain));
  return absl::DataLossError(absl::StrCat("the nonce mark of the share store is damaged: ",
                                          plain.ok() ? "wrong size" : plain.status().message()));
}

absl::StatusOr<NonceMark> LmdbShareStore::ReadNonceMark() const {
  absl::StatusOr<LmdbTxn> txn = env_->BeginRead();
  if (!txn.ok()) return txn.status();
  return ReadMark(*txn);
}

absl::Status LmdbShareStore::ReserveNonceMark(const NonceMark& mark) {
  const uint64_t epoch = Epoch();
  return env_->Write([&](LmdbTxn& txn) -> absl::Status {
    absl::StatusOr<NonceMark> old = ReadMark(txn);
    if (!old.ok()) return old.status();
    if (mark <= *old) return MarkNotHigher();
    return txn.Put(Db(kMeta), rf::kNameMark,
                   sealer_.Seal(rf::Kind::kMark, epoch, rf::kNameMark, mark));
  });
}

absl::Status LmdbShareStore::AddReplayEntries(absl::Span<const ReplayEntry> entries) {
  if (entries.empty()) return absl::OkStatus();
  return env_->Write([&](LmdbTxn& txn) -> absl::Status {
    for (const ReplayEntry& entry : entries) {
      if (absl::Status s = txn.Put(Db(kReplay), ReplayKey(entry), ""); !s.ok()) return s;
    }
    return absl::OkStatus();
  });
}

absl::Status LmdbShareStore::LoadReplayEntries(
    absl::FunctionRef<void(const ReplayEntry&)> visit) const {
  absl::StatusOr<LmdbTxn> txn = env_->BeginRead();
  if (!txn.ok()) return txn.status();
  absl::Status result;
  absl::Status scanned = txn->Scan(Db(kReplay), "", [&](absl::string_view key, auto) {
    if (key.size() != rf::kReplayKeyBytes) {
      result = absl::DataLossError("a replay entry of the share store is damaged");
      return false;
    }
    ByteReader in(AsBytes(key));
    ReplayEntry entry;
    entry.expires = absl::FromUnixMicros(static_cast<int64_t>(in.Uint(8)));
    in.Into(entry.handle);
    in.Into(entry.nonce);
    visit(entry);
    return true;
  });
  result.Update(scanned);
  return result;
}

absl::StatusOr<size_t> LmdbShareStore::PruneReplayEntries(absl::Time now) {
  const std::string end = ReplayKey(now);
  std::vector<std::string> expired;
  absl::Status status = env_->Write([&](LmdbTxn& txn) -> absl::Status {
    absl::Status s = txn.Scan(Db(kReplay), "", [&](absl::string_view key, auto) {
      if (key >= end) return false;
      expired.emplace_back(key);
      return true;
    });
    for (const std::string& key : expired) {
      if (s.ok()) s = txn.Delete(Db(kReplay), key);
    }
    return s;
  });
  if (!status.ok()) return status;
  return expired.size();
}

absl::StatusOr<SecretBytes> LmdbShareStore::ReadItem(absl::string_view name) const {
  absl::StatusOr<LmdbTxn> txn = env_->BeginRead();
  if (!txn.ok()) return txn.status();
  const std::string key = absl::StrCat(rf::kItemPrefix, name);
  absl::StatusOr<absl::Span<const uint8_t>> sealed = txn->Get(Db(kMeta), key);
  if (!sealed.ok()) return sealed.status();
  absl::StatusOr<SecretBytes> plain = sealer_.Open(rf::Kind::kItem, key, *sealed);
  if (plain.ok()) return plain;
  return absl::DataLossError(
      absl::StrCat("the item ", name, " of the share store is damaged: ", plain.status().message()));
}

absl::Status LmdbShareStore::WriteItem(absl::string_view name, absl::Span<const uint8_t> value) {
  const std::string key = absl::StrCat(rf::kItemPrefix, name);
  const uint64_t epoch = Epoch();
  return env_->Write([&](LmdbTxn& txn) {
    return txn.Put(Db(kMeta), key, sealer_.Seal(rf::Kind::kItem, epoch, key, value));
  });
}

}  // namespace mpckdc
