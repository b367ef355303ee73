// SPDX-License-Identifier: Apache-2.0
//
// A batch of jobs: what this server thinks of each before it runs, running it, answering.
#include <algorithm>
#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/agree/confirm_view.h"
#include "mpc-server/agree/engine_core.h"
#include "mpc-server/job/operation_table.h"
#include "mpc-server/job/tgt_header.h"
#include "mpc-server/job/validate.h"
#include "mpc-server/judge/output.h"

namespace mpckdc {
namespace {

// The handles that a job names.
std::vector<Handle> HandlesOf(const Job& job) {
  std::vector<Handle> handles;
  if (job.client.has_value()) handles.push_back(*job.client);
  for (const OpenPart& part : job.opens) handles.push_back(part.handle);
  for (const SealPart& part : job.seals) handles.push_back(part.handle);
  for (const MakeMacPart& part : job.make_macs) handles.push_back(part.handle);
  for (const VerifyMacPart& part : job.verify_macs) handles.push_back(part.handle);
  return handles;
}

// A key's facts that shape the batch or enter a header. The gate is left out: each server judges by
// its own.
void AppendFacts(const KeyInfo& info, std::string* out) {
  out->append(reinterpret_cast<const char*>(info.handle.data()), info.handle.size());
  out->append(reinterpret_cast<const char*>(info.principal_id.data()), info.principal_id.size());
  absl::StrAppend(out, info.enctype, ",", static_cast<int>(info.key_class), ";");
}

std::string FactsOf(const std::vector<JobWork>& work) {
  std::string facts;
  for (const JobWork& job : work) {
    if (job.client != nullptr) AppendFacts(*job.client, &facts);
    for (const OpenWork& part : job.opens) AppendFacts(*KeyOf(part.form).info, &facts);
    for (const SealWork& part : job.seals) {
      AppendFacts(*KeyOf(part).info, &facts);
      if (const auto* gcm = std::get_if<GcmSeal>(&part)) facts.append(gcm->header);
    }
    for (const MakeMacWork& part : job.make_macs) AppendFacts(*KeyOf(part).info, &facts);
    for (const VerifyMacWork& part : job.verify_macs) AppendFacts(*KeyOf(part.form).info, &facts);
  }
  return facts;
}

// What an audit line says of a job, but for the client's principal.
BatchJob LineOf(const WaitingJob& waiting, const Judgement& judgement) {
  const Job& job = waiting.job;
  return {waiting.kdc,    job.id,   job.operation, PrincipalOfTicket(job),
          waiting.digest, judgement};
}

void NameClient(const std::optional<Handle>& client, BatchRecords& records, BatchJob* line) {
  if (!client.has_value()) return;
  const KeyRecord* record = records.Find(*client);
  line->principal = record != nullptr ? record->info.principal_id : PrincipalId{};
}

// Whether a server judges a time in the job, or sets one.
bool DependsOnClock(Operation operation) {
  return operation != Operation::kMakeChecksum && operation != Operation::kVerifyChecksum;
}

template <class Part>
AnyKeyUse UseOfKey(BatchRecords& records, const Part& part) {
  const KeyRecord* record = records.Find(part.handle);
  assert(record != nullptr && record->FindUsage(part.usage) != nullptr);
  return UseOf(record->info, *record->FindUsage(part.usage));
}

}  // namespace

const absl::StatusOr<KeyRecord>& BatchRecords::Get(const Handle& handle) {
  const auto [it, first] = records_.try_emplace(handle);
  if (first) it->second = store_->Get(handle);
  return it->second;
}

const KeyRecord* BatchRecords::Find(const Handle& handle) {
  const absl::StatusOr<KeyRecord>& record = Get(handle);
  return record.ok() ? &*record : nullptr;
}

// ---- Opinions ----

// Records are there, the table's rules hold, the grant covers it, the clock can be trusted, a nonce
// can be had, no quota is used up.
Judgement JobEngine::Impl::OpinionOnJob(WaitingJob& waiting, BatchRecords& records,
                                        GrantsInBatch* granted, const std::string& no_nonces) {
  const Job& job = waiting.job;
  const absl::Time now = clock_->Now();
  if (waiting.deadline <= now) return Refuse(Verdict::kDeadline, "not started before its deadline");
  if (!unrecorded_.empty()) return Refuse(Verdict::kUnavailable, unrecorded_);
  for (const Handle& handle : HandlesOf(job)) {
    const absl::Status& read = records.Get(handle).status();
    if (!read.ok() && !absl::IsNotFound(read)) {
      return Refuse(Verdict::kUnavailable, std::string(read.message()));
    }
  }
  const auto info_of = [&records](const Handle& handle) -> const KeyInfo* {
    const KeyRecord* record = records.Find(handle);
    return record != nullptr ? &record->info : nullptr;
  };
  Judgement keys = CheckKeys(job, info_of);
  if (!keys.ok()) return keys;
  if (!clock_trouble_.empty() && DependsOnClock(job.operation)) {
    return Refuse(Verdict::kUnavailable, clock_trouble_);
  }
  if (!no_nonces.empty() && NoncesOfJob(job) > 0) {
    return Refuse(Verdict::kUnavailable, no_nonces);
  }
  if (job.operation == Operation::kSealGranted) return CheckGrant(waiting, records, granted, now);
  return TakeQuota(waiting, records);
}

Judgement JobEngine::Impl::CheckGrant(const WaitingJob& waiting, BatchRecords& records,
                                      GrantsInBatch* granted, absl::Time now) {
  const Job& job = waiting.job;
  GrantUse& already = (*granted)[{waiting.kdc, job.grant}];
  const PrincipalId& principal = records.Find(*job.client)->info.principal_id;
  Judgement grant = grants_.Check(waiting.kdc, job, principal, already, now);
  if (grant.ok()) already = already + UseOf(job);
  return grant;
}

// ---- Proposing and voting ----

// Empty, or why no nonce of the proposal may be used.
std::string JobEngine::Impl::ReserveNonces(PeerSession& session, const Proposal& proposal) {
  if (proposal.nonces == 0) return "";
  if (session.sealing_stopped.empty() && clock_trouble_.empty()) {
    const absl::Status reserved =
        nonces_.Reserve(proposal.first_nonce, proposal.nonces, clock_->Now());
    nonce_trouble_ =
        reserved.ok() ? "" : absl::StrCat("cannot reserve nonces: ", reserved.message());
  }
  UpdateDegraded(session);
  return degraded_;
}

void JobEngine::Impl::PickJobs(PeerSession& session, Ballot& ballot) {
  ballot.proposal.kind = BatchKind::kJobs;
  std::vector<WaitingJobPtr> ready;
  const absl::Time now = clock_->Now();
  {
    const absl::MutexLock lock(&mu_);
    ready = queue_.Ready(now, options_.max_jobs, limits::kMaxBatchBlocks);
  }
  if (ready.empty() || StartOf(*ready[0], now) > now) return;  // the heartbeat
  started_at_ = now;
  Proposal& proposal = ballot.proposal;
  for (const WaitingJobPtr& job : ready) {
    proposal.nonces += static_cast<uint32_t>(NoncesOfJob(job->job));
  }
  NoteRecorder();
  proposal.first_nonce = nonces_.Propose(now);
  const std::string no_nonces = ReserveNonces(session, proposal);
  GrantsInBatch granted;
  quotas_.Advance(now);
  for (const WaitingJobPtr& job : ready) {
    Judgement opinion = OpinionOnJob(*job, ballot.records, &granted, no_nonces);
    proposal.entries.push_back({job->group, job->job.id, job->digest, CodeOf(opinion.verdict)});
    ballot.jobs.push_back(job);
    ballot.details.push_back(std::move(opinion.detail));
  }
  if (!no_nonces.empty()) proposal.nonces = 0;
}

void JobEngine::Impl::WaitForLateJobs(const Ballot& ballot) {
  const absl::Time until = clock_->Now() + kLateJobWait;
  const absl::MutexLock lock(&mu_);
  const auto all_here = [this, &ballot]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    for (const ProposalEntry& entry : ballot.proposal.entries) {
      if (!queue_.IdTaken(entry.group, entry.id)) return false;
    }
    return true;
  };
  while (!all_here() && clock_->Now() < until && !stopping()) executor_->Wait(&mu_, until);
}

