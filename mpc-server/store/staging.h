// SPDX-License-Identifier: Apache-2.0
//
// Enrolments under way. An administrator's transaction, inside one of the engine's:
//
//     txns      transaction (16)              -> state (1), time (8), keys (4)
//     staged    transaction (16), handle (16) -> sealed key record
//
// A committed one is remembered without its keys, so that a repeated commit gets the same answer.
#ifndef MPC_SERVER_STORE_STAGING_H_
#define MPC_SERVER_STORE_STAGING_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "mpc-server/store/key_record.h"
#include "mpc-server/store/kv.h"
#include "mpc-server/store/share_store.h"

namespace mpckdc {

// The key of `staged`.
std::string StagedKey(const TransactionId& id, const Handle& handle);

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
  // one of them.
  absl::Status CheckFree(absl::Span<const KeyRecord> records) const;
  // Returns whether the transaction did not hold the handle before.
  absl::StatusOr<bool> Put(const Handle& handle, absl::string_view sealed);
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
