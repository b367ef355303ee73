// SPDX-License-Identifier: Apache-2.0
//
// The inside of JobEngine. Its parts by file:
//
//   job_engine.cc      the calls from other threads
//   engine_session.cc  connecting, the leader's and the followers' loop, votes
//   engine_jobs.cc     opinions on jobs, running a batch of jobs
//   engine_quota.cc    what jobs take from the quotas
//   engine_keys.cc     opinions on key work, running it
//
// Everything without ABSL_GUARDED_BY belongs to the engine's thread.
#ifndef MPC_SERVER_AGREE_ENGINE_CORE_H_
#define MPC_SERVER_AGREE_ENGINE_CORE_H_

#include <array>
#include <atomic>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "mpc-server/agree/agreement.h"
#include "mpc-server/agree/job_engine.h"
#include "mpc-server/agree/job_queue.h"
#include "mpc-server/agree/nonce_sequencer.h"
#include "mpc-server/compute/batch_work.h"
#include "mpc-server/judge/grants.h"
#include "mpc-server/judge/judge.h"
#include "mpc-server/judge/pending_seals.h"
#include "mpc-server/judge/quota.h"
#include "mpc-server/judge/replay_cache.h"
#include "mpc-server/share/rings.h"
#include "mpc-server/share/session.h"

namespace mpckdc {

// ---- Timing. doc/jobs.md says what each is for. ----
inline constexpr absl::Duration kHeartbeat = absl::Seconds(1);          // leader, when idle
inline constexpr absl::Duration kLeaderSilence = absl::Seconds(3);      // then a follower gives up
inline constexpr absl::Duration kLateJobWait = absl::Milliseconds(5);   // proposed, not yet here
inline constexpr absl::Duration kFirstRetry = absl::Milliseconds(5);  // of a job not yet everywhere
inline constexpr absl::Duration kLastRetry = absl::Milliseconds(320);
inline constexpr absl::Duration kFollowerPoll = absl::Milliseconds(100);
inline constexpr absl::Duration kConnectWindow = absl::Seconds(1);
inline constexpr absl::Duration kReconnectPause = absl::Milliseconds(50);
inline constexpr absl::Duration kReconnectJitter = absl::Milliseconds(500);
inline constexpr size_t kVerifyKeysPerBatch = 128;

// The records of one batch, read once each.
class BatchRecords {
 public:
  explicit BatchRecords(ShareStore* store) : store_(store) {}

  const absl::StatusOr<KeyRecord>& Get(const Handle& handle);
  // nullptr unless the record was read and is good.
  const KeyRecord* Find(const Handle& handle);

 private:
  ShareStore* const store_;
  absl::node_hash_map<Handle, absl::StatusOr<KeyRecord>> records_;  // stable addresses
};

struct WaitingDraw {
  TransactionId txn{};
  KeyInfo info;
  Digest digest{};
  absl::Time deadline, next_try = absl::InfinitePast();
  JobEngine::DrawCallback done;
};
struct WaitingVerify {
  GroupId request{};
  std::vector<Handle> handles;
  std::vector<VerifyResult> results;  // of the first handles
  absl::Time deadline, next_try = absl::InfinitePast();
  JobEngine::VerifyCallback done;
};

// What the jobs before one in the same batch take from their grants.
using GrantsInBatch = absl::flat_hash_map<Grants::Key, GrantUse>;

// A proposal and what this server thinks of it.
struct Ballot {
  explicit Ballot(ShareStore* store) : records(store) {}

  Proposal proposal;
  std::string bytes;
  Digest hash{};
  std::vector<VoteCode> codes;        // a follower's, one per entry
  std::vector<std::string> details;   // why, where not OK
  BatchRecords records;
  std::vector<WaitingJobPtr> jobs;    // one per entry; null where missing
  std::shared_ptr<WaitingDraw> draw;
  std::shared_ptr<WaitingVerify> verify;
  std::array<std::string, 3> votes;   // encoded; the leader's is empty
  std::vector<Agreed> agreed;         // one per entry
  std::vector<WaitingJobPtr> admitted;  // in the order of the batch's work
};

struct PeerSession {
  PeerChannel& channel() { return *channels[0]; }
  PartyContext& party() { return rings->first(); }