void JobEngine::Impl::OpinionOnJobs(PeerSession& session, Ballot& ballot) {
  WaitForLateJobs(ballot);
  NoteRecorder();
  const Proposal& proposal = ballot.proposal;
  const std::string no_nonces = ReserveNonces(session, proposal);
  GrantsInBatch granted;
  quotas_.Advance(clock_->Now());
  size_t blocks = 0;
  for (size_t i = 0; i < proposal.entries.size(); ++i) {
    const ProposalEntry& entry = proposal.entries[i];
    Judgement opinion;
    {
      const absl::MutexLock lock(&mu_);
      ballot.jobs[i] = queue_.Find(entry.group, entry.id);
      if (ballot.jobs[i] == nullptr && !queue_.IdTaken(entry.group, entry.id)) continue;
      if (ballot.jobs[i] == nullptr) {
        opinion = Refuse(queue_.Expired(entry.group, entry.id) ? Verdict::kDeadline
                                                               : Verdict::kUnavailable,
                         "this server has answered the job already");
      }
    }
    const WaitingJobPtr& job = ballot.jobs[i];
    if (job != nullptr && job->digest != entry.digest) {
      opinion = Refuse(Verdict::kInconsistent, "the servers did not receive the same job");
    } else if (job != nullptr) {
      opinion = OpinionOnJob(*job, ballot.records, &granted, no_nonces);
      blocks += job->blocks;
    }
    if (opinion.ok() && blocks > 2 * limits::kMaxBatchBlocks) {
      opinion = Refuse(Verdict::kUnavailable, "the leader proposed too large a batch");
    }
    ballot.codes[i] = CodeOf(opinion.verdict);
    ballot.details[i] = std::move(opinion.detail);
  }
}

