// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/steps.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/agree/confirm_view.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/job/operation_table.h"
#include "mpc-server/job/ticket_header.h"
#include "mpc-server/judge/output.h"
#include "mpc-server/share/deviation.h"

namespace mpckdc {

JobBatch::JobBatch(EngineState* state, PeerSession* session, std::unique_ptr<Ballot> ballot)
    : state_(*state),
      owned_ballot_(std::move(ballot)),
      ballot_(*owned_ballot_),
      rings_(session->RingsOf(ballot_.proposal.kind)),
      session_id_(session->party().session_id()),
      window_{ballot_.proposal.time, session->clock_skew} {}

absl::Status JobBatch::Begin() {
  report_.started = state_.Now();
  report_.agreed = report_.started - ballot_.proposal.time;
  RETURN_IF_ERROR(CheckNonceCount());
  AdmitJobs();
  rings_.rings.BeginBatch(ballot_.proposal.number);
  tag_keys_ = TagKeysOf(rings_.party());
  batch_.emplace(rings_.rings, rings_.blocks, rings_.powers, rings_.cts, work_, window_,
                 FixedChoices{.sbox = {},
                              .adder = {},
                              .protocol = ballot_.proposal.protocol,
                              .garbled_gcm = ballot_.proposal.of_gcm == CtsProtocol::kGarbled});
  report_.view = ViewOf(ballot_, FactsOf(work_));
  rings_.rings.SetContext(report_.view);
  return absl::OkStatus();
}

absl::Status JobBatch::Compute() {
  ConfirmView confirm(state_.party, report_.view);
  // The confirmation alone, without work.
  RETURN_IF_ERROR(SayIfTooSlowForTables(batch_->ComputeBlocks(confirm)));
  RETURN_IF_ERROR(batch_->CheckTags());
  RETURN_IF_ERROR(batch_->OpenTimestamps());
  return batch_->Verify();
}

absl::Status JobBatch::Finish(const absl::Status& computed) {
  report_.status = computed;
  if (computed.ok() && !batch_->verified()) {
    report_.status = absl::InternalError("a batch ended without the proof of its messages");
  }
  NoteDeviation(state_, computed, session_id_, ballot_.proposal.number);  // before any answer
  Report();
  const CtsProtocol protocol = ballot_.proposal.protocol;
  if (absl::c_any_of(admitted_,
                     [&](const WaitingJobPtr& job) { return IsDeep(job->load, protocol); })) {
    state_.deep_after = state_.Now() + limits::kDeepBatchPause * report_.computed;
  }
  const bool of_rounds = protocol == CtsProtocol::kReplicated;
  if (IsLong(ballot_.proposal.kind) && of_rounds && report_.rounds > 0) {
    state_.round_time = report_.computed / report_.rounds;
    state_.round_time_at = state_.Now();
  }
  if (report_.status.ok()) {
    JudgeJobs();
    // Only now is it sure that the three heard the same votes.
    std::move(refused_.begin(), refused_.end(), std::back_inserter(answers_));
  } else {
    // What they took from their quotas stays taken: a neighbour may have seen which tags are good.
    const Judgement why = Refuse(Verdict::kUnavailable, std::string(report_.status.message()));
    for (const WaitingJobPtr& job : admitted_) {
      answers_.push_back(BareAnswer(job, why));
      answers_.back().computed = true;
    }
  }
  ExpectReplies();
  state_.answers.RecordThenAnswer(std::move(answers_), ballot_.records, &report_);
  if (!report_.jobs.empty()) state_.observer->OnBatch(report_);
  return report_.status;
}

// The leader reserved as many nonces as the admitted jobs take.
absl::Status JobBatch::CheckNonceCount() const {
  size_t needed = 0;
  for (size_t i = 0; i < ballot_.agreed.size(); ++i) {
    if (ballot_.agreed[i].code == kVoteOk) needed += NoncesOfJob(ballot_.jobs[i]->job);
  }
  if (needed <= ballot_.proposal.nonces) return absl::OkStatus();
  const std::string text = absl::StrCat("agreement: the leader proposed ", ballot_.proposal.nonces,
                                        " nonces for jobs that take ", needed);
  if (state_.party == kLeader) return absl::InternalError(text);
  return Deviation(Suspects::One(kLeader), text);
}

// Takes the jobs that all three admit out of the queue. The others are refused, or tried again.
void JobBatch::AdmitJobs() {
  uint64_t next_nonce = 0;
  const auto take_nonce = [&] {
    return AdvanceNonce(ballot_.proposal.first_nonce, next_nonce++);
  };
  for (size_t i = 0; i < ballot_.agreed.size(); ++i) {
    const WaitingJobPtr& job = ballot_.jobs[i];
    const Agreed& agreed = ballot_.agreed[i];
    if (agreed.code == kVoteOk) {
      {
        const absl::MutexLock lock(&state_.waiting.mu);
        state_.waiting.jobs.Remove(*job);
      }
      admitted_.push_back(job);
      work_.push_back(job->opens_first ? OpensOf(*job, ballot_.records, /*opens_only=*/true)
                                       : WorkOf(*job, ballot_.records, take_nonce,
                                                [&](const SealPart& seal, const KeyInfo& key) {
                                                  return HeaderOf(*job, seal, key);
                                                }));
      report_.waited = std::max(report_.waited, report_.started - job->received);
    } else if (job != nullptr && agreed.code == kVoteMissing) {
      const absl::MutexLock lock(&state_.waiting.mu);
      state_.waiting.jobs.TryAgain(*job, state_.Now());
    } else if (job != nullptr) {
      state_.quotas.GiveBack(*job);
      refused_.push_back(
          BareAnswer(job, Refuse(static_cast<Verdict>(agreed.code), ballot_.details[i])));
    }
  }
  assert(next_nonce <= ballot_.proposal.nonces);  // CheckNonceCount
}

// The header of a ticket under a gcm key. The same at the three servers: it follows from the job,
// the records' principals and the batch's agreed time.
std::string JobBatch::HeaderOf(const WaitingJob& waiting, const SealPart& seal,
                               const KeyInfo& key) {
  const Job& job = waiting.job;
  if (seal.usage != kUsageTicket || !FindEnctype(key.enctype)->is_gcm()) return "";
  if (job.operation == Operation::kReissueTicket) {
    const OpenPart& parent = job.opens[0];
    const KeyInfo& parents = *ballot_.records.FindInfo(parent.handle);
    const JobId user = ForeignUser(parents, parent.message);
    if (!FindEnctype(parents.enctype)->is_gcm()) {
      return EncodeTicketHeader(ForeignTicketHeader(parents, user, ballot_.proposal.time,
                                                    state_.options.max_renewable_life));
    }
    return EncodeTicketHeader(ReissuedTicketHeader(
        *DecodeTicketHeader(ParseMessage(parent.message)->header), parents, user));
  }
  const PrincipalId& principal = ballot_.records.FindInfo(*job.client)->principal_id;
  absl::Time origin = ballot_.proposal.time;
  JobId origin_job = job.id;
  if (job.operation == Operation::kSealGranted) {
    const Grant* grant = state_.grants.Find({waiting.kdc, job.grant}, absl::InfinitePast());
    assert(grant != nullptr);
    origin = grant->origin;
    origin_job = grant->origin_job;
  }
  return EncodeTicketHeader(
      NewTicketHeader(principal, origin_job, origin, state_.options.max_renewable_life));
}

void JobBatch::AddGrantUses(GrantUses* uses) const {
  for (const WaitingJobPtr& waiting : admitted_) {
    if (waiting->job.operation != Operation::kSealGranted) continue;
    GrantUse& use = (*uses)[{waiting->kdc, waiting->job.grant}];
    use = use + UseOf(waiting->job);
  }
}

void JobBatch::Report() {
  report_.session = session_id_;
  report_.time = ballot_.proposal.time;
  report_.batch = ballot_.proposal.number;
  report_.computed = state_.Now() - report_.started;
  report_.aes_blocks = batch_->aes_blocks();
  report_.rounds = batch_->cost().rounds;
  report_.bytes = batch_->cost().bytes_to_next;
  if (IsLong(ballot_.proposal.kind)) report_.protocol = ballot_.proposal.protocol;
  const bool garbled_gcm = ballot_.proposal.of_gcm == CtsProtocol::kGarbled;
  if (garbled_gcm) report_.protocol = CtsProtocol::kGarbled;
  state_.status.Update([&](EngineStatus& status) {
    if (!work_.empty() && report_.protocol.has_value()) {
      status.protocol = report_.protocol;
      ++(*report_.protocol == CtsProtocol::kGarbled ? status.garbled_batches
                                                    : status.replicated_batches);
    }
    if (!work_.empty()) {
      ++status.batches;
      status.waited += report_.waited;
      status.agreed += report_.agreed;
      status.computed += report_.computed;
    }
    status.aes_blocks += report_.aes_blocks;
    status.rounds += report_.rounds;
  });
}

void JobBatch::JudgeJobs() {
  for (size_t i = 0; i < work_.size(); ++i) {
    work_[i].goes_on = admitted_[i]->opens_first && work_[i].AllOpensGood();
  }
  std::vector<Judgement> judgements =
      state_.judge.Decide(work_, ballot_.proposal.time, state_.Now());
  OutputMasks masks(rings_.party().output_keys());
  const auto seals = std::make_shared<SealBatch>(SealBatch{*std::move(tag_keys_), {}});
  seals->masks.reserve(ballot_.proposal.nonces);  // each seal takes one
  seals->powers_bytes = batch_->kept_bytes();
  answers_.reserve(work_.size() + refused_.size());
  for (size_t i = 0; i < work_.size(); ++i) {
    if (work_[i].goes_on) {
      PutBack(admitted_[i]);
      continue;
    }
    state_.quotas.Settle(*admitted_[i], judgements[i].verdict);
    Answer answer = BareAnswer(admitted_[i], std::move(judgements[i]));
    answer.computed = true;
    if (answer.result.judgement.ok()) {
      answer.result = OutputOf(masks, ballot_.proposal.number, *batch_, work_[i]);
      answer.pending = PendingOf(*batch_, work_[i], *seals);
      answer.pending.batch = seals;
    }
    answers_.push_back(std::move(answer));
  }
}

// Its turn comes again, with all of its parts: nothing was judged yet but that its messages are
// good.
void JobBatch::PutBack(const WaitingJobPtr& job) {
  job->proven = true;
  job->measured = false;
  Measure(*job, ballot_.records);
  const absl::MutexLock lock(&state_.waiting.mu);
  state_.waiting.jobs.Add(job);
}

// The replies of many logins come back within moments of each other, and a batch that starts
// without them makes all of them wait for its end.
void JobBatch::ExpectReplies() {
  int64_t replies = 0;
  for (const Answer& answer : answers_) {
    const Job& job = answer.job->job;
    const bool has_reply =
        std::any_of(job.seals.begin(), job.seals.end(),
                    [](const SealPart& seal) { return seal.usage == kUsageAsReply; });
    replies += answer.result.judgement.ok() && job.operation == Operation::kLogin && !has_reply;
  }
  if (replies == 0) return;
  state_.replies_until = state_.Now() + std::min({replies * limits::kReplyReturn,
                                                  report_.computed / 2, limits::kMaxReplyWait});
}

}  // namespace mpckdc
