// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/run.h"

#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "integration-tests/storm/kerberos.h"
#include "integration-tests/storm/limits.h"
#include "integration-tests/storm/login.h"
#include "integration-tests/storm/login_log.h"
#include "integration-tests/storm/target.h"
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

// By Outcome.
constexpr uint64_t Tally::*kEnds[] = {&Tally::ok, &Tally::refused, &Tally::failed,
                                      &Tally::wrong_answers, &Tally::lost};

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
  const rlimit raised = {wanted, std::max(limit.rlim_max, wanted)};
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) return;  // root may
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);  // what is missing then, a socket's error says
}

// What all threads of a run have in common.
struct LoadPlan {
  const Options& options;
  LoginPlan login;
  Address kdc;
  std::vector<User>& users;
  Control& control;
  uint32_t check_every;  // of how many logins one is decrypted; 0: of none
  absl::Time begin = MonotonicNow();
};

// One thread of the load: its users, its logins in flight, its sockets. Threads share nothing but
// Control; what they counted is added when they have ended.
class Worker {
 public:
  Worker(const LoadPlan& plan, int index)
      : tallies(StagesOf(plan.options).size() + 1), plan_(plan), index_(index) {}
  ~Worker();

  // Until Control says stop and everything in flight has ended. An error is one of this machine.
  absl::Status Run();

  // For who reads it when Run() has ended.
  std::vector<Tally> tallies;  // by stage
  Series series;
  bool any_retired = false;    // answers may still come to what was sent twice or given up

 private:
  // One client: a socket, and the login under way.
  struct Slot {
    Slot(const LoadPlan& plan, int epoll, uint64_t tag)
        : socket(&plan.kdc, plan.options.tcp, epoll, tag) {}
    ClientSocket socket;
    Login login;
    int stage = 0;
    bool busy = false;
    uint32_t exchange = 0;   // counts them, so that an old timer is known as old
    int sends = 0;           // of this exchange's request
    absl::Time due;          // of the login
    absl::Time first_sent;   // of the exchange
  };
  struct Timer {
    absl::Time at;
    Slot* slot;
    uint32_t exchange;
  };

  absl::Status Prepare();
  absl::Status BeginDue(absl::Time now);
  absl::Status BeginLogin(absl::Time due);
  absl::Status SendExchange(Slot& slot, absl::Time now);
  absl::Status SendAgain(Slot& slot, absl::Time now);
  absl::Status RunTimers(absl::Time now);
  absl::Status WaitAndReceive(absl::Time now);
  bool IsNoAnswer(const Slot& slot, Bytes reply) const;
  absl::Status OnReply(Slot& slot, Bytes reply, absl::Time arrived);
  void EndLogin(Slot& slot, Outcome outcome, absl::Time now);
  absl::Time NextDeadline(absl::Time now) const;
  void Nap(absl::Duration at_most) const;
  void RetirePort(Slot& slot, absl::Time now);
  uint32_t Nonce() { return static_cast<uint32_t>(random_() & 0x7fffffff); }

  const LoadPlan& plan_;
  const Options& o_ = plan_.options;
  Control& control_ = plan_.control;
  const int index_;
  int epoll_ = -1;
  std::mt19937_64 random_{o_.seed * 1'000'003 + static_cast<uint64_t>(index_)};
  PoissonSchedule schedule_{random_(), ShareOfRate(control_, o_.threads), plan_.begin};
  int stage_seen_ = kNoStage;
  size_t next_user_ = static_cast<size_t>(index_);
  uint32_t begun_ = 0;
  Key wrong_key_;
  std::deque<Slot> slots_;  // which do not move
  std::vector<Slot*> free_;
  // By how often the request was sent: all timers of one have the same length, so each is in order.
  std::array<std::deque<Timer>, limits::kMaxResends + 1> timers_;
  // How long the last rounds took and what came, the older the less of it. For Nap().
  absl::Duration recent_time_;
  double recent_answers_ = 0;
  absl::Time last_round_;
  struct Lingering {
    absl::Time until;
    int fd;
  };
  std::deque<Lingering> lingering_;
  LoginLog log_;
  std::vector<uint8_t> buffer_ = std::vector<uint8_t>(limits::kMaxReplyBytes);
};

