// SPDX-License-Identifier: Apache-2.0
//
// Token buckets per principal and per KDC, and a table of them whose memory is bounded.
//
//   SteadyTime    time that only goes on, made from a clock that may be set
//   TokenBucket   one bucket: a single moment
//   Quotas        the buckets of a server; takes what a job costs, or nothing
//
// A job's tokens are taken when the server forms its opinion on it, and given back when it turns
// out that the job did not do what they stand for (doc/jobs.md, "Quotas"). One thread at a time.
#ifndef MPC_SERVER_JUDGE_QUOTA_H_
#define MPC_SERVER_JUDGE_QUOTA_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/job/verdict.h"
#include "mpc-server/judge/quota_rates.h"
#include "mpc-server/key/key_info.h"

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
  // The tokens that were taken stay taken, and no more than fit into the new bucket.
  void Change(const Rate& from, const Rate& to, absl::Duration now);

  bool Full(absl::Duration now) const { return full_at_ <= now; }
  absl::Duration full_at() const { return full_at_; }

 private:
  absl::Duration full_at_;
};

// Tokens by QuotaKind, and whose.
struct QuotaUse {
  std::array<uint8_t, kQuotaKinds> tokens{};
  PrincipalId principal{};

  uint8_t& operator[](QuotaKind kind) { return tokens[static_cast<size_t>(kind)]; }
  uint8_t operator[](QuotaKind kind) const { return tokens[static_cast<size_t>(kind)]; }
  bool empty() const { return tokens == std::array<uint8_t, kQuotaKinds>{}; }
};

class Quotas {
 public:
  explicit Quotas(const QuotaRates& rates, size_t max_principals = limits::kMaxQuotaPrincipals)
      : rates_(rates), max_principals_(max_principals) {}

  void SetRates(const QuotaRates& rates);

  // This server's clock says `now`.
  void Advance(absl::Time now) { now_ = time_.Advance(now); }

  // Takes everything and sets nothing, or takes nothing and sets `over` to a quota that is used
  // up. The judgement names it and when it is over; `principal` is the name for the text.
  Judgement Take(const std::string& kdc, const QuotaUse& use, absl::string_view principal,
                 std::optional<QuotaKind>* over);
  void GiveBack(const std::string& kdc, const QuotaUse& use);

  // Forgets full buckets: they are as good as new ones.
  void Prune();
  size_t size() const { return principals_.size() + kdcs_.size(); }

 private:
  using Buckets = std::array<TokenBucket, kPrincipalQuotas>;
  static_assert(kQuotaKinds == 2 * kPrincipalQuotas);

  TokenBucket* FindBucket(const std::string& kdc, const PrincipalId& principal, size_t kind);
  TokenBucket& BucketOf(const std::string& kdc, const PrincipalId& principal, size_t kind);
  bool AllFull(const Buckets& buckets) const;
  void MakeRoom();

  QuotaRates rates_;
  const size_t max_principals_;
  SteadyTime time_;
  absl::Duration now_;
  absl::flat_hash_map<PrincipalId, Buckets> principals_;
  absl::flat_hash_map<std::string, Buckets> kdcs_;  // as many as certificates of the role kdc
};

}  // namespace mpckdc

#endif  // MPC_SERVER_JUDGE_QUOTA_H_
