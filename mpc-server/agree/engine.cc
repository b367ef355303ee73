// SPDX-License-Identifier: Apache-2.0
//
// The engine itself: the calls from other threads, and the thread that opens one session after the
// other and runs one batch after the other in it.
#include <algorithm>
#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/agree/epoch_change.h"
#include "mpc-server/agree/steps.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/job/validate.h"
#include "mpc-server/share/deviation.h"

namespace mpckdc {
namespace {

constexpr absl::Duration kHousekeeping = absl::Seconds(1);
constexpr absl::Duration kReconnectPause = absl::Milliseconds(50);
constexpr absl::Duration kReconnectJitter = absl::Milliseconds(500);
const char kStopping[] = "the server is stopping";

absl::Duration DeadlineOf(const Job& job) {
  if (job.deadline_ms == 0) return limits::kDefaultJobDeadline;
  return std::min(absl::Milliseconds(job.deadline_ms), limits::kMaxJobDeadline);
}

EngineObserver* OrNobody(EngineObserver* observer) {
  static EngineObserver* const nobody = new EngineObserver;
  return observer != nullptr ? observer : nobody;
}

class Engine : public JobEngine {
 public:
  Engine(const EngineOptions& options, const EngineTools& tools)
      : state_(options, tools), leader_(&state_), follower_(&state_) {}
  ~Engine() override { Engine::Stop(); }

  absl::Status Start() override;
  void Stop() override;
  void Submit(const KdcIdentity& kdc, Job job, JobCallback done) override;
  TagResult FinishTag(const KdcIdentity& kdc, const TagRequest& request) override;
  void DrawKey(const TransactionId& txn, const KeyInfo& info, DrawCallback done) override;
  void VerifyKeys(const GroupId& request, std::vector<Handle> handles,
                  VerifyCallback done) override;
  void CompareKeys(CompareRequest request, CompareCallback done) override;
  EngineStatus Status() const override;
  absl::StatusOr<std::optional<DeviationReport>> Readmit() override;
  void SetQuotas(const QuotaRates& rates) override;
  void Refresh(uint64_t from, absl::Time deadline, DrawCallback done) override;
  void Replace(int party, absl::Time deadline, DrawCallback done) override;
  absl::Status CatchUp() override;
  void Look() override;

 private:
  void Enter(const KeyRoundPtr& round);
  void VerifyCertificate(const WaitingJobPtr& waiting);

  // The engine's thread.
  void Main();
  absl::Duration ReconnectPause();
  absl::Status RunSession();
  absl::Status StayOut(const std::string& quarantine);
  absl::Status RunBatch(PeerSession& session);
  absl::Status RunAgreed(PeerSession& session, std::unique_ptr<Ballot> ballot);
  void Housekeep();

