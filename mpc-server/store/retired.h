// SPDX-License-Identifier: Apache-2.0
//
// Keys that somebody had deleted, until they are collected. The key itself stays where it is and
// works; a mark beside it says since when it is retired:
//
//     retired    'h' | handle (16)            -> time (8)
//     retired    't' | time (8) | handle (16) -> nothing
//
// The first entry answers what is asked of one key, the second finds the oldest without reading the
// others. Both are written and removed in one transaction.
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

namespace mpckdc {

absl::StatusOr<absl::Time> RetiredAt(const KvTxn& txn, const Handle& handle);  // NotFound: it isn't
// False: it was marked already, and keeps its time.
absl::StatusOr<bool> MarkRetired(KvTxn& txn, const Handle& handle, absl::Time now);
absl::StatusOr<bool> UnmarkRetired(KvTxn& txn, const Handle& handle);  // false: it was not marked
// The oldest that were marked before that time, `most` of them at most.
absl::StatusOr<std::vector<Handle>> RetiredBefore(const KvTxn& txn, absl::Time before, size_t most);
// From the first handle not below `first`, in their order, until `visit` returns false.
absl::Status ScanRetired(const KvTxn& txn, const Handle& first,
                         absl::FunctionRef<bool(const Handle&, absl::Time)> visit);

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_RETIRED_H_
