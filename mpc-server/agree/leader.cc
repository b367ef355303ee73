// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <utility>

#include "mpc-server/agree/steps.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc {
namespace {

bool IsShort(const WaitingJob& job) { return job.length != JobLength::kLong; }  // or not measured

}  // namespace

absl::StatusOr<bool> Leader::Propose(PeerSession& session, Ballot& ballot) {
  if (!WaitForWork()) return false;
  // After a jump of the clock both peers' clocks are heard first, since it takes two to suspect
  // one (ClockWatch). The clock may jump between the two votes on one proposal.
  if (state_.clocks.HeardBoth(state_.Now())) {
    ProposeWork(ballot);
  }
  if (state_.store->passed()) return EpochPassed();
  RETURN_IF_ERROR(SendProposal(session, ballot));
  return true;
}

// Keys and jobs take turns: a list of keys to verify takes many batches, and logins of the long
// ring wait.
void Leader::ProposeWork(Ballot& ballot) {
  const bool is_free = !state_.long_ring.busy();
  if (is_free && !last_was_keys_) {
    last_was_keys_ = ProposeKeyRound(state_, protocol_, ballot);
    if (last_was_keys_) return;
  }
  ProposeJobs(ballot);
  if (is_free) {
    last_was_keys_ = ballot.jobs.empty() && ProposeKeyRound(state_, protocol_, ballot);
  }
}

// True when there is something to propose, or a heartbeat is due; false when stopping, or when
// something is to be done before.
bool Leader::WaitForWork() {
  while (!state_.stopping()) {
    const absl::Time now = state_.Now();
    state_.answers.FailExpired(now);
    FailExpiredKeyRounds(state_, now);
    WaitingWork& waiting = state_.waiting;
    const absl::MutexLock lock(&waiting.mu);
    if (state_.long_ring.Computed()) return false;
    const absl::Time start = NextStart(now);
    // A clock that was set back must not make the leader fall silent.
    const bool heartbeat = now >= heartbeat_at_ || heartbeat_at_ > now + kHeartbeat;
    if (heartbeat || start <= now) return true;
    state_.executor->Wait(&waiting.mu, std::min({heartbeat_at_, start, waiting.jobs.NextTry(now)}));
  }
  return false;
}

// Those of the next long batch, if it may start now.
std::vector<WaitingJobPtr> Leader::ReadyLongJobs(absl::Time now) const {
  // Deep ones by themselves, so that the others wait for one batch of them at most.
  for (const bool deep : {!last_was_deep_, last_was_deep_}) {
    if (deep && DeepStart(now) > now) continue;
    const auto fits = [&](const WaitingJob& job) {
      return deep ? IsDeepInTime(job, now) : !IsShort(job) && !IsDeepJob(job);
    };
    std::vector<WaitingJobPtr> ready =
        state_.waiting.jobs.Ready(now, fits, state_.options.max_jobs);
    if (!ready.empty() && StartOf(*ready[0], now) <= now) return ready;
  }
  return {};
}

// How the job is computed if no other is with it.
CtsProtocol Leader::ProtocolAlone(const WaitingJob& job) const {
  if (!MayBeGarbled(job.load)) return CtsProtocol::kReplicated;
  return mpckdc::ChooseProtocol(job.load, state_.lines.Farthest(), protocol_);
}

bool Leader::IsDeepJob(const WaitingJob& job) const {
  const bool rounds = IsDeep(job.load, CtsProtocol::kReplicated);
  const bool tables = IsDeep(job.load, CtsProtocol::kGarbled);
  if (rounds == tables) return rounds;  // mostly
  return ProtocolAlone(job) == CtsProtocol::kGarbled ? tables : rounds;
}

// When a batch of deep jobs may start; now, if the clock was set back.
absl::Time Leader::DeepStart(absl::Time now) const {
  constexpr absl::Duration kLongest = absl::Minutes(1);
  return state_.deep_after > now + kLongest ? now : std::max(now, state_.deep_after);
}

