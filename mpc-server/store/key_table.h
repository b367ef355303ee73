// SPDX-License-Identifier: Apache-2.0
//
// Where committed key records lie:
//
//     keys       handle (16, random)  -> place (8)
//     records    place (8, ascending) -> sealed key record
//
// Three aes128 records fit in a page. Sorted by their random handles they would be two to a page on
// average, which is how LMDB splits full pages; in the order of their commit they are three, and a
// bulk commit writes whole pages one after the other. The next place is one more than the greatest.
//
// A store of version 1 has the record itself where the place stands now; it stays there until it is
// written again. A record is never as short as a place.
#ifndef MPC_SERVER_STORE_KEY_TABLE_H_
#define MPC_SERVER_STORE_KEY_TABLE_H_

#include <string>
#include <vector>

#include "mpc-server/base/bytes.h"
#include "mpc-server/store/key_record.h"
#include "mpc-server/store/kv.h"

namespace mpckdc {

// NotFound: no such key. DataLoss: its place is empty.
absl::StatusOr<absl::Span<const uint8_t>> GetKey(const KvTxn& txn, absl::string_view handle);
// What the value of `keys` leads to.
absl::StatusOr<absl::Span<const uint8_t>> FollowPlace(const KvTxn& txn,
                                                      absl::Span<const uint8_t> value);
// Many at once, in two round trips of a networked engine: each as GetKey() would say it.
absl::StatusOr<std::vector<absl::StatusOr<std::string>>> GetKeys(const KvTxn& txn,
                                                                 absl::Span<const Handle> handles);
inline absl::StatusOr<absl::Span<const uint8_t>> ViewOf(const absl::StatusOr<std::string>& record) {
  if (!record.ok()) return record.status();
  return AsBytes(*record);
}
// Visits the records of the keys from `from` on, in the order of the handles, until `visit` returns
// false. A page at a time is in memory.
using KeyTableVisitor = absl::FunctionRef<bool(absl::string_view handle,
                                               absl::StatusOr<absl::Span<const uint8_t>> record)>;
absl::Status ScanKeys(const KvTxn& txn, absl::string_view from, KeyTableVisitor visit);
// A hint that these will be put or deleted, or read (`records`).
absl::Status PrefetchKeys(const KvTxn& txn, absl::Span<const Handle> handles, bool records);
// Adds a key, or replaces its record.
absl::Status PutKey(KvTxn& txn, absl::string_view handle, absl::string_view record);
absl::Status DeleteKey(KvTxn& txn, absl::string_view handle);  // NotFound: no such key

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_KEY_TABLE_H_
