// SPDX-License-Identifier: Apache-2.0
#include "kdc-plugin/client/job_client.h"

#include <syslog.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/package/package.h"

namespace mpckdc::client {
namespace {

std::string Text(const char* text) { return text == nullptr ? "" : text; }
std::string Copy(mpc_bytes bytes) {
  return bytes.size == 0 ? "" : std::string(reinterpret_cast<const char*>(bytes.data), bytes.size);
}

// The servers give up a job a little before we do, so that their answer says why.
uint32_t ServerDeadline(uint32_t timeout_ms) { return timeout_ms - timeout_ms / 4; }

}  // namespace

JobClient::JobClient(const mpc_options& options)
    : realm_(Text(options.realm)),
      cluster_(options.cluster),
      timeout_(absl::Milliseconds(options.timeout_ms)),
      job_deadline_ms_(ServerDeadline(options.timeout_ms)),
      log_(options.log) {}

absl::StatusOr<std::unique_ptr<JobClient>> JobClient::Start(const mpc_options& options) {
  if (options.timeout_ms == 0) return absl::InvalidArgumentError("the timeout is zero");
  auto client = std::unique_ptr<JobClient>(new JobClient(options));
  v1::Hello hello;
  hello.set_min_version(kVersionMin);
  hello.set_max_version(kVersionMax);
  hello.set_session(enroll::RandomIdentifier());
  hello.set_realm(client->realm_);
  hello.set_software("mpc-kdc " MPCKDC_VERSION);
  const enroll::AdminIdentity identity = {Text(options.certificate_file), Text(options.key_file),
                                          Text(options.ca_file)};
  for (int i = 0; i < MPC_SERVERS; ++i) {
    const std::string address = Text(options.servers[i]);
    if (address.empty()) return absl::InvalidArgumentError("three servers must be named");
    client->streams_[i] = std::make_unique<ServerStream>(i, address, identity, client->realm_,
                                                         hello, client->timeout_, client.get());
  }
  // The first attempts start here, so that jobs submitted from now on wait for their outcome.
  for (auto& stream : client->streams_) stream->Tick(absl::Now());
  client->timer_ = std::thread([c = client.get()] { c->RunTimer(); });
  return client;
}

JobClient::~JobClient() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    timer_wake_.Signal();
  }
  if (timer_.joinable()) timer_.join();
  for (auto& stream : streams_) {
    if (stream != nullptr) stream->Stop();  // fails what it has not answered
  }
  Finished finished;
  {
    absl::MutexLock lock(&mu_);
    for (auto& [id, job] : jobs_) finished.jobs.emplace_back(id, std::move(job));
    for (auto& [key, tag] : tags_) finished.tags.push_back(std::move(tag));
    jobs_.clear();
    tags_.clear();
  }
  for (auto& [id, job] : finished.jobs) job->combiner.Fail(Unavailable("the KDC is stopping"));
  for (auto& tag : finished.tags) tag->combiner.Fail(Unavailable("the KDC is stopping"));
  Deliver(std::move(finished));
}

void JobClient::Submit(const mpc_job& job, mpc_job_done done, void* arg) {
  const absl::Status fit = CheckJob(job);
  auto pending = std::make_unique<PendingJob>(fit.ok() ? job : mpc_job{});
  pending->done = done;
  pending->arg = arg;
  if (!fit.ok()) {
    Refuse(std::move(pending), std::string(fit.message()));
    return;
  }
  WireJob wire(job, job_deadline_ms_);
  uint64_t id = 0;
  std::string refusal;
  {
    absl::MutexLock submit_lock(&submit_mu_);
    {
      absl::MutexLock lock(&mu_);
      if (jobs_.size() >= kMaxInFlight) {
        refusal = absl::StrCat(kMaxInFlight, " jobs are in flight");
      } else {
        id = next_id_++;
        jobs_.emplace(id, std::move(pending));
        AddDue({absl::Now(), id, std::nullopt});
      }
    }
    if (id != 0) {
      wire.set_id(id);
      if (absl::Status s = SendToAll(wire); !s.ok()) refusal = std::string(s.message());
    }
  }
  if (refusal.empty()) return;
  if (id != 0) {
    FailJob(id, refusal);
  } else {
    Refuse(std::move(pending), refusal);
  }
}