// The threads of a run.
class Crew : public Load {
 public:
  explicit Crew(LoadPlan plan);
  bool HasFailed() const override { return ended_ > 0; }
  bool HasEnded() const override { return ended_ == workers_.size(); }
  absl::Status End(std::vector<Tally>& tallies, Series& series) override;

 private:
  void WaitUntilCaughtUp();

  const LoadPlan plan_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::atomic<size_t> ended_{0};
  std::vector<std::future<absl::Status>> threads_;
};

Worker::~Worker() {
  slots_.clear();
  for (const Lingering& port : lingering_) close(port.fd);
  if (epoll_ >= 0) close(epoll_);
}

absl::Status Worker::Prepare() {
  prctl(PR_SET_TIMERSLACK, kTimerSlackNanoseconds);
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0) return absl::InternalError(absl::StrCat("epoll_create1: ", strerror(errno)));
  ASSIGN_OR_RETURN(wrong_key_, Key::Random(plan_.users.front().key.enctype()));
  RETURN_IF_ERROR(wrong_key_.Prepare());
  if (!o_.log.empty()) RETURN_IF_ERROR(log_.Open(o_.log));
  last_round_ = MonotonicNow();
  // This thread's share, rounded so that all together are as many as were asked for.
  const size_t in_flight = (o_.in_flight + o_.threads - 1 - index_) / o_.threads;
  for (uint32_t i = 0; i < in_flight; ++i) {
    free_.push_back(&slots_.emplace_back(plan_, epoll_, i));
  }
  return absl::OkStatus();
}

absl::Status Worker::Run() {
  RETURN_IF_ERROR(Prepare());
  while (true) {
    const absl::Time now = MonotonicNow();
    const bool stop = control_.stop.load(std::memory_order_relaxed);
    if (!stop) RETURN_IF_ERROR(BeginDue(now));
    RETURN_IF_ERROR(RunTimers(now));
    if (stop && free_.size() == slots_.size()) return log_.WriteAll();
    RETURN_IF_ERROR(log_.WriteSome(now));
    RETURN_IF_ERROR(WaitAndReceive(now));
  }
}

// Closed loop: every free slot. Open loop: as many as have come due.
absl::Status Worker::BeginDue(absl::Time now) {
  const int stage = control_.stage;
  if (stage == kNoStage) return absl::OkStatus();
  if (stage != stage_seen_) {
    stage_seen_ = stage;
    schedule_.SetRate(ShareOfRate(control_, o_.threads), now);
  }
  if (o_.rate == 0) {
    while (!free_.empty() && control_.MayBegin()) RETURN_IF_ERROR(BeginLogin(now));
    return absl::OkStatus();
  }
  for (; schedule_.next() <= now; schedule_.Advance()) {
    if (!control_.MayBegin()) return absl::OkStatus();
    if (!free_.empty()) {
      RETURN_IF_ERROR(BeginLogin(schedule_.next()));
      continue;
    }
    ++tallies[stage_seen_].shed;
    ++control_.started;
    ++control_.trouble;
    --control_.in_flight;
  }
  return absl::OkStatus();
}

absl::Status Worker::BeginLogin(absl::Time due) {
  Slot& slot = *free_.back();
  free_.pop_back();
  const User& user = plan_.users[next_user_];
  // Users are dealt out to threads, so that no key is used by two of them.
  next_user_ += static_cast<size_t>(o_.threads);
  if (next_user_ >= plan_.users.size()) next_user_ = static_cast<size_t>(index_);
  const bool wrong = o_.wrong_share > 0 &&
                     std::uniform_real_distribution<double>()(random_) < o_.wrong_share;
  const bool check = plan_.check_every != 0 && ++begun_ % plan_.check_every == 0;
  slot.busy = true;
  slot.stage = control_.stage;  // as it is after MayBegin()
  slot.due = due;
  const Login::Next next =
      slot.login.Begin(plan_.login, user, wrong ? &wrong_key_ : nullptr, check, Nonce());
  ++tallies[slot.stage].started;
  control_.started.fetch_add(1, std::memory_order_relaxed);
  if (next == Login::Next::kSend) return SendExchange(slot, MonotonicNow());
  EndLogin(slot, slot.login.result().outcome, MonotonicNow());
  return absl::OkStatus();
}

