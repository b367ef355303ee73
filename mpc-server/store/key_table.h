// SPDX-License-Identifier: Apache-2.0
//
// Where committed key records lie in the LMDB file:
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

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mpc-server/store/lmdb.h"

namespace mpckdc {

class KeyTable {
 public:
  KeyTable(MDB_dbi keys, MDB_dbi records) : keys_(keys), records_(records) {}

  // NotFound: no such key. DataLoss: its place is empty.
  absl::StatusOr<absl::Span<const uint8_t>> Get(const LmdbTxn& txn,
                                                absl::string_view handle) const;
  // What the value of `keys` leads to.
  absl::StatusOr<absl::Span<const uint8_t>> Follow(const LmdbTxn& txn,
                                                   absl::Span<const uint8_t> value) const;
  // Adds a key, or replaces its record.
  absl::Status Put(LmdbTxn& txn, absl::string_view handle, absl::string_view record) const;
  absl::Status Delete(LmdbTxn& txn, absl::string_view handle) const;  // NotFound: no such key

 private:
  absl::StatusOr<std::string> NextPlace(const LmdbTxn& txn) const;

  const MDB_dbi keys_;
  const MDB_dbi records_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_KEY_TABLE_H_
