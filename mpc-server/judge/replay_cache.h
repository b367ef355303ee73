// SPDX-License-Identifier: Apache-2.0
//
// The pre-auth messages that this server has accepted: (key handle, nonce), kept until no clock in
// the realm accepts their timestamps any more, across restarts. One thread at a time.
//
// That is some fifteen minutes, so a storm leaves millions. The store has them whole; in memory
// there is a mark of each, SipHash-2-4 of 128 bits under a key of this process, and a time:
//
//     mark (16) | expiry (4): seconds since 1970, rounded up
//
// Two of n messages have one mark with a probability of n^2 / 2^129, whatever a client chooses: the
// later one would be refused as a replay.
#ifndef MPC_SERVER_JUDGE_REPLAY_CACHE_H_
#define MPC_SERVER_JUDGE_REPLAY_CACHE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/job/job.h"
#include "mpc-server/store/share_store.h"

namespace mpckdc {

class ReplayCache {
 public:
  // Both must outlive this.
  ReplayCache(ShareStore* store, RandomSource* random);

  absl::Status Load();

  bool Seen(const Handle& handle, const Nonce& nonce) const {
    return expires_.contains(MarkOf(handle, nonce));
  }
  // Remembers it in memory from now on; Flush() makes everything added durable.
  void Add(const Handle& handle, const Nonce& nonce, absl::Time expires);
  // Before anything that an added entry allowed leaves the server.
  absl::Status Flush();

  // Drops what has expired; does nothing when called again within a minute.
  absl::Status Prune(absl::Time now);

 private:
  using Mark = std::array<uint8_t, 16>;
  Mark MarkOf(const Handle& handle, const Nonce& nonce) const;

  ShareStore* const store_;
  std::array<uint8_t, 16> key_;
  absl::flat_hash_map<Mark, uint32_t> expires_;
  std::vector<ReplayEntry> unwritten_;
  absl::Time pruned_ = absl::InfinitePast();
};

}  // namespace mpckdc

#endif  // MPC_SERVER_JUDGE_REPLAY_CACHE_H_
