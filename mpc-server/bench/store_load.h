// SPDX-License-Identifier: Apache-2.0
//
// What one party's share store costs a login, whatever the number of keys: fills a store in bulk,
// straight through ShareStore (sealed records, many in a transaction), and asks it for what batches
// of logins ask for. The shares are random numbers of the right sizes and belong to no key.
//
//     key number i   its handle is SHA-256("key i"), cut: nothing is remembered of millions
//     a login        the record of a user, that of krbtgt, and one replay entry
#ifndef MPC_SERVER_BENCH_STORE_LOAD_H_
#define MPC_SERVER_BENCH_STORE_LOAD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpc-server/store/share_store.h"

namespace mpckdc::bench {

struct StoreOptions {
  std::string folder;           // of the LMDB file, or what PostgreSQL's engine remembers
  std::string connection = "";  // PostgreSQL's; empty: LMDB
  std::string owner = "";       // if not empty the schema is made with this connection first
  std::string user = "";        // that gets the rights then
  uint64_t map_bytes = uint64_t{64} << 30;
  size_t cache_bytes = size_t{256} << 20;
};

absl::StatusOr<std::unique_ptr<ShareStore>> OpenStore(const StoreOptions& options);

// Adds the keys `from` to `to` - 1; `progress` hears how many are in.
absl::Status FillStore(ShareStore& store, size_t from, size_t to,
                       const std::function<void(size_t)>& progress);

// Of one login.
struct LoginCost {
  double wall_us = 0;
  double cpu_us = 0;           // of this process
  double database_cpu_us = 0;  // of the database's processes; 0 without one
};

struct StoreCosts {
  LoginCost first;   // users whose records nobody has asked for since the store was opened
  LoginCost again;   // the same ones once more
  LoginCost claims;  // the replay entry alone
};

// `logins` of them by users drawn among the `keys` first ones, `batch` at a time, one batch after
// the other. `database` is the process id of PostgreSQL's postmaster, 0: none. An error when a
// record is missing or damaged.
absl::StatusOr<StoreCosts> MeasureStore(ShareStore& store, size_t keys, size_t logins, size_t batch,
                                        int database);

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_STORE_LOAD_H_
