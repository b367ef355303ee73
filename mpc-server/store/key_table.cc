// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/store/key_table.h"

#include <string>

#include "mpc-server/base/bytes.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc {
namespace {

namespace rf = record_format;

bool IsPlace(absl::Span<const uint8_t> value) { return value.size() == rf::kPlaceBytes; }

absl::StatusOr<std::string> NextPlace(const KvTxn& txn) {
  uint64_t next = 1;
  absl::StatusOr<absl::string_view> last = txn.LastKey(rf::kRecords);
  if (last.ok()) {
    if (!IsPlace(AsBytes(*last))) return absl::DataLossError("a place of a key record is damaged");
    next = ByteReader(AsBytes(*last)).Uint(rf::kPlaceBytes) + 1;
  } else if (!absl::IsNotFound(last.status())) {
    return last.status();
  }
  std::string place;
  AppendUint(place, next, rf::kPlaceBytes);
  return place;
}

std::vector<std::string> Texts(absl::Span<const Handle> handles) {
  std::vector<std::string> texts;
  texts.reserve(handles.size());
  for (const Handle& handle : handles) texts.emplace_back(AsText(handle));
  return texts;
}

std::vector<std::string> PlacesIn(const KvTxn::Values& values) {
  std::vector<std::string> places;
  for (const auto& value : values) {
    if (value.has_value() && IsPlace(AsBytes(*value))) places.push_back(*value);
  }
  return places;
}

absl::Status EmptyPlace() { return absl::DataLossError("its place is empty"); }

// The records behind the values of `keys`; NotFound where there is no value.
absl::StatusOr<std::vector<absl::StatusOr<std::string>>> FollowPlaces(const KvTxn& txn,
                                                                      KvTxn::Values values) {
  ASSIGN_OR_RETURN(KvTxn::Values records, txn.GetMany(rf::kRecords, PlacesIn(values)));
  std::vector<absl::StatusOr<std::string>> found;
  found.reserve(values.size());
  size_t next = 0;
  for (auto& value : values) {
    if (!value.has_value()) {
      found.emplace_back(absl::NotFoundError("no such key"));
    } else if (!IsPlace(AsBytes(*value))) {
      found.emplace_back(*std::move(value));
    } else if (auto& record = records[next++]; record.has_value()) {
      found.emplace_back(*std::move(record));
    } else {
      found.emplace_back(EmptyPlace());
    }
  }
  return found;
}

}  // namespace

absl::StatusOr<std::vector<absl::StatusOr<std::string>>> GetKeys(const KvTxn& txn,
                                                                 absl::Span<const Handle> handles) {
  ASSIGN_OR_RETURN(KvTxn::Values values, txn.GetMany(rf::kKeys, Texts(handles)));
  return FollowPlaces(txn, std::move(values));
}

absl::Status ScanKeys(const KvTxn& txn, absl::string_view from, KeyTableVisitor visit) {
  constexpr size_t kPage = 256;
  std::string next(from);
  for (;;) {
    std::vector<std::string> handles;
    KvTxn::Values values;
    RETURN_IF_ERROR(txn.Scan(rf::kKeys, next, [&](absl::string_view key, auto value) {
      handles.emplace_back(key);
      values.emplace_back(std::string(AsText(value)));
      return handles.size() < kPage;
    }));
    ASSIGN_OR_RETURN(const auto records, FollowPlaces(txn, std::move(values)));
    for (size_t i = 0; i < handles.size(); ++i) {
      if (!visit(handles[i], ViewOf(records[i]))) return absl::OkStatus();
    }
    if (handles.size() < kPage) return absl::OkStatus();
    next = handles.back() + std::string(1, '\0');  // the least key beyond it
  }
}

absl::Status PrefetchKeys(const KvTxn& txn, absl::Span<const Handle> handles, bool records) {
  const std::vector<std::string> keys = Texts(handles);
  RETURN_IF_ERROR(txn.Prefetch(rf::kKeys, keys));
  if (!records) return absl::OkStatus();
  ASSIGN_OR_RETURN(const KvTxn::Values values, txn.GetMany(rf::kKeys, keys));
  return txn.Prefetch(rf::kRecords, PlacesIn(values));
}

absl::StatusOr<absl::Span<const uint8_t>> FollowPlace(const KvTxn& txn,
                                                      absl::Span<const uint8_t> value) {
  if (!IsPlace(value)) return value;
  absl::StatusOr<absl::Span<const uint8_t>> record = txn.Get(rf::kRecords, AsText(value));
  if (absl::IsNotFound(record.status())) return EmptyPlace();
  return record;
}

absl::StatusOr<absl::Span<const uint8_t>> GetKey(const KvTxn& txn, absl::string_view handle) {
  absl::StatusOr<absl::Span<const uint8_t>> value = txn.Get(rf::kKeys, handle);
  return value.ok() ? FollowPlace(txn, *value) : value;
}

absl::Status PutKey(KvTxn& txn, absl::string_view handle, absl::string_view record) {
  absl::StatusOr<absl::Span<const uint8_t>> value = txn.Get(rf::kKeys, handle);
  if (value.ok() && IsPlace(*value)) {
    const std::string place(AsText(*value));  // what the transaction returned ends with the change
    return txn.Put(rf::kRecords, place, record);
  }
  if (!value.ok() && !absl::IsNotFound(value.status())) return value.status();
  ASSIGN_OR_RETURN(std::string place, NextPlace(txn));
  RETURN_IF_ERROR(txn.Append(rf::kRecords, place, record));
  return txn.Put(rf::kKeys, handle, place);
}

absl::Status DeleteKey(KvTxn& txn, absl::string_view handle) {
  ASSIGN_OR_RETURN(absl::Span<const uint8_t> value, txn.Get(rf::kKeys, handle));
  if (IsPlace(value)) {
    absl::Status s = txn.Delete(rf::kRecords, std::string(AsText(value)));
    if (!s.ok() && !absl::IsNotFound(s)) return s;
  }
  return txn.Delete(rf::kKeys, handle);
}

}  // namespace mpckdc
