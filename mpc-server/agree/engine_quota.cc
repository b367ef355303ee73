// SPDX-License-Identifier: Apache-2.0
//
// What a job takes from the quotas, and what it gets back (doc/jobs.md, "Quotas").
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/agree/engine_core.h"
#include "mpc-server/job/tgt_header.h"

namespace mpckdc {
namespace {

// SEAL_GRANTED is paid for by the job that left the grant.
QuotaUse QuotaUseOf(const Job& job, const PrincipalId& principal) {
  QuotaUse use;
  use.principal = principal;
  switch (job.operation) {
    case Operation::kLogin:
    case Operation::kOpenPreauth:
      use[QuotaKind::kKdcLogins] = 1;
      use[QuotaKind::kPrincipalLogins] = 1;
      use[QuotaKind::kPrincipalFailures] = job.opens.empty() ? 0 : 1;
      break;
    case Operation::kOpenTicket:
      use[QuotaKind::kKdcOpens] = 1;
      break;
    case Operation::kReissueTicket:
      use[QuotaKind::kKdcOpens] = 1;
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

// Of a job that was computed. The KDC pays for the computing; a principal for what succeeded, and
// for each pre-auth that was no good: an attacker's are not counted as its logins.
QuotaUse ToGiveBack(const QuotaUse& taken, Verdict verdict) {
  QuotaUse back;
  back.principal = taken.principal;
  if (verdict != Verdict::kBadTag) {
    back[QuotaKind::kPrincipalFailures] = taken[QuotaKind::kPrincipalFailures];
  }
  if (verdict != Verdict::kOk) {
    back[QuotaKind::kPrincipalLogins] = taken[QuotaKind::kPrincipalLogins];
    back[QuotaKind::kPrincipalReissues] = taken[QuotaKind::kPrincipalReissues];
  }
  return back;
}

}  // namespace

// Once for a job, however often it is proposed.
Judgement JobEngine::Impl::TakeQuota(WaitingJob& waiting, BatchRecords& records) {
  if (!waiting.taken.empty()) return Ok();
  waiting.over.reset();
  const KeyRecord* client =
      waiting.job.client.has_value() ? records.Find(*waiting.job.client) : nullptr;
  const PrincipalId principal =
      client != nullptr ? client->info.principal_id : PrincipalOfTicket(waiting.job);
  const QuotaUse use = QuotaUseOf(waiting.job, principal);
  // A ticket's header names its principal by the id alone.
  const std::string name = client != nullptr
                               ? client->info.principal
                               : absl::StrCat("principal ", HandleText(principal));
  Judgement judgement = quotas_.Take(waiting.kdc.name, use, name, &waiting.over);
  if (judgement.ok()) waiting.taken = use;
  return judgement;
}

void JobEngine::Impl::GiveBackQuota(WaitingJob& waiting) {
  quotas_.GiveBack(waiting.kdc.name, std::exchange(waiting.taken, QuotaUse{}));
}

void JobEngine::Impl::SettleQuotas(const Ballot& ballot,
                                   const std::vector<Judgement>& judgements) {
  for (size_t i = 0; i < ballot.admitted.size(); ++i) {
    WaitingJob& waiting = *ballot.admitted[i];
    quotas_.GiveBack(waiting.kdc.name, ToGiveBack(waiting.taken, judgements[i].verdict));
    waiting.taken = QuotaUse{};
  }
}

}  // namespace mpckdc
