// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/store/key_table.h"

#include <string>

#include "mpc-server/base/bytes.h"
#include "mpc-server/store/record_format.h"

namespace mpckdc {
namespace {

bool IsPlace(absl::Span<const uint8_t> value) {
  return value.size() == record_format::kPlaceBytes;
}

}  // namespace

absl::StatusOr<absl::Span<const uint8_t>> KeyTable::Follow(const LmdbTxn& txn,
                                                           absl::Span<const uint8_t> value) const {
  if (!IsPlace(value)) return value;
  absl::StatusOr<absl::Span<const uint8_t>> record = txn.Get(records_, AsText(value));
  if (absl::IsNotFound(record.status())) return absl::DataLossError("its place is empty");
  return record;
}

absl::StatusOr<absl::Span<const uint8_t>> KeyTable::Get(const LmdbTxn& txn,
                                                        absl::string_view handle) const {
  absl::StatusOr<absl::Span<const uint8_t>> value = txn.Get(keys_, handle);
  return value.ok() ? Follow(txn, *value) : value;
}

absl::StatusOr<std::string> KeyTable::NextPlace(const LmdbTxn& txn) const {
  uint64_t next = 1;
  absl::StatusOr<absl::string_view> last = txn.LastKey(records_);
  if (last.ok()) {
    if (!IsPlace(AsBytes(*last))) return absl::DataLossError("a place of a key record is damaged");
    next = ByteReader(AsBytes(*last)).Uint(record_format::kPlaceBytes) + 1;
  } else if (!absl::IsNotFound(last.status())) {
    return last.status();
  }
  std::string place;
  AppendUint(place, next, record_format::kPlaceBytes);
  return place;
}

absl::Status KeyTable::Put(LmdbTxn& txn, absl::string_view handle,
                           absl::string_view record) const {
  absl::StatusOr<absl::Span<const uint8_t>> value = txn.Get(keys_, handle);
  if (value.ok() && IsPlace(*value)) {
    const std::string place(AsText(*value));  // the page that it lies in may be written to
    return txn.Put(records_, place, record);
  }
  if (!value.ok() && !absl::IsNotFound(value.status())) return value.status();
  absl::StatusOr<std::string> place = NextPlace(txn);
  if (!place.ok()) return place.status();
  if (absl::Status s = txn.Append(records_, *place, record); !s.ok()) return s;
  return txn.Put(keys_, handle, *place);
}

absl::Status KeyTable::Delete(LmdbTxn& txn, absl::string_view handle) const {
  absl::StatusOr<absl::Span<const uint8_t>> value = txn.Get(keys_, handle);
  if (!value.ok()) return value.status();
  if (IsPlace(*value)) {
    absl::Status s = txn.Delete(records_, std::string(AsText(*value)));
    if (!s.ok() && !absl::IsNotFound(s)) return s;
  }
  return txn.Delete(keys_, handle);
}

}  // namespace mpckdc
