// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/worker.h"

#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc::storm {
namespace {

constexpr int kEventsPerRound = 64;
constexpr absl::Duration kLookAtControl = absl::Milliseconds(50);  // stop and stages are seen then
constexpr absl::Duration kLookForFirstStage = absl::Microseconds(100);
constexpr unsigned long kTimerSlackNanoseconds = 5000;  // Linux's 50 us are half of a short nap
constexpr double kRecentKept = 0.9;  // of what is remembered, from round to round
constexpr double kNoRate = 1e-9;  // a closed loop has a schedule that is never asked
constexpr rlim_t kOtherDescriptors = 256;  // and the ports that linger after a resend

double ShareOfRate(const Control& control, int threads) {
  return std::max(control.rate.load(std::memory_order_relaxed) / threads, kNoRate);
}

// A socket per login in flight.
void RaiseDescriptorLimit(size_t in_flight, int threads) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = in_flight + kOtherDescriptors +
                        static_cast<rlim_t>(threads) * limits::kMaxLingering;
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = wanted;
  limit.rlim_max = std::max(limit.rlim_max, wanted);
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return;  // root may
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);  // what is missing then, a socket's error says
}

}  // namespace

Worker::Worker(const LoadPlan* plan, int index, std::vector<User>* users, Control* control,
               absl::Time begin)
    : plan_(*plan),
      o_(*plan->options),
      index_(index),
      users_(users),
      control_(control),
      begin_(begin),
      random_(o_.seed * 1'000'003 + static_cast<uint64_t>(index)),
      schedule_(random_(), ShareOfRate(*control, o_.threads), begin),
      next_user_(static_cast<size_t>(index)),
      buffer_(limits::kMaxReplyBytes),
      tallies_(StagesOf(o_).size() + 1) {}

Worker::~Worker() {
  slots_.clear();
  for (const Lingering& port : lingering_) close(port.fd);
  if (epoll_ >= 0) close(epoll_);
}

absl::Status Worker::Prepare() {
  prctl(PR_SET_TIMERSLACK, kTimerSlackNanoseconds);
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0) return absl::InternalError(absl::StrCat("epoll_create1: ", strerror(errno)));
  ASSIGN_OR_RETURN(wrong_key_, Key::Random(users_->front().key.enctype()));
  RETURN_IF_ERROR(wrong_key_.Prepare());
  last_round_ = MonotonicNow();
  // This thread's share, rounded so that all together are as many as were asked for.
  const size_t in_flight = (o_.in_flight + o_.threads - 1 - index_) / o_.threads;
  slots_.reserve(in_flight);
  for (uint32_t i = 0; i < in_flight; ++i) {
    slots_.emplace_back(ClientSocket(&plan_.kdc, o_.tcp, epoll_, i));
    free_.push_back(i);
  }
  return absl::OkStatus();
}

absl::Status Worker::Run() {
  RETURN_IF_ERROR(Prepare());
  while (true) {
    const absl::Time now = MonotonicNow();
    const bool stop = control_->stop.load(std::memory_order_relaxed);
    if (!stop) RETURN_IF_ERROR(BeginDue(now));
    RETURN_IF_ERROR(RunTimers(now));
    if (stop && free_.size() == slots_.size()) return absl::OkStatus();
    RETURN_IF_ERROR(WaitAndReceive(now));
  }
}

// Closed loop: every free slot. Open loop: as many as have come due.
absl::Status Worker::BeginDue(absl::Time now) {
  const int stage = control_->stage;
  if (stage == kNoStage) return absl::OkStatus();
  if (stage != stage_seen_) {
    stage_seen_ = stage;
    schedule_.SetRate(ShareOfRate(*control_, o_.threads), now);
  }
  if (o_.rate == 0) {
    while (!free_.empty() && control_->MayBegin()) RETURN_IF_ERROR(BeginLogin(now));
    return absl::OkStatus();
  }
  for (; schedule_.next() <= now; schedule_.Advance()) {
    if (!control_->MayBegin()) return absl::OkStatus();
    if (!free_.empty()) {
      RETURN_IF_ERROR(BeginLogin(schedule_.next()));
      continue;
    }
    ++tallies_[stage_seen_].shed;
    ++control_->started;
    ++control_->trouble;
    --control_->in_flight;
  }
  return absl::OkStatus();
}

