// SPDX-License-Identifier: Apache-2.0
#include "kdc-plugin/client/job_client.h"

#include <syslog.h>

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "kdc-plugin/client/text.h"
#include "kdc-plugin/client/wire_job.h"
#include "mpc-server/base/one_line.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/base/version.h"
#include "mpc-server/package/package.h"

namespace mpckdc::client {

JobClient::JobClient(const mpc_options& options, TripleNumber which, TripleObserver* observer)
    : realm_(Text(options.realm)),
      cluster_(options.cluster < 0 ? options.cluster : options.cluster + which.number),
      which_(which),
      observer_(observer),
      timeout_(absl::Milliseconds(options.timeout_ms)),
      log_(options.log),
      metrics_(options.metrics),
      log_prefix_(LogPrefix(options)),
      next_id_(static_cast<uint64_t>(which.number) + static_cast<uint64_t>(which.count)),
      shortest_(timeout_) {}

v1::Hello JobClient::MakeHello() const {
  v1::Hello hello;
  hello.set_min_version(kVersionMin);
  hello.set_max_version(kVersionMax);
  hello.set_session(enroll::RandomIdentifier());
  hello.set_realm(realm_);
  hello.set_software("mpc-kdc " MPCKDC_VERSION);
  return hello;
}

absl::StatusOr<std::unique_ptr<JobClient>> JobClient::Start(const mpc_options& options,
                                                            TripleNumber which,
                                                            TripleObserver* observer) {
  if (options.timeout_ms == 0) return absl::InvalidArgumentError("the timeout is zero");
  auto client = std::unique_ptr<JobClient>(new JobClient(options, which, observer));
  const v1::Hello hello = client->MakeHello();
  const enroll::AdminIdentity identity = {Text(options.certificate_file), Text(options.key_file),
                                          Text(options.ca_file)};
  for (int i = 0; i < MPC_SERVERS; ++i) {
    const std::string address = Text(options.servers[which.number * MPC_SERVERS + i]);
    if (address.empty()) return absl::InvalidArgumentError("three servers must be named");
    client->streams_[i] = std::make_unique<ServerStream>(i, address, identity, client->realm_,
                                                         hello, client->timeout_, client.get());
  }
  // The first attempts start here, so that jobs submitted from now on wait for their outcome.
  for (auto& stream : client->streams_) stream->Tick(SteadyNow());
  client->timer_ = std::thread([c = client.get()] { c->RunTimer(); });
  return client;
}

void JobClient::Stop() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    timer_wake_.SignalAll();
  }
  if (timer_.joinable()) timer_.join();
  for (auto& stream : streams_) {
    if (stream != nullptr) stream->Stop();  // fails what it has not answered
  }
  Finished finished;
  {
    absl::MutexLock lock(&mu_);
    for (Pending& kind : pending_) {
      for (auto& [key, pending] : kind) finished.push_back(std::move(pending));
      kind.clear();
    }
  }
  for (auto& pending : finished) pending->Fail(Unavailable("the KDC is stopping"));
  for (auto& pending : finished) pending->Deliver();
}

void JobClient::Submit(const mpc_job& job, const JobTime& time, mpc_job_done done, void* arg) {
  absl::Status sent = CheckJob(job);
  auto* combiner = new JobCombiner(sent.ok() ? job : mpc_job{}, done, arg);
  std::unique_ptr<Combiner> pending(combiner);
  Key key;
  if (sent.ok()) {
    // The servers give up a job a little before we do, so that their answer says why.
    const absl::Duration left =
        std::max(time.submitted + timeout_ - SteadyNow(), absl::Milliseconds(4));
    const absl::Duration deadline = absl::Ceil(left - left / 4, absl::Milliseconds(1));
    WireJob wire(job, static_cast<uint32_t>(absl::ToInt64Milliseconds(deadline)));
    absl::MutexLock submit_lock(&submit_mu_);
    key.first = next_id_;
    combiner->set_id(key.first);
    wire.set_id(key.first);
    sent = Register(key, time, pending);
    if (sent.ok()) {
      next_id_ += static_cast<uint64_t>(which_.count);
      sent = SendToAll(wire);
    }
  }
  if (!sent.ok()) Refuse(key, std::move(pending), sent);
}

