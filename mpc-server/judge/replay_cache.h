// SPDX-License-Identifier: Apache-2.0
//
// The pre-auth messages that this party has accepted: (key handle, nonce), kept until no clock in
// the realm accepts their timestamps any more, across restarts. Whoever presented one first, which
// is a KDC by the name in its certificate, may do so again while its grant lives, for what the
// grant still pays for (budget.h): so a request whose answer was lost succeeds when it is sent
// again, and nobody gets more than by sending it once. One thread at a time.
//
// That is some fifteen minutes, so a storm leaves millions. The store has them whole, and in the
// end it decides: another server of the party may use it too. In memory there is a mark of each
// that this process knows, SipHash-2-4 of 128 bits under a key of this process, and a time:
//
//     mark (16) | expiry (4): seconds since 1970, rounded up
//
// and, of those of the last minute, their claims and budgets. Two of n messages have one mark with
// a probability of n^2 / 2^129, whatever a client chooses: the later one would be refused as a
// replay.
#ifndef MPC_SERVER_JUDGE_REPLAY_CACHE_H_
#define MPC_SERVER_JUDGE_REPLAY_CACHE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/job/job.h"
#include "mpc-server/judge/budget.h"
#include "mpc-server/store/share_store.h"

namespace mpckdc {

// Who presents a pre-auth: a KDC by the name in its certificate, which a renewed one keeps, with
// all its processes and sessions.
Claimant ClaimantOf(const KdcIdentity& kdc);
// Of a pre-auth: in the name of a principal. Copies of a key have other names (key_record.h), and what
// was shown for one may not be presented again for another.
Claimant ClaimantOf(const KdcIdentity& kdc, const PrincipalId& principal);

// What a job that is good asks of a budget: one that presents a pre-auth, or a SEAL_GRANTED.
struct BudgetAsk {
  const Job* job = nullptr;
  // Of a pre-auth: how it is written down if nobody presented it before.
  ReplayEntry entry;
  // The grant's; of a pre-auth it is set by the answer.
  std::shared_ptr<Budget> budget;
  Judgement judgement;  // the answer
};

class ReplayCache {
 public:
  // Both must outlive this.
  ReplayCache(ShareStore* store, RandomSource* random);

  absl::Status Load(absl::Time now);

  // REPLAY if this process knows already that `claimant` may not present it now, with a job that
  // needs so much.
  Judgement Look(const Handle& handle, const Nonce& nonce, const Claimant& claimant,
                 const GrantUse& need, absl::Time now) const;

  // Answers, in the order of the batch. What is OK is durable when it returns, and may leave the
  // server. A job whose claim could not be written down is UNAVAILABLE.
  void Settle(absl::Span<BudgetAsk> asks, absl::Time now);

  // Drops what has expired; of what is long does nothing when called again within a minute.
  absl::Status Prune(absl::Time now);

  size_t recent() const { return recent_.size(); }  // with their claims

 private:
  using Mark = std::array<uint8_t, 16>;
  struct Group;  // the asks of a batch for one budget

  Mark MarkOf(const Handle& handle, const Nonce& nonce) const;
  std::vector<Group> GroupsOf(absl::Span<BudgetAsk> asks) const;
  absl::Status WriteDown(absl::Span<Group*> groups, absl::Time now);
  void Answer(Group& group, absl::Time now);
  void Remember(const std::shared_ptr<Budget>& budget, absl::Time now);
  void PruneRecent(absl::Time now);

  ShareStore* const store_;
  std::array<uint8_t, 16> key_;
  absl::flat_hash_map<Mark, uint32_t> expires_;
  absl::flat_hash_map<Mark, std::shared_ptr<Budget>> recent_;
  std::deque<std::pair<absl::Time, Mark>> by_age_;  // of the recent: when their grants end
  absl::Time pruned_ = absl::InfinitePast();
};

}  // namespace mpckdc

#endif  // MPC_SERVER_JUDGE_REPLAY_CACHE_H_