absl::Status Worker::BeginLogin(absl::Time due) {
  const uint32_t index = free_.back();
  free_.pop_back();
  Slot& slot = slots_[index];
  const User& user = (*users_)[next_user_];
  // Users are dealt out to threads, so that no key is used by two of them.
  next_user_ += static_cast<size_t>(o_.threads);
  if (next_user_ >= users_->size()) next_user_ = static_cast<size_t>(index_);
  const bool wrong = o_.wrong_share > 0 &&
                     std::uniform_real_distribution<double>()(random_) < o_.wrong_share;
  const bool check = plan_.check_every != 0 && ++since_check_ >= plan_.check_every;
  if (check) since_check_ = 0;
  slot.busy = true;
  slot.stage = control_->stage;  // as it is after MayBegin()
  slot.due = due;
  const Login::Next next =
      slot.login.Begin(plan_.login, user, wrong ? &wrong_key_ : nullptr, check, Nonce());
  ++tallies_[slot.stage].started;
  control_->started.fetch_add(1, std::memory_order_relaxed);
  if (next == Login::Next::kSend) return SendExchange(index, MonotonicNow());
  EndLogin(index, slot.login.outcome(), MonotonicNow());
  return absl::OkStatus();
}

absl::Status Worker::SendExchange(uint32_t index, absl::Time now) {
  Slot& slot = slots_[index];
  ++slot.exchange;
  slot.sends = 0;
  slot.first_sent = now;
  return SendAgain(index, now);
}

absl::Status Worker::SendAgain(uint32_t index, absl::Time now) {
  Slot& slot = slots_[index];
  const int sent = slot.sends++;
  // After 1 s, then 2, 4, ...
  timers_[sent].push_back({now + o_.resend_after * (1 << sent), index, slot.exchange});
  return slot.socket.Send(slot.login.request());
}

absl::Status Worker::RunTimers(absl::Time now) {
  for (std::deque<Timer>& queue : timers_) {
    while (!queue.empty()) {
      const Timer timer = queue.front();
      const Slot& slot = slots_[timer.slot];
      const bool old = !slot.busy || slot.exchange != timer.exchange;
      if (!old && timer.at > now) break;
      queue.pop_front();
      if (old) continue;
      if (slot.sends > o_.resends) {
        EndLogin(timer.slot, Outcome::kLost, now);
        continue;
      }
      ++tallies_[slot.stage].resends;
      RETURN_IF_ERROR(SendAgain(timer.slot, now));
    }
  }
  return absl::OkStatus();
}

absl::Time Worker::NextDeadline(absl::Time now) const {
  absl::Time next = now + kLookAtControl;
  const bool stop = control_->stop.load(std::memory_order_relaxed);
  if (stage_seen_ == kNoStage) next = now + kLookForFirstStage;
  if (o_.rate > 0 && !stop) next = std::min(next, schedule_.next());
  for (const std::deque<Timer>& queue : timers_) {
    if (!queue.empty()) next = std::min(next, queue.front().at);
  }
  return next;
}

// Answers come one at a time, each with a change of context unless several have gathered.
void Worker::Nap(absl::Duration at_most) const {
  const auto in_flight = static_cast<double>(slots_.size() - free_.size());
  const double gather = std::min(in_flight * limits::kNapShareOfInFlight, limits::kMaxGathered);
  if (gather < 2 || recent_answers_ < 1) return;
  const absl::Duration interval = recent_time_ / recent_answers_;
  const absl::Duration nap = std::min({interval * gather, limits::kMaxNap, at_most});
  if (nap < interval * 2) return;  // it would be one more change of context, not one less
  const timespec time = absl::ToTimespec(nap);
  clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
}

