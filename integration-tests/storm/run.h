// SPDX-License-Identifier: Apache-2.0
//
// A run: warm-up, then stages (one, or those of a ramp), then waiting for what is in flight. And
// what is counted in it.
#ifndef INTEGRATION_TESTS_STORM_RUN_H_
#define INTEGRATION_TESTS_STORM_RUN_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "integration-tests/storm/options.h"

namespace mpckdc::storm {

struct Address;
struct LoginPlan;
struct RealmHandles;
struct User;

// Latencies in bins of equal relative width (1 %) from 1 microsecond to 1,000 seconds, and one for
// all beyond: a percentile is right to within one bin, and histograms of threads are added.
class LatencyHistogram {
 public:
  void Add(absl::Duration latency);
  void Merge(const LatencyHistogram& other);

  uint64_t count() const { return count_; }
  absl::Duration max() const { return max_; }
  absl::Duration Mean() const;
  // The upper edge of the bin in which the share is reached, never more than max(); zero when
  // empty.
  absl::Duration Percentile(double percent) const;

  struct Bin {
    absl::Duration from, to;
    uint64_t count;
  };
  std::vector<Bin> NonEmptyBins() const;

 private:
  std::vector<uint64_t> bins_;  // up to the last that is not empty
  uint64_t count_ = 0;
  absl::Duration sum_, max_;
};

struct ErrorCount {
  uint64_t expected = 0;    // PREAUTH_FAILED to a wrong password
  uint64_t unexpected = 0;
};

// What happened to the logins of one stage. Each thread has its own; they are added.
struct Tally {
  uint64_t started = 0;
  // Every started login ends in one of these.
  uint64_t ok = 0;
  uint64_t refused = 0;        // wrong password, told so
  uint64_t failed = 0;         // another KRB-ERROR; of a job or a tag a verdict that is not OK
  uint64_t wrong_answers = 0;  // what no KDC and no server may say
  uint64_t lost = 0;           // no answer to the last resend
  // Logins of an open loop that could not begin, since too many were in flight.
  uint64_t shed = 0;

  uint64_t checked = 0;        // logins whose replies were opened, or compared with the oracle
  uint64_t tickets = 0;        // of services; or that the servers opened themselves
  uint64_t resends = 0;
  uint64_t late = 0;           // answers to what had been given up or sent twice
  uint64_t unreachable = 0;    // refused by the KDC's host, or a connection that ended early
  std::map<int, ErrorCount> errors;         // by Kerberos code
  std::map<std::string, uint64_t> verdicts;  // of jobs
  std::vector<std::string> complaints;      // the first wrong answers

  LatencyHistogram login;      // logins that went well, from when they were due to their last reply
  // From the first sending of a request to its reply, by Login::Step; of jobs only the first.
  std::array<LatencyHistogram, 3> exchanges;

  void Complain(std::string text);
  void Merge(const Tally& other);
};

// Logins that ended per interval, from the run's beginning.
struct Series {
  std::vector<uint64_t> ok;
  std::vector<uint64_t> other;  // refused, failed, lost, wrong

  void Add(absl::Duration since_begin, bool is_ok);
  void Merge(const Series& other);
};

// "KDC_ERR_PREAUTH_FAILED", or "KRB_ERROR_93" for one that has no name here.
std::string ErrorName(int code);

// By a clock that nobody sets: not comparable with absl::Now().
absl::Time MonotonicNow();

// CPU times of a process are those of all its threads together, those that have ended too. This is
// utime + stime of a line of /proc/PID/stat, in seconds; negative when it is no such line.
double CpuSecondsOfStat(absl::string_view line, long ticks_per_second);

// An error when one of them does not run.
absl::Status CheckRunning(const std::vector<WatchedProcess>& processes);

struct CpuTimes {
  double own = 0;                                      // seconds, of this process
  std::vector<std::pair<std::string, double>> others;  // by name; NaN when one has ended
};
CpuTimes ReadCpu(const std::vector<WatchedProcess>& processes);

// When logins begin in an open loop: a Poisson process, so users come whether or not others have
// been answered. Several threads with a share of the rate each make one process of the whole rate.
class PoissonSchedule {
 public:
  PoissonSchedule(uint64_t seed, double rate, absl::Time begin) : random_(seed) {
    SetRate(rate, begin);
  }

  // When the next login is due.
  absl::Time next() const { return next_; }
  void Advance() { next_ += absl::Seconds(gap_(random_)); }
  // Another rate from now on. The process has no memory, so the gap under way is drawn anew.
  void SetRate(double rate, absl::Time now) {
    gap_ = std::exponential_distribution<double>(rate);
    next_ = now;
    Advance();
  }

 private:
  std::mt19937_64 random_;
  std::exponential_distribution<double> gap_;
  absl::Time next_;
};

// One step of a run: a rate (0: closed loop) for a time.
struct Stage {
  double rate = 0;
  absl::Duration length;
};

// Of a ramp, evenly spaced rates.
std::vector<Stage> StagesOf(const Options& options);

// Values of Control::stage; the stages that are measured follow.
inline constexpr int kNoStage = -1;    // nothing begins yet
inline constexpr int kWarmUpStage = 0;

// What a load is told, and what it says while it runs.
struct Control {
  std::atomic<int> stage{kNoStage};
  std::atomic<double> rate{0};           // of all threads together
  std::atomic<bool> stop{false};         // nothing new begins
  std::atomic<bool>* interrupted = nullptr;   // set: somebody wants the run to end now
  std::atomic<int64_t> may_begin{INT64_MAX};  // --count: how many logins still may

  std::atomic<uint64_t> started{0};      // and shed ones
  std::atomic<uint64_t> ok{0};
  std::atomic<uint64_t> ended{0};        // answered
  std::atomic<uint64_t> trouble{0};      // failed, wrong, lost, shed
  std::atomic<uint64_t> in_flight{0};

  // Whether one login more may begin; it is then in flight.
  bool MayBegin();
  bool IsInterrupted() const { return interrupted != nullptr && *interrupted; }
};

class Load {
 public:
  virtual ~Load() = default;
  virtual void Tick() {}                   // every few milliseconds
  virtual bool HasFailed() const { return false; }
  virtual bool HasEnded() const = 0;       // after Control::stop
  // Then: adds what was counted, by stage. An error is one of this machine.
  virtual absl::Status End(std::vector<Tally>& tallies, Series& series) = 0;
};

// Logins at a KDC (worker.cc); login jobs at three servers (job_load.cc).
std::unique_ptr<Load> StartLogins(const Options& options, LoginPlan plan, Address kdc,
                                  std::vector<User>& users, Control& control);
absl::StatusOr<std::unique_ptr<Load>> StartJobs(const Options& options, std::vector<User>& users,
                                                const RealmHandles& handles, Control& control);

// One stage as it was seen from outside: what ended in its time, and what the CPUs did meanwhile.
struct StageResult {
  double rate = 0;             // asked for; 0: closed loop
  double seconds = 0;
  uint64_t offered = 0;        // logins that were due
  uint64_t ok = 0;             // that ended well in these seconds
  uint64_t ended = 0;          // that were answered in these seconds
  bool kept = false;           // the KDC kept up
  Tally tally;                 // of the logins that began in this stage
  CpuTimes cpu;                // spent in these seconds
};

struct RunResult {
  std::vector<StageResult> stages;
  StageResult total;           // all of them
  Series series;               // warm-up included
  bool is_ramp = false;
  double knee_per_s = 0;       // of the last stage that kept up; 0: none
};

absl::StatusOr<RunResult> Run(const Options& options, Load& load, Control& control);

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_RUN_H_
