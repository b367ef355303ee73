// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/job_quotas.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/job/ticket_header.h"

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

// A user of another realm, and that realm: by the key between the realms and a number (ticket_header.h).
// What a header says is that realm's word, and so it counts for nobody of ours.
void CountForRealm(const PrincipalId& key, JobId user, QuotaUse* use) {
  ByteWriter realm(AsText(key).substr(0, 8)), one = realm;
  realm.Uint(0, 8);
  one.Uint(user, 8);
  use->realm.emplace();
  ByteReader(AsBytes(realm.Take())).Into(*use->realm);
  ByteReader(AsBytes(one.Take())).Into(use->principal);
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

// Whose tokens they are: of the client that the job names, or of whom its ticket says. `name` is for
// the text; a ticket's header names its principal by the id alone.
QuotaUse JobQuotas::UseOf(const Job& job, BatchRecords& records, std::string* name) const {
  const KeyRecord* client = job.client.has_value() ? records.Find(*job.client) : nullptr;
  if (client != nullptr) {
    QuotaUse use = UseOf(job, client->info.principal_id);
    // A KDC names as the client which of the principal's keys it likes. Guessed at is what is opened.
    const KeyRecord* opened = job.opens.empty() ? client : records.Find(job.opens[0].handle);
    if (opened != nullptr) use.first_owner = opened->first_owner();
    *name = client->info.principal;
    return use;
  }
  const KeyInfo* foreign = ForeignParent(job, records);
  if (foreign != nullptr) {
    QuotaUse use = UseOf(job, foreign->principal_id);
    CountForRealm(foreign->principal_id, ForeignUser(*foreign, job.opens[0].message), &use);
    *name = absl::StrCat("a user of ", foreign->principal);
    return use;
  }
  const TicketHeader header = HeaderOfTicket(job).value_or(TicketHeader());
  QuotaUse use = UseOf(job, header.principal);
  const bool of_realm = (header.origin_job & kForeignUserBit) != 0;
  if (of_realm) CountForRealm(header.principal, header.origin_job, &use);
  *name = absl::StrCat(of_realm ? "a user of another realm, by key of principal " : "principal ",
                       HandleText(header.principal));
  return use;
}

Judgement JobQuotas::Take(WaitingJob& waiting, BatchRecords& records) {
  if (!waiting.taken.empty()) return Ok();
  waiting.over.reset();
  std::string name;
  QuotaUse use = UseOf(waiting.job, records, &name);
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