  EngineState state_;
  Leader leader_;
  Follower follower_;
  absl::Time housekeeping_at_ = absl::InfinitePast();
  bool took_over_before_ = false;  // the session before last did
};

// ---- From any thread ----

absl::Status Engine::Start() {
  absl::Status loaded = state_.sealing.Load();
  if (loaded.ok()) loaded = state_.replays.Load(state_.Now());
  if (loaded.ok()) loaded = state_.quarantine.Load();
  if (!loaded.ok()) return loaded;
  state_.long_ring.Start(absl::StrCat("mpc-long-", state_.party));
  state_.executor->Start(absl::StrCat("mpc-engine-", state_.party), [this] { Main(); });
  return absl::OkStatus();
}

void Engine::Stop() {
  if (state_.waiting.closed.exchange(true)) return;
  state_.peers->Shutdown();
  state_.executor->Wake();
  state_.executor->Join();
  state_.long_ring.Stop();
  // The engine's thread has ended; this one takes its place.
  std::vector<WaitingJobPtr> jobs;
  {
    const absl::MutexLock lock(&state_.waiting.mu);
    jobs = state_.waiting.jobs.TakeAll();
  }
  for (const WaitingJobPtr& job : jobs) {
    state_.answers.Fail(job, Refuse(Verdict::kUnavailable, kStopping));
  }
  FailAllKeyRounds(state_, kStopping);
  FailExpiredReplace(state_, absl::InfiniteFuture());
  state_.answers.RecordUnbatched();
  state_.answers.WriteCounts();
}

void Engine::Submit(const KdcIdentity& kdc, Job job, JobCallback done) {
  auto waiting = std::make_shared<WaitingJob>();
  waiting->kdc = kdc;
  waiting->group = KdcKey(kdc);
  waiting->digest = JobDigest(kdc, job);
  waiting->received = state_.Now();
  waiting->deadline = waiting->received + DeadlineOf(job);
  waiting->done = std::move(done);
  Judgement opinion = CheckShape(job);
  if (opinion.ok()) opinion = CheckTexts(job, state_.party);
  if (opinion.ok()) waiting->blocks = BlocksOfJob(job);
  const bool verifies = state_.certificates != nullptr && !job.certificate.empty();
  waiting->job = std::move(job);
  {
    const absl::MutexLock lock(&state_.waiting.mu);
    JobQueue& jobs = state_.waiting.jobs;
    Judgement taken = jobs.TakeId(waiting->group, waiting->job.id, waiting->received);
    if (!taken.ok()) opinion = std::move(taken);
    if (opinion.ok() && state_.stopping()) opinion = Refuse(Verdict::kUnavailable, kStopping);
    if (std::string why = state_.quarantine.Reason(); opinion.ok() && !why.empty()) {
      opinion = Refuse(Verdict::kUnavailable, std::move(why));
    }
    waiting->unverified = verifies;
    if (opinion.ok()) jobs.Add(waiting);
  }
  if (!opinion.ok()) return state_.answers.RefuseOnSight(waiting, std::move(opinion));
  if (verifies) return VerifyCertificate(waiting);
  state_.executor->Wake();
}

// The job waits in the queue meanwhile, where its deadline is watched.
void Engine::VerifyCertificate(const WaitingJobPtr& waiting) {
  state_.certificates->Verify(waiting->kdc.name, waiting->job.certificate, waiting->deadline,
                              [this, waiting](CertificateFinding finding) {
                                {
                                  const absl::MutexLock lock(&state_.waiting.mu);
                                  waiting->certificate = std::move(finding);
                                  waiting->unverified = false;
                                }
                                state_.executor->Wake();
                              });
}

TagResult Engine::FinishTag(const KdcIdentity& kdc, const TagRequest& request) {
  std::string why = state_.quarantine.Reason();
  if (why.empty()) return state_.pending.Finish(kdc, request, state_.Now());
  return {request.job, request.seal, Refuse(Verdict::kUnavailable, std::move(why))};
}

void Engine::DrawKey(const TransactionId& txn, const KeyInfo& info, DrawCallback done) {
  const absl::Status good = CheckNewKeyInfo(info);
  if (!good.ok()) return done(good);
  if (state_.stopping()) return done(absl::UnavailableError(kStopping));
  const absl::StatusOr<KeyRecord> staged = state_.store->GetStaged(txn, info.handle);
  if (staged.ok()) {
    if (staged->info == info) return done(absl::OkStatus());
    return done(absl::AlreadyExistsError("the transaction holds another key of this handle"));
  }
  if (!absl::IsNotFound(staged.status())) return done(staged.status());
  Enter(MakeDraw(txn, info, state_.Now() + limits::kDrawKeyTimeout, std::move(done)));
}

void Engine::VerifyKeys(const GroupId& request, std::vector<Handle> handles,
                        VerifyCallback done) {
  if (handles.empty()) return done(std::vector<VerifyResult>());
  if (handles.size() > limits::kMaxKeysPerCall) {
    return done(absl::InvalidArgumentError(absl::StrCat(
        handles.size(), " handles, at most ", limits::kMaxKeysPerCall, " in one call")));
  }
  Enter(MakeVerify(request, std::move(handles), state_.Now() + limits::kDrawKeyTimeout,
                   std::move(done)));
}

void Engine::CompareKeys(CompareRequest request, CompareCallback done) {
  if (request.old.empty()) return done(std::vector<CompareResult>());
  if (request.staged.empty() || request.staged.size() > limits::kMaxStagedCompared ||
      request.old.size() > limits::kMaxComparedKeys) {
    return done(absl::InvalidArgumentError(
        absl::StrCat("compares at most ", limits::kMaxComparedKeys, " old keys with 1 to ",
                     limits::kMaxStagedCompared, " staged ones, not ", request.old.size(), " with ",
                     request.staged.size())));
  }
  Enter(MakeCompare(state_.store, std::move(request), state_.Now() + limits::kCompareTimeout,
                    std::move(done)));
}

void Engine::Refresh(uint64_t from, absl::Time deadline, DrawCallback done) {
  const uint64_t epoch = state_.store->Epoch().epoch;
  if (epoch > from) return done(absl::OkStatus());
  if (epoch < from) {
    return done(absl::FailedPreconditionError(
        absl::StrCat("asked to leave share epoch ", from, ", this server is in epoch ", epoch)));
  }
  const absl::Status can = state_.store->CheckRefreshable();
  if (!can.ok()) return done(can);
  Enter(MakeRefresh(state_, from, deadline, std::move(done)));
}

void Engine::Replace(int party, absl::Time deadline, DrawCallback done) {
  AskToReplace(state_, party, deadline, std::move(done));
}

absl::Status Engine::CatchUp() {
  RETURN_IF_ERROR(state_.store->BeginReceiving());
  state_.wants_keys = true;
  state_.catch_up = true;
  state_.executor->Wake();
  return absl::OkStatus();
}

void Engine::Look() {
  (void)state_.store->Look();  // a store that cannot be read is found where it is needed
  state_.quarantine.Look();
  if (state_.store->passed() || !state_.quarantine.Reason().empty()) state_.executor->Wake();
}

void Engine::Enter(const KeyRoundPtr& round) {
  if (const std::string why = state_.quarantine.Reason(); !why.empty()) {
    return round->Answer(absl::FailedPreconditionError(why));
  }
  bool stopping;
  {
    const absl::MutexLock lock(&state_.waiting.mu);
    stopping = state_.stopping();
    if (!stopping) state_.waiting.key_rounds.push_back(round);
  }
  if (stopping) return round->Answer(absl::UnavailableError(kStopping));
  state_.executor->Wake();
}

EngineStatus Engine::Status() const {
  EngineStatus status = state_.status.Get();
  status.pending_seals = state_.pending.size();
  const absl::MutexLock lock(&state_.waiting.mu);
  status.waiting = state_.waiting.jobs.size();
  return status;
}

absl::StatusOr<std::optional<DeviationReport>> Engine::Readmit() {
  ASSIGN_OR_RETURN(std::optional<DeviationReport> ended, state_.quarantine.Readmit());
  if (ended.has_value()) state_.executor->Wake();
  return ended;
}

void Engine::SetQuotas(const QuotaRates& rates) {
  state_.quotas.SetRates(rates);
  state_.status.Update([&](EngineStatus& status) { status.quotas = rates; });
}

// ---- The engine's thread ----

void Engine::Main() {
  while (!state_.stopping()) {
    const std::string quarantine = state_.quarantine.Reason();
    const absl::Status ended = quarantine.empty() ? RunSession() : StayOut(quarantine);
    const std::string why(ended.message());
    state_.status.Update([&](EngineStatus& status) {
      status.peers_connected = false;
      if (!state_.stopping()) status.peers_detail = why;
    });
    if (state_.stopping()) return;
    // Jobs wait. Who has taken over goes on in the next session: if it takes over there again a
    // party says one thing and another, and gets no loop of writes for it.
    const bool again = std::exchange(took_over_before_, state_.took_over) && state_.took_over;
    if ((state_.refresh_agreed || state_.took_over) && ended.ok() && !again) continue;
    // The three machines of this triple notice at different moments that another has refreshed.
    (void)state_.store->Look();
    {
      const absl::MutexLock lock(&state_.waiting.mu);
      const absl::Duration pause = ReconnectPause();
      const bool soon =
          state_.refresh_agreed || state_.store->passed() || state_.behind_since.has_value();
      state_.executor->Wait(&state_.waiting.mu, state_.Now() + (soon ? pause / 10 : pause));
    }
    state_.observer->OnPeers(false, why);
    Housekeep();
  }
}

// A random time. Servers that pause equally long can chase each other round the ring for ever, each
// meeting one neighbour's new attempt and the other's last one; whoever pauses longest finds both
// waiting.
absl::Duration Engine::ReconnectPause() {
  uint8_t random = 0;
  state_.random->Fill(absl::MakeSpan(&random, 1));
  return kReconnectPause + random * kReconnectJitter / 256;
}

absl::Status Engine::RunSession() {
  absl::StatusOr<std::unique_ptr<PeerSession>> opened = OpenPeerSession(state_);
  if (!opened.ok()) {
    if (state_.Now() >= state_.refresh_until) state_.refresh_agreed = false;
    NoteDeviation(state_, opened.status(), {}, 0);
    return opened.status();
  }
  PeerSession& session = **opened;
  // Who has taken over leaves it at once and serves in the next.
  if (!state_.took_over) {
    state_.status.Update([](EngineStatus& status) {
      status.peers_connected = true;
      status.peers_detail.clear();
      ++status.sessions;
    });
    state_.observer->OnPeers(true, "");
  }
  state_.clocks.Judge();
  state_.sealing.Tell();
  leader_.NewSession(session.protocol);
  follower_.NewSession();
  absl::Status status;
  while (status.ok() && !state_.stopping() && !state_.refresh_agreed && !state_.took_over) {
    if (state_.catch_up.exchange(false)) status = absl::UnavailableError("keys are to be received");
    if (state_.store->passed()) status = EpochPassed();
    // Another machine of the party saw it.
    if (const std::string why = state_.quarantine.Reason(); !why.empty()) {
      status = absl::FailedPreconditionError(why);
    }
    if (status.ok()) status = state_.peers->StillGood();
    if (!status.ok()) {
      session.party().Abort(status.message());
      break;
    }
    status = RunBatch(session);
    if (status.ok()) status = state_.long_ring.FinishComputed();
    Housekeep();
  }
  // Before the wait: a liar lets the long ring's rounds take as long as it likes.
  NoteDeviation(state_, status, session.party().session_id(), session.number);
  // At the other servers the session ends too: what the long ring computes is answered, or fails.
  status = Weightier(status, state_.long_ring.WaitAndFinish());
  NoteDeviation(state_, status, session.party().session_id(), session.number);
  if (!status.ok()) state_.refresh_agreed = false;
  const bool leaves = state_.refresh_agreed || state_.took_over;
  if (status.ok() && leaves) LeaveTogether(state_, session);
  if (status.ok() && !leaves) session.party().Abort(kStopping);
  return status;
}

// Instead of a session: nothing waits for one.
absl::Status Engine::StayOut(const std::string& quarantine) {
  std::vector<WaitingJobPtr> jobs;
  {
    const absl::MutexLock lock(&state_.waiting.mu);
    jobs = state_.waiting.jobs.TakeAll();
  }
  for (const WaitingJobPtr& job : jobs) {
    state_.answers.Fail(job, Refuse(Verdict::kUnavailable, quarantine));
  }
  FailAllKeyRounds(state_, quarantine);
  RefusePeerSession(state_, quarantine);
  return absl::FailedPreconditionError(quarantine);
}

absl::Status Engine::RunBatch(PeerSession& session) {
  auto ballot = std::make_unique<Ballot>(state_.store);
  ASSIGN_OR_RETURN(const bool voting, state_.party == kLeader
                                          ? leader_.Propose(session, *ballot)
                                          : follower_.ReceiveAndVote(session, *ballot));
  if (!voting) return absl::OkStatus();
  RETURN_IF_ERROR(ReceiveVotes(state_, session, *ballot));
  return RunAgreed(session, std::move(ballot));
}

absl::Status Engine::RunAgreed(PeerSession& session, std::unique_ptr<Ballot> ballot) {
  if (ballot->proposal.entries.empty()) return absl::OkStatus();
  const BatchKind kind = ballot->proposal.kind;
  std::unique_ptr<BatchRun> run;
  if (kind == BatchKind::kRefresh) {
    AgreeToRefresh(state_, *ballot);
  } else if (IsOfJobs(kind)) {
    auto batch = std::make_unique<JobBatch>(&state_, &session, std::move(ballot));
    RETURN_IF_ERROR(batch->Begin());
    run = std::move(batch);
  } else {
    run = BeginKeyRound(state_, session.RingsOf(kind), std::move(ballot));
  }
  if (run == nullptr) return absl::OkStatus();
  if (!IsLong(kind)) return run->Finish(run->Compute());
  state_.long_ring.Give(std::move(run));
  return absl::OkStatus();
}

void Engine::Housekeep() {
  const absl::Time now = state_.Now();
  state_.answers.FailExpired(now);
  FailExpiredKeyRounds(state_, now);
  FailExpiredReplace(state_, now);
  state_.answers.RecordUnbatched();
  state_.quotas.Advance(now);
  state_.quarantine.Save();
  if (now < housekeeping_at_ && housekeeping_at_ <= now + kHousekeeping) return;
  housekeeping_at_ = now + kHousekeeping;
  state_.answers.CheckRecorder();
  state_.answers.WriteCounts();
  state_.quotas.Housekeep();
  state_.grants.Prune(now);
  state_.pending.Prune(now);
  // By a clock that the peers confirm: what a wrong one drops may be fresh by the right one. A
  // store that cannot prune now can later; expired entries do no harm.
  if (state_.clocks.Confirmed(now)) {
    (void)state_.replays.Prune(now);
    state_.status.Update([&](EngineStatus& status) { status.clock_confirmed = now; });
  }
  state_.status.Update([&](EngineStatus& status) {
    status.grants = state_.grants.size();
    status.quota_buckets = state_.quotas.buckets();
    status.quota_known = state_.quotas.known();
  });
}

}  // namespace

EngineState::EngineState(const EngineOptions& options, const EngineTools& tools)
    : options(options),
      store(tools.store),
      clock(tools.clock),
      random(tools.random),
      peers(tools.peers),
      executor(tools.executor),
      observer(OrNobody(tools.observer)),
      certificates(tools.certificates),
      meta(tools.store->Meta()),
      party(meta.identity.party),
      quarantine(store, &status, observer),
      long_ring(&waiting.mu, tools.long_executor, tools.executor),
      clocks(party, options.clock_skew, &status, observer),
      lines(party, &status),
      sealing(store, options.clock_skew, &clocks, &status, observer),
      different(&status, observer),
      quotas(options.quotas, meta.identity.realm),
      replays(store, random),
      judge({options.max_renewable_life, options.clock_skew}, &grants, &replays),
      answers(this, tools.recorder) {
  assert(party >= 0 && party < kParties);
  status.Update([&](EngineStatus& s) {
    s.party = party;
    s.quotas = options.quotas;
  });
}

std::unique_ptr<JobEngine> MakeJobEngine(const EngineOptions& options, const EngineTools& tools) {
  return std::make_unique<Engine>(options, tools);
}

void PrepareCircuits() { CtsWork::PrepareAll(); }

}  // namespace mpckdc