absl::Status JobClient::SendToAll(WireJob& wire) {
  std::string entry;
  absl::Status status;
  std::array<int, MPC_SERVERS> parties{};
  if (wire.has_shares()) {
    absl::MutexLock lock(&mu_);
    ASSIGN_OR_RETURN(parties, Parties());
  }
  for (int i = 0; i < MPC_SERVERS && status.ok(); ++i) {
    if (entry.empty() || wire.has_shares()) entry = wire.Encode(parties[i]);
    status = streams_[i]->Send(entry, wire.has_shares());
    if (wire.has_shares()) Wipe(entry.data(), entry.size());
  }
  return status;
}

// A text's components go by party. A seal with a text follows another job of this process, so that
// the servers have said theirs.
absl::StatusOr<std::array<int, MPC_SERVERS>> JobClient::Parties() const {
  std::array<int, MPC_SERVERS> parties{};
  int seen = 0;
  for (int i = 0; i < MPC_SERVERS; ++i) {
    if (parties_[i] < 0) {
      return absl::UnavailableError(
          absl::StrCat(streams_[i]->address(), ": not reached yet, and a text to seal needs all"));
    }
    parties[i] = parties_[i];
    seen |= 1 << parties[i];
  }
  if (seen == (1 << MPC_SERVERS) - 1) return parties;
  return absl::UnavailableError("the servers' parties changed; see mpc-admin status");
}

void JobClient::RequestTag(const WantedTag& tag, mpc_tag_done done, void* arg) {
  v1::TagRequest wire;
  wire.set_job(tag.job);
  wire.set_seal(tag.seal);
  wire.set_ciphertext(Copy(tag.ciphertext));
  wire.set_request(tag.request);
  const Key key = {tag.job, tag.seal};
  std::unique_ptr<Combiner> pending = std::make_unique<TagCombiner>(done, arg);
  absl::Status sent = Register(key, {SteadyNow(), timeout_}, pending);
  if (sent.ok()) {
    const std::string entry = EncodeEntry(wire);
    for (int i = 0; i < MPC_SERVERS && sent.ok(); ++i) sent = streams_[i]->Send(entry);
  }
  if (!sent.ok()) Refuse(key, std::move(pending), sent);
}

absl::Status JobClient::Register(const Key& key, const JobTime& time,
                                 std::unique_ptr<Combiner>& pending) {
  absl::MutexLock lock(&mu_);
  Pending& kind = Of(key);
  const absl::Time now = SteadyNow(), last = time.submitted + timeout_;
  pending->set_sent(now);
  if (kind.size() >= kMaxInFlight) {
    return absl::ResourceExhaustedError(absl::StrCat(
        kMaxInFlight, key.second.has_value() ? " tag requests" : " jobs", " are in flight"));
  }
  if (!kind.try_emplace(key, std::move(pending)).second) {
    return absl::AlreadyExistsError("this tag is being asked for already");
  }
  if (time.silent < shortest_) {  // the timer looks as often as that from now on
    shortest_ = time.silent;
    timer_wanted_ = true;
    timer_wake_.SignalAll();
  }
  due_.emplace_hint(due_.end(), std::min(last, now + time.silent), Due{key, now, last});
  // Those that are due first and have been answered are forgotten, a few at a time.
  for (int i = 0; i < 3; ++i) {
    const Key& first = due_.begin()->second.key;
    if (Of(first).contains(first)) break;
    due_.erase(due_.begin());
  }
  return absl::OkStatus();
}

std::unique_ptr<Combiner> JobClient::Remove(const Key& key) {
  auto found = Of(key).find(key);
  if (found == Of(key).end()) return nullptr;
  std::unique_ptr<Combiner> pending = std::move(found->second);
  Of(key).erase(found);
  return pending;
}