// ---- From agreed entries to work ----

// The header of a ticket under a tgs key; empty under a service key. The same at the three servers:
// it follows from the job, the records' principal ids and the batch's agreed time.
std::string JobEngine::Impl::HeaderOf(const WaitingJob& waiting, const SealPart& part,
                                      Ballot& ballot) {
  BatchRecords& records = ballot.records;
  const Job& job = waiting.job;
  const KeyInfo& key = records.Find(part.handle)->info;
  if (part.usage != kUsageTicket || key.key_class != KeyClass::kTgs) return "";
  if (job.operation == Operation::kReissueTicket) {
    return std::string(ParseMessage(job.opens[0].message)->header);
  }
  const PrincipalId& principal = records.Find(*job.client)->info.principal_id;
  absl::Time origin = ballot.proposal.time;
  JobId origin_job = job.id;
  if (job.operation == Operation::kSealGranted) {
    const Grant* grant = grants_.Find({waiting.kdc, job.grant}, absl::InfinitePast());
    assert(grant != nullptr);
    origin = grant->origin;
    origin_job = grant->origin_job;
  }
  return EncodeTgtHeader(NewTgtHeader(principal, origin_job, origin, options_.max_renewable_life));
}

JobWork JobEngine::Impl::WorkOf(const WaitingJobPtr& waiting, Ballot& ballot,
                                uint64_t* next_nonce) {
  const Job& job = waiting->job;
  const auto take_nonce = [&] {
    return AdvanceNonce(ballot.proposal.first_nonce, (*next_nonce)++);
  };
  JobWork work;
  work.received = waiting.get();
  if (job.client.has_value()) work.client = &ballot.records.Find(*job.client)->info;
  BatchRecords& records = ballot.records;
  for (const OpenPart& part : job.opens) work.AddOpen(UseOfKey(records, part), part);
  for (const SealPart& part : job.seals) {
    work.AddSeal(UseOfKey(records, part), part, take_nonce(), HeaderOf(*waiting, part, ballot));
  }
  for (const MakeMacPart& part : job.make_macs) {
    work.AddMakeMac(UseOfKey(records, part), part, take_nonce());
  }
  for (const VerifyMacPart& part : job.verify_macs) {
    work.AddVerifyMac(UseOfKey(records, part), part);
  }
  return work;
}

// The leader reserved as many nonces as the admitted jobs take.
absl::Status JobEngine::Impl::CheckNonceCount(const Ballot& ballot) {
  size_t needed = 0;
  for (size_t i = 0; i < ballot.agreed.size(); ++i) {
    if (ballot.agreed[i].code == kVoteOk) needed += NoncesOfJob(ballot.jobs[i]->job);
  }
  if (needed <= ballot.proposal.nonces) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("agreement: the leader proposed ",
                                          ballot.proposal.nonces, " nonces for jobs that take ",
                                          needed));
}

