// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "mpc-server/agree/steps.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc {

absl::StatusOr<bool> Leader::Propose(PeerSession& session, Ballot& ballot) {
  if (!WaitForWork()) return false;
  // After a jump of the clock both peers' clocks are heard first, since it takes two to suspect
  // one (ClockWatch). The clock may jump between the two votes on one proposal.
  if (state_.clocks.HeardBoth(state_.Now()) && !ProposeKeyRound(state_, ballot)) {
    ProposeJobs(ballot);
  }
  RETURN_IF_ERROR(SendProposal(session, ballot));
  return true;
}

// True when there is something to propose, or a heartbeat is due; false when stopping.
bool Leader::WaitForWork() {
  while (!state_.stopping()) {
    const absl::Time now = state_.Now();
    state_.answers.FailExpired(now);
    FailExpiredKeyRounds(state_, now);
    WaitingWork& waiting = state_.waiting;
    const absl::MutexLock lock(&waiting.mu);
    const std::vector<WaitingJobPtr> first = waiting.jobs.Ready(now, 1, limits::kMaxBatchBlocks);
    const absl::Time start = first.empty() ? absl::InfiniteFuture() : StartOf(*first[0], now);
    absl::Time next_key_round = absl::InfiniteFuture();
    for (const KeyRoundPtr& round : waiting.key_rounds) {
      next_key_round = std::min(next_key_round, round->next_try);
    }
    // A clock that was set back must not make the leader fall silent.
    const bool heartbeat = now >= heartbeat_at_ || heartbeat_at_ > now + kHeartbeat;
    if (next_key_round <= now || heartbeat || start <= now) return true;
    state_.executor->Wait(&waiting.mu,
                          first.empty() ? std::min({heartbeat_at_, next_key_round,
                                                    waiting.jobs.NextTry(now)})
                                        : std::min(heartbeat_at_, start));
  }
  return false;
}

// When the batch that begins with this job may start: at once; a little later when the second jobs
// of many logins are about to come; in mode `fixed` at the first tick after the job came and after
// the last batch.
absl::Time Leader::StartOf(const WaitingJob& job, absl::Time now) const {
  if (state_.options.mode == BatchMode::kWorkConserving) {
    return replies_until_ > now + limits::kMaxReplyWait ? now : std::max(now, replies_until_);
  }
  const absl::Duration window = state_.options.batch_window;
  const int64_t width = absl::ToInt64Nanoseconds(window);
  const int64_t since = absl::ToUnixNanos(std::max(job.received, started_at_));
  const absl::Time tick = absl::FromUnixNanos((since / width + 1) * width);
  return tick > now + window ? now : tick;  // the clock was set back
}

void Leader::ProposeJobs(Ballot& ballot) {
  const absl::Time now = state_.Now();
  {
    const absl::MutexLock lock(&state_.waiting.mu);
    ballot.jobs =
        state_.waiting.jobs.Ready(now, state_.options.max_jobs, limits::kMaxBatchBlocks);
  }
  if (ballot.jobs.empty() || StartOf(*ballot.jobs[0], now) > now) {  // a heartbeat
    ballot.jobs.clear();
    return;
  }
  started_at_ = now;
  Proposal& proposal = ballot.proposal;
  proposal.first_nonce = state_.sealing.Propose(now);
  for (const WaitingJobPtr& job : ballot.jobs) {
    proposal.nonces += static_cast<uint32_t>(NoncesOfJob(job->job));
  }
  Opinions opinions(&state_, &ballot);
  for (const WaitingJobPtr& job : ballot.jobs) {
    Judgement opinion = opinions.On(*job);
    proposal.entries.push_back({job->group, job->job.id, job->digest, CodeOf(opinion.verdict)});
    ballot.details.push_back(std::move(opinion.detail));
  }
  if (!opinions.no_nonces().empty()) proposal.nonces = 0;
}

absl::Status Leader::SendProposal(PeerSession& session, Ballot& ballot) {
  ballot.proposal.number = ++session.number;
  ballot.proposal.time = state_.Now();
  ballot.details.resize(ballot.proposal.entries.size());
  ballot.bytes = EncodeProposal(ballot.proposal);
  ballot.hash = Sha256(ballot.bytes);
  const absl::Status sent = session.SendToBoth(ballot.bytes);
  heartbeat_at_ = state_.Now() + kHeartbeat;
  return sent;
}

}  // namespace mpckdc