  PeerChannels channels;
  std::vector<std::unique_ptr<PartyContext>> parties;  // one per channel
  std::optional<Rings> rings;                          // over the parties
  AesBatch blocks{kBatchCut};
  PowersCache powers;
  std::optional<CtsCircuits> cts;                      // of ring 0
  uint32_t number = 0;          // of the last proposal
  absl::Time heard;             // follower: from the leader
  std::string sealing_stopped;  // why no nonce may be used in this session
};

enum class ClockTrouble : uint8_t { kNone, kAgainstBoth, kAgainstLeader };

class JobEngine::Impl {
 public:
  Impl(const EngineOptions& options, const EngineParts& parts);

  absl::Status Start();
  void Stop();
  void Submit(const KdcIdentity& kdc, Job job, JobCallback done);
  TagResult FinishTag(const KdcIdentity& kdc, const TagRequest& request);
  void DrawKey(const TransactionId& txn, const KeyInfo& info, DrawCallback done);
  void VerifyKeys(const GroupId& request, std::vector<Handle> handles, VerifyCallback done);
  EngineStatus Status() const;
  void SetQuotas(const QuotaRates& rates);

 private:
  // ---- engine_session.cc ----
  void Main();
  absl::Status RunSession();
  absl::StatusOr<std::unique_ptr<PeerSession>> OpenPeers();
  absl::Status OpenRings(PeerSession& session);
  absl::Status MeetNeighbour(PeerSession& session, Neighbour neighbour);
  absl::Duration ReconnectPause();
  absl::Status Lead(PeerSession& session);
  absl::Status Follow(PeerSession& session);
  bool WaitForWork();
  absl::Time StartOf(const WaitingJob& job, absl::Time now) const;
  absl::Status CastVote(PeerSession& session, Ballot& ballot);
  absl::Status CollectVotes(PeerSession& session, Ballot& ballot);
  absl::Status TakeVote(PeerSession& session, Neighbour from, Ballot& ballot,
                        std::vector<VoteCode>* codes);
  void CombineVotes(Ballot& ballot, const std::array<std::vector<VoteCode>, 3>& codes);
  absl::Status RunAgreed(PeerSession& session, Ballot& ballot);
  absl::Status CheckLeader(const PeerSession& session, const Ballot& ballot);
  Digest ViewOf(const Ballot& ballot, const std::string& facts) const;
  bool stopping() const { return stopping_.load(); }
  void HousekeepingAt(absl::Time now);
  Neighbour NeighbourOf(int party) const;
  void NoteSkew(Neighbour neighbour, absl::Time theirs, absl::Time now);
  bool HeardBoth(absl::Time now) const;
  bool Beyond(Neighbour neighbour, absl::Duration limit) const;
  ClockTrouble LookAtClocks() const;
  void JudgeClocks(const PeerSession& session);
  void UpdateDegraded(const PeerSession& session);
  void SetDegraded(const std::string& reason);