// Takes the jobs that all three admit out of the queue. The others: to be answered once the three
// have confirmed that they heard the same votes, or tried again.
std::vector<JobWork> JobEngine::Impl::AdmitJobs(Ballot& ballot, std::vector<Refused>* refused) {
  std::vector<JobWork> work;
  uint64_t next_nonce = 0;
  for (size_t i = 0; i < ballot.agreed.size(); ++i) {
    const WaitingJobPtr& job = ballot.jobs[i];
    const Agreed& agreed = ballot.agreed[i];
    if (agreed.code == kVoteOk) {
      const absl::MutexLock lock(&mu_);
      queue_.Remove(*job);
      ballot.admitted.push_back(job);
      work.push_back(WorkOf(job, ballot, &next_nonce));
    } else if (job != nullptr && agreed.code == kVoteMissing) {
      const absl::MutexLock lock(&mu_);
      const int doublings = std::min(job->misses++, 10);
      job->next_try = clock_->Now() + std::min(kFirstRetry * (1 << doublings), kLastRetry);
    } else if (job != nullptr) {
      GiveBackQuota(*job);
      refused->push_back({job, Refuse(static_cast<Verdict>(agreed.code), ballot.details[i])});
    }
  }
  assert(next_nonce <= ballot.proposal.nonces);  // CheckNonceCount
  return work;
}

// ---- Running ----

absl::Status JobEngine::Impl::Compute(const Digest& view, BatchWork& batch) {
  ConfirmView confirm(view);
  absl::Status status = batch.ComputeBlocks(confirm);  // the confirmation alone, without work
  if (status.ok()) status = batch.CheckTags();
  if (status.ok()) status = batch.OpenTimestamps();
  return status;
}

std::vector<JobEngine::Impl::Answered> JobEngine::Impl::Results(
    PeerSession& session, Ballot& ballot, std::vector<JobWork>& work, BatchWork& batch,
    TagMaskKeys keys) {
  std::vector<Judgement> judgements =
      judge_.Decide(work, ballot.proposal.time, clock_->Now());
  SettleQuotas(ballot, judgements);
  OutputMasks masks = session.party().output_masks();
  const auto seals = std::make_shared<SealBatch>(SealBatch{std::move(keys), {}});
  seals->masks_a.reserve(ballot.proposal.nonces);  // each seal takes one
  std::vector<Answered> answers;
  answers.reserve(work.size());
  for (size_t i = 0; i < work.size(); ++i) {
    const WaitingJobPtr& job = ballot.admitted[i];
    Answered answer{job, {job->job.id, std::move(judgements[i]), {}, {}, {}}, {}};
    if (answer.result.judgement.ok()) {
      answer.result = OutputOf(masks, ballot.proposal.number, batch, work[i]);
      answer.pending = PendingOf(batch, work[i], *seals);
      answer.pending.batch = seals;
    }
    answers.push_back(std::move(answer));
  }
  return answers;
}

// Nothing leaves this server that is not written down.
void JobEngine::Impl::RecordAndAnswer(std::vector<Answered> answers, BatchRecords& records,
                                      BatchReport* report) {
  for (const Answered& answer : answers) {
    report->jobs.push_back(LineOf(*answer.job, answer.result.judgement));
    NameClient(answer.job->job.client, records, &report->jobs.back());
  }
  absl::Status recorded;
  if (recorder_ != nullptr && !answers.empty()) recorded = recorder_->Record(*report);
  if (!recorded.ok()) NoteRecorder();
  const absl::Time now = clock_->Now();
  for (size_t i = 0; i < answers.size(); ++i) {
    Answered& answer = answers[i];
    if (!recorded.ok() && answer.result.judgement.ok()) {
      Judgement why = Refuse(Verdict::kUnavailable, std::string(recorded.message()));
      report->jobs[i].judgement = why;
      answer.result = {answer.job->job.id, std::move(why), {}, {}, {}};
      answer.pending = {};
    }
    if (answer.pending.waiting) {
      pending_.Add(answer.job->kdc, answer.job->job.id, std::move(answer.pending),
                   now + limits::kPendingSealLife);
    }
    Finish(answer.job, std::move(answer.result));
  }
}

