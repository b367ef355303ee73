// SPDX-License-Identifier: Apache-2.0
//
// The token buckets of a server, per principal, per KDC and per source, in tables whose memory is
// bounded.
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
#include "mpc-server/job/job.h"
#include "mpc-server/judge/known_sources.h"
#include "mpc-server/judge/quota_rates.h"
#include "mpc-server/judge/token_bucket.h"
#include "mpc-server/key/key_info.h"

namespace mpckdc {

// Tokens by QuotaKind, and whose.
struct QuotaUse {
  std::array<uint8_t, kQuotaKinds> tokens{};
  PrincipalId principal{};
  // Whose guesses they are, if not the principal's: of a key that was copied under its name, the
  // first owner's (key_record.h).
  std::optional<PrincipalId> first_owner;
  // Of another realm's user, that realm: all of its users share some of what is this one's.
  std::optional<PrincipalId> realm;
  Source source;
  bool source_owes = false;  // its token was not taken in advance

  uint8_t& operator[](QuotaKind kind) { return tokens[static_cast<size_t>(kind)]; }
  uint8_t operator[](QuotaKind kind) const { return tokens[static_cast<size_t>(kind)]; }
  bool empty() const { return tokens == std::array<uint8_t, kQuotaKinds>{}; }
  const PrincipalId& guessed() const { return first_owner ? *first_owner : principal; }
  // A pre-authentication is to be judged.
  bool guess() const {
    return (*this)[QuotaKind::kPrincipalFailures] + (*this)[QuotaKind::kKnownFailures] > 0;
  }
};

class Quotas {
 public:
  explicit Quotas(const QuotaRates& rates, size_t max_principals = limits::kMaxQuotaPrincipals)
      : rates_(rates), max_principals_(max_principals) {}

  void SetRates(const QuotaRates& rates);

  // This server's clock says `now`.
  void Advance(absl::Time now) { now_ = time_.Advance(now); }

  // Takes everything and sets nothing but `use` to what was taken, or takes nothing and sets `over`
  // to a quota that is used up. Where a principal's common share of failures is, one of its known
  // sources has its own. The judgement names the quota and when it is over; `principal` is the name
  // for the text.
  Judgement Take(const std::string& kdc, QuotaUse& use, absl::string_view principal,
                 std::optional<QuotaKind>* over);
  void GiveBack(const std::string& kdc, const QuotaUse& use);
  // The job was computed and its tag was wrong: takes what is owed for it.
  void Failed(const std::string& kdc, const QuotaUse& use);
  // The job's pre-authentication was good.
  void Succeeded(const QuotaUse& use);

  // Forgets full buckets: they are as good as new ones.
  void Prune();
  size_t size() const { return principals_.size() + kdcs_.size() + sources_.size(); }
  size_t known() const { return known_.size(); }

 private:
  using PrincipalBuckets = std::array<TokenBucket, kPrincipalQuotas>;
  using KdcBuckets = std::array<TokenBucket, kKdcQuotas>;
  using SourceBuckets = std::array<TokenBucket, kSourceQuotas>;
  static_assert(kQuotaKinds == kPrincipalQuotas + kKdcQuotas + 1 + kSourceQuotas);

  TokenBucket* FindBucket(const std::string& kdc, const QuotaUse& use, QuotaKind kind);
  PrincipalBuckets& OfPrincipal(const PrincipalId& id);
  TokenBucket& BucketOf(const std::string& kdc, const QuotaUse& use, QuotaKind kind);
  absl::Duration WaitFor(const std::string& kdc, const QuotaUse& use, QuotaKind kind);
  absl::Duration WaitForRealm(const QuotaUse& use);
  bool WouldPassIfProved(const std::string& kdc, const QuotaUse& use, QuotaKind over);
  Judgement UsedUp(const std::string& kdc, const QuotaUse& use, QuotaKind kind,
                   absl::string_view principal, absl::Duration wait);

  QuotaRates rates_;
  const size_t max_principals_;
  SteadyTime time_;
  absl::Duration now_;
  absl::flat_hash_map<PrincipalId, PrincipalBuckets> principals_;
  absl::flat_hash_map<std::string, KdcBuckets> kdcs_;  // as many as certificates of the role kdc
  absl::flat_hash_map<Source, SourceBuckets> sources_;
  KnownSources known_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_JUDGE_QUOTA_H_
