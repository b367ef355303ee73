// SPDX-License-Identifier: Apache-2.0
//
// What one passed gate pays for (job/operation_table.h). It is one budget however often its
// pre-auth is presented, at whichever of the party's servers, before and after they restart. So
// what is paid out is written down with the pre-auth, before anything leaves a server:
//
//     the grant    tickets    | paid here | taken, not paid | paid or taken elsewhere | left
//                             |<---------- written down (ReplayClaim) --------------->|
//                             |<- used -->|
//                             |<--------- taken ----------->|
//
// A login takes in advance what its second job will ask for, a reply; so only what is unusual costs
// a second write: a ticket or a reply that came out too short. What a server had taken and not paid
// when its process ended is lost.
#ifndef MPC_SERVER_JUDGE_BUDGET_H_
#define MPC_SERVER_JUDGE_BUDGET_H_

#include <cstdint>
#include <optional>

#include "mpc-server/job/job.h"
#include "mpc-server/job/operation_table.h"
#include "mpc-server/store/replay_entry.h"

namespace mpckdc {

// Parts that a grant pays for.
struct GrantUse {
  uint8_t tickets = 0;
  uint8_t replies = 0;
  uint8_t checksums = 0;
  Handle ticket_key{};  // of the first ticket; all zero when there is none

  friend GrantUse operator+(const GrantUse& a, const GrantUse& b);
  // Without a part of which there is none left.
  friend GrantUse operator-(const GrantUse& a, const GrantUse& b);
  bool empty() const { return tickets == 0 && replies == 0 && checksums == 0; }
};
inline constexpr GrantUse kWholeGrant = {kGrantTickets, kGrantReplies, kGrantChecksums, {}};

GrantUse Smaller(const GrantUse& a, const GrantUse& b);  // of each kind
// What the job's seals and make_macs take.
GrantUse UseOf(const Job& job);
// What a job beside it will take, of a login like this one.
GrantUse SecondJobOf(const GrantUse& job);
// Both tickets of a grant are under one key: the second one is there because the first came out too
// short. A login at the realm's own service would otherwise be worth a ticket for kadmin beside it.
bool UnderAnotherKey(const GrantUse& before, const GrantUse& job);

// Of what a claim says that is paid or taken, wherever.
GrantUse PaidOf(const ReplayClaim& claim);
void SetPaid(const GrantUse& paid, ReplayClaim* claim);

struct Budget {
  // Where it is written down, with the claim as this process saw it last; none: of a login without
  // a pre-auth, which no other server knows.
  std::optional<ReplayEntry> entry;
  GrantUse used;   // by jobs here
  GrantUse taken;  // here, and of that `used` is a part

  GrantUse Left() const { return entry ? kWholeGrant - PaidOf(entry->claim) : GrantUse{}; }
  // Of a login without a pre-auth.
  static Budget Whole() { return {std::nullopt, {}, kWholeGrant}; }
};

// Takes what a job needs from the budget, and `spare` as far as there is some. False, and nothing
// has changed: it is used up.
bool TakeFrom(Budget* budget, const GrantUse& need, const GrantUse& spare);

}  // namespace mpckdc

#endif  // MPC_SERVER_JUDGE_BUDGET_H_
