// SPDX-License-Identifier: Apache-2.0
//
// Keys that somebody had deleted, until they are collected. The key itself stays where it is and
// works; a mark beside it says since when it is retired:
//
//     retired    'h' | handle (16)            -> time (8)
//     retired    't' | time (8) | handle (16) -> nothing, or 1: it is kept for the history
//     retired    'k' | handle (16)            -> nothing: it was kept, and is reduced
//
// The first entry answers what is asked of one key, the second finds the oldest without reading the
// others. The third takes the second's place when the time of a key is up that its user's password
// history names: such a key is not collected, but its record becomes one of class kHistory, with
// the base key alone, which can be compared and opens and seals nothing. Once the history names it
// no more it has the second entry again. A key has two of the entries, written and removed in one
// transaction.
#ifndef MPC_SERVER_STORE_RETIRED_H_
#define MPC_SERVER_STORE_RETIRED_H_

#include <cstddef>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpc-server/key/key_info.h"
#include "mpc-server/store/kv.h"
#include "mpc-server/store/share_store.h"

namespace mpckdc {

absl::StatusOr<RetiredMark> RetiredAt(const KvTxn& txn,
                                      const Handle& handle);  // NotFound: it isn't
// False: it was marked so already. One that was marked keeps its time.
absl::StatusOr<bool> MarkRetired(KvTxn& txn, const Handle& handle, absl::Time now,
                                 bool for_history = false);
// Of one that is marked and kept for the history.
absl::Status MarkReduced(KvTxn& txn, const Handle& handle);
absl::StatusOr<bool> UnmarkRetired(KvTxn& txn, const Handle& handle);  // false: it was not marked
// The oldest that were marked before that time and are not reduced, `most` of them at most.
struct RetiredKey {
  Handle handle;
  bool for_history;
};
absl::StatusOr<std::vector<RetiredKey>> RetiredBefore(const KvTxn& txn, absl::Time before,
                                                      size_t most);
// From the first handle not below `first`, in their order, until `visit` returns false.
absl::Status ScanRetired(const KvTxn& txn, const Handle& first,
                         absl::FunctionRef<bool(const Handle&, const RetiredMark&)> visit);

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_RETIRED_H_