absl::Status Worker::SendExchange(Slot& slot, absl::Time now) {
  ++slot.exchange;
  slot.sends = 0;
  slot.first_sent = now;
  return SendAgain(slot, now);
}

absl::Status Worker::SendAgain(Slot& slot, absl::Time now) {
  const int sent = slot.sends++;
  // After 1 s, then 2, 4, ...
  timers_[sent].push_back({now + o_.resend_after * (1 << sent), &slot, slot.exchange});
  return slot.socket.Send(slot.login.request());
}

absl::Status Worker::RunTimers(absl::Time now) {
  for (std::deque<Timer>& queue : timers_) {
    while (!queue.empty()) {
      const Timer timer = queue.front();
      Slot& slot = *timer.slot;
      const bool old = !slot.busy || slot.exchange != timer.exchange;
      if (!old && timer.at > now) break;
      queue.pop_front();
      if (old) continue;
      if (slot.sends > o_.resends) {
        EndLogin(slot, Outcome::kLost, now);
        continue;
      }
      ++tallies[slot.stage].resends;
      RETURN_IF_ERROR(SendAgain(slot, now));
    }
  }
  return absl::OkStatus();
}

absl::Time Worker::NextDeadline(absl::Time now) const {
  absl::Time next = now + kLookAtControl;
  const bool stop = control_.stop.load(std::memory_order_relaxed);
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
    Slot& slot = slots_[events[i].data.u64];
    const auto [what, reply, waited] =
        slot.socket.OnReady(events[i].events, absl::MakeSpan(buffer_));
    if (!slot.busy) continue;
    if (what == ClientSocket::What::kReply) {
      RETURN_IF_ERROR(OnReply(slot, reply, MonotonicNow() - waited));
    } else if (what == ClientSocket::What::kRefused) {
      ++tallies[slot.stage].unreachable;  // asked again when the timer says so
    }
  }
  return absl::OkStatus();
}

// MIT's client goes on to the next of its KDC's addresses, as if this one had not answered.
bool Worker::IsNoAnswer(const Slot& slot, Bytes reply) const {
  if (!o_.again_when_unavailable || slot.sends > o_.resends || !IsError(reply)) return false;
  const ErrorReply error = DecodeError(reply);
  return error != nullptr && static_cast<int>(error->error) == kErrorServiceUnavailable;
}

absl::Status Worker::OnReply(Slot& slot, Bytes reply, absl::Time arrived) {
  if (IsNoAnswer(slot, reply)) return absl::OkStatus();
  const Login::Step step = slot.login.step();
  const Login::Next next = slot.login.OnReply(reply, Nonce());
  if (next == Login::Next::kNotOurs) {
    // Where nothing was ever sent twice or given up, no answer can be late: then it is a wrong one.
    if (any_retired) {
      ++tallies[slot.stage].late;
    } else {
      EndLogin(slot, Outcome::kWrongAnswer, arrived);
    }
    return absl::OkStatus();
  }
  tallies[slot.stage].exchanges[static_cast<size_t>(step)].Add(arrived - slot.first_sent);
  if (slot.sends > 1) RetirePort(slot, arrived);
  if (next == Login::Next::kSend) return SendExchange(slot, MonotonicNow());
  EndLogin(slot, slot.login.result().outcome, arrived);
  return absl::OkStatus();
}