// Keeps the status in step with what the recorder says of itself.
void JobEngine::Impl::NoteRecorder() {
  if (recorder_ == nullptr) return;
  const std::string why(recorder_->Ready().message());
  if (why == unrecorded_) return;
  unrecorded_ = why;
  const absl::MutexLock lock(&mu_);
  status_.unrecorded = why;
}

void JobEngine::Impl::KeepUnbatched(const WaitingJob& job, const Judgement& why) {
  if (recorder_ == nullptr) return;
  if (unbatched_.size() < limits::kMaxUnbatchedJobs) {
    unbatched_.emplace_back(job.job.client, LineOf(job, why));
  } else {
    ++unbatched_left_out_;
  }
}

void JobEngine::Impl::RecordUnbatched() {
  std::vector<std::pair<std::optional<Handle>, BatchJob>> jobs;
  uint64_t left_out = 0;
  {
    const absl::MutexLock lock(&mu_);
    jobs.swap(unbatched_);
    std::swap(left_out, unbatched_left_out_);
  }
  if (recorder_ == nullptr || jobs.empty()) return;
  BatchRecords records(store_);
  std::vector<BatchJob> lines;
  for (auto& [client, line] : jobs) {
    NameClient(client, records, &line);
    lines.push_back(std::move(line));
  }
  recorder_->RecordUnbatched(lines, left_out);
}

// The replies of many logins come back within moments of each other, and a batch that starts without
// them makes all of them wait for its end.
void JobEngine::Impl::ExpectReplies(const std::vector<Answered>& answers,
                                    absl::Duration computed) {
  int64_t replies = 0;
  for (const Answered& answer : answers) {
    const Job& job = answer.job->job;
    const bool has_reply =
        std::any_of(job.seals.begin(), job.seals.end(),
                    [](const SealPart& seal) { return seal.usage == kUsageAsReply; });
    replies += answer.result.judgement.ok() && job.operation == Operation::kLogin && !has_reply;
  }
  const absl::Duration wait =
      std::min({replies * limits::kReplyReturn, computed / 2, limits::kMaxReplyWait});
  replies_until_ = clock_->Now() + wait;
}

absl::Status JobEngine::Impl::RunJobs(PeerSession& session, Ballot& ballot) {
  BatchReport report;
  report.started = clock_->Now();
  report.agreed = report.started - ballot.proposal.time;
  const absl::Status enough = CheckNonceCount(ballot);
  if (!enough.ok()) return enough;
  std::vector<Refused> refused;
  std::vector<JobWork> work = AdmitJobs(ballot, &refused);
  session.rings->BeginBatch(ballot.proposal.number);
  TagMaskKeys keys = DrawTagMaskKeys(session.party());
  BatchWork batch(*session.rings, session.blocks, session.powers, *session.cts, work);
  for (const JobWork& job : work) {
    report.waited = std::max(report.waited, report.started - job.received->received);
  }
  report.session = session.party().session_id();
  report.batch = ballot.proposal.number;
  report.view = ViewOf(ballot, FactsOf(work));
  report.status = Compute(report.view, batch);
  report.computed = clock_->Now() - report.started;
  report.aes_blocks = batch.aes_blocks();
  report.rounds = batch.cost().rounds;
  report.bytes = batch.cost().bytes_to_next;
  {
    const absl::MutexLock lock(&mu_);
    if (!work.empty()) ++status_.batches;
    status_.aes_blocks += report.aes_blocks;
    status_.rounds += report.rounds;
  }
  std::vector<Answered> answers;
  const auto refuse = [&answers](const WaitingJobPtr& job, Judgement why) {
    answers.push_back({job, {job->job.id, std::move(why), {}, {}, {}}, {}});
  };
  if (report.status.ok()) {
    answers = Results(session, ballot, work, batch, std::move(keys));
    for (Refused& r : refused) refuse(r.job, std::move(r.why));
  } else {
    // What they took from their quotas stays taken: a neighbour may have seen which tags are good.
    for (const WaitingJobPtr& job : ballot.admitted) {
      refuse(job, Refuse(Verdict::kUnavailable, std::string(report.status.message())));
    }
  }
  ExpectReplies(answers, report.computed);
  RecordAndAnswer(std::move(answers), ballot.records, &report);
  if (observer_ != nullptr && !report.jobs.empty()) observer_->OnBatch(report);
  return report.status;
}

}  // namespace mpckdc
