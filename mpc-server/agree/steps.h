// SPDX-License-Identifier: Apache-2.0
//
// The steps of a batch, in their order, each in a file of its own:
//
//   peer_session.cc    a session with the two peers is opened
//   leader.cc          the leader proposes
//   follower.cc        a follower looks at the proposal, and votes
//   opinions.cc        what a server thinks of a job before it runs
//   job_length.cc      and on which ring it would run
//   votes.cc           the votes are received and combined
//   records.cc         and the key records compared, by what the votes say of them (record_tags.h)
//   job_batch.cc       the jobs that all admit are computed, judged, answered
//   work_of.cc         a job becomes work for compute/
//   key_rounds.cc      or: a key is drawn, keys are verified (key_rounds.h)
//   compare_round.cc   or compared
//   long_ring.cc       what takes long is computed beside the rest
//
// What the steps share is engine_state.h: there a clock is distrusted (clock_watch.cc), sealing
// stops (sealing.cc), quotas are taken (job_quotas.cc), answers are written down and told
// (answers.cc). What the computation showed is judged in judge/.
#ifndef MPC_SERVER_AGREE_STEPS_H_
#define MPC_SERVER_AGREE_STEPS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpc-server/agree/ballot.h"
#include "mpc-server/agree/engine_state.h"
#include "mpc-server/compute/batch_work.h"
#include "mpc-server/share/rings.h"
#include "mpc-server/share/verifier.h"

namespace mpckdc {

// ---- peer_session.cc ----

// The rings that compute a batch, and what is kept from one batch on them to the next.
struct BatchRings {
  explicit BatchRings(std::vector<PartyContext*> parties)
      : rings(parties), cts(parties[0]->party()) {}
  PartyContext& party() { return rings.first(); }

  Rings rings;
  AesBatch blocks{kBatchCut};
  PowersCache powers;
  CtsCircuits cts;
};

// A session with the two peers: channels, a ring over each, and what lasts as long as they do.
struct PeerSession {
  PeerChannel& channel() { return *channels[0]; }
  PeerChannel& tables_channel() { return *channels.back(); }  // the long ring's
  PartyContext& party() { return rings->party(); }
  BatchRings& RingsOf(BatchKind kind) { return IsLong(kind) ? *long_ring : *rings; }
  // An agreement message, to both peers.
  absl::Status SendToBoth(const std::string& message);

  PeerChannels channels;
  std::vector<std::unique_ptr<PartyContext>> parties;  // one per channel
  std::vector<std::unique_ptr<Verifier>> verifiers;    // of the parties; none if semi-honest
  std::optional<BatchRings> rings;                     // over all parties but the last
  std::optional<BatchRings> long_ring;                 // over the last
  uint32_t number = 0;                                 // of the last proposal
  absl::Duration clock_skew;                           // the smallest of the three servers'
  ProtocolSetting protocol = ProtocolSetting::kAuto;   // what one of the three forces
};

// Connects, opens the rings, hears both peers' greetings, and tries the lines (line_trial.h).
absl::StatusOr<std::unique_ptr<PeerSession>> OpenPeerSession(EngineState& state);

// Why a session ends when another machine of this party has led the store into another epoch.
absl::Status EpochPassed();

// Connects only to tell the peers why no session is opened.
void RefusePeerSession(EngineState& state, const std::string& reason);

// Quarantines this server if `ended` is a deviation.
void NoteDeviation(EngineState& state, const absl::Status& ended,
                   const std::array<uint8_t, 16>& session, uint64_t batch);

// ---- leader.cc ----

// The leader's half of an agreement (P0).
class Leader {
 public:
  explicit Leader(EngineState* state) : state_(*state) {}

  void NewSession(ProtocolSetting protocol) {
    heartbeat_at_ = state_.Now();
    protocol_ = protocol;
  }

  // Waits until there is something to propose. True: the proposal is sent. False: the server is
  // stopping.
  absl::StatusOr<bool> Propose(PeerSession& session, Ballot& ballot);

 private:
  bool WaitForWork();
  void ProposeWork(Ballot& ballot);
  absl::Time NextStart(absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.waiting.mu);
  absl::Time StartOf(const WaitingJob& job, absl::Time now) const;
  absl::Time DeepStart(absl::Time now) const;
  CtsProtocol ProtocolAlone(const WaitingJob& job) const;
  bool IsDeepJob(const WaitingJob& job) const;
  bool IsDeepInTime(const WaitingJob& job, absl::Time now) const;
  std::vector<WaitingJobPtr> ReadyLongJobs(absl::Time now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.waiting.mu);
  void LookAtNewJobs(BatchRecords& records);
  void ChooseProtocol(Ballot& ballot);
  CtsProtocol ChooseGcm(const Ballot& ballot) const;
  bool TakeJobs(Ballot& ballot, absl::Time now);
  void ProposeJobs(Ballot& ballot);
  absl::Status SendProposal(PeerSession& session, Ballot& ballot);

  EngineState& state_;
  absl::Time heartbeat_at_ = absl::InfinitePast();
  // kFixed: when the last batch was proposed; by whether it was long.
  absl::Time started_at_[2] = {absl::UnixEpoch(), absl::UnixEpoch()};
  bool last_was_deep_ = false;  // of the long batches
  bool last_was_keys_ = false;  // and no job had its turn since
  ProtocolSetting protocol_ = ProtocolSetting::kAuto;  // of the session
};

// ---- job_length.cc ----

// Finds out which ring computes the job, how long it takes, and whether its messages are opened
// first: from its keys' enctypes, which are the same at the three servers.
void Measure(WaitingJob& waiting, BatchRecords& records);

// ---- follower.cc ----

// A follower's half of an agreement (P1 and P2).
class Follower {
 public:
  explicit Follower(EngineState* state) : state_(*state) {}

