// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/store/staging.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
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

// The handle in a key of `staged`.
Handle HandleOf(absl::string_view key) {
  Handle handle{};
  ByteReader in(AsBytes(key));
  in.Bytes(sizeof(TransactionId));
  in.Into(handle);
  return handle;
}

}  // namespace

std::string StagedKey(const TransactionId& id, const Handle& handle) {
  return absl::StrCat(AsText(id), AsText(handle));
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
  absl::flat_hash_set<Handle> wanted;
  for (const KeyRecord& record : records) wanted.insert(record.info.handle);
  absl::Status result;
  absl::Status scanned = txn_.ScanNames(rf::kStaged, "", [&](absl::string_view key) {
    if (absl::StartsWith(key, AsText(id_))) return true;
    const Handle taken = HandleOf(key);
    if (!wanted.contains(taken)) return true;
    result = absl::AlreadyExistsError(
        absl::StrCat("key ", HandleText(taken), " is staged by another transaction"));
    return false;
  });
  result.Update(scanned);
  if (!result.ok()) return result;
  std::vector<std::string> keys;  // Put() asks for each
  for (const KeyRecord& record : records) keys.push_back(StagedKey(id_, record.info.handle));
  return txn_.Prefetch(rf::kStaged, keys);
}

absl::StatusOr<bool> Staging::Put(const Handle& handle, absl::string_view sealed) {
  const std::string key = StagedKey(id_, handle);
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
                              found.emplace_back(HandleOf(key), std::string(AsText(value)));
                              return true;
                            }));
  return found;
}

absl::StatusOr<size_t> Staging::DropKeys() {
  const auto keys = Keys();
  if (!keys.ok()) return keys.status();
  for (const auto& [handle, sealed] : *keys) {
    RETURN_IF_ERROR(txn_.Delete(rf::kStaged, StagedKey(id_, handle)));
  }
  return keys->size();
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
