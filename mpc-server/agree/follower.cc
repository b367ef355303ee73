// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/steps.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/key/nonce.h"
#include "mpc-server/share/deviation.h"

namespace mpckdc {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(100);
// While the long ring computes, whose result is to be judged soon: where the servers are far from
// each other it takes long, and a millisecond more is nothing.
constexpr absl::Duration kShortestPoll = absl::Milliseconds(1), kShortPoll = absl::Milliseconds(10);
constexpr absl::Duration kLateJobWait = absl::Milliseconds(5);  // proposed, not yet here

absl::Status LeaderDeviates(absl::string_view text) {
  return Deviation(Suspects::One(kLeader), text);
}

}  // namespace

absl::StatusOr<bool> Follower::ReceiveAndVote(PeerSession& session, Ballot& ballot) {
  absl::StatusOr<bool> received = ReceiveProposal(session, ballot);
  if (!received.ok() || !*received) return received;
  absl::Status status = CheckProposal(session, ballot.proposal);
  // The leader has finished its last long batch, so this server is about to.
  if (status.ok() && IsLong(ballot.proposal.kind)) status = state_.long_ring.WaitAndFinish();
  if (status.ok()) status = CastVote(session, ballot);
  if (!status.ok()) return status;
  return true;
}

absl::StatusOr<bool> Follower::ReceiveProposal(PeerSession& session, Ballot& ballot) {
  const absl::Time now = state_.Now();
  const absl::Duration soon =
      std::clamp(state_.lines.Farthest().distance / 4, kShortestPoll, kShortPoll);
  absl::StatusOr<Frame> frame = session.channel().Receive(
      NeighbourOf(state_.party, kLeader), now + (state_.long_ring.busy() ? soon : kPoll));
  if (absl::IsDeadlineExceeded(frame.status())) {
    heard_ = std::min(heard_, now);  // the clock was set back
    if (now < heard_ + kSilence) return false;
    return absl::UnavailableError(absl::StrCat("the leader (party 0) has been silent for ",
                                               absl::FormatDuration(kSilence)));
  }
  if (!frame.ok()) return frame.status();
  heard_ = state_.Now();
  if (frame->type != FrameType::kAgreement) {
    return absl::DataLossError(absl::StrCat("agreement: unexpected frame of type ",
                                            FrameTypeName(frame->type), " from the leader"));
  }
  ballot.bytes = std::string(AsText(frame->payload));
  ballot.hash = Sha256(ballot.bytes);
  ASSIGN_OR_RETURN(ballot.proposal, DecodeProposal(ballot.bytes));
  return true;
}

// What would be wrong with any proposal; that the nonces can be had is seen where they are
// reserved.
absl::Status Follower::CheckProposal(const PeerSession& session, const Proposal& proposal) {
  if (proposal.number != session.number + 1) {
    return LeaderDeviates(
        absl::StrCat("agreement: proposal ", proposal.number, " after ", session.number));
  }
  state_.clocks.Hear(NeighbourOf(state_.party, kLeader), proposal.time, state_.Now());
  state_.clocks.Judge();
  state_.sealing.Tell();
  const bool of_one = proposal.kind == BatchKind::kDraw || proposal.kind == BatchKind::kRefresh ||
                      proposal.kind == BatchKind::kHandOver;
  if (of_one && proposal.entries.size() != 1) {
    return LeaderDeviates("agreement: more than one key to draw, or of what there is one of");
  }
  // The leader has heard the same three marks and has reserved them itself.
  if (proposal.nonces > 0 && proposal.first_nonce < state_.sealing.next()) {
    return LeaderDeviates(absl::StrCat("agreement: the leader proposes nonce ",
                                       NonceText(proposal.first_nonce), ", and those below ",
                                       NonceText(state_.sealing.next()), " may have been used"));
  }
  if (proposal.kind == BatchKind::kVerify && proposal.entries.size() > kVerifyKeysPerBatch) {
    return absl::DataLossError("agreement: too many keys to verify for this version of mpc-server");
  }
  if (proposal.kind == BatchKind::kCompare && proposal.entries.size() > limits::kMaxComparedKeys) {
    return absl::DataLossError(
        "agreement: too many keys to compare for this version of mpc-server");
  }
  return absl::OkStatus();
}

absl::Status Follower::CastVote(PeerSession& session, Ballot& ballot) {
  session.number = ballot.proposal.number;
  const size_t entries = ballot.proposal.entries.size();
  ballot.codes.assign(entries, kVoteMissing);
  ballot.details.resize(entries);
  ballot.jobs.resize(entries);
  if (IsOfJobs(ballot.proposal.kind)) {
    VoteOnJobs(ballot);
  } else {
    VoteOnKeyRound(state_, ballot);
  }
  if (state_.store->passed()) return EpochPassed();
  TagRecords(session, ballot.codes, ballot);
  state_.lines.Measure(session.channel(), session.tables_channel(), state_.Now());
  std::string& vote = ballot.votes[state_.party];
  vote = EncodeVote({ballot.proposal.number, ballot.hash, state_.Now(), state_.lines.own(),
                     ballot.codes, ballot.tags[state_.party]});
  return session.SendToBoth(vote);
}