// A second answer to a request that was sent twice must not meet another exchange.
void Worker::RetirePort(Slot& slot, absl::Time now) {
  any_retired = true;
  const int fd = slot.socket.Retire();
  if (fd >= 0) lingering_.push_back({now + limits::kLinger, fd});
  while (!lingering_.empty() &&
         (lingering_.front().until <= now || lingering_.size() > limits::kMaxLingering)) {
    close(lingering_.front().fd);
    lingering_.pop_front();
  }
}

void Worker::EndLogin(Slot& slot, Outcome outcome, absl::Time now) {
  Tally& tally = tallies[slot.stage];
  const Login::Result& result = slot.login.result();
  const bool ok = outcome == Outcome::kOk, refused = outcome == Outcome::kRefused;
  ++(tally.*kEnds[static_cast<size_t>(outcome)]);
  if (ok) tally.login.Add(now - slot.due);
  if (refused) ++tally.errors[result.error_code].expected;
  if (outcome == Outcome::kError) ++tally.errors[result.error_code].unexpected;
  if (outcome == Outcome::kWrongAnswer) tally.Complain(result.complaint);
  if (outcome == Outcome::kLost) RetirePort(slot, now);
  log_.Add(slot.due, now, outcome, result.error_code, slot.sends, slot.login.user().principal);
  tally.checked += result.decrypted ? 1 : 0;
  tally.tickets += static_cast<uint64_t>(result.tickets);
  series.Add(now - plan_.begin, ok);
  if (ok) control_.ok.fetch_add(1, std::memory_order_relaxed);
  if (outcome != Outcome::kLost) control_.ended.fetch_add(1, std::memory_order_relaxed);
  if (!ok && !refused) ++control_.trouble;
  --control_.in_flight;
  slot.busy = false;
  free_.push_back(&slot);
}

Crew::Crew(LoadPlan plan) : plan_(std::move(plan)) {
  const Options& o = plan_.options;
  RaiseDescriptorLimit(o.in_flight, o.threads);
  plan_.control.rate = o.rate;
  for (int i = 0; i < o.threads; ++i) workers_.push_back(std::make_unique<Worker>(plan_, i));
  for (int i = 0; i < o.threads; ++i) {
    threads_.push_back(std::async(std::launch::async, [this, i] {
      const absl::Cleanup end = [this] { ++ended_; };
      return workers_[i]->Run();
    }));
  }
}

absl::Status Crew::End(std::vector<Tally>& tallies, Series& series) {
  for (std::future<absl::Status>& thread : threads_) RETURN_IF_ERROR(thread.get());
  bool any_resent = false;
  for (const std::unique_ptr<Worker>& worker : workers_) {
    any_resent = any_resent || worker->any_retired;
    series.Merge(worker->series);
    for (size_t i = 0; i < tallies.size(); ++i) tallies[i].Merge(worker->tallies[i]);
  }
  // Over TCP a connection that was given up answers nobody; and a KDC that never said anything will
  // not now.
  if (any_resent && !plan_.options.tcp && plan_.control.ended > 0) WaitUntilCaughtUp();
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
  if (login.Begin(plan, plan_.users.front(), nullptr, false, 1) != Login::Next::kSend) return;
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
    const auto [what, reply, waited] = socket.OnReady(event.events, absl::MakeSpan(buffer));
    if (what == ClientSocket::What::kRefused) return;  // it has ended, and its queue with it
    // A stray answer to somebody else proves nothing.
    if (what == ClientSocket::What::kReply && login.OnReply(reply, 2) != Login::Next::kNotOurs) {
      return;
    }
  }
}

}  // namespace

std::unique_ptr<Load> StartLogins(const Options& o, LoginPlan plan, Address kdc,
                                  std::vector<User>& users, Control& control) {
  const uint32_t check_every = o.check > 0 ? static_cast<uint32_t>(std::lround(1 / o.check)) : 0;
  return std::make_unique<Crew>(
      LoadPlan{o, std::move(plan), std::move(kdc), users, control, check_every});
}

}  // namespace mpckdc::storm
