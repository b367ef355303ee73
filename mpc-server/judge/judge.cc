// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/judge/judge.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/job/operation_table.h"
#include "mpc-server/job/preauth_timestamp.h"
#include "mpc-server/job/ticket_header.h"
#include "mpc-server/job/validate.h"
#include "mpc-server/key/nonce.h"

namespace mpckdc {
namespace {

Judgement CheckAllTags(const JobWork& work) {
  for (const OpenWork& open : work.opens) {
    if (!open.good) {
      return Refuse(Verdict::kBadTag,
                    absl::StrCat("the message of ", open.PlaintextBytes(),
                                 " bytes of text under key usage ", KeyOf(open.form).key->usage,
                                 " does not verify: wrong key or altered"));
    }
  }
  for (const VerifyMacWork& mac : work.verify_macs) {
    if (!mac.good) return Refuse(Verdict::kBadTag, "the checksum does not verify");
  }
  return Ok();
}

// Of the ticket that the job seals.
std::string TicketServer(const JobWork& work) {
  for (const SealWork& seal : work.seals) {
    if (KeyOf(seal).key->usage == kUsageTicket) return KeyOf(seal).info->principal;
  }
  return "";
}

bool HasPreauth(const JobWork& work) {
  for (const OpenWork& open : work.opens) {
    if (open.is_preauth) return true;
  }
  return false;
}

// By now what the job holds of these was verified.
Judgement CheckGate(const JobWork& work) {
  if (work.client == nullptr || TakesAnything(work.client->gate)) return Ok();
  if (HasPreauth(work) && TakesTimestamp(work.client->gate)) return Ok();
  if (ShowsCertificate(work.received->job, *work.client)) return Ok();
  return Refuse(Verdict::kRefused,
                absl::StrCat("gate of ", work.client->principal, " is ",
                             GateName(work.client->gate), " and nothing of it was verified"));
}

}  // namespace

Judgement Judge::CheckPreauth(const JobWork& work, const OpenWork& open, absl::Time now,
                              BudgetAsk* ask) const {
  const auto time = DecodePreauthTimestamp(AsText(*open.plaintext));
  if (!time) return Refuse(Verdict::kRefused, "the pre-auth is good and holds no timestamp");
  const absl::Duration off = *time - now;
  if (absl::AbsDuration(off) > policy_.clock_skew) {
    return Refuse(Verdict::kClockSkew,
                  absl::StrCat("the pre-auth timestamp differs from this server's clock by ",
                               absl::FormatDuration(absl::Trunc(off, absl::Milliseconds(1)))));
  }
  // Good by this server's clock. That the rest was left out is one other server's word, of its clock or
  // its clock_skew, and where it lies no wrong clock of the client's: krb5kdc believes three. Nor is it
  // an outage, which whoever times his stamp well could bring about.
  if (open.late) {
    return Refuse(
        Verdict::kInconsistent,
        "the pre-auth timestamp is outside of clock_skew by the leader's clock, or of the "
        "smallest clock_skew of the three servers: make [policy] clock_skew the same at the three, "
        "and set their clocks");
  }
  const Nonce id = open.ReplayId();
  const KeyUse& key = KeyOf(open.form);
  const Handle& handle = key.replay_handle;
  const Claimant claimant = ClaimantOf(work.received->kdc, key.info->principal_id);
  const Job& job = work.received->job;
  Judgement seen = replays_->Look(handle, id, claimant, UseOf(job), now);
  if (!seen.ok()) return seen;
  *ask = {&job, {handle, id, EndOf(*time), {.claimant = claimant, .since = now}}, nullptr, Ok()};
  return Ok();
}

// Until when a proof of that time is remembered.
absl::Time Judge::EndOf(absl::Time time) const {
  // One window after its own end: a clock may be set back by as much. And longer than its grant,
  // which is paid for out of it. The end is a part of the entry's key: not shorter than by default,
  // so that machines of one party have the same while one's clock_skew was made smaller.
  const absl::Duration window = std::max(policy_.clock_skew, limits::kDefaultClockSkew);
  return time + 2 * window + limits::kGrantLife;
}

// Signature and certificate were verified before the batch (job/certificate_proof.h); the clock has
// gone on since.
Judgement Judge::CheckCertificateNow(const JobWork& work, absl::Time now, BudgetAsk* ask) const {
  const ReceivedJob& received = *work.received;
  Judgement j = CheckCertificate(received.certificate, work.client->principal, TicketServer(work),
                                 now, policy_.clock_skew);
  if (!j.ok()) return j;
  const Claimant claimant = ClaimantOf(received.kdc);
  const Handle handle = ReplayHandleOf(work.client->principal_id);
  const Nonce& id = received.certificate.id;
  j = replays_->Look(handle, id, claimant, UseOf(received.job), now);
  if (!j.ok()) return j;
  *ask = {&received.job,
          {handle, id, EndOf(received.certificate.time), {.claimant = claimant, .since = now}},
          nullptr,
          Ok()};
  return Ok();
}

// Its principal and its budget were looked at before the batch (Grants::Check).
Judgement Judge::CheckGrant(const JobWork& work, BudgetAsk* ask) const {
  const ReceivedJob& received = *work.received;
  const Grant* grant = grants_->Find({received.kdc, received.job.grant}, absl::InfinitePast());
  if (grant == nullptr) {
    return Refuse(Verdict::kRefused, absl::StrCat("the grant of job ", received.job.grant,
                                                  " was forgotten while this job waited"));
  }
  *ask = {&received.job, {}, grant->budget, Ok()};
  return Ok();
}

// Nothing outside of the ciphertext of a message of 17 to 20 tells its age.
Judgement Judge::CheckTicketAge(const OpenWork& open, absl::Time now) const {
  const auto* gcm = std::get_if<GcmOpen>(&open.form);
  if (gcm == nullptr) return Ok();
  const auto header = DecodeTicketHeader(gcm->message.header);
  if (!header) return Refuse(Verdict::kBadTag, "a ticket without a header");  // CheckKeys said so
  return CheckOriginAge(*header, now, policy_.max_renewable_life, policy_.clock_skew);
}

// The time in its nonce tells when the servers made it; it may be ahead of the clock
// (NonceSequencer), never behind by more than a clock may be.
Judgement Judge::CheckChecksumAge(const VerifyMacWork& mac, absl::Time now) const {
  const auto* gcm = std::get_if<GcmVerify>(&mac.form);
  if (gcm == nullptr) return Ok();
  const absl::Duration age = now - absl::FromUnixSeconds(SplitNonce(gcm->nonce).seconds);
  if (age <= policy_.max_renewable_life + policy_.clock_skew) return Ok();
  return Refuse(Verdict::kRefused,
                absl::StrCat("the checksum was made ",
                             absl::FormatDuration(absl::Trunc(age, absl::Seconds(1))),
                             " ago, beyond max_renewable_life"));
}

Judgement Judge::DecideJob(const JobWork& work, absl::Time now, BudgetAsk* ask) const {
  Judgement j = CheckAllTags(work);
  if (!j.ok()) return j;
  for (const OpenWork& open : work.opens) {
    j = open.is_preauth ? CheckPreauth(work, open, now, ask) : CheckTicketAge(open, now);
    if (!j.ok()) return j;
  }
  for (const VerifyMacWork& mac : work.verify_macs) {
    j = CheckChecksumAge(mac, now);
    if (!j.ok()) return j;
  }
  if (work.client != nullptr && ShowsCertificate(work.received->job, *work.client)) {
    j = CheckCertificateNow(work, now, ask);
    if (!j.ok()) return j;
  }
  const bool granted = work.received->job.operation == Operation::kSealGranted;
  return granted ? CheckGrant(work, ask) : CheckGate(work);
}

void Judge::LeaveGrant(const JobWork& work, const BudgetAsk* ask, absl::Time agreed,
                       absl::Time now) {
  const ReceivedJob& received = *work.received;
  const Job& job = received.job;
  if (!FindOperation(job.operation)->leaves_grant) return;
  Grant grant{work.client->principal_id, agreed, job.id, nullptr, now + limits::kGrantLife};
  if (ask != nullptr) {
    grant.budget = ask->budget;
    // Presented again, it lives no longer.
    grant.expires = std::min(grant.expires, ask->budget->entry->claim.since + limits::kGrantLife);
  } else {
    grant.budget = std::make_shared<Budget>(Budget::Whole());
    TakeFrom(grant.budget.get(), UseOf(job), {});
  }
  grants_->Add({received.kdc, job.id}, grant);
}

std::vector<Judgement> Judge::Decide(const std::vector<JobWork>& work, absl::Time agreed,
                                     absl::Time now) {
  std::vector<Judgement> judgements;
  judgements.reserve(work.size());
  std::vector<BudgetAsk> asks;
  std::vector<size_t> asked;  // the job of each
  for (const JobWork& job : work) {
    BudgetAsk ask;
    judgements.push_back(job.goes_on ? Ok() : DecideJob(job, now, &ask));
    if (!judgements.back().ok() || ask.job == nullptr) continue;
    asked.push_back(judgements.size() - 1);
    asks.push_back(std::move(ask));
  }
  replays_->Settle(absl::MakeSpan(asks), now);
  std::vector<const BudgetAsk*> ask_of(work.size(), nullptr);
  for (size_t i = 0; i < asks.size(); ++i) {
    judgements[asked[i]] = asks[i].judgement;
    ask_of[asked[i]] = &asks[i];
  }
  for (size_t i = 0; i < work.size(); ++i) {
    if (judgements[i].ok() && !work[i].goes_on) LeaveGrant(work[i], ask_of[i], agreed, now);
  }
  return judgements;
}

}  // namespace mpckdc