// A line between the servers may be so long that a deep job takes longer than its KDC waits. It is
// not begun: nobody would hear its answer, and others wait for the ring. By half of what the last
// batch of rounds tells, or the line of a garbled one, since a job's time is an estimate.
bool Leader::IsDeepInTime(const WaitingJob& job, absl::Time now) const {
  constexpr absl::Duration kFresh = absl::Minutes(1);
  if (!IsDeepJob(job)) return false;
  if (ProtocolAlone(job) == CtsProtocol::kGarbled) {
    return GarbledTime(job.load, state_.lines.Farthest()) / 2 <= job.deadline - now;
  }
  if (absl::AbsDuration(now - state_.round_time_at) > kFresh) return true;
  return state_.round_time * job.load.rounds / 2 <= job.deadline - now;
}

// The first moment at which there is something to propose.
absl::Time Leader::NextStart(absl::Time now) const {
  const WaitingWork& waiting = state_.waiting;
  absl::Time start = absl::InfiniteFuture();
  for (const WaitingJobPtr& job : waiting.jobs.Ready(now, IsShort, 1)) start = StartOf(*job, now);
  if (state_.long_ring.busy()) return start;
  const auto is_long = [this](const WaitingJob& job) { return !IsShort(job) && !IsDeepJob(job); };
  for (const WaitingJobPtr& job : waiting.jobs.Ready(now, is_long, 1)) {
    start = std::min(start, StartOf(*job, now));
  }
  const auto is_deep = [&](const WaitingJob& job) { return IsDeepInTime(job, now); };
  for (const WaitingJobPtr& job : waiting.jobs.Ready(now, is_deep, 1)) {
    start = std::min(start, std::max(StartOf(*job, now), DeepStart(now)));
  }
  for (const KeyRoundPtr& round : waiting.key_rounds) start = std::min(start, round->next_try);
  return start;
}

// When the batch that begins with this job may start: at once; a little later if it is a long one
// and the second jobs of many logins are about to come, or a short one beside a long one; in mode
// `fixed` at the first tick after the job came and after the last batch of its kind.
absl::Time Leader::StartOf(const WaitingJob& job, absl::Time now) const {
  if (state_.options.mode == BatchMode::kWorkConserving) {
    absl::Time start = now;
    if (!IsShort(job)) {
      start = state_.replies_until;
    } else if (state_.long_ring.busy()) {
      start = started_at_[0] + limits::kBesideLongBatch;
    }
    return start > now + limits::kMaxReplyWait ? now : std::max(now, start);
  }
  const absl::Duration window = state_.options.batch_window;
  const int64_t width = absl::ToInt64Nanoseconds(window);
  const int64_t since = absl::ToUnixNanos(std::max(job.received, started_at_[!IsShort(job)]));
  const absl::Time tick = absl::FromUnixNanos((since / width + 1) * width);
  return tick > now + window ? now : tick;  // the clock was set back
}

// A long job may wait for its ring for long. What is refused whenever its turn comes is refused
// now, in a short batch: a flood of it must not fill the queue.
void Leader::LookAtNewJobs(BatchRecords& records) {
  std::vector<WaitingJobPtr> unknown;
  {
    const absl::MutexLock lock(&state_.waiting.mu);
    unknown = state_.waiting.jobs.Ready(
        state_.Now(), [](const WaitingJob& job) { return !job.measured; }, state_.options.max_jobs);
  }
  state_.quotas.Advance(state_.Now());
  PrefetchKeys(unknown, records);
  for (const WaitingJobPtr& job : unknown) {
    Measure(*job, records);
    job->refused.reset();
    if (job->length == JobLength::kShort) continue;
    Judgement opinion = LookAt(state_, *job, records);
    if (opinion.ok()) continue;
    job->refused = std::move(opinion);
    job->length = JobLength::kShort;
  }
}

// Of the long jobs that are ready, those that go together, and how they are computed.
void Leader::ChooseProtocol(Ballot& ballot) {
  std::vector<CtsLoad> loads;
  for (const WaitingJobPtr& job : ballot.jobs) loads.push_back(job->load);
  const uint64_t most_rounds =
      last_was_deep_ ? std::numeric_limits<uint64_t>::max() : limits::kLongBatchRounds;
  const BatchChoice choice = ChooseBatch(loads, state_.lines.Farthest(), protocol_, most_rounds);
  ballot.proposal.protocol = choice.protocol;
  std::vector<WaitingJobPtr> taken;
  for (const size_t i : choice.taken) taken.push_back(ballot.jobs[i]);
  ballot.jobs = std::move(taken);
}