absl::Status JobClient::SendToAll(WireJob& wire) {
  std::string entry;
  absl::Status status;
  for (int i = 0; i < MPC_SERVERS && status.ok(); ++i) {
    if (entry.empty() || wire.has_shares()) entry = wire.Encode(i);
    status = streams_[i]->Send(entry, wire.has_shares());
    if (wire.has_shares()) Wipe(entry.data(), entry.size());
  }
  return status;
}

// Ends a job that was not sent.
void JobClient::Refuse(std::unique_ptr<PendingJob> pending, const std::string& reason) {
  pending->combiner.Fail(Unavailable(reason));
  Finished finished;
  finished.jobs.emplace_back(0, std::move(pending));
  Deliver(std::move(finished));
}

void JobClient::RequestTag(uint64_t id, uint32_t seal, mpc_bytes ciphertext, mpc_tag_done done,
                           void* arg) {
  v1::TagRequest wire;
  wire.set_job(id);
  wire.set_seal(seal);
  wire.set_ciphertext(Copy(ciphertext));
  auto pending = std::make_unique<PendingTag>();
  pending->done = done;
  pending->arg = arg;
  const TagKey key = {id, seal};
  std::string refusal;
  {
    absl::MutexLock lock(&mu_);
    if (tags_.size() >= kMaxInFlight) {
      refusal = absl::StrCat(kMaxInFlight, " tag requests are in flight");
    } else if (tags_.contains(key)) {
      refusal = "this tag is being asked for already";
    } else {
      tags_.emplace(key, std::move(pending));
      AddDue({absl::Now(), id, seal});
    }
  }
  if (!refusal.empty()) {
    pending->combiner.Fail(Unavailable(refusal));
    Finished finished;
    finished.tags.push_back(std::move(pending));
    Deliver(std::move(finished));
    return;
  }
  const std::string entry = EncodeEntry(wire);
  for (auto& stream : streams_) {
    if (absl::Status s = stream->Send(entry); !s.ok()) {
      FailTag(key, std::string(s.message()));
      return;
    }
  }
}

void JobClient::FailJob(uint64_t id, const std::string& reason) {
  Finished finished;
  {
    absl::MutexLock lock(&mu_);
    auto found = jobs_.find(id);
    if (found == jobs_.end()) return;  // a stream that ended was faster
    found->second->combiner.Fail(Unavailable(reason));
    finished.jobs.emplace_back(id, std::move(found->second));
    jobs_.erase(found);
  }
  Deliver(std::move(finished));
}

void JobClient::FailTag(TagKey key, const std::string& reason) {
  Finished finished;
  {
    absl::MutexLock lock(&mu_);
    auto found = tags_.find(key);
    if (found == tags_.end()) return;
    found->second->combiner.Fail(Unavailable(reason));
    finished.tags.push_back(std::move(found->second));
    tags_.erase(found);
  }
  Deliver(std::move(finished));
}

void JobClient::Deliver(Finished finished) {
  for (auto& [id, job] : finished.jobs) job->done(job->arg, job->combiner.Take(id));
  for (auto& tag : finished.tags) {
    const Outcome& outcome = tag->combiner.outcome();
    tag->done(tag->arg, outcome.verdict,
              outcome.verdict == MPC_OK ? tag->combiner.tag() : nullptr, outcome.detail.c_str());
  }
}

void JobClient::OnAnswers(int server, v1::ServerMessage& message) {
  const int jobs = message.jobs_size(), all = jobs + message.tags_size();
  for (int i = 0; i < all;) {
    Finished finished;
    {
      absl::MutexLock lock(&mu_);
      for (const int end = std::min(all, i + kAnswersPerLock); i < end; ++i) {
        if (i < jobs) {
          TakeJobAnswer(server, message.jobs(i), finished);
        } else {
          TakeTagAnswer(server, message.tags(i - jobs), finished);
        }
      }
    }
    const Burst burst(streams_);  // what the answers lead to
    Deliver(std::move(finished));
  }
}

