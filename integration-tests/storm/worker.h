// SPDX-License-Identifier: Apache-2.0
//
// One thread of the load: its users, its logins in flight, its sockets. Threads share nothing but
// Control; what they counted is added when they have ended.
#ifndef INTEGRATION_TESTS_STORM_WORKER_H_
#define INTEGRATION_TESTS_STORM_WORKER_H_

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "integration-tests/storm/client_socket.h"
#include "integration-tests/storm/limits.h"
#include "integration-tests/storm/login.h"
#include "integration-tests/storm/run.h"

namespace mpckdc::storm {

struct LoadPlan {
  const Options* options;
  LoginPlan login;
  Address kdc;
  uint32_t check_every = 1;   // of how many logins one is decrypted; 0: of none
};

class Worker {
 public:
  Worker(const LoadPlan* plan, int index, std::vector<User>* users, Control* control,
         absl::Time begin);
  ~Worker();

  // Until Control says stop and everything in flight has ended. An error is one of this machine.
  absl::Status Run();

  const std::vector<Tally>& tallies() const { return tallies_; }  // by stage
  const Series& series() const { return series_; }
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
  absl::Status BeginLogin(absl::Time due);
  absl::Status SendExchange(uint32_t slot, absl::Time now);
  absl::Status SendAgain(uint32_t slot, absl::Time now);
  absl::Status RunTimers(absl::Time now);
  absl::Status WaitAndReceive(absl::Time now);
  absl::Status OnReply(uint32_t slot, Bytes reply, absl::Time arrived);
  void EndLogin(uint32_t slot, Outcome outcome, absl::Time now);
  absl::Time NextDeadline(absl::Time now) const;
  void Nap(absl::Duration at_most) const;
  void RetirePort(Slot& slot, absl::Time now);
  uint32_t Nonce() { return static_cast<uint32_t>(random_() & 0x7fffffff); }

  const LoadPlan& plan_;
  const Options& o_;
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
  // How long the last rounds took and what came, the older the less of it. For Nap().
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

// The threads of a run.
class Crew : public Load {
 public:
  Crew(LoadPlan plan, std::vector<User>* users, Control* control);
  bool HasFailed() const override { return ended_ > 0; }
  bool HasEnded() const override { return ended_ == workers_.size(); }
  absl::Status End(std::vector<Tally>& tallies, Series& series) override;

 private:
  void WaitUntilCaughtUp();

  const LoadPlan plan_;
  std::vector<User>& users_;
  const Control& control_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::thread> threads_;
  std::vector<absl::Status> results_;
  std::atomic<size_t> ended_{0};
};

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_WORKER_H_
