// SPDX-License-Identifier: Apache-2.0
#include "kdc-plugin/client/triples.h"

#include <syslog.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kdc-plugin/client/owned_job.h"
#include "kdc-plugin/client/text.h"

namespace mpckdc::client {

constexpr char kOver[] = "MPC servers: a triple serves again";

// One job on its way, whichever triple it is at.
struct Triples::Attempt {
  Attempt(Triples* triples, mpc_job_done to_call, void* with)
      : owner(triples), done(to_call), arg(with) {}

  Triples* const owner;
  const mpc_job_done done;
  void* const arg;
  absl::Time submitted, sent;
  int triple = 0;
  bool follows = false;    // names a grant: at another triple there is none
  bool connected = false;  // the triple was, when the job was sent there
  bool probe = false;      // of a triple that failed before
  bool again = false;
  int sends = 0;
  std::unique_ptr<OwnedJob> job;  // to be sent again; null: it may not
};

Triples::Triples(const mpc_options& options, int count)
    : timeout_(absl::Milliseconds(options.timeout_ms)),
      log_(options.log),
      metrics_(options.metrics),
      log_prefix_(LogPrefix(options)),
      states_(static_cast<size_t>(count)) {
  for (int i = 0; i < count; ++i) {
    names_.push_back(absl::StrCat(
        "MPC triple ", i, " (",
        absl::StrJoin(absl::MakeConstSpan(options.servers)
                          .subspan(static_cast<size_t>(i) * MPC_SERVERS, MPC_SERVERS),
                      ", ",
                      [](std::string* out, const char* name) { absl::StrAppend(out, Text(name)); }),
        ")"));
  }
}

absl::StatusOr<std::unique_ptr<Triples>> Triples::Start(const mpc_options& options) {
  const int count = std::max(1, static_cast<int>(options.triples));
  if (count > MPC_MAX_TRIPLES) {
    return absl::InvalidArgumentError(absl::StrCat("at most ", MPC_MAX_TRIPLES, " triples"));
  }
  auto triples = std::unique_ptr<Triples>(new Triples(options, count));
  // The first may be connected, and tell, before the last is made.
  for (int i = 0; i < count; ++i) {
    absl::StatusOr<std::unique_ptr<JobClient>> client =
        JobClient::Start(options, {i, count}, triples.get());
    if (!client.ok()) return client.status();
    triples->clients_.push_back(*std::move(client));
  }
  triples->holder_ = std::thread([t = triples.get()] { t->RunHolder(); });
  kdc_metrics_watch(options.metrics, Probe, triples.get());
  return triples;
}

// All are stopped before one is gone: a job may be on its way from one to another. What waits here
// is sent before, to fail with the rest.
Triples::~Triples() {
  kdc_metrics_unwatch(metrics_);
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    holder_wake_.SignalAll();
  }
  if (holder_.joinable()) holder_.join();
  for (auto& client : clients_) client->Stop();
}

void Triples::Log(int priority, const std::string& text) const {
  if (log_ != nullptr && !text.empty()) log_(priority, absl::StrCat(log_prefix_, text).c_str());
}

// ---- Where to ----

int Triples::Choose(absl::Time now, int not_this) {
  const auto rank = [&](int triple) {
    State& state = states_[static_cast<size_t>(triple)];
    const bool due = state.connected && state.failed && !state.probing && now >= state.probe_at;
    // One that may be well again is tried before the others, by one job, which has another to go
    // to.
    const bool others = std::count_if(states_.begin(), states_.end(),
                                      [](const State& s) { return s.healthy(); }) > 0;
    const int order = due && others && not_this < 0 ? 0 : state.healthy() ? 1 : due ? 2 : 3;
    return std::make_tuple(triple == not_this, order, state.jobs, state.nearness, triple);
  };
  int best = 0;
  for (int triple = 1; triple < static_cast<int>(states_.size()); ++triple) {
    if (rank(triple) < rank(best)) best = triple;
  }
  return best;
}

void Triples::Submit(const mpc_job& job, mpc_job_done done, void* arg) {
  auto attempt = std::make_unique<Attempt>(this, done, arg);
  attempt->submitted = SteadyNow();
  attempt->follows = job.grant != 0;
  if (attempt->follows) return Send(std::move(attempt), job, -1);
  attempt->job = std::make_unique<OwnedJob>(job);
  SendOrHold(std::move(attempt), job, -1);
}