absl::Status Worker::WaitAndReceive(absl::Time now) {
  epoll_event events[kEventsPerRound];
  Nap(std::max(NextDeadline(now) - now, absl::ZeroDuration()));
  const absl::Time awake = MonotonicNow();
  const timespec timeout =
      absl::ToTimespec(std::max(NextDeadline(awake) - awake, absl::ZeroDuration()));
  const int count = epoll_pwait2(epoll_, events, kEventsPerRound, &timeout, nullptr);
  if (count < 0 && errno != EINTR) {
    return absl::InternalError(absl::StrCat("epoll_pwait2: ", strerror(errno)));
  }
  const absl::Time received = MonotonicNow();
  recent_time_ = recent_time_ * kRecentKept + (received - last_round_);
  recent_answers_ = recent_answers_ * kRecentKept + std::max(count, 0);
  last_round_ = received;
  for (int i = 0; i < count; ++i) {
    const auto index = static_cast<uint32_t>(events[i].data.u64);
    Slot& slot = slots_[index];
    Bytes reply;
    absl::Duration waited;
    switch (slot.socket.OnReady(events[i].events, absl::MakeSpan(buffer_), reply, waited)) {
      case ClientSocket::Event::kNothing:
        break;
      case ClientSocket::Event::kRefused:  // asked again when the timer says so
        if (slot.busy) ++tallies_[slot.stage].unreachable;
        break;
      case ClientSocket::Event::kReply:
        if (!slot.busy) break;
        RETURN_IF_ERROR(OnReply(index, reply, MonotonicNow() - waited));
        break;
    }
  }
  return absl::OkStatus();
}

absl::Status Worker::OnReply(uint32_t index, Bytes reply, absl::Time arrived) {
  Slot& slot = slots_[index];
  const Login::Step step = slot.login.step();
  const Login::Next next = slot.login.OnReply(reply, Nonce());
  if (next == Login::Next::kNotOurs && any_retired_) {
    ++tallies_[slot.stage].late;
    return absl::OkStatus();
  }
  // Where nothing was ever sent twice or given up, no answer can be late: then it is a wrong one.
  if (next == Login::Next::kNotOurs) {
    EndLogin(index, Outcome::kWrongAnswer, arrived);
    return absl::OkStatus();
  }
  tallies_[slot.stage].exchanges[static_cast<size_t>(step)].Add(arrived - slot.first_sent);
  if (slot.sends > 1) RetirePort(slot, arrived);
  if (next == Login::Next::kSend) return SendExchange(index, MonotonicNow());
  EndLogin(index, slot.login.outcome(), arrived);
  return absl::OkStatus();
}

// A second answer to a request that was sent twice must not meet another exchange.
void Worker::RetirePort(Slot& slot, absl::Time now) {
  any_retired_ = true;
  const int fd = slot.socket.Retire();
  if (fd >= 0) lingering_.push_back({now + limits::kLinger, fd});
  while (!lingering_.empty() &&
         (lingering_.front().until <= now || lingering_.size() > limits::kMaxLingering)) {
    close(lingering_.front().fd);
    lingering_.pop_front();
  }
}

void Worker::EndLogin(uint32_t index, Outcome outcome, absl::Time now) {
  Slot& slot = slots_[index];
  Tally& tally = tallies_[slot.stage];
  switch (outcome) {
    case Outcome::kOk:
      ++tally.ok;
      tally.login.Add(now - slot.due);
      break;
    case Outcome::kRefused:
      ++tally.refused;
      ++tally.errors[slot.login.error_code()].expected;
      break;
    case Outcome::kError:
      ++tally.failed;
      ++tally.errors[slot.login.error_code()].unexpected;
      break;
    case Outcome::kWrongAnswer:
      ++tally.wrong_answers;
      tally.Complain(slot.login.complaint());
      break;
    case Outcome::kLost:
      ++tally.lost;
      RetirePort(slot, now);
      break;
  }
  tally.checked += slot.login.decrypted() ? 1 : 0;
  tally.tickets += static_cast<uint64_t>(slot.login.tickets());
  const bool ok = outcome == Outcome::kOk;
  series_.Add(now - begin_, ok);
  if (ok) control_->ok.fetch_add(1, std::memory_order_relaxed);
  if (outcome != Outcome::kLost) control_->ended.fetch_add(1, std::memory_order_relaxed);
  if (!ok && outcome != Outcome::kRefused) ++control_->trouble;
  --control_->in_flight;
  slot.busy = false;
  free_.push_back(index);
}

