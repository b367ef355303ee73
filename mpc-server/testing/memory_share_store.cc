// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/memory_share_store.h"

#include <cassert>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/store/record_format.h"

namespace mpckdc {

MemoryShareStore::MemoryShareStore(StoreIdentity identity) {
  state_.meta = {std::move(identity), 1, false, record_format::kStoreVersion};
}

StoreMeta MemoryShareStore::Meta() const {
  absl::MutexLock lock(&mutex_);
  return state_.meta;
}

absl::StatusOr<bool> MemoryShareStore::MarkInitialised() {
  absl::MutexLock lock(&mutex_);
  if (state_.meta.initialised) return false;
  if (!write_status_.ok()) return write_status_;
  state_.meta.initialised = true;
  return true;
}

absl::Status MemoryShareStore::CheckStageable(const TransactionId& txn,
                                              absl::Span<const KeyRecord> records) const {
  if (state_.staged.size() + records.size() > limits::kMaxStagedKeys) return TooManyStaged();
  for (const KeyRecord& record : records) {
    const Handle& handle = record.info.handle;
    if (state_.keys.contains(handle)) return HandleCommitted(handle);
    for (const auto& [key, staged] : state_.staged) {
      if (key.second == handle && key.first != txn) return HandleStaged(handle);
    }
  }
  return absl::OkStatus();
}

absl::Status MemoryShareStore::Stage(const TransactionId& txn, absl::Span<const KeyRecord> records,
                                     absl::Time now) {
  if (absl::Status status = CheckStageArguments(records); !status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  auto known = state_.transactions.find(txn);
  if (known != state_.transactions.end() && known->second.committed) return AlreadyCommitted();
  if (absl::Status status = CheckStageable(txn, records); !status.ok()) return status;
  if (!write_status_.ok()) return write_status_;
  StagingState& state = state_.transactions[txn];
  for (const KeyRecord& record : records) {
    state.keys += state_.staged.insert_or_assign({txn, record.info.handle}, record).second;
  }
  state.time = now;
  return absl::OkStatus();
}

absl::StatusOr<size_t> MemoryShareStore::Commit(const TransactionId& txn, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  auto known = state_.transactions.find(txn);
  if (known == state_.transactions.end()) return UnknownTransaction();
  StagingState& state = known->second;
  if (state.committed) return state.keys;
  if (!write_status_.ok()) return write_status_;
  size_t moved = 0;
  auto it = state_.staged.lower_bound({txn, Handle{}});
  while (it != state_.staged.end() && it->first.first == txn) {
    state_.keys.insert_or_assign(it->first.second, std::move(it->second));
    it = state_.staged.erase(it);
    ++moved;
  }
  assert(moved == state.keys);
  state.committed = true;
  state.time = now;
  return moved;
}

size_t MemoryShareStore::DropStaged(const TransactionId& txn) {
  state_.transactions.erase(txn);
  return std::erase_if(state_.staged, [&](const auto& entry) { return entry.first.first == txn; });
}

absl::StatusOr<size_t> MemoryShareStore::Abort(const TransactionId& txn) {
  absl::MutexLock lock(&mutex_);
  auto known = state_.transactions.find(txn);
  if (known == state_.transactions.end()) return size_t{0};
  if (known->second.committed) return AlreadyCommitted();
  if (!write_status_.ok()) return write_status_;
  return DropStaged(txn);
}

absl::StatusOr<size_t> MemoryShareStore::ExpireStaged(absl::Time before) {
  absl::MutexLock lock(&mutex_);
  if (!write_status_.ok()) return write_status_;
  std::vector<TransactionId> old;
  for (const auto& [txn, state] : state_.transactions) {
    if (state.time < before) old.push_back(txn);
  }
  size_t keys = 0;
  for (const TransactionId& txn : old) keys += DropStaged(txn);
  return keys;
}

absl::StatusOr<KeyRecord> MemoryShareStore::Get(const Handle& handle) const {
  absl::MutexLock lock(&mutex_);
  auto it = state_.keys.find(handle);
  if (it == state_.keys.end()) return UnknownHandle(handle);
  return it->second;
}

absl::StatusOr<KeyRecord> MemoryShareStore::GetStaged(const TransactionId& txn,
                                                      const Handle& handle) const {
  absl::MutexLock lock(&mutex_);
  auto it = state_.staged.find({txn, handle});
  if (it == state_.staged.end()) return UnknownHandle(handle);
  return it->second;
}

absl::StatusOr<size_t> MemoryShareStore::Delete(absl::Span<const Handle> handles) {
  absl::MutexLock lock(&mutex_);
  if (!write_status_.ok()) return write_status_;
  size_t deleted = 0;
  for (const Handle& handle : handles) deleted += state_.keys.erase(handle);
  return deleted;
}

absl::Status MemoryShareStore::SetGate(absl::Span<const Handle> handles, Gate gate) {
  absl::MutexLock lock(&mutex_);
  for (const Handle& handle : handles) {
    if (!state_.keys.contains(handle)) return UnknownHandle(handle);
  }
  if (!write_status_.ok()) return write_status_;
  for (const Handle& handle : handles) state_.keys.at(handle).info.gate = gate;
  return absl::OkStatus();
}

// Visits a copy: `visit` may call the store.
absl::Status MemoryShareStore::ForEach(KeyState state, Visitor visit) const {
  std::vector<KeyInfo> infos;
  {
    absl::MutexLock lock(&mutex_);
    if (state == KeyState::kCommitted) {
      for (const auto& [handle, record] : state_.keys) infos.push_back(record.info);
    } else {
      for (const auto& [key, record] : state_.staged) infos.push_back(record.info);
    }
  }
  for (const KeyInfo& info : infos) {
    if (!visit(info)) break;
  }
  return absl::OkStatus();
}

absl::Status MemoryShareStore::ForEachFrom(const Handle& first, Visitor visit) const {
  return ForEach(KeyState::kCommitted, [&](const absl::StatusOr<KeyInfo>& info) {
    return info->handle < first || visit(info);
  });
}

absl::StatusOr<size_t> MemoryShareStore::Count(KeyState state) const {
  absl::MutexLock lock(&mutex_);
  return state == KeyState::kCommitted ? state_.keys.size() : state_.staged.size();
}

absl::StatusOr<NonceMark> MemoryShareStore::ReadNonceMark() const {
  absl::MutexLock lock(&mutex_);
  return state_.mark;
}

absl::Status MemoryShareStore::ReserveNonceMark(const NonceMark& mark) {
  absl::MutexLock lock(&mutex_);
  if (mark <= state_.mark) return MarkNotHigher();
  if (!write_status_.ok()) return write_status_;
  state_.mark = mark;
  return absl::OkStatus();
}

absl::Status MemoryShareStore::AddReplayEntries(absl::Span<const ReplayEntry> entries) {
  absl::MutexLock lock(&mutex_);
  if (!write_status_.ok()) return write_status_;
  for (const ReplayEntry& entry : entries) {
    state_.replay[{entry.handle, entry.nonce}] = entry.expires;
  }
  return absl::OkStatus();
}

absl::Status MemoryShareStore::LoadReplayEntries(
    absl::FunctionRef<void(const ReplayEntry&)> visit) const {
  absl::MutexLock lock(&mutex_);
  for (const auto& [key, expires] : state_.replay) visit({key.first, key.second, expires});
  return absl::OkStatus();
}

absl::StatusOr<size_t> MemoryShareStore::PruneReplayEntries(absl::Time now) {
  absl::MutexLock lock(&mutex_);
  if (!write_status_.ok()) return write_status_;
  return std::erase_if(state_.replay, [&](const auto& entry) { return entry.second < now; });
}

absl::StatusOr<SecretBytes> MemoryShareStore::ReadItem(absl::string_view name) const {
  absl::MutexLock lock(&mutex_);
  auto it = state_.items.find(std::string(name));
  if (it == state_.items.end()) return absl::NotFoundError(absl::StrCat("no item ", name));
  return it->second;
}

absl::Status MemoryShareStore::WriteItem(absl::string_view name, absl::Span<const uint8_t> value) {
  absl::MutexLock lock(&mutex_);
  if (!write_status_.ok()) return write_status_;
  state_.items.insert_or_assign(std::string(name), SecretBytes(value.begin(), value.end()));
  return absl::OkStatus();
}

MemoryShareStore::State MemoryShareStore::Snapshot() const {
  absl::MutexLock lock(&mutex_);
  return state_;
}

void MemoryShareStore::Restore(State state) {
  absl::MutexLock lock(&mutex_);
  assert(state.meta.identity == state_.meta.identity);
  state_ = std::move(state);
}

void MemoryShareStore::FailWrites(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  write_status_ = std::move(status);
}

}  // namespace mpckdc