void JobClient::TakeJobAnswer(int server, const v1::JobAnswer& answer, Finished& finished) {
  auto found = jobs_.find(answer.id());
  if (found == jobs_.end()) return;  // ended before; the other servers were faster
  if (!found->second->combiner.Add(server, answer, streams_[server]->address())) return;
  finished.jobs.emplace_back(answer.id(), std::move(found->second));
  jobs_.erase(found);
}

void JobClient::TakeTagAnswer(int server, const v1::TagAnswer& answer, Finished& finished) {
  auto found = tags_.find(TagKey{answer.job(), answer.seal()});
  if (found == tags_.end()) return;
  if (!found->second->combiner.Add(server, answer, streams_[server]->address())) return;
  finished.tags.push_back(std::move(found->second));
  tags_.erase(found);
}

absl::Status JobClient::OnWelcome(int server, const v1::Welcome& welcome,
                                  const std::string& certificate) {
  const Member member = {welcome.party(), welcome.cluster(), welcome.epoch(), certificate};
  const std::string& address = streams_[server]->address();
  if (welcome.realm() != realm_) {
    return absl::FailedPreconditionError(
        absl::StrCat("the server serves realm \"", welcome.realm(), "\", not ", realm_));
  }
  {
    absl::MutexLock lock(&mu_);
    RETURN_IF_ERROR(CheckAgainstOthers(server, member));
    members_[server] = member;
  }
  const absl::Duration skew = absl::FromUnixMicros(welcome.time_us()) - absl::Now();
  if (absl::AbsDuration(skew) > kServerClockWarning) {
    Log(LOG_WARNING, absl::StrCat("MPC server ", address, ": its clock differs from this KDC's by ",
                                  absl::FormatDuration(absl::Trunc(skew, absl::Seconds(1)))));
  }
  LogChange(server, LOG_INFO,
            absl::StrCat("MPC server ", address, ": connected, party ", member.party, ", cluster ",
                         member.cluster, ", epoch ", member.epoch, ", ", welcome.software()));
  return absl::OkStatus();
}

absl::Status JobClient::CheckAgainstOthers(int server, const Member& member) {
  if (member.party >= MPC_SERVERS) {
    return absl::FailedPreconditionError(
        absl::StrCat("the server says it is party ", member.party));
  }
  if (cluster_ >= 0 && member.cluster != cluster_) {
    return absl::FailedPreconditionError(absl::StrCat("the server belongs to cluster ",
                                                      member.cluster, ", mpc_cluster is ",
                                                      cluster_));
  }
  for (int other = 0; other < MPC_SERVERS; ++other) {
    if (other == server || !members_[other].has_value()) continue;
    const Member& them = *members_[other];
    const std::string& name = streams_[other]->address();
    if (them.party == member.party) {
      return absl::FailedPreconditionError(
          absl::StrCat("the server says it is party ", member.party, ", and so does ", name));
    }
    if (!member.certificate.empty() && them.certificate == member.certificate) {
      return absl::FailedPreconditionError(
          absl::StrCat("the server shows the certificate of ", name, ": ", member.certificate));
    }
    if (them.cluster != member.cluster || them.epoch != member.epoch) {
      return absl::FailedPreconditionError(
          absl::StrCat("the server is of cluster ", member.cluster, " epoch ", member.epoch, ", ",
                       name, " of cluster ", them.cluster, " epoch ", them.epoch));
    }
  }
  return absl::OkStatus();
}

void JobClient::OnDown(int server, const std::string& reason) {
  const std::string text = absl::StrCat("MPC server ", streams_[server]->address(), ": ", reason);
  Finished finished;
  bool stopping = false;
  {
    absl::MutexLock lock(&mu_);
    members_[server].reset();
    stopping = stopping_;
    for (auto it = jobs_.begin(); it != jobs_.end();) {
      auto current = it++;
      if (current->second->combiner.Answered(server)) continue;
      current->second->combiner.Fail(Unavailable(text));
      finished.jobs.emplace_back(current->first, std::move(current->second));
      jobs_.erase(current);
    }
    for (auto it = tags_.begin(); it != tags_.end();) {
      auto current = it++;
      if (current->second->combiner.Answered(server)) continue;
      current->second->combiner.Fail(Unavailable(text));
      finished.tags.push_back(std::move(current->second));
      tags_.erase(current);
    }
  }
  if (!stopping) LogChange(server, LOG_ERR, text);
  Deliver(std::move(finished));
}

