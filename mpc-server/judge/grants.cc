// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/judge/grants.h"

#include "absl/strings/str_cat.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/job/operation_table.h"

namespace mpckdc {

GrantUse UseOf(const Job& job) {
  GrantUse use;
  for (const SealPart& part : job.seals) {
    if (part.usage == kUsageTicket) {
      ++use.tickets;
      use.ticket_key = part.handle;
    }
    if (part.usage == kUsageAsReply) ++use.replies;
  }
  for (const MakeMacPart& part : job.make_macs) use.checksums += part.usage == kUsageAsReqChecksum;
  return use;
}

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
  const GrantUse before = grant->used + already, own = UseOf(job), total = before + own;
  // The second one is there because the first came out too short. A login at the realm's own
  // service would otherwise be worth a ticket for kadmin beside it.
  if (own.ticket_key != Handle{} && own.ticket_key != total.ticket_key) {
    return Refuse(Verdict::kRefused, absl::StrCat("the grant of job ", job.grant,
                                                  " has paid for a ticket under another key"));
  }
  const bool spent = total.tickets > kGrantTickets || total.replies > kGrantReplies ||
                     total.checksums > kGrantChecksums;
  if (spent) {
    return Refuse(Verdict::kRefused, absl::StrCat("the grant of job ", job.grant, " is used up"));
  }
  return Ok();
}

void Grants::Use(const Key& key, const GrantUse& use) {
  const auto it = grants_.find(key);
  if (it != grants_.end()) it->second.used = it->second.used + use;
}

void Grants::Prune(absl::Time now) {
  while (!by_age_.empty() && by_age_.front().first <= now) {
    grants_.erase(by_age_.front().second);
    by_age_.pop_front();
  }
}

}  // namespace mpckdc
