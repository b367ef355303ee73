// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/store/staging.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc {
namespace {

namespace rf = record_format;

std::string Encode(const Staging::State& state) {
  std::string out;
  AppendUint(out, state.committed ? rf::kTxnCommitted : rf::kTxnStaged, 1);
  AppendUint(out, static_cast<uint64_t>(absl::ToUnixMicros(state.time)), 8);
  AppendUint(out, state.keys, 4);
  return out;
}

absl::StatusOr<Staging::State> Decode(absl::Span<const uint8_t> value) {
  if (value.size() != rf::kTxnBytes) {
    return absl::DataLossError("a transaction record of the share store is damaged");
  }
  ByteReader in(value);
  Staging::State state;
  state.committed = in.Uint(1) == rf::kTxnCommitted;
  state.time = absl::FromUnixMicros(static_cast<int64_t>(in.Uint(8)));
  state.keys = in.Uint(4);
  return state;
}

}  // namespace

std::string StagedKey(const TransactionId& id, const Handle& handle) {
  return absl::StrCat(AsText(id), AsText(handle));
}

std::string StagedKey(const TransactionId& id, const KeyRecord& record) {
  std::string key = StagedKey(id, record.info.handle);
  if (record.copied.has_value()) absl::StrAppend(&key, AsText(record.copied->handle));
  return key;
}

std::optional<StagedName> ParseStagedKey(absl::string_view key) {
  constexpr size_t kPlain = sizeof(TransactionId) + sizeof(Handle);
  if (key.size() != kPlain && key.size() != kPlain + sizeof(Handle)) return std::nullopt;
  StagedName name;
  ByteReader in(AsBytes(key));
  in.Into(name.txn);
  in.Into(name.handle);
  if (key.size() > kPlain) in.Into(name.copied.emplace());
  return name;
}

absl::StatusOr<Staging::State> Staging::Read() const {
  ASSIGN_OR_RETURN(absl::Span<const uint8_t> value, txn_.Get(rf::kTransactions, AsText(id_)));
  return Decode(value);
}

absl::Status Staging::Write(const State& state) {
  return txn_.Put(rf::kTransactions, AsText(id_), Encode(state));
}

absl::Status Staging::CheckFree(absl::Span<const KeyRecord> records) const {
  absl::StatusOr<size_t> staged = txn_.Count(rf::kStaged);
  if (!staged.ok()) return staged.status();
  if (*staged + records.size() > limits::kMaxStagedKeys) {
    return absl::FailedPreconditionError(
        absl::StrCat("more than ", limits::kMaxStagedKeys,
                     " keys would be staged: commit or abort the other transactions first"));
  }
  absl::flat_hash_map<Handle, std::string> wanted;
  for (const KeyRecord& record : records) wanted[record.info.handle] = StagedKey(id_, record);
  absl::Status result;
  absl::Status scanned = txn_.ScanNames(rf::kStaged, "", [&](absl::string_view key) {
    const std::optional<StagedName> name = ParseStagedKey(key);
    const auto found = name.has_value() ? wanted.find(name->handle) : wanted.end();
    if (found == wanted.end() || found->second == key) return true;
    result = absl::AlreadyExistsError(
        absl::StrCat("key ", HandleText(name->handle), " is staged by ",
                     name->txn == id_ ? "this transaction already, as a copy of another key or as none"
                                      : "another transaction"));
    return false;
  });
  result.Update(scanned);
  if (!result.ok()) return result;
  std::vector<std::string> keys;  // Put() asks for each
  for (auto& [handle, key] : wanted) keys.push_back(std::move(key));
  return txn_.Prefetch(rf::kStaged, keys);
}

absl::StatusOr<std::string> Staging::Find(const KvTxn& txn, const TransactionId& id,
                                          const Handle& handle) {
  const std::string begin = StagedKey(id, handle);
  std::string found;
  RETURN_IF_ERROR(txn.ScanNames(rf::kStaged, begin, [&](absl::string_view key) {
    if (absl::StartsWith(key, begin)) found = std::string(key);
    return false;
  }));
  if (!found.empty()) return found;
  return absl::NotFoundError("the transaction did not stage this key");
}

absl::StatusOr<bool> Staging::Put(const KeyRecord& record, absl::string_view sealed) {
  const std::string key = StagedKey(id_, record);
  const absl::Status old = txn_.Get(rf::kStaged, key).status();
  if (!old.ok() && !absl::IsNotFound(old)) return old;
  RETURN_IF_ERROR(txn_.Put(rf::kStaged, key, sealed));
  return !old.ok();
}

absl::StatusOr<std::vector<std::pair<Handle, std::string>>> Staging::Keys() const {
  std::vector<std::pair<Handle, std::string>> found;
  RETURN_IF_ERROR(txn_.Scan(rf::kStaged, AsText(id_),
                            [&](absl::string_view key, absl::Span<const uint8_t> value) {
                              if (!absl::StartsWith(key, AsText(id_))) return false;
                              const std::optional<StagedName> name = ParseStagedKey(key);
                              if (!name.has_value()) return true;
                              found.emplace_back(name->handle, std::string(AsText(value)));
                              return true;
                            }));
  return found;
}

absl::StatusOr<size_t> Staging::DropKeys() {
  std::vector<std::string> keys;
  RETURN_IF_ERROR(txn_.ScanNames(rf::kStaged, AsText(id_), [&](absl::string_view key) {
    if (!absl::StartsWith(key, AsText(id_))) return false;
    keys.emplace_back(key);
    return true;
  }));
  for (const std::string& key : keys) RETURN_IF_ERROR(txn_.Delete(rf::kStaged, key));
  return keys.size();
}

absl::StatusOr<size_t> Staging::Drop() {
  absl::StatusOr<size_t> keys = DropKeys();
  if (!keys.ok()) return keys;
  RETURN_IF_ERROR(txn_.Delete(rf::kTransactions, AsText(id_)));
  return keys;
}

absl::StatusOr<std::vector<TransactionId>> Staging::Before(const KvTxn& txn, absl::Time time) {
  std::vector<TransactionId> found;
  absl::Status result;
  absl::Status scanned = txn.Scan(
      rf::kTransactions, "", [&](absl::string_view key, absl::Span<const uint8_t> value) {
        const absl::StatusOr<State> state = Decode(value);
        result = state.status();
        if (state.ok() && state->time < time) ByteReader(AsBytes(key)).Into(found.emplace_back());
        return result.ok();
      });
  result.Update(scanned);
  if (!result.ok()) return result;
  return found;
}

}  // namespace mpckdc
