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

}  // namespace

absl::StatusOr<absl::Span<const uint8_t>> FollowPlace(const KvTxn& txn,
                                                      absl::Span<const uint8_t> value) {
  if (!IsPlace(value)) return value;
  absl::StatusOr<absl::Span<const uint8_t>> record = txn.Get(rf::kRecords, AsText(value));
  if (absl::IsNotFound(record.status())) return absl::DataLossError("its place is empty");
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