  // ---- engine_jobs.cc ----
  void PickJobs(PeerSession& session, Ballot& ballot);
  void WaitForLateJobs(const Ballot& ballot) ABSL_LOCKS_EXCLUDED(mu_);
  void OpinionOnJobs(PeerSession& session, Ballot& ballot);
  Judgement OpinionOnJob(WaitingJob& waiting, BatchRecords& records, GrantsInBatch* granted,
                         const std::string& no_nonces);
  Judgement CheckGrant(const WaitingJob& waiting, BatchRecords& records, GrantsInBatch* granted,
                       absl::Time now);
  std::string ReserveNonces(PeerSession& session, const Proposal& proposal);
  struct Refused {
    WaitingJobPtr job;
    Judgement why;
  };
  static absl::Status CheckNonceCount(const Ballot& ballot);
  std::vector<JobWork> AdmitJobs(Ballot& ballot, std::vector<Refused>* refused);
  JobWork WorkOf(const WaitingJobPtr& waiting, Ballot& ballot, uint64_t* next_nonce);
  std::string HeaderOf(const WaitingJob& waiting, const SealPart& part, Ballot& ballot);
  absl::Status RunJobs(PeerSession& session, Ballot& ballot);
  static absl::Status Compute(const Digest& view, BatchWork& batch);
  // A job and its result, not yet told to anybody.
  struct Answered {
    WaitingJobPtr job;
    JobResult result;
    PendingJob pending;
  };
  std::vector<Answered> Results(PeerSession& session, Ballot& ballot, std::vector<JobWork>& work,
                                BatchWork& batch, TagMaskKeys keys);
  void ExpectReplies(const std::vector<Answered>& answers, absl::Duration computed);
  void RecordAndAnswer(std::vector<Answered> answers, BatchRecords& records, BatchReport* report);
  void NoteRecorder();
  void RecordUnbatched();
  void Finish(const WaitingJobPtr& job, JobResult result);
  void Fail(const WaitingJobPtr& job, Judgement why);
  void KeepUnbatched(const WaitingJob& job, const Judgement& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FailExpired(absl::Time now);

  // ---- engine_quota.cc ----
  Judgement TakeQuota(WaitingJob& waiting, BatchRecords& records);
  void GiveBackQuota(WaitingJob& waiting);
  void SettleQuotas(const Ballot& ballot, const std::vector<Judgement>& judgements);

  // ---- engine_keys.cc ----
  bool PickKeyWork(Ballot& ballot);
  bool PickDraw(Ballot& ballot, absl::Time now);
  bool PickVerify(Ballot& ballot, absl::Time now);
  void OpinionOnKeyWork(Ballot& ballot);
  void OpinionOnVerify(Ballot& ballot);
  static VoteCode ReadCode(BatchRecords& records, const Handle& handle);
  absl::Status RunDraw(PeerSession& session, Ballot& ballot);
  absl::Status RunVerify(PeerSession& session, Ballot& ballot);
  void FinishDraw(const std::shared_ptr<WaitingDraw>& draw, const absl::Status& status);
  void FinishVerify(const std::shared_ptr<WaitingVerify>& verify, const absl::Status& status);
  void FailExpiredKeyWork(absl::Time now);
  absl::Time NextKeyWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  void FailAll(const std::string& why);

  const EngineOptions options_;
  ShareStore* const store_;
  Clock* const clock_;
  RandomSource* const random_;
  PeerLink* const peers_;
  Executor* const executor_;
  EngineObserver* const observer_;
  JobRecorder* const recorder_;
  const StoreMeta meta_;
  const int party_;

  NonceSequencer nonces_;
  ReplayCache replays_;
  Grants grants_;
  Quotas quotas_;
  Judge judge_;
  PendingSeals pending_;  // its own mutex
  std::string degraded_;  // as told to the observer
  std::string unrecorded_;  // why the recorder is not ready
  absl::Time heartbeat_at_ = absl::InfinitePast();
  // The last vote (or greeting) of each peer that came, by this clock; indexed by Neighbour.
  std::array<absl::Time, 2> heard_at_{absl::InfinitePast(), absl::InfinitePast()};
  absl::Time started_at_ = absl::UnixEpoch();  // kFixed: when the last batch was proposed
  absl::Time replies_until_ = absl::InfinitePast();  // leader: ExpectReplies()
  absl::Time housekeeping_at_ = absl::InfinitePast();
  std::array<absl::Duration, 2> skew_{};  // indexed by Neighbour
  std::array<bool, 2> skew_told_{};       // the observer knows that it is large
  ClockTrouble clocks_ = ClockTrouble::kNone;
  std::string clock_trouble_;             // why no timestamp may be judged now
  std::string nonce_trouble_;             // why the last nonces could not be reserved

  std::atomic<bool> stopping_{false};

  mutable absl::Mutex mu_;
  JobQueue queue_ ABSL_GUARDED_BY(mu_);
  std::list<std::shared_ptr<WaitingDraw>> draws_ ABSL_GUARDED_BY(mu_);
  std::list<std::shared_ptr<WaitingVerify>> verifies_ ABSL_GUARDED_BY(mu_);
  EngineStatus status_ ABSL_GUARDED_BY(mu_);
  std::optional<QuotaRates> new_quotas_ ABSL_GUARDED_BY(mu_);
  // Answered without a batch and not yet written down: the client, and the line but for its
  // principal.
  std::vector<std::pair<std::optional<Handle>, BatchJob>> unbatched_ ABSL_GUARDED_BY(mu_);
  uint64_t unbatched_left_out_ ABSL_GUARDED_BY(mu_) = 0;
};

inline constexpr int kLeader = 0;

}  // namespace mpckdc

#endif  // MPC_SERVER_AGREE_ENGINE_CORE_H_
