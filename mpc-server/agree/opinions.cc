// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/steps.h"

#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/job/validate.h"

namespace mpckdc {

std::vector<Handle> HandlesOf(const Job& job) {
  std::vector<Handle> handles;
  const auto add = [&handles](const auto& parts) {
    for (const auto& part : parts) {
      if (!absl::c_linear_search(handles, part.handle)) handles.push_back(part.handle);
    }
  };
  if (job.client.has_value()) handles.push_back(*job.client);
  add(job.opens);
  add(job.seals);
  add(job.make_macs);
  add(job.verify_macs);
  return handles;
}

void PrefetchKeys(absl::Span<const WaitingJobPtr> jobs, BatchRecords& records) {
  std::vector<Handle> handles;
  for (const WaitingJobPtr& job : jobs) {
    if (job == nullptr) continue;
    const std::vector<Handle> of_job = HandlesOf(job->job);
    handles.insert(handles.end(), of_job.begin(), of_job.end());
  }
  records.Prefetch(handles);
}

namespace {

// A key of krbtgt or of a service that is older than the usage (MayCarry).
Judgement CheckUsages(const Job& job, BatchRecords& records) {
  Judgement j = Ok();
  const auto all = [&](const auto& parts) {
    for (const auto& part : parts) {
      const KeyRecord& record = *records.Find(part.handle);
      if (!j.ok() || record.FindUsage(part.usage) != nullptr) continue;
      j = Refuse(Verdict::kRefused,
                 absl::StrCat("key ", HandleText(part.handle), " of ", record.info.principal,
                              " is from before key usage ", part.usage,
                              " (authentication indicators): mpc-admin rotate-krbtgt, or randkey, "
                              "draws one that has it"));
    }
  };
  all(job.opens);
  all(job.seals);
  all(job.make_macs);
  all(job.verify_macs);
  return j;
}

Judgement CheckKeysOf(const EngineState& state, const Job& job, BatchRecords& records) {
  Judgement j = CheckKeys(job, state.meta.identity.realm, [&records](const Handle& handle) {
    return records.FindInfo(handle);
  });
  return j.ok() ? CheckUsages(job, records) : j;
}

// What identifies a pre-auth is public, so one that may not be presented again costs no
// computation. The judge looks again: another batch may be computing the same one now.
Judgement CheckNew(const WaitingJob& waiting, const ReplayCache& replays, BatchRecords& records,
                   absl::Time now) {
  const Job& job = waiting.job;
  for (const OpenPart& open : job.opens) {
    if (open.usage != kUsagePreauth) continue;
    const KeyRecord& key = *records.Find(open.handle);  // CheckKeys
    const Enctype& enctype = *FindEnctype(key.info.enctype);
    const Nonce id = enctype.is_gcm() ? ParseMessage(open.message)->nonce
                                      : ReplayIdOf(*ParseCtsMessage(enctype, open.message));
    return replays.Look(key.replay_handle(), id,
                        ClaimantOf(waiting.kdc, key.info.principal_id), UseOf(job), now);
  }
  return Ok();
}

// A login by certificate: what was found when it came, and what the clock and the records say now.
// Before anything is computed; the judge looks again.
Judgement CheckCertificateOf(const EngineState& state, const WaitingJob& waiting,
                             BatchRecords& records, absl::Time now) {
  const Job& job = waiting.job;
  if (!job.client.has_value()) return Ok();
  const KeyInfo& client = *records.FindInfo(*job.client);
  if (!ShowsCertificate(job, client)) return Ok();
  const auto ticket = absl::c_find_if(
      job.seals, [](const SealPart& seal) { return seal.usage == kUsageTicket; });  // CheckShape
  Judgement shown = CheckCertificate(waiting.certificate, client.principal,
                                     records.FindInfo(ticket->handle)->principal, now,
                                     state.options.clock_skew);
  if (!shown.ok()) return shown;
  return state.replays.Look(ReplayHandleOf(client.principal_id), waiting.certificate.id,
                            ClaimantOf(waiting.kdc), UseOf(job), now);
}

// A key that the store cannot read now: later it may.
absl::Status UnreadKey(const Job& job, BatchRecords& records) {
  for (const Handle& handle : HandlesOf(job)) {
    const absl::Status& read = records.Get(handle).status();
    if (!read.ok() && !absl::IsNotFound(read)) return read;
  }
  return absl::OkStatus();
}

// For whoever hands keys over (hand_over.h).
void NoteHandles(EngineState& state, const Job& job, BatchRecords& records) {
  const std::vector<Handle> handles = HandlesOf(job);
  state.recent.Note(handles);
  if (!state.store->Epoch().receiving) return;
  for (const Handle& handle : handles) {
    if (absl::IsUnavailable(records.Get(handle).status())) state.wanted.Note(handle);
  }
}

// Whether a server judges a time in the job, or sets one.
bool DependsOnClock(Operation operation) {
  return operation != Operation::kMakeChecksum && operation != Operation::kVerifyChecksum;
}

}  // namespace

Judgement LookAt(EngineState& state, WaitingJob& waiting, BatchRecords& records) {
  const Job& job = waiting.job;
  if (!UnreadKey(job, records).ok()) return Ok();
  Judgement keys = CheckKeysOf(state, job, records);
  if (!keys.ok()) return keys;
  Judgement fresh = CheckNew(waiting, state.replays, records, state.Now());
  if (fresh.ok()) fresh = CheckCertificateOf(state, waiting, records, state.Now());
  if (!fresh.ok() || job.operation == Operation::kSealGranted) return fresh;
  return state.quotas.Take(waiting, records);
}

Opinions::Opinions(EngineState* state, Ballot* ballot)
    : state_(*state),
      records_(ballot->records),
      no_nonces_(state->sealing.Reserve(ballot->proposal.first_nonce, ballot->proposal.nonces,
                                        state->Now())) {
  state_.answers.CheckRecorder();
  state_.quotas.Advance(state_.Now());
  if (state_.long_ring.busy()) state_.long_ring.run()->AddGrantUses(&granted_);
}

// Records are there, the table's rules hold, the clock can be trusted, a nonce can be had, the
// grant covers it or no quota is used up.
Judgement Opinions::On(WaitingJob& waiting) {
  const Job& job = waiting.job;
  const absl::Time now = state_.Now();
  if (waiting.deadline <= now) return Refuse(Verdict::kDeadline, "not started before its deadline");
  const std::string& unrecorded = state_.answers.unrecorded();
  if (!unrecorded.empty()) return Refuse(Verdict::kUnavailable, unrecorded);
  NoteHandles(state_, job, records_);
  const absl::Status unread = UnreadKey(job, records_);
  if (!unread.ok()) return Refuse(Verdict::kUnavailable, std::string(unread.message()));
  Judgement keys = CheckKeysOf(state_, job, records_);
  if (!keys.ok()) return keys;
  const std::string& clocks = state_.clocks.trouble();
  if (!clocks.empty() && DependsOnClock(job.operation)) {
    return Refuse(Verdict::kUnavailable, clocks);
  }
  if (!no_nonces_.empty() && NoncesOfJob(job) > 0) {
    return Refuse(Verdict::kUnavailable, no_nonces_);
  }
  Judgement fresh = CheckNew(waiting, state_.replays, records_, now);
  if (fresh.ok()) fresh = CheckCertificateOf(state_, waiting, records_, now);
  if (!fresh.ok()) return fresh;
  if (job.operation == Operation::kSealGranted) return CheckGrant(waiting, now);
  return state_.quotas.Take(waiting, records_);
}

Judgement Opinions::CheckGrant(const WaitingJob& waiting, absl::Time now) {
  const Job& job = waiting.job;
  GrantUse& already = granted_[{waiting.kdc, job.grant}];
  const PrincipalId& principal = records_.FindInfo(*job.client)->principal_id;
  Judgement grant = state_.grants.Check(waiting.kdc, job, principal, already, now);
  if (grant.ok()) already = already + UseOf(job);
  return grant;
}

}  // namespace mpckdc