  void NewSession() { heard_ = state_.Now(); }

  // True: a proposal came and the vote is sent. False: none came for a moment.
  absl::StatusOr<bool> ReceiveAndVote(PeerSession& session, Ballot& ballot);

 private:
  absl::StatusOr<bool> ReceiveProposal(PeerSession& session, Ballot& ballot);
  absl::Status CheckProposal(const PeerSession& session, const Proposal& proposal);
  void WaitForLateJobs(const Proposal& proposal);
  std::vector<WaitingJobPtr> JobsHere(const Proposal& proposal);
  void VoteOnJobs(Ballot& ballot);
  Judgement CheckProtocol(const Proposal& proposal, const WaitingJob& job, CtsLoad* all) const;
  absl::Status CastVote(PeerSession& session, Ballot& ballot);

  EngineState& state_;
  absl::Time heard_;  // from the leader
};

// What a follower thinks of the protocol by which a batch of the long ring is computed. Whichever
// the leader chose is right if the limits hold, and if it is not what this server's administrator
// ruled out. `all`: of the batch, up to this `one`.
Judgement CheckProtocol(CtsProtocol protocol, const CtsLoad& one, const CtsLoad& all,
                        ProtocolSetting forced);

// ---- opinions.cc ----

// The handles that a job names, each once.
std::vector<Handle> HandlesOf(const Job& job);
// Reads the records that the jobs name, nullptr being none, in one call of the store.
void PrefetchKeys(absl::Span<const WaitingJobPtr> jobs, BatchRecords& records);
// What stays true of a job however long it waits: its keys' rules hold, its pre-auth is none that
// was accepted, and its quotas are not used up. Takes from them.
Judgement LookAt(EngineState& state, WaitingJob& waiting, BatchRecords& records);

// What this server thinks of the jobs of one proposal before any of them runs: the leader's own
// code in the proposal, a follower's vote.
class Opinions {
 public:
  // Reserves the proposal's nonces.
  Opinions(EngineState* state, Ballot* ballot);

  // Empty, or why no nonce of the proposal may be used.
  const std::string& no_nonces() const { return no_nonces_; }

  // To be asked in the order of the proposal: each job takes from its grant and its quotas.
  Judgement On(WaitingJob& waiting);

 private:
  Judgement CheckGrant(const WaitingJob& waiting, absl::Time now);

  EngineState& state_;
  BatchRecords& records_;
  const std::string no_nonces_;
  GrantUses granted_;  // taken by the jobs before, in this batch and in that under way
};

// ---- votes.cc ----

// Waits for the votes of the followers (but this server's own), and combines all three opinions
// into ballot.agreed.
absl::Status ReceiveVotes(EngineState& state, PeerSession& session, Ballot& ballot);

// The hash of everything that must be the same at the three for the batch to make sense. `facts`:
// what the records say about the keys used.
Digest ViewOf(const Ballot& ballot, const std::string& facts);

// ---- records.cc ----

// Fills in what this server says of the keys of the entries to which its code is OK.
void TagRecords(PeerSession& session, const std::vector<VoteCode>& codes, Ballot& ballot);

// After the votes: entries with a key whose records are not the same at the three servers become
// UNAVAILABLE, everywhere alike. A deviation where a server does not speak of the entry's keys.
absl::Status CompareRecords(EngineState& state, Ballot& ballot);

// ---- job_batch.cc ----

// One batch of jobs after the votes: takes in the jobs that all three admit, computes them on
// shares, judges them, and answers.
class JobBatch : public BatchRun {
 public:
  JobBatch(EngineState* state, PeerSession* session, std::unique_ptr<Ballot> ballot);

  // An error ends the session.
  absl::Status Begin();
  absl::Status Compute() override;
  absl::Status Finish(const absl::Status& computed) override;
  void AddGrantUses(GrantUses* uses) const override;

 private:
  absl::Status CheckNonceCount() const;
  void AdmitJobs();
  std::string HeaderOf(const WaitingJob& waiting, const SealPart& seal, const KeyInfo& key);
  void JudgeJobs();
  void PutBack(const WaitingJobPtr& job);
  void ExpectReplies();
  void Report();

  EngineState& state_;
  const std::unique_ptr<Ballot> owned_ballot_;
  Ballot& ballot_;
  BatchRings& rings_;
  const std::array<uint8_t, 16> session_id_;
  const PreauthWindow window_;
  std::optional<OutputKeys> tag_keys_;
  std::vector<WaitingJobPtr> admitted_;
  std::vector<JobWork> work_;    // of the admitted jobs
  std::optional<BatchWork> batch_;
  std::vector<Answer> refused_;  // by one of the three, before the batch
  std::vector<Answer> answers_;
  BatchReport report_;
};

// ---- work_of.cc ----

// How an admitted job becomes work: its parts with their keys, nonces and headers. `take_nonce`
// gives the batch's next nonce; `header_of` the header of a seal under this key. The work points
// into the job and into the records.
JobWork WorkOf(const ReceivedJob& received, BatchRecords& records,
               absl::FunctionRef<Nonce()> take_nonce,
               absl::FunctionRef<std::string(const SealPart&, const KeyInfo&)> header_of);
// The messages that it opens; `opens_only`: of a job whose messages are opened first (Measure).
JobWork OpensOf(const ReceivedJob& received, BatchRecords& records, bool opens_only);

// What the three servers must know alike about the keys of the work, as bytes for their view.
std::string FactsOf(const std::vector<JobWork>& work);

}  // namespace mpckdc

#endif  // MPC_SERVER_AGREE_STEPS_H_
