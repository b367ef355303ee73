// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/job_quotas.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/job/ticket_header.h"
#include "mpc-server/key/enctype.h"

namespace mpckdc {
namespace {

// SEAL_GRANTED is paid for by the job that left the grant.
QuotaUse QuotaUseOf(const Job& job, const PrincipalId& principal) {
  QuotaUse use;
  use.principal = principal;
  use.source = job.source;
  const auto open_ticket = [&] {
    use[QuotaKind::kKdcOpens] = 1;
    use[QuotaKind::kSourceFailures] = job.source.id != 0 ? 1 : 0;
    use[QuotaKind::kUnprovedFailures] = job.source.id != 0 && !job.source.proved ? 1 : 0;
  };
  switch (job.operation) {
    case Operation::kLogin:
    case Operation::kOpenPreauth:
      use[QuotaKind::kKdcLogins] = 1;
      use[QuotaKind::kPrincipalLogins] = 1;
      use[QuotaKind::kPrincipalFailures] = job.opens.empty() ? 0 : 1;
      break;
    case Operation::kOpenTicket:
      open_ticket();
      break;
    case Operation::kReissueTicket:
      open_ticket();
      use[QuotaKind::kPrincipalReissues] = 1;
      break;
    case Operation::kMakeChecksum:
    case Operation::kVerifyChecksum:
      use[QuotaKind::kKdcChecksums] =
          static_cast<uint8_t>(job.make_macs.size() + job.verify_macs.size());
      break;
    case Operation::kSealGranted:
    case Operation::kUnspecified:
      break;
  }
  return use;
}

// What a computed job gets back. The KDC pays for the computing; a principal pays for what
// succeeded, and for each pre-auth that was no good: an attacker's are not counted as its logins.
QuotaUse ToGiveBack(const QuotaUse& taken, Verdict verdict) {
  QuotaUse back = taken;
  back.tokens = {};
  if (verdict != Verdict::kBadTag) {
    for (const QuotaKind kind :
         {QuotaKind::kPrincipalFailures, QuotaKind::kKnownFailures, QuotaKind::kSourceFailures}) {
      back[kind] = taken[kind];
    }
  }
  if (verdict != Verdict::kOk) {
    back[QuotaKind::kPrincipalLogins] = taken[QuotaKind::kPrincipalLogins];
    back[QuotaKind::kPrincipalReissues] = taken[QuotaKind::kPrincipalReissues];
    back[QuotaKind::kAnonymousLogins] = taken[QuotaKind::kAnonymousLogins];
  }
  return back;
}

// The key by which another realm's ticket came in that the job makes one of; null: it is no such job.
const KeyInfo* ForeignParent(const Job& job, BatchRecords& records) {
  if (job.operation != Operation::kReissueTicket || job.opens.empty()) return nullptr;
  const KeyInfo* key = records.FindInfo(job.opens[0].handle);
  return key != nullptr && !IsOwnTgt(key->principal) ? key : nullptr;
}

// Whose reissues such a job counts as. What the header says is that realm's word, and so it counts
// for nobody of ours.
PrincipalId ForeignUser(const KeyInfo& key, const PrincipalId& of_header) {
  return PrincipalIdOf(absl::StrCat(key.principal, " ", AsText(of_header)));
}

// A ticket of 17 to 20 says of nobody outside of its ciphertext whose it is: one bucket for all of
// that realm's users would let one of them keep out the rest. The quotas of the KDC hold for it.
bool NamesNobody(const KeyInfo& key) {
  const Enctype* enctype = FindEnctype(key.enctype);
  return enctype == nullptr || !enctype->is_gcm();
}

}  // namespace

// Anybody may be nobody, so what he takes is his source's: else a stranger would take all of it.
QuotaUse JobQuotas::UseOf(const Job& job, const PrincipalId& principal) const {
  QuotaUse use = QuotaUseOf(job, principal);
  if (principal != anonymous_) return use;
  for (const QuotaKind kind : {QuotaKind::kPrincipalLogins, QuotaKind::kPrincipalReissues}) {
    use[QuotaKind::kAnonymousLogins] += std::exchange(use[kind], 0);
  }
  return use;
}

Judgement JobQuotas::Take(WaitingJob& waiting, BatchRecords& records) {
  if (!waiting.taken.empty()) return Ok();
  waiting.over.reset();
  const Job& job = waiting.job;
  const KeyInfo* client = job.client.has_value() ? records.FindInfo(*job.client) : nullptr;
  const KeyInfo* foreign = ForeignParent(job, records);
  const PrincipalId principal = client != nullptr    ? client->principal_id
                                : foreign != nullptr ? ForeignUser(*foreign, PrincipalOfTicket(job))
                                                     : PrincipalOfTicket(job);
  // A ticket's header names its principal by the id alone.
  const std::string name = client != nullptr    ? client->principal
                           : foreign != nullptr ? absl::StrCat("a user of ", foreign->principal)
                                                : absl::StrCat("principal ", HandleText(principal));
  QuotaUse use = UseOf(job, principal);
  if (foreign != nullptr && NamesNobody(*foreign)) use[QuotaKind::kPrincipalReissues] = 0;
  Judgement judgement = quotas_.Take(waiting.kdc.name, use, name, &waiting.over);
  if (judgement.ok()) waiting.taken = use;
  return judgement;
}

void JobQuotas::GiveBack(WaitingJob& waiting) {
  quotas_.GiveBack(waiting.kdc.name, std::exchange(waiting.taken, QuotaUse{}));
}

void JobQuotas::Settle(WaitingJob& waiting, Verdict verdict) {
  const QuotaUse taken = std::exchange(waiting.taken, QuotaUse{});
  quotas_.GiveBack(waiting.kdc.name, ToGiveBack(taken, verdict));
  if (verdict == Verdict::kBadTag) quotas_.Failed(waiting.kdc.name, taken);
  if (verdict == Verdict::kOk) quotas_.Succeeded(taken);
}

void JobQuotas::SetRates(const QuotaRates& rates) {
  const absl::MutexLock lock(&mu_);
  new_rates_ = rates;
}

void JobQuotas::Housekeep() {
  quotas_.Prune();
  const absl::MutexLock lock(&mu_);
  if (new_rates_.has_value()) quotas_.SetRates(*std::exchange(new_rates_, std::nullopt));
}

}  // namespace mpckdc