void JobClient::Refuse(const Key& key, std::unique_ptr<Combiner> pending, const absl::Status& why) {
  if (pending == nullptr) {
    absl::MutexLock lock(&mu_);
    pending = Remove(key);
  }
  if (pending == nullptr) return;  // a stream that ended was faster
  const std::string text(why.message());
  pending->Fail(absl::IsUnavailable(why) ? Outage(text) : Unavailable(text));
  pending->Deliver();
}

void JobClient::OnAnswers(int server, v1::ServerMessage& message) {
  const int jobs = message.jobs_size(), all = jobs + message.tags_size();
  for (int i = 0; i < all;) {
    Finished finished;
    {
      absl::MutexLock lock(&mu_);
      const absl::Time now = heard_[server] = SteadyNow();
      for (const int end = std::min(all, i + kAnswersPerLock); i < end; ++i) {
        if (i < jobs) {
          const v1::JobAnswer& answer = message.jobs(i);
          Take<JobCombiner>(server, {answer.id(), std::nullopt}, answer, now, finished);
        } else {
          const v1::TagAnswer& answer = message.tags(i - jobs);
          Take<TagCombiner>(server, {answer.job(), answer.seal()}, answer, now, finished);
        }
      }
    }
    const Burst burst;  // what the answers lead to
    for (auto& pending : finished) {
      if (!pending->accusation().empty()) LogAccusation(pending->accusation());
      TellOfWrongTag(*pending);
      pending->Deliver();
    }
  }
}

void JobClient::TellOfWrongTag(const Combiner& pending) {
  const std::string wrong = pending.is_tag() ? pending.WhatWasWrong() : "";
  if (!wrong.empty()) observer_->OnWrongTag(which_.number, wrong);
}

template <class C, class Answer>
void JobClient::Take(int server, const Key& key, const Answer& answer, absl::Time now,
                     Finished& finished) {
  auto found = Of(key).find(key);
  if (found == Of(key).end()) return;  // ended before; the other servers were faster
  kdc_metrics_answer(metrics_, Number(server), static_cast<unsigned>(answer.verdict()),
                     key.second.has_value() ? 1 : 0,
                     static_cast<uint64_t>(absl::ToInt64Microseconds(
                         std::max(now - found->second->sent(), absl::ZeroDuration()))));
  const Sender from = {server, parties_[server], names_};
  if (from.party < 0 || !static_cast<C&>(*found->second).Add(from, answer)) return;
  finished.push_back(std::move(found->second));
  Of(key).erase(found);
}

absl::Status JobClient::OnWelcome(int server, const v1::Welcome& welcome,
                                  const std::string& certificate) {
  const Member member = {welcome.party(), welcome.cluster(), welcome.epoch(), certificate};
  const std::string& address = streams_[server]->address();
  bool all = false;
  if (welcome.realm() != realm_) {
    return absl::FailedPreconditionError(
        absl::StrCat("the server serves realm \"", OnOneLine(welcome.realm()), "\", not ", realm_));
  }
  {
    absl::MutexLock lock(&mu_);
    RETURN_IF_ERROR(CheckAgainstOthers(server, member));
    members_[server] = member;
    parties_[server] = static_cast<int>(member.party);
    names_[member.party] = absl::StrCat(address, " (party ", member.party, ")");
    all = absl::c_all_of(members_, [](const auto& m) { return m.has_value(); });
  }
  kdc_metrics_connected(metrics_, Number(server), member.party);
  if (all) observer_->OnTriple(which_.number, true, "");
  const absl::Duration skew = absl::FromUnixMicros(welcome.time_us()) - absl::Now();
  if (absl::AbsDuration(skew) > kServerClockWarning) {
    LogChange(server, kClock, LOG_WARNING,
              absl::StrCat("MPC server ", address, ": its clock differs from this KDC's by ",
                           absl::FormatDuration(absl::Trunc(skew, absl::Seconds(1)))));
  }
  LogChange(server, kConnection, LOG_INFO,
            absl::StrCat("MPC server ", address, ": connected, party ", member.party, ", cluster ",
                         member.cluster, ", epoch ", member.epoch, ", ",
                         OnOneLine(welcome.software())));
  return absl::OkStatus();
}