void Triples::Send(std::unique_ptr<Attempt> attempt, const mpc_job& job, int not_this) {
  Attempt& a = *attempt;
  a.sent = SteadyNow();
  ++a.sends;
  absl::Duration silent = timeout_;
  {
    absl::MutexLock lock(&mu_);
    a.triple = a.follows ? Of(job.grant) : Choose(a.sent, not_this);
    State& state = states_[static_cast<size_t>(a.triple)];
    a.connected = state.connected;
    a.probe = state.connected && state.failed && !state.probing;
    state.probing |= a.probe;
    ++state.jobs;
    // There is another to go to in the rest of the time.
    if (a.job != nullptr && !a.again && states_.size() > 1) silent = kSilentPart * timeout_;
  }
  clients_[static_cast<size_t>(a.triple)]->Submit(job, {a.submitted, silent}, Done,
                                                  attempt.release());
}

void Triples::RequestTag(const WantedTag& tag, mpc_tag_done done, void* arg) {
  clients_[static_cast<size_t>(Of(tag.job))]->RequestTag(tag, done, arg);
}

void Triples::Probe(void* arg, kdc_load* load) {
  Triples& self = *static_cast<Triples*>(arg);
  const absl::Time now = SteadyNow();
  absl::Time oldest = now;
  {
    absl::MutexLock lock(&self.mu_);
    load->held = self.held_.size();
    for (const auto& attempt : self.held_) oldest = std::min(oldest, attempt->submitted);
  }
  for (const auto& client : self.clients_) oldest = std::min(oldest, client->AddLoad(load));
  load->oldest_us = static_cast<uint64_t>(absl::ToInt64Microseconds(now - oldest));
}

// ---- While no triple serves ----

bool Triples::NoteHealth(absl::Time now) {
  const bool any = std::any_of(states_.begin(), states_.end(),
                               [](const State& state) { return state.healthy(); });
  if (any) {
    none_since_ = absl::InfiniteFuture();
    if (!held_.empty()) holder_wake_.SignalAll();
    return std::exchange(told_held_, false);
  }
  if (none_since_ == absl::InfiniteFuture()) {
    none_since_ = now;
    next_trial_ = now + kTrialPause;
  }
  return false;
}

bool Triples::InYoungOutage(absl::Time now) const {
  return !stopping_ && none_since_ != absl::InfiniteFuture() && now < none_since_ + kYoungOutage;
}

bool Triples::TakeTrial(absl::Time now) {
  if (now < next_trial_) return false;
  next_trial_ = now + kTrialPause;
  return true;
}

void Triples::SendOrHold(std::unique_ptr<Attempt> attempt, const mpc_job& job, int not_this) {
  bool tell = false;
  {
    absl::MutexLock lock(&mu_);
    const absl::Time now = SteadyNow();
    if (InYoungOutage(now) && HasTime(*attempt, now) && (!held_.empty() || !TakeTrial(now))) {
      held_.push_back(std::move(attempt));
      holder_wake_.SignalAll();
      tell = !std::exchange(told_held_, true);
      kdc_metrics_held(metrics_);
    }
  }
  if (attempt != nullptr) return Send(std::move(attempt), job, not_this);
  if (tell) {
    Log(LOG_ERR, absl::StrCat("MPC servers: no triple serves; requests wait for one, up to ",
                              absl::FormatDuration(kYoungOutage)));
  }
}

std::deque<std::unique_ptr<Triples::Attempt>> Triples::TakeLeaving(absl::Time now) {
  std::deque<std::unique_ptr<Attempt>> leaving;
  if (!InYoungOutage(now)) {
    leaving.swap(held_);
    return leaving;
  }
  const auto late = std::stable_partition(
      held_.begin(), held_.end(), [&](const auto& attempt) { return HasTime(*attempt, now); });
  std::move(late, held_.end(), std::back_inserter(leaving));
  held_.erase(late, held_.end());
  if (!held_.empty() && TakeTrial(now)) {
    // One whose keys have not failed lately; and servers judge a pre-authentication a few times
    // only: another one each time.
    const auto order = [this](const std::unique_ptr<Attempt>& attempt) {
      mu_.AssertHeld();
      return std::make_pair(KeysFailing(*attempt, absl::InfiniteFuture()), attempt->sends);
    };
    const auto least =
        std::min_element(held_.begin(), held_.end(),
                         [&](const auto& a, const auto& b) { return order(a) < order(b); });
    leaving.push_back(std::move(*least));
    held_.erase(least);
  }
  return leaving;
}

