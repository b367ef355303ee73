// SPDX-License-Identifier: Apache-2.0
//
// A token bucket, the time by which it refills, and how a table of them is kept from growing.
#ifndef MPC_SERVER_JUDGE_TOKEN_BUCKET_H_
#define MPC_SERVER_JUDGE_TOKEN_BUCKET_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "mpc-server/judge/quota_rates.h"

namespace mpckdc {

// A clock that is set back must not freeze the buckets, one that is set ahead must not fill them: a
// step back counts as no time, a longer step than limits::kMaxQuotaStep as that much.
class SteadyTime {
 public:
  // Call it often: once in limits::kMaxQuotaStep at least, or time is lost.
  absl::Duration Advance(absl::Time now);

 private:
  std::optional<absl::Time> last_;
  absl::Duration elapsed_;
};

// Holds one number: the moment at which all that was taken has flowed back. The bucket is full from
// then on, and empty `burst` tokens' time before. `now` is a SteadyTime.
class TokenBucket {
 public:
  // Zero when so many tokens are there, otherwise how long it takes until they are. More than a
  // full bucket is never asked for: it counts as a full one.
  absl::Duration WaitFor(const Rate& rate, uint32_t tokens, absl::Duration now) const;
  void Take(const Rate& rate, uint32_t tokens, absl::Duration now);
  void GiveBack(const Rate& rate, uint32_t tokens, absl::Duration now);
  // Takes a token that may not be there: the bucket then owes it, and is full in `longest` at most.
  void Charge(const Rate& rate, absl::Duration longest, absl::Duration now);
  // The tokens that were taken stay taken, and no more than fit into the new bucket.
  void Change(const Rate& from, const Rate& to, absl::Duration now);

  bool Full(absl::Duration now) const { return full_at_ <= now; }
  absl::Duration full_at() const { return full_at_; }

 private:
  absl::Duration full_at_;
};

// How long an empty bucket takes to be full.
absl::Duration FillTime(const Rate& rate);

// Forgets the eighth of a table's entries for which `moment_of(entry)` is the earliest.
template <class Map, class MomentOf>
void ForgetEighth(Map& map, MomentOf moment_of) {
  std::vector<absl::Duration> moments;
  moments.reserve(map.size());
  for (const auto& entry : map) moments.push_back(moment_of(entry));
  const auto limit = moments.begin() + static_cast<std::ptrdiff_t>(moments.size() / 8);
  std::nth_element(moments.begin(), limit, moments.end());
  size_t excess = moments.size() / 8 + 1;
  absl::erase_if(map, [&](const auto& entry) {
    return moment_of(entry) <= *limit && excess > 0 && excess-- > 0;
  });
}

}  // namespace mpckdc

#endif  // MPC_SERVER_JUDGE_TOKEN_BUCKET_H_