absl::Status JobClient::CheckAgainstOthers(int server, const Member& member) {
  if (member.party >= MPC_SERVERS) {
    return absl::FailedPreconditionError(
        absl::StrCat("the server says it is party ", member.party));
  }
  if (cluster_ >= 0 && member.cluster != cluster_) {
    return absl::FailedPreconditionError(absl::StrCat("the server belongs to cluster ",
                                                      member.cluster, ", and mpc_cluster says ",
                                                      cluster_, " of this triple"));
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
    // Their share epoch they agree on among themselves; the others may have said an older one, for
    // it changes while streams are open.
    if (them.cluster != member.cluster) {
      return absl::FailedPreconditionError(absl::StrCat("the server is of cluster ", member.cluster,
                                                        ", ", name, " of cluster ", them.cluster));
    }
  }
  return absl::OkStatus();
}

void JobClient::OnDown(int server, const std::string& reason) {
  const std::string text = absl::StrCat("MPC server ", streams_[server]->address(), ": ", reason);
  bool stopping = false;
  {
    absl::MutexLock lock(&mu_);
    members_[server].reset();
    kdc_metrics_lost(metrics_, Number(server));
    stopping = stopping_;
    for (Pending& kind : pending_) {
      absl::erase_if(kind, [&](Pending::value_type& entry) {
        if (entry.second->Answered(server)) return false;
        entry.second->Fail(stopping ? Unavailable(text) : Outage(text));
        lost_[server].push_back(std::move(entry.second));
        return true;
      });
    }
  }
  if (!stopping) LogChange(server, kConnection, LOG_ERR, text);
  observer_->OnTriple(which_.number, false, text);
}

// Whoever is told may try again, and then the stream connects.
void JobClient::AfterDown(int server) {
  Finished finished;
  {
    absl::MutexLock lock(&mu_);
    finished.swap(lost_[server]);
  }
  for (auto& pending : finished) pending->Deliver();
}

void JobClient::OnRetryDue() {
  absl::MutexLock lock(&mu_);
  timer_wanted_ = true;
  timer_wake_.SignalAll();
}

void JobClient::OnRenewed(int server, const std::string& trouble) {
  const std::string name = absl::StrCat("MPC server ", streams_[server]->address());
  if (trouble.empty()) {
    return LogChange(server, kCertificate, LOG_NOTICE,
                     name + ": connects anew with the renewed certificate");
  }
  LogChange(server, kCertificate, LOG_WARNING,
            absl::StrCat(name, ": the renewed certificate is not used, the one of before is until "
                         "it ends: ", trouble));
}

void JobClient::OnSent(int server, size_t entries, size_t bytes) {
  kdc_metrics_message(metrics_, Number(server), entries, bytes);
}

absl::Time JobClient::AddLoad(kdc_load* load) {
  for (const auto& stream : streams_) load->queued_bytes += stream->QueuedBytes();
  absl::MutexLock lock(&mu_);
  load->jobs += pending_[0].size();
  load->tags += pending_[1].size();
  // Nearly in the order in which they were sent.
  for (const auto& [when, due] : due_) {
    const auto found = Of(due.key).find(due.key);
    if (found != Of(due.key).end()) return found->second->sent();
  }
  return absl::InfiniteFuture();
}

std::string JobClient::MissingServers(const Combiner& pending, absl::Duration waited) const {
  std::vector<std::string> missing;
  for (int i = 0; i < MPC_SERVERS; ++i) {
    if (!pending.Answered(i)) missing.push_back(streams_[i]->address());
  }
  return absl::StrCat("no answer within ",
                      absl::FormatDuration(absl::Trunc(waited, absl::Milliseconds(1))), " from ",
                      absl::StrJoin(missing, " "), "; see mpc-admin status");
}