void Follower::WaitForLateJobs(const Proposal& proposal) {
  const absl::Time until = state_.Now() + kLateJobWait;
  WaitingWork& waiting = state_.waiting;
  const absl::MutexLock lock(&waiting.mu);
  const auto all_here = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(waiting.mu) {
    return std::all_of(proposal.entries.begin(), proposal.entries.end(),
                       [&](const ProposalEntry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(waiting.mu) {
                         return waiting.jobs.Here(entry.group, entry.id);
                       });
  };
  while (!all_here() && state_.Now() < until && !state_.stopping()) {
    state_.executor->Wait(&waiting.mu, until);
  }
}

std::vector<WaitingJobPtr> Follower::JobsHere(const Proposal& proposal) {
  std::vector<WaitingJobPtr> jobs;
  const absl::MutexLock lock(&state_.waiting.mu);
  for (const ProposalEntry& entry : proposal.entries) {
    jobs.push_back(state_.waiting.jobs.Find(entry.group, entry.id));
  }
  return jobs;
}

Judgement CheckProtocol(CtsProtocol protocol, const CtsLoad& one, const CtsLoad& all,
                        ProtocolSetting forced) {
  const bool garbled = protocol == CtsProtocol::kGarbled;
  const bool disobeys = garbled ? forced == ProtocolSetting::kReplicated
                                : forced == ProtocolSetting::kGarbled && MayBeGarbled(one);
  if (disobeys) {
    return Refuse(Verdict::kUnavailable,
                  absl::StrCat("the leader proposed a ", ProtocolName(protocol),
                               " batch, and [engine] protocol is ", SettingName(forced), " here"));
  }
  if (garbled && !MayBeGarbled(all)) {
    return Refuse(Verdict::kUnavailable, "the leader proposed a garbled batch beyond the limits");
  }
  return {};
}

// `all`: of the batch, up to this job.
Judgement Follower::CheckProtocol(const Proposal& proposal, const WaitingJob& job,
                                  CtsLoad* all) const {
  all->Add(job.load);
  const bool garbled_gcm = proposal.of_gcm == CtsProtocol::kGarbled;
  const ProtocolSetting forced = state_.protocol();
  if (garbled_gcm && forced == ProtocolSetting::kReplicated) {
    return Refuse(
        Verdict::kUnavailable,
        "the leader proposed garbled gcm parts, and [engine] protocol is replicated here");
  }
  if (garbled_gcm && all->gcm_parts > 0 && !MayGarbleGcm(*all)) {
    return Refuse(Verdict::kUnavailable, "the leader proposed garbled gcm parts beyond the limits");
  }
  if (proposal.kind != BatchKind::kLongJobs) return {};
  return mpckdc::CheckProtocol(proposal.protocol, job.load, *all, forced);
}

void Follower::VoteOnJobs(Ballot& ballot) {
  WaitForLateJobs(ballot.proposal);
  PrefetchKeys(JobsHere(ballot.proposal), ballot.records);
  Opinions opinions(&state_, &ballot);
  size_t blocks = 0;
  CtsLoad load;
  for (size_t i = 0; i < ballot.proposal.entries.size(); ++i) {
    const ProposalEntry& entry = ballot.proposal.entries[i];
    bool expired = false;
    {
      const absl::MutexLock lock(&state_.waiting.mu);
      const JobQueue& jobs = state_.waiting.jobs;
      ballot.jobs[i] = jobs.Find(entry.group, entry.id);
      if (!jobs.Here(entry.group, entry.id)) {
        ballot.jobs[i] = nullptr;
        continue;
      }
      expired = jobs.Expired(entry.group, entry.id);
    }
    const WaitingJobPtr& job = ballot.jobs[i];
    Judgement opinion;
    if (job == nullptr) {
      opinion = Refuse(expired ? Verdict::kDeadline : Verdict::kUnavailable,
                       "this server has answered the job already");
    } else if (entry.digest == AgreedDigest(*job, !job->proven)) {
      opinion = Refuse(Verdict::kUnavailable,
                       "a server restarted between the two batches of the job");
    } else if (entry.digest != AgreedDigest(*job)) {
      opinion = Refuse(Verdict::kInconsistent, "the servers did not receive the same job");
    } else {
      opinion = opinions.On(*job);
      blocks += job->blocks;
    }
    if (opinion.ok() && entry.code == kVoteOk) {  // what the leader refuses is on any ring
      Measure(*job, ballot.records);
      const bool is_long = job->length == JobLength::kLong;
      if (is_long != (ballot.proposal.kind == BatchKind::kLongJobs)) {
        opinion = Refuse(Verdict::kUnavailable, "the leader put the job on the wrong ring");
      } else {
        opinion = CheckProtocol(ballot.proposal, *job, &load);
      }
    }
    if (opinion.ok() && blocks > 2 * limits::kMaxBatchBlocks) {
      opinion = Refuse(Verdict::kUnavailable, "the leader proposed too large a batch");
    }
    ballot.codes[i] = CodeOf(opinion.verdict);
    ballot.details[i] = std::move(opinion.detail);
  }
}

}  // namespace mpckdc
