// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/answers.h"

#include "mpc-server/agree/engine_state.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/job/ticket_header.h"

namespace mpckdc {
namespace {

std::vector<KeyUsed> KeysOf(const Job& job) {
  std::vector<KeyUsed> keys;
  const auto add = [&keys](PartKind kind, const auto& parts) {
    for (const auto& part : parts) keys.push_back({kind, part.usage, part.handle});
  };
  add(PartKind::kOpen, job.opens);
  add(PartKind::kSeal, job.seals);
  add(PartKind::kMakeMac, job.make_macs);
  add(PartKind::kVerifyMac, job.verify_macs);
  // A job with more was refused before anything looked at them.
  if (keys.size() > limits::kMaxPartsPerJob) keys.resize(limits::kMaxPartsPerJob);
  return keys;
}

// What an audit line says of a job, but for the principals of its keys.
BatchJob LineOf(const WaitingJob& waiting, const Judgement& judgement) {
  const Job& job = waiting.job;
  return {waiting.kdc, job.id,       job.operation, PrincipalOfTicket(job), waiting.digest,
          judgement,   KeysOf(job), false,         job.request};
}

PrincipalId PrincipalOf(const Handle& handle, BatchRecords& records) {
  const KeyInfo* info = records.FindInfo(handle);
  return info != nullptr ? info->principal_id : PrincipalId{};
}

void NamePrincipals(const std::optional<Handle>& client, BatchRecords& records, BatchJob* line) {
  if (client.has_value()) line->principal = PrincipalOf(*client, records);
  for (KeyUsed& key : line->keys) {
    if (const KeyInfo* info = records.FindInfo(key.handle)) {
      key.principal = info->principal_id;
      key.enctype = info->enctype;
    }
  }
}

}  // namespace

Answer BareAnswer(const WaitingJobPtr& job, Judgement judgement) {
  return {job, {job->job.id, std::move(judgement), {}, {}, {}}, {}};
}

const std::string& Answers::CheckRecorder() {
  if (recorder_ == nullptr) return unrecorded_;
  const std::string why(recorder_->Ready().message());
  if (why == unrecorded_) return unrecorded_;
  unrecorded_ = why;
  state_.status.Update([&](EngineStatus& status) { status.unrecorded = why; });
  return unrecorded_;
}

void Answers::RecordThenAnswer(std::vector<Answer> answers, BatchRecords& records,
                               BatchReport* report) {
  for (const Answer& answer : answers) {
    report->jobs.push_back(LineOf(*answer.job, answer.result.judgement));
    NamePrincipals(answer.job->job.client, records, &report->jobs.back());
    report->jobs.back().computed = answer.computed;
  }
  absl::Status recorded;
  if (recorder_ != nullptr && !answers.empty()) recorded = recorder_->Record(*report);
  if (!recorded.ok()) CheckRecorder();
  const absl::Time now = state_.Now();
  for (size_t i = 0; i < answers.size(); ++i) {
    Answer& answer = answers[i];
    if (!recorded.ok() && answer.result.judgement.ok()) {
      answer = BareAnswer(answer.job,
                          Refuse(Verdict::kUnavailable, std::string(recorded.message())));
      report->jobs[i].judgement = answer.result.judgement;
    }
    if (answer.pending.waiting) {
      state_.pending.Add(answer.job->kdc, answer.job->job.id, std::move(answer.pending),
                         now + limits::kPendingSealLife);
    }
    Tell(answer.job, std::move(answer.result));
  }
}

void Answers::Tell(const WaitingJobPtr& job, JobResult result) {
  {
    const absl::MutexLock lock(&state_.waiting.mu);
    state_.waiting.jobs.Remove(*job);
  }
  state_.status.Update([&](EngineStatus& status) {
    ++status.jobs;
    if (!result.judgement.ok()) {
      ++status.jobs_failed;
    } else if (job->job.operation == Operation::kLogin) {
      ++status.logins;
    }
    const Verdict verdict = result.judgement.verdict;
    if ((verdict == Verdict::kQuota || verdict == Verdict::kUnproved) && job->over.has_value()) {
      ++status.quota_refused[static_cast<size_t>(*job->over)];
    }
  });
  if (job->done) std::exchange(job->done, nullptr)(std::move(result));
}

void Answers::RefuseOnSight(const WaitingJobPtr& job, Judgement why) {
  KeepUnbatched(*job, why);
  Tell(job, BareAnswer(job, std::move(why)).result);
}

void Answers::Fail(const WaitingJobPtr& job, Judgement why) {
  state_.quotas.GiveBack(*job);
  RefuseOnSight(job, std::move(why));
}

void Answers::FailExpired(absl::Time now) {
  std::vector<WaitingJobPtr> expired;
  {
    const absl::MutexLock lock(&state_.waiting.mu);
    expired = state_.waiting.jobs.TakeExpired(now);
  }
  if (expired.empty()) return;
  const bool connected = state_.status.Get().peers_connected;
  for (const WaitingJobPtr& job : expired) {
    if (!connected) {
      Fail(job, Refuse(Verdict::kUnavailable, "no connection between the servers"));
    } else {
      Fail(job, Refuse(Verdict::kDeadline, job->misses > 0
                                               ? "another server did not receive the job"
                                               : "not started before its deadline"));
    }
  }
}

void Answers::KeepUnbatched(const WaitingJob& job, const Judgement& why) {
  if (recorder_ == nullptr) return;
  const absl::MutexLock lock(&mu_);
  if (unbatched_.size() < limits::kMaxUnbatchedJobs) {
    unbatched_.emplace_back(job.job.client, LineOf(job, why));
  } else {
    ++left_out_;
  }
}

void Answers::RecordUnbatched() {
  decltype(unbatched_) jobs;
  uint64_t left_out = 0;
  {
    const absl::MutexLock lock(&mu_);
    jobs.swap(unbatched_);
    std::swap(left_out, left_out_);
  }
  if (jobs.empty()) return;
  BatchRecords records(state_.store);
  std::vector<BatchJob> lines;
  for (auto& [client, line] : jobs) {
    NamePrincipals(client, records, &line);
    lines.push_back(std::move(line));
  }
  recorder_->RecordUnbatched(lines, left_out);
}

}  // namespace mpckdc