void JobClient::OnRetryDue() {
  absl::MutexLock lock(&mu_);
  timer_wanted_ = true;
  timer_wake_.Signal();
}

std::string JobClient::MissingServers(const PendingJob* job, const PendingTag* tag) const {
  std::vector<std::string> missing;
  for (int i = 0; i < MPC_SERVERS; ++i) {
    const bool answered = job != nullptr ? job->combiner.Answered(i) : tag->combiner.Answered(i);
    if (!answered) missing.push_back(streams_[i]->address());
  }
  return absl::StrCat("no answer within ", absl::FormatDuration(timeout_), " from ",
                      absl::StrJoin(missing, " "), "; see mpc-admin status");
}

bool JobClient::Waits(const Due& due) const {
  return due.tag_of_seal.has_value() ? tags_.contains(TagKey{due.job, *due.tag_of_seal})
                                     : jobs_.contains(due.job);
}

// Those before it that have been answered are forgotten, a few at a time.
void JobClient::AddDue(Due due) {
  due_.push_back(due);
  for (int i = 0; i < 3 && !Waits(due_.front()); ++i) due_.pop_front();
}

// As early as a stream is dropped for its silence (kSoon), so that a job ends with its own reason.
// Returns when to look again: nothing that is submitted meanwhile is due before.
absl::Time JobClient::ExpireDue(absl::Time now, Finished& finished) {
  while (!due_.empty() && !Waits(due_.front())) due_.pop_front();
  while (!due_.empty() && due_.front().submitted + timeout_ <= now + kSoon) {
    const Due due = due_.front();
    due_.pop_front();
    if (due.tag_of_seal.has_value()) {
      auto found = tags_.find(TagKey{due.job, *due.tag_of_seal});
      if (found == tags_.end()) continue;
      found->second->combiner.Fail(Unavailable(MissingServers(nullptr, found->second.get())));
      finished.tags.push_back(std::move(found->second));
      tags_.erase(found);
    } else {
      auto found = jobs_.find(due.job);
      if (found == jobs_.end()) continue;
      found->second->combiner.Fail(Unavailable(MissingServers(found->second.get(), nullptr)));
      finished.jobs.emplace_back(due.job, std::move(found->second));
      jobs_.erase(found);
    }
  }
  return (due_.empty() ? now : due_.front().submitted) + timeout_;
}

void JobClient::RunTimer() {
  while (true) {
    const absl::Time now = absl::Now();
    absl::Time next;
    Finished finished;
    {
      absl::MutexLock lock(&mu_);
      next = ExpireDue(now, finished);
    }
    // After it, since what expired names who is missing, and before anybody is told: who asks again
    // then does not ask the silent connection.
    for (auto& stream : streams_) next = std::min(next, stream->Tick(now));
    Deliver(std::move(finished));
    absl::MutexLock lock(&mu_);
    if (stopping_) return;
    if (!timer_wanted_) timer_wake_.WaitWithDeadline(&mu_, next);
    timer_wanted_ = false;
    if (stopping_) return;
  }
}

void JobClient::Log(int priority, const std::string& text) {
  if (log_ != nullptr) log_(priority, text.c_str());
}

// A server that stays away is named once a minute, not once per attempt.
void JobClient::LogChange(int server, int priority, const std::string& text) {
  {
    absl::MutexLock lock(&log_mu_);
    const absl::Time now = absl::Now();
    if (last_text_[server] == text && now - last_logged_[server] < kSameTextAgain) return;
    last_text_[server] = text;
    last_logged_[server] = now;
  }
  Log(priority, text);
}

}  // namespace mpckdc::client