void Triples::RunHolder() {
  bool stopping = false;
  while (!stopping) {
    std::deque<std::unique_ptr<Attempt>> leaving;
    {
      absl::MutexLock lock(&mu_);
      if (!stopping_ && held_.empty()) holder_wake_.Wait(&mu_);
      leaving = TakeLeaving(SteadyNow());
      if (leaving.empty() && !stopping_) holder_wake_.WaitFor(&mu_, kHeldLook);
      stopping = stopping_ && held_.empty();
    }
    const Burst burst;
    for (std::unique_ptr<Attempt>& attempt : leaving) {
      const OwnedJob& job = *attempt->job;
      Send(std::move(attempt), job.job(), -1);
    }
  }
}

// ---- What came of it ----

void Triples::Done(void* arg, mpc_result* result) {
  std::unique_ptr<Attempt> attempt(static_cast<Attempt*>(arg));
  Triples& self = *attempt->owner;
  const absl::Time now = SteadyNow();
  bool again = false, over = false;
  std::string line;
  int priority = LOG_NOTICE;
  {
    absl::MutexLock lock(&self.mu_);
    self.Learn(*attempt, *result, now);
    over = self.NoteHealth(now);
    again = self.MayTryAgain(*attempt, *result, now);
    line = self.Change(attempt->triple, result->detail);
    if (!self.states_[static_cast<size_t>(attempt->triple)].healthy()) priority = LOG_ERR;
  }
  self.Log(priority, line);
  if (over) self.Log(LOG_NOTICE, kOver);
  if (!again) return attempt->done(attempt->arg, result);
  mpc_result_free(result);
  kdc_metrics_resent(self.metrics_);
  attempt->again = true;
  // Of one triple alone it is the same, whose connection may come back in this moment.
  const int failed = self.clients_.size() > 1 ? attempt->triple : -1;
  const OwnedJob& job = *attempt->job;
  self.SendOrHold(std::move(attempt), job.job(), failed);
}

void Triples::Learn(const Attempt& attempt, const mpc_result& result, absl::Time now) {
  State& state = states_[static_cast<size_t>(attempt.triple)];
  --state.jobs;
  if (attempt.probe) state.probing = false;
  if (result.outage != MPC_NO_OUTAGE) {
    // It is known to be down; or only this job cannot be computed, whose key is damaged.
    if (!attempt.connected) return;
    NoteKeys(attempt, true, now);
    if (state.good_at > attempt.sent) return;
    // Not by this very job: it may have met the beginning of an outage at another triple.
    const absl::Time before = std::min(state.good_at, attempt.submitted);
    if (!state.failed && KeysFailing(attempt, before) > 0) return;
    if (states_.size() == 1 && result.outage == MPC_WRONG_ANSWERS) return;  // it is all there is
    if (attempt.probe) state.pause = std::min(2 * state.pause, kProbeMax);
    if (!state.failed) state.pause = kProbeMin;
    if (!state.failed || attempt.probe) state.probe_at = now + state.pause;
    state.failed = true;
    state.failed_at = now;
    return;
  }
  state.good_at = now;
  NoteKeys(attempt, false, now);
  // What was sent before it failed says nothing. While none serves any job is a trial.
  if (attempt.probe || (attempt.sent > state.failed_at && InYoungOutage(now))) {
    state.failed = false;
  }
  if (result.verdict != MPC_OK) return;
  const absl::Duration took = now - attempt.sent;
  const bool first = state.nearness == absl::ZeroDuration();
  // Quick ones count at once, slow ones, whose time was spent waiting for others, hardly.
  state.nearness = first || took < state.nearness ? took : state.nearness + took / 256;
}

// Its tickets cannot be finished, which is as good as no job of them.
void Triples::OnWrongTag(int triple, const std::string& why) {
  std::string line;
  {
    absl::MutexLock lock(&mu_);
    State& state = states_[static_cast<size_t>(triple)];
    if (states_.size() == 1 || !state.healthy() || stopping_) return;
    const absl::Time now = SteadyNow();
    const bool again = now < state.wrong_tag_at + kWrongTagAgain;
    state.pause = again ? std::min(2 * state.pause, kProbeMax) : kProbeMin;
    state.wrong_tag_at = now;
    state.probe_at = now + state.pause;
    state.failed = true;
    state.failed_at = now;
    (void)NoteHealth(now);  // it was healthy: no outage is over by this
    line = Change(triple, why);
  }
  Log(LOG_ERR, line);
}

