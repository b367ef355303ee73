// SPDX-License-Identifier: Apache-2.0
//
// Enrolments under way. An administrator's transaction, inside one of the engine's:
//
//     txns      transaction (16)              -> state (1), time (8), keys (4)
//     staged    transaction (16), handle (16), copied (16 or 0) -> sealed key record
//
// `copied` is the handle of which the key is a copy (renamed.cc): so what is done to that key finds
// its staged copies by their names alone. A committed one is remembered without its keys, so that a repeated commit gets the same answer.
#ifndef MPC_SERVER_STORE_STAGING_H_
#define MPC_SERVER_STORE_STAGING_H_

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "mpc-server/store/key_record.h"
#include "mpc-server/store/kv.h"
#include "mpc-server/store/share_store.h"

namespace mpckdc {

// The key of `staged`; how that of a copy begins.
std::string StagedKey(const TransactionId& id, const Handle& handle);
std::string StagedKey(const TransactionId& id, const KeyRecord& record);
// What a key of `staged` says; nothing: it is damaged.
struct StagedName {
  TransactionId txn{};
  Handle handle{};
  std::optional<Handle> copied;
};
std::optional<StagedName> ParseStagedKey(absl::string_view key);

class Staging {
 public:
  struct State {
    bool committed = false;
    absl::Time time;  // of the last Stage(), or of the commit
    size_t keys = 0;
  };

  Staging(KvTxn& txn, const TransactionId& id) : txn_(txn), id_(id) {}

  absl::StatusOr<State> Read() const;  // NotFound: no such transaction
  absl::Status Write(const State& state);
  // FailedPrecondition: too many keys would be staged. AlreadyExists: another transaction staged
  // one of them, or this one did as a copy of another key, or as none.
  absl::Status CheckFree(absl::Span<const KeyRecord> records) const;
  // Returns whether the transaction did not hold the handle before.
  absl::StatusOr<bool> Put(const KeyRecord& record, absl::string_view sealed);
  // NotFound: the transaction did not stage it.
  static absl::StatusOr<std::string> Find(const KvTxn& txn, const TransactionId& id,
                                          const Handle& handle);
  // What it staged, by handle.
  absl::StatusOr<std::vector<std::pair<Handle, std::string>>> Keys() const;
  absl::StatusOr<size_t> DropKeys();  // returns how many there were
  absl::StatusOr<size_t> Drop();      // the transaction as well

  // The transactions that were last written before that time.
  static absl::StatusOr<std::vector<TransactionId>> Before(const KvTxn& txn, absl::Time time);

 private:
  KvTxn& txn_;
  const TransactionId id_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_STAGING_H_
