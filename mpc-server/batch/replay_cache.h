// SPDX-License-Identifier: Apache-2.0
//
// The pre-auth messages that this server has accepted: (key handle, nonce), kept until no clock in
// the realm accepts their timestamps any more, across restarts. One thread at a time.
#ifndef MPC_SERVER_BATCH_REPLAY_CACHE_H_
#define MPC_SERVER_BATCH_REPLAY_CACHE_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "mpc-server/job/job.h"
#include "mpc-server/store/share_store.h"

namespace mpckdc {

class ReplayCache {
 public:
  explicit ReplayCache(ShareStore* store) : store_(store) {}

  absl::Status Load();

  bool Seen(const Handle& handle, const Nonce& nonce) const {
    return expires_.contains({handle, nonce});
  }
  // Remembers it in memory from now on; Flush() makes everything added durable.
  void Add(const Handle& handle, const Nonce& nonce, absl::Time expires);
  // Before anything that an added entry allowed leaves the server.
  absl::Status Flush();

  // Drops what has expired; does nothing when called again within a minute.
  absl::Status Prune(absl::Time now);

  size_t size() const { return expires_.size(); }

 private:
  ShareStore* const store_;
  absl::flat_hash_map<std::pair<Handle, Nonce>, absl::Time> expires_;
  std::vector<ReplayEntry> unwritten_;
  absl::Time pruned_ = absl::InfinitePast();
};

}  // namespace mpckdc

#endif  // MPC_SERVER_BATCH_REPLAY_CACHE_H_
