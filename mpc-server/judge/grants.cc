// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/judge/grants.h"

#include "absl/strings/str_cat.h"
#include "mpc-server/base/limits.h"

namespace mpckdc {

void Grants::Add(const Key& key, const Grant& grant) {
  while (by_age_.size() >= limits::kMaxGrants) {
    grants_.erase(by_age_.front().second);
    by_age_.pop_front();
  }
  grants_[key] = grant;
  by_age_.push_back({grant.expires, key});
}

const Grant* Grants::Find(const Key& key, absl::Time now) const {
  const auto it = grants_.find(key);
  return it != grants_.end() && it->second.expires > now ? &it->second : nullptr;
}

Judgement Grants::Check(const KdcIdentity& kdc, const Job& job, const PrincipalId& principal,
                        const GrantUse& already, absl::Time now) const {
  const Grant* grant = Find({kdc, job.grant}, now);
  if (grant == nullptr) {
    return Refuse(Verdict::kRefused,
                  absl::StrCat("no grant of job ", job.grant,
                               ": its pre-auth was not verified, or too long ago"));
  }
  if (grant->principal != principal) {
    return Refuse(Verdict::kRefused,
                  absl::StrCat("the grant of job ", job.grant, " is another principal's"));
  }
  return CheckBudget(*grant->budget, already, job);
}

void Grants::Prune(absl::Time now) {
  while (!by_age_.empty() && by_age_.front().first <= now) {
    grants_.erase(by_age_.front().second);
    by_age_.pop_front();
  }
}

Judgement CheckBudget(const Budget& budget, const GrantUse& already, const Job& job) {
  const GrantUse own = UseOf(job);
  Budget left = budget;
  const bool before = TakeFrom(&left, already, {});
  const Handle& claimed = left.entry.has_value() ? left.entry->claim.ticket_key : Handle{};
  if (UnderAnotherKey(left.used, own) || UnderAnotherKey({0, 0, 0, claimed}, own)) {
    return Refuse(Verdict::kRefused, absl::StrCat("the grant of job ", job.grant,
                                                  " has paid for a ticket under another key"));
  }
  if (before && TakeFrom(&left, own, {})) return Ok();
  return Refuse(Verdict::kRefused, absl::StrCat("the grant of job ", job.grant, " is used up"));
}

}  // namespace mpckdc
