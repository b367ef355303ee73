// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/judge/budget.h"

#include <algorithm>

namespace mpckdc {
namespace {

uint8_t Less(uint8_t a, uint8_t b) { return static_cast<uint8_t>(a > b ? a - b : 0); }

}  // namespace

GrantUse operator+(const GrantUse& a, const GrantUse& b) {
  return {static_cast<uint8_t>(a.tickets + b.tickets), static_cast<uint8_t>(a.replies + b.replies),
          static_cast<uint8_t>(a.checksums + b.checksums),
          a.ticket_key != Handle{} ? a.ticket_key : b.ticket_key};
}

GrantUse operator-(const GrantUse& a, const GrantUse& b) {
  return {Less(a.tickets, b.tickets), Less(a.replies, b.replies), Less(a.checksums, b.checksums),
          a.ticket_key};
}

GrantUse Smaller(const GrantUse& a, const GrantUse& b) {
  return {std::min(a.tickets, b.tickets), std::min(a.replies, b.replies),
          std::min(a.checksums, b.checksums), a.ticket_key};
}

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

// No ticket: it would have to be under a key that is not known yet.
GrantUse SecondJobOf(const GrantUse& job) { return GrantUse{0, 1, 0, {}} - job; }

bool UnderAnotherKey(const GrantUse& before, const GrantUse& job) {
  return job.ticket_key != Handle{} && before.ticket_key != Handle{} &&
         job.ticket_key != before.ticket_key;
}

GrantUse PaidOf(const ReplayClaim& claim) {
  return {claim.tickets, claim.replies, claim.checksums, claim.ticket_key};
}

void SetPaid(const GrantUse& paid, ReplayClaim* claim) {
  claim->tickets = paid.tickets;
  claim->replies = paid.replies;
  claim->checksums = paid.checksums;
  claim->ticket_key = paid.ticket_key;
}

bool TakeFrom(Budget* budget, const GrantUse& need, const GrantUse& spare) {
  const GrantUse used = budget->used + need;
  const GrantUse more = used - budget->taken;
  if (!(more - budget->Left()).empty()) return false;
  budget->used = used;
  budget->taken = budget->taken + more;
  if (!budget->entry.has_value()) return true;
  ReplayClaim& claim = budget->entry->claim;
  // Before the spare is taken from what is left then.
  const GrantUse paid = PaidOf(claim) + more;
  SetPaid(paid, &claim);
  const GrantUse ahead = Smaller(spare - (budget->taken - budget->used), budget->Left());
  budget->taken = budget->taken + ahead;
  SetPaid(paid + ahead, &claim);
  return true;
}

}  // namespace mpckdc