Crew::Crew(LoadPlan plan, std::vector<User>* users, Control* control)
    : plan_(std::move(plan)), users_(*users), control_(*control) {
  const Options& o = *plan_.options;
  RaiseDescriptorLimit(o.in_flight, o.threads);
  control->rate = o.rate;
  results_.resize(o.threads);
  const absl::Time begin = MonotonicNow();
  for (int i = 0; i < o.threads; ++i) {
    workers_.push_back(std::make_unique<Worker>(&plan_, i, users, control, begin));
  }
  for (int i = 0; i < o.threads; ++i) {
    threads_.emplace_back([this, i] {
      results_[i] = workers_[i]->Run();
      ++ended_;
    });
  }
}

absl::Status Crew::End(std::vector<Tally>& tallies, Series& series) {
  for (std::thread& thread : threads_) thread.join();
  for (const absl::Status& result : results_) RETURN_IF_ERROR(result);
  bool any_resent = false;
  for (const std::unique_ptr<Worker>& worker : workers_) {
    any_resent = any_resent || worker->any_retired();
    series.Merge(worker->series());
    for (size_t i = 0; i < tallies.size(); ++i) tallies[i].Merge(worker->tallies()[i]);
  }
  // Over TCP a connection that was given up answers nobody; and a KDC that never said anything will
  // not now.
  if (any_resent && !plan_.options->tcp && control_.ended > 0) WaitUntilCaughtUp();
  return absl::OkStatus();
}

// After an overload a KDC's socket is full of requests that nobody waits for any more. Their
// answers go to ports that this process is about to give up, and that the next one on this machine
// may get. So a run ends when the KDC has answered a request that was queued after all others: one
// login more, asked for again every second, while the crew's ports are still its own.
void Crew::WaitUntilCaughtUp() {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0) return;
  const absl::Cleanup close_epoll = [epoll] { close(epoll); };
  LoginPlan plan = plan_.login;
  plan.two_step = false;  // with pre-authentication: behind what waits in the MPC servers, too
  plan.tgs_requests = 0;
  Login login;
  if (login.Begin(plan, users_.front(), nullptr, false, 1) != Login::Next::kSend) return;
  ClientSocket socket(&plan_.kdc, /*tcp=*/false, epoll, 0);
  std::vector<uint8_t> buffer(limits::kMaxReplyBytes);
  const absl::Time end = MonotonicNow() + limits::kCatchUp;
  while (MonotonicNow() < end) {
    if (!socket.Send(login.request()).ok()) return;
    epoll_event event = {};
    const absl::Duration wait = std::min(limits::kDefaultResendAfter, end - MonotonicNow());
    if (epoll_wait(epoll, &event, 1, static_cast<int>(absl::ToInt64Milliseconds(wait))) != 1) {
      continue;
    }
    Bytes reply;
    absl::Duration waited;
    switch (socket.OnReady(event.events, absl::MakeSpan(buffer), reply, waited)) {
      case ClientSocket::Event::kReply:
        // A stray answer to somebody else proves nothing.
        if (login.OnReply(reply, 2) != Login::Next::kNotOurs) return;
        break;
      case ClientSocket::Event::kRefused:
        return;  // it has ended, and its queue with it
      case ClientSocket::Event::kNothing:
        break;
    }
  }
}

}  // namespace mpckdc::storm
