// SPDX-License-Identifier: Apache-2.0
//
// For engines to which many calls cost no more than one.
#include "mpc-server/store/kv.h"

#include "mpc-server/base/bytes.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc {

absl::StatusOr<KvTxn::Values> KvTxn::GetMany(Table table,
                                             absl::Span<const std::string> keys) const {
  Values values;
  values.reserve(keys.size());
  for (const std::string& key : keys) {
    const absl::StatusOr<absl::Span<const uint8_t>> value = Get(table, key);
    if (value.ok()) {
      values.emplace_back(std::string(AsText(*value)));
    } else if (absl::IsNotFound(value.status())) {
      values.emplace_back(std::nullopt);
    } else {
      return value.status();
    }
  }
  return values;
}

absl::Status KvTxn::Prefetch(Table, absl::Span<const std::string>) const {
  return absl::OkStatus();
}

absl::Status KvTxn::ScanNames(Table table, absl::string_view from, KeyVisitor visit) const {
  return Scan(table, from, [&](absl::string_view key, auto) { return visit(key); });
}

absl::StatusOr<KvTxn::Values> KvTxn::InsertNew(Table table, absl::Span<const Entry> entries) {
  Values present;
  present.reserve(entries.size());
  for (const auto& [key, value] : entries) {
    const absl::StatusOr<absl::Span<const uint8_t>> there = Get(table, key);
    if (there.ok()) {
      present.emplace_back(std::string(AsText(*there)));
      continue;
    }
    if (!absl::IsNotFound(there.status())) return there.status();
    RETURN_IF_ERROR(Put(table, key, value));
    present.emplace_back(std::nullopt);
  }
  return present;
}

}  // namespace mpckdc
