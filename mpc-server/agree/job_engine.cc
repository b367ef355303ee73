// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/job_engine.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/agree/engine_core.h"
#include "mpc-server/job/validate.h"

namespace mpckdc {

JobEngine::JobEngine(const EngineOptions& options, const EngineParts& parts)
    : impl_(std::make_unique<Impl>(options, parts)) {}
JobEngine::~JobEngine() { Stop(); }

absl::Status JobEngine::Start() { return impl_->Start(); }
void JobEngine::PreparePrograms() { CtsWork::PrepareAll(); }
void JobEngine::Stop() { impl_->Stop(); }
void JobEngine::Submit(const KdcIdentity& kdc, Job job, JobCallback done) {
  impl_->Submit(kdc, std::move(job), std::move(done));
}
TagResult JobEngine::FinishTag(const KdcIdentity& kdc, const TagRequest& request) {
  return impl_->FinishTag(kdc, request);
}
void JobEngine::DrawKey(const TransactionId& txn, const KeyInfo& info, DrawCallback done) {
  impl_->DrawKey(txn, info, std::move(done));
}
void JobEngine::VerifyKeys(const std::array<uint8_t, 16>& request, std::vector<Handle> handles,
                           VerifyCallback done) {
  impl_->VerifyKeys(request, std::move(handles), std::move(done));
}
EngineStatus JobEngine::Status() const { return impl_->Status(); }
void JobEngine::SetQuotas(const QuotaRates& rates) { impl_->SetQuotas(rates); }

namespace {

absl::Duration DeadlineOf(const Job& job) {
  if (job.deadline_ms == 0) return limits::kDefaultJobDeadline;
  return std::min(absl::Milliseconds(job.deadline_ms), limits::kMaxJobDeadline);
}

JobResult Refusal(JobId id, Judgement why) { return {id, std::move(why), {}, {}, {}}; }

const char kStopping[] = "the server is stopping";

}  // namespace

JobEngine::Impl::Impl(const EngineOptions& options, const EngineParts& parts)
    : options_(options),
      store_(parts.store),
      clock_(parts.clock),
      random_(parts.random),
      peers_(parts.peers),
      executor_(parts.executor),
      observer_(parts.observer),
      recorder_(parts.recorder),
      meta_(parts.store->Meta()),
      party_(meta_.identity.party),
      nonces_(parts.store, options.clock_skew),
      replays_(parts.store, parts.random),
      quotas_(options.quotas),
      judge_({options.max_renewable_life, options.clock_skew}, &grants_, &replays_) {
  assert(party_ >= 0 && party_ < kParties);
  const absl::MutexLock lock(&mu_);
  status_.party = party_;
  status_.quotas = options.quotas;
}

absl::Status JobEngine::Impl::Start() {
  absl::Status loaded = nonces_.Load();
  if (loaded.ok()) loaded = replays_.Load();
  if (!loaded.ok()) return loaded;
  executor_->Start(absl::StrCat("mpc-engine-", party_), [this] { Main(); });
  return absl::OkStatus();
}

void JobEngine::Impl::Stop() {
  if (stopping_.exchange(true)) return;
  peers_->Shutdown();
  executor_->Wake();
  executor_->Join();
  FailAll(kStopping);
  RecordUnbatched();  // the engine's thread has ended
}

void JobEngine::Impl::Submit(const KdcIdentity& kdc, Job job, JobCallback done) {
  auto waiting = std::make_shared<WaitingJob>();
  waiting->kdc = kdc;
  waiting->group = KdcKey(kdc);
  waiting->digest = JobDigest(kdc, job);
  waiting->received = clock_->Now();
  waiting->deadline = waiting->received + DeadlineOf(job);
  Judgement shape = CheckShape(job);
  if (shape.ok()) waiting->blocks = BlocksOfJob(job);
  const JobId id = job.id;
  waiting->job = std::move(job);
  {
    const absl::MutexLock lock(&mu_);
    Judgement taken = queue_.TakeId(waiting->group, id, waiting->received);
    if (!taken.ok()) shape = std::move(taken);
    if (shape.ok() && stopping()) shape = Refuse(Verdict::kUnavailable, kStopping);
    if (shape.ok()) {
      waiting->done = std::move(done);
      queue_.Add(std::move(waiting));
    } else {
      ++status_.jobs;
      ++status_.jobs_failed;
      KeepUnbatched(*waiting, shape);
    }
  }
  if (!shape.ok()) return done(Refusal(id, std::move(shape)));
  executor_->Wake();
}

TagResult JobEngine::Impl::FinishTag(const KdcIdentity& kdc, const TagRequest& request) {
  return pending_.Finish(kdc, request, clock_->Now());
}

EngineStatus JobEngine::Impl::Status() const {
  const absl::MutexLock lock(&mu_);
  EngineStatus status = status_;
  status.waiting = queue_.size();
  status.pending_seals = pending_.size();
  return status;
}

void JobEngine::Impl::SetQuotas(const QuotaRates& rates) {
  const absl::MutexLock lock(&mu_);
  new_quotas_ = rates;
  status_.quotas = rates;
}

void JobEngine::Impl::DrawKey(const TransactionId& txn, const KeyInfo& info, DrawCallback done) {
  absl::Status good = CheckKeyInfo(info);
  if (good.ok() && stopping()) good = absl::UnavailableError(kStopping);
  if (!good.ok()) return done(good);
  const absl::StatusOr<KeyRecord> staged = store_->GetStaged(txn, info.handle);
  if (staged.ok()) {
    return done(staged->info == info
                    ? absl::OkStatus()
                    : absl::AlreadyExistsError("the transaction holds another key of this handle"));
  }
  if (!absl::IsNotFound(staged.status())) return done(staged.status());
  auto draw = std::make_shared<WaitingDraw>();
  draw->txn = txn;
  draw->info = info;
  draw->digest = DrawDigest(info);
  draw->deadline = clock_->Now() + limits::kDrawKeyTimeout;
  draw->done = std::move(done);
  {
    const absl::MutexLock lock(&mu_);
    draws_.push_back(std::move(draw));
  }
  executor_->Wake();
}

void JobEngine::Impl::VerifyKeys(const GroupId& request, std::vector<Handle> handles,
                                 VerifyCallback done) {
  if (handles.empty()) return done(std::vector<VerifyResult>());
  if (stopping()) return done(absl::UnavailableError(kStopping));
  if (handles.size() > limits::kMaxKeysPerCall) {
    return done(absl::InvalidArgumentError(absl::StrCat(
        handles.size(), " handles, at most ", limits::kMaxKeysPerCall, " in one call")));
  }
  auto verify = std::make_shared<WaitingVerify>();
  verify->request = request;
  verify->handles = std::move(handles);
  verify->deadline = clock_->Now() + limits::kDrawKeyTimeout;
  verify->done = std::move(done);
  {
    const absl::MutexLock lock(&mu_);
    verifies_.push_back(std::move(verify));
  }
  executor_->Wake();
}

void JobEngine::Impl::Finish(const WaitingJobPtr& job, JobResult result) {
  {
    const absl::MutexLock lock(&mu_);
    queue_.Remove(*job);
    ++status_.jobs;
    if (!result.judgement.ok()) ++status_.jobs_failed;
    if (result.judgement.verdict == Verdict::kQuota && job->over.has_value()) {
      ++status_.quota_refused[static_cast<size_t>(*job->over)];
    }
  }
  if (job->done) std::exchange(job->done, nullptr)(std::move(result));
}

// Of a job that no batch took.
void JobEngine::Impl::Fail(const WaitingJobPtr& job, Judgement why) {
  GiveBackQuota(*job);
  {
    const absl::MutexLock lock(&mu_);
    KeepUnbatched(*job, why);
  }
  Finish(job, Refusal(job->job.id, std::move(why)));
}

void JobEngine::Impl::FailExpired(absl::Time now) {
  std::vector<WaitingJobPtr> expired;
  bool connected;
  {
    const absl::MutexLock lock(&mu_);
    expired = queue_.TakeExpired(now);
    connected = status_.peers_connected;
  }
  for (const WaitingJobPtr& job : expired) {
    if (!connected) {
      Fail(job, Refuse(Verdict::kUnavailable, "no connection between the servers"));
    } else {
      const char* const why = job->misses > 0 ? "another server did not receive the job"
                                              : "not started before its deadline";
      Fail(job, Refuse(Verdict::kDeadline, why));
    }
  }
}

void JobEngine::Impl::FailAll(const std::string& why) {
  std::vector<WaitingJobPtr> jobs;
  std::list<std::shared_ptr<WaitingDraw>> draws;
  std::list<std::shared_ptr<WaitingVerify>> verifies;
  {
    const absl::MutexLock lock(&mu_);
    jobs = queue_.TakeAll();
    draws.swap(draws_);
    verifies.swap(verifies_);
  }
  for (const WaitingJobPtr& job : jobs) Fail(job, Refuse(Verdict::kUnavailable, why));
  for (const auto& draw : draws) FinishDraw(draw, absl::UnavailableError(why));
  for (const auto& verify : verifies) FinishVerify(verify, absl::UnavailableError(why));
}

}  // namespace mpckdc