bool JobClient::IsSilent(const Combiner& pending, absl::Time since) const {
  for (int i = 0; i < MPC_SERVERS; ++i) {
    if (!pending.Answered(i) && heard_[i] < since) return true;
  }
  return false;
}

// As early as a stream is dropped for its silence (kSoon), so that a job ends with its own reason.
// Returns when to look again: nothing that is submitted meanwhile is due before.
absl::Time JobClient::ExpireDue(absl::Time now, Finished& finished) {
  while (!due_.empty() && due_.begin()->first <= now + kSoon) {
    const Due due = due_.begin()->second;
    due_.erase(due_.begin());
    const auto found = Of(due.key).find(due.key);
    if (found == Of(due.key).end()) continue;  // answered
    const Combiner& pending = *found->second;
    if (due.last > now + kSoon && !IsSilent(pending, due.sent)) {
      due_.emplace(due.last, due);  // they compute other things
      continue;
    }
    const bool whole = due.last <= now + kSoon;
    const std::string text = MissingServers(pending, whole ? timeout_ : now - due.sent);
    finished.push_back(Remove(due.key));
    finished.back()->Fail(Outage(text));
  }
  const absl::Time none = now + shortest_;
  return due_.empty() ? none : std::min(none, due_.begin()->first);
}

void JobClient::RunTimer() {
  while (true) {
    const absl::Time now = SteadyNow();
    absl::Time next;
    Finished finished;
    {
      absl::MutexLock lock(&mu_);
      next = ExpireDue(now, finished);
    }
    // After it, since what expired names who is missing, and before anybody is told: who asks again
    // then does not ask the silent connection.
    for (auto& stream : streams_) next = std::min(next, stream->Tick(now));
    for (auto& pending : finished) {
      TellOfWrongTag(*pending);
      pending->Deliver();
    }
    finished.clear();  // their sums, now and not when there is work again
    absl::MutexLock lock(&mu_);
    if (stopping_) return;
    if (!timer_wanted_) timer_wake_.WaitUntil(&mu_, next);
    timer_wanted_ = false;
    if (stopping_) return;
  }
}

void JobClient::Log(int priority, const std::string& text) {
  if (log_ != nullptr) log_(priority, absl::StrCat(log_prefix_, text).c_str());
}

// Each is counted; the same words come once a minute.
void JobClient::LogAccusation(const std::string& accusation) {
  std::string text;
  {
    absl::MutexLock lock(&log_mu_);
    ++accusations_;
    const absl::Time now = SteadyNow();
    absl::Time& logged = accused_.try_emplace(accusation, absl::InfinitePast()).first->second;
    if (now - logged < kSameTextAgain) return;
    logged = now;
    text = absl::StrCat("MPC servers: ", accusation, "; nothing of such answers was taken, ",
                        accusations_, " since this process started; what to do: ",
                        "kdc-plugin/README.md, \"A server that altered its answer\"");
  }
  Log(LOG_CRIT, text);
}

// A server that stays away is named once a minute, not once per attempt. One that says something
// else at each attempt does not fill the disk either.
void JobClient::LogChange(int server, About about, int priority, const std::string& text) {
  int left_out = 0;
  {
    absl::MutexLock lock(&log_mu_);
    const absl::Time now = SteadyNow();
    Said& last = said_[server][about];
    if (last.text == text && now - last.at < kSameTextAgain) return;
    last.text = text;
    last.at = now;
    if (now - last.minute >= kSameTextAgain) {
      left_out = std::exchange(last.left_out, 0);
      last.minute = now;
      last.lines = 0;
    }
    if (last.lines == kMostLines) {
      ++last.left_out;
      return;
    }
    ++last.lines;
  }
  Log(priority, text);
  if (left_out > 0) {
    Log(priority, absl::StrCat("MPC servers: ", left_out, " lines like this one were left out; in ",
                               "a minute come ", kMostLines, " at most about one server"));
  }
}

}  // namespace mpckdc::client