// Of one that names a grant none are known; who has a grant is no stranger.
Triples::KeyHandles Triples::HandlesOf(const Attempt& attempt) {
  KeyHandles handles;
  if (attempt.job == nullptr) return handles;
  const mpc_job& job = attempt.job->job();
  const auto add = [&handles](const uint8_t* handle) {
    if (handle != nullptr) std::copy_n(handle, MPC_HANDLE_BYTES, handles.emplace_back().begin());
  };
  add(job.client);
  if (job.open != nullptr) add(job.open->handle);
  const size_t seals = std::min<size_t>(job.seal_count, MPC_MAX_SEALS);
  for (size_t i = 0; i < seals; ++i) add(job.seals[i].handle);
  if (job.make_mac != nullptr) add(job.make_mac->handle);
  if (job.verify_mac != nullptr) add(job.verify_mac->handle);
  return handles;
}

void Triples::NoteKeys(const Attempt& attempt, bool failed, absl::Time now) {
  if (!failed && failing_.empty()) return;
  if (failing_.size() >= kMaxFailingKeys) failing_.clear();
  for (const KeyHandle& handle : HandlesOf(attempt)) {
    if (failed) {
      failing_.try_emplace(handle, now);
    } else {
      failing_.erase(handle);
    }
  }
}

size_t Triples::KeysFailing(const Attempt& attempt, absl::Time time) const {
  if (failing_.empty()) return 0;
  size_t count = 0;
  KeyHandles seen;
  for (const KeyHandle& handle : HandlesOf(attempt)) {
    const auto found = failing_.find(handle);
    if (found == failing_.end() || found->second >= time) continue;
    if (std::find(seen.begin(), seen.end(), handle) != seen.end()) continue;
    seen.push_back(handle);
    ++count;
  }
  return count;
}

bool Triples::MayTryAgain(const Attempt& attempt, const mpc_result& result, absl::Time now) {
  if (stopping_ || attempt.job == nullptr) return false;
  if (!HasTime(attempt, now)) return false;
  if (result.outage == MPC_NO_OUTAGE) {
    return OneSaidSo(result) && !attempt.again && AnotherServes(attempt.triple);
  }
  if (result.outage == MPC_OUTAGE && InYoungOutage(now)) return true;
  if (attempt.again) return false;
  // One that was known to be down when the job came is no sooner up.
  return states_.size() > 1 || (attempt.connected && result.outage == MPC_OUTAGE);
}

// That it has no such key, no time, another job: one server is enough to say that, and may be alone
// with it. Its triple stays, for it may be as it says, of this job alone. A quota is not asked for twice.
bool Triples::OneSaidSo(const mpc_result& result) {
  return result.verdict == MPC_UNAVAILABLE && result.over_quota == 0;
}

bool Triples::AnotherServes(int triple) const {
  for (size_t i = 0; i < states_.size(); ++i) {
    if (static_cast<int>(i) != triple && states_[i].healthy()) return true;
  }
  return false;
}

bool Triples::HasTime(const Attempt& attempt, absl::Time now) const {
  return now <= attempt.submitted + (1 - kLeastPartLeft) * timeout_;
}

void Triples::OnTriple(int triple, bool connected, const std::string& why) {
  std::string line;
  bool over = false;
  {
    absl::MutexLock lock(&mu_);
    State& state = states_[static_cast<size_t>(triple)];
    state.connected = connected;
    // Its servers are other processes, or are asked anew.
    if (!connected) state.failed = false;
    over = NoteHealth(SteadyNow());
    if (!stopping_) line = Change(triple, why);
  }
  Log(connected ? LOG_NOTICE : LOG_ERR, line);
  if (over) Log(LOG_NOTICE, kOver);
}

std::string Triples::Change(int triple, const std::string& why) {
  State& state = states_[static_cast<size_t>(triple)];
  if (states_.size() == 1 || state.told == state.healthy()) return "";
  state.told = state.healthy();
  const auto healthy =
      std::count_if(states_.begin(), states_.end(), [](const State& s) { return s.healthy(); });
  const std::string of = absl::StrCat("; ", healthy, " of ", states_.size(), " triples serve");
  const std::string& name = names_[static_cast<size_t>(triple)];
  if (state.healthy()) return absl::StrCat(name, ": in use", of);
  return absl::StrCat(name, ": taken out: ", why, of);
}

}  // namespace mpckdc::client