// In a batch of rounds the gcm parts have time.
CtsProtocol Leader::ChooseGcm(const Ballot& ballot) const {
  const bool of_rounds =
      IsLong(ballot.proposal.kind) && ballot.proposal.protocol == CtsProtocol::kReplicated;
  if (of_rounds) return CtsProtocol::kReplicated;
  CtsLoad all;
  for (const WaitingJobPtr& job : ballot.jobs) all.Add(job->load);
  return ChooseGcmProtocol(all, state_.lines.Farthest(), protocol_,
                           ballot.proposal.protocol == CtsProtocol::kGarbled);
}

// Long jobs first: they are computed beside the short ones that follow. False: nothing may start.
bool Leader::TakeJobs(Ballot& ballot, absl::Time now) {
  const absl::MutexLock lock(&state_.waiting.mu);
  if (!state_.long_ring.busy()) ballot.jobs = ReadyLongJobs(now);
  if (!ballot.jobs.empty()) {
    ballot.proposal.kind = BatchKind::kLongJobs;
    last_was_deep_ = IsDeepJob(*ballot.jobs[0]);
    ChooseProtocol(ballot);
    return true;
  }
  ballot.jobs = state_.waiting.jobs.Ready(
      now, [](const WaitingJob& job) { return job.length == JobLength::kShort; },
      state_.options.max_jobs);
  if (!ballot.jobs.empty() && StartOf(*ballot.jobs[0], now) <= now) return true;
  ballot.jobs.clear();
  return false;
}

void Leader::ProposeJobs(Ballot& ballot) {
  const absl::Time now = state_.Now();
  LookAtNewJobs(ballot.records);
  if (!TakeJobs(ballot, now)) return;  // a heartbeat
  Proposal& proposal = ballot.proposal;
  started_at_[IsLong(proposal.kind)] = now;
  proposal.first_nonce = state_.sealing.Propose(now);
  for (const WaitingJobPtr& job : ballot.jobs) {
    proposal.nonces += static_cast<uint32_t>(NoncesOfJob(job->job));
  }
  PrefetchKeys(ballot.jobs, ballot.records);
  Opinions opinions(&state_, &ballot);
  for (const WaitingJobPtr& job : ballot.jobs) {
    Measure(*job, ballot.records);  // where it was not: the others do so now
    Judgement opinion = job->refused.has_value() ? *job->refused : opinions.On(*job);
    proposal.entries.push_back({job->group, job->job.id, AgreedDigest(*job), CodeOf(opinion.verdict)});
    ballot.details.push_back(std::move(opinion.detail));
  }
  proposal.of_gcm = ChooseGcm(ballot);
  if (!opinions.no_nonces().empty()) proposal.nonces = 0;
}

absl::Status Leader::SendProposal(PeerSession& session, Ballot& ballot) {
  state_.lines.Measure(session.channel(), session.tables_channel(), state_.Now());
  ballot.proposal.number = ++session.number;
  // As precise as the others hear it: the three decide by it.
  ballot.proposal.time = absl::FromUnixMicros(absl::ToUnixMicros(state_.Now()));
  ballot.details.resize(ballot.proposal.entries.size());
  std::vector<VoteCode> codes;
  for (const ProposalEntry& entry : ballot.proposal.entries) codes.push_back(entry.code);
  TagRecords(session, codes, ballot);
  for (size_t i = 0; i < codes.size(); ++i) {
    ballot.proposal.entries[i].keys = ballot.tags[kLeader][i];
  }
  ballot.bytes = EncodeProposal(ballot.proposal);
  ballot.hash = Sha256(ballot.bytes);
  const absl::Status sent = session.SendToBoth(ballot.bytes);
  heartbeat_at_ = state_.Now() + kHeartbeat;
  return sent;
}

}  // namespace mpckdc
