// SPDX-License-Identifier: Apache-2.0
//
// One thread of the load: its users, its logins in flight, its sockets. Threads share nothing but
// Control, and add up what they counted when they have ended.
#ifndef INTEGRATION_TESTS_STORM_WORKER_H_
#define INTEGRATION_TESTS_STORM_WORKER_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "integration-tests/storm/client_socket.h"
#include "integration-tests/storm/limits.h"
#include "integration-tests/storm/login.h"
#include "integration-tests/storm/schedule.h"
#include "integration-tests/storm/tally.h"

namespace mpckdc::storm {

// Of a clock that nobody sets: not comparable with absl::Now().
absl::Time MonotonicNow();

struct LoadPlan {
  LoginPlan login;
  Address kdc;
  bool tcp = false;
  bool open_loop = false;
  size_t in_flight = 16;      // at most, of this thread
  double wrong_share = 0;     // of logins that come with a wrong password
  uint32_t check_every = 1;   // of how many logins one is decrypted
  absl::Duration resend_after = limits::kDefaultResendAfter;
  int resends = limits::kDefaultResends;
  int threads = 1;
  size_t stages = 1;          // warm-up included
  uint64_t seed = 1;
};

// Of Control::stage; measured stages follow.
inline constexpr int kNoStage = -1;    // nothing begins yet
inline constexpr int kWarmUpStage = 0;

// What the threads are told, and what they say while they run.
struct Control {
  std::atomic<int> stage{kNoStage};
  std::atomic<double> rate{0};           // of all threads together
  std::atomic<bool> stop{false};         // nothing new begins
  std::atomic<int64_t> may_begin{INT64_MAX};  // --count: how many logins still may

  std::atomic<uint64_t> started{0};      // and shed ones
  std::atomic<uint64_t> ok{0};
  std::atomic<uint64_t> ended{0};        // answered
  std::atomic<uint64_t> trouble{0};      // failed, wrong, lost, shed
  std::atomic<uint64_t> in_flight{0};
};

class Worker {
 public:
  Worker(const LoadPlan& plan, int index, std::vector<User>* users, Control* control,
         absl::Time begin);
  ~Worker();

  // Until Control says stop and everything in flight has ended. An error is one of this machine.
  absl::Status Run();

  std::vector<Tally>& tallies() { return tallies_; }  // by stage
  Series& series() { return series_; }
  // Whether answers may still come to requests that were sent twice or given up.
  bool any_retired() const { return any_retired_; }

 private:
  // One client: a socket, and the login under way.
  struct Slot {
    explicit Slot(ClientSocket s) : socket(std::move(s)) {}
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
    uint32_t slot;
    uint32_t exchange;
  };

  absl::Status Prepare();
  absl::Status BeginDue(absl::Time now);
  absl::Status BeginLogin(uint32_t slot, absl::Time due);
  absl::Status SendExchange(uint32_t slot, absl::Time now);
  absl::Status SendAgain(uint32_t slot, absl::Time now);
  void SetTimer(uint32_t slot, absl::Time now);
  absl::Status RunTimers(absl::Time now);
  absl::Status WaitAndReceive(absl::Time now);
  absl::Status OnReply(uint32_t slot, Bytes reply, absl::Time arrived);
  void OnNotOurs(uint32_t slot, absl::Time now);
  void CountExchange(const Slot& slot, Login::Step step, absl::Time arrived);
  void EndLogin(uint32_t slot, Outcome outcome, absl::Time now);
  absl::Time NextDeadline(absl::Time now) const;
  void Nap(absl::Duration at_most) const;
  void NoteAnswers(int count, absl::Time now);
  void RetirePort(Slot& slot, absl::Time now);
  bool MayBegin();
  uint32_t Nonce() { return static_cast<uint32_t>(random_() & 0x7fffffff); }

  const LoadPlan plan_;
  const int index_;
  std::vector<User>* const users_;
  Control* const control_;
  const absl::Time begin_;
  int epoll_ = -1;
  std::mt19937_64 random_;
  PoissonSchedule schedule_;
  int stage_seen_ = kNoStage;
  size_t next_user_;
  uint32_t since_check_ = 0;
  Key wrong_key_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  // By how often the request was sent: all timers of one have the same length, so each is in order.
  std::array<std::deque<Timer>, limits::kMaxResends + 1> timers_;
  // Of the last rounds, the older the less: how long they took and what came. For Nap().
  absl::Duration recent_time_;
  double recent_answers_ = 0;
  absl::Time last_round_;
  struct Lingering {
    absl::Time until;
    int fd;
  };
  std::deque<Lingering> lingering_;
  bool any_retired_ = false;  // so answers may come late
  std::vector<uint8_t> buffer_;
  std::vector<Tally> tallies_;
  Series series_;
};

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_WORKER_H_
