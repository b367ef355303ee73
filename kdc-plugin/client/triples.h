// SPDX-License-Identifier: Apache-2.0
//
// The triples of servers that serve a realm, each by itself (JobClient), and which of them a job
// goes to:
//
//   a new job     the healthy triple with the fewest jobs under way; of equals the nearest
//   what follows  a SEAL_GRANTED, a tag: the triple that did what it follows. Ids tell: those of
//                 triple j of n are j + n, j + 2n, ...
//
// A triple is healthy while its three streams are up. It is taken out at once when one ends, when a
// server says that the three cannot compute, when they contradict each other or the answer of one is
// none, of a job or of a tag, when a tag does not come, or when one says nothing for a while. It is
// back when it is connected anew, or when a job that tries it, one at a time, is computed. A job
// that was lost so, or that one server alone may have refused, is sent once more in the time that
// it has: to another healthy triple or, if the lost connection was all, the same. The servers
// judge the same pre-authentication again for the same KDC (mpc-server/doc/jobs.md, "Grants").
//
// When no triple is healthy, which is over in a moment where a standby is promoted or a server is
// restarted, jobs wait here while the outage is young:
//
//        a triple serves  |  none does: jobs wait, one at a time tries   |  jobs fail as they come
//     --------------------+----------------------------------------------+------------------------->
//                         none_since_                                    + kYoungOutage
//
// They leave when a triple is healthy, when the outage is no longer young, or when their own time
// runs short, and then go where any job would go.
//
// A job may also end so because the servers cannot read the record of one of its keys, and anybody
// may ask for that key again and again. Its keys are noted until a job with them succeeds:
//
//     a key    fails since | its triple serves another job | a job with it fails: says nothing of
//                          |                               | the triple
#ifndef KDC_PLUGIN_CLIENT_TRIPLES_H_
#define KDC_PLUGIN_CLIENT_TRIPLES_H_

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "kdc-plugin/client/job_client.h"
#include "kdc-plugin/client/mpc_client.h"
#include "mpc-server/base/steady_wait.h"

namespace mpckdc::client {

// Of a triple that failed while it was connected: until one job tries it, doubled each time.
inline constexpr absl::Duration kProbeMin = absl::Milliseconds(250);
inline constexpr absl::Duration kProbeMax = absl::Seconds(5);
// One that gives wrong tags computes jobs all the same, so that each trial brings it back: it is out
// for longer each time that this happens again within so long.
inline constexpr absl::Duration kWrongTagAgain = absl::Seconds(20);
// The part of a job's time after which its triple is given up if a server said nothing in it.
inline constexpr double kSilentPart = 0.4;
// A job that has less left is not sent again, and waits for no triple.
inline constexpr double kLeastPartLeft = 0.3;
// For so long jobs wait for a triple when none is healthy.
inline constexpr absl::Duration kYoungOutage = absl::Seconds(3);
// Then one of them tries as often whether a triple serves again.
inline constexpr absl::Duration kTrialPause = absl::Milliseconds(100);
// So many keys with which jobs fail are remembered.
inline constexpr size_t kMaxFailingKeys = 4096;
// Those that wait are looked at as often, for their time.
inline constexpr absl::Duration kHeldLook = absl::Milliseconds(20);

class Triples : public TripleObserver {
 public:
  static absl::StatusOr<std::unique_ptr<Triples>> Start(const mpc_options& options);
  ~Triples() override;

  void Submit(const mpc_job& job, mpc_job_done done, void* arg);
  void RequestTag(const WantedTag& tag, mpc_tag_done done, void* arg);
  kdc_metrics* metrics() const { return metrics_; }
  // What the calling thread submits in between leaves together at the end.
  void BeginBurst() { Burst::Begin(); }
  void EndBurst() { Burst::End(); }

  // TripleObserver
  void OnTriple(int triple, bool connected, const std::string& why) override;
  void OnWrongTag(int triple, const std::string& why) override;

 private:
  struct Attempt;
  struct State {
    bool healthy() const { return connected && !failed; }

    bool connected = false;
    bool failed = false;       // and nothing has succeeded since
    bool probing = false;      // a job tries whether it still does
    std::optional<bool> told;  // what the log says of it
    absl::Time probe_at = absl::InfinitePast();
    absl::Time good_at = absl::InfinitePast();  // the last answer that was one
    absl::Time failed_at = absl::InfinitePast();
    absl::Duration pause = kProbeMin;
    absl::Time wrong_tag_at = absl::InfinitePast();  // when it was last taken out for one
    size_t jobs = 0;                                 // under way
    absl::Duration nearness = absl::ZeroDuration();  // of the quickest answers; 0: not known yet
  };

  Triples(const mpc_options& options, int count);

  int Of(uint64_t id) const { return static_cast<int>(id % clients_.size()); }
  // `not_this`: a triple that failed the job; -1: none.
  int Choose(absl::Time now, int not_this) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Where the attempt's job goes, and until when it may be silent there.
  void Send(std::unique_ptr<Attempt> attempt, const mpc_job& job, int not_this);
  // The same for a job that may wait: now, or when a triple serves.
  void SendOrHold(std::unique_ptr<Attempt> attempt, const mpc_job& job, int not_this);
  static void Done(void* arg, mpc_result* result);
  // What the answer says of the triple.
  void Learn(const Attempt& attempt, const mpc_result& result, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool MayTryAgain(const Attempt& attempt, const mpc_result& result, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static bool OneSaidSo(const mpc_result& result);
  bool AnotherServes(int triple) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool HasTime(const Attempt& attempt, absl::Time now) const;

  // ---- Of keys with which jobs fail ----
  using KeyHandle = std::array<uint8_t, MPC_HANDLE_BYTES>;
  using KeyHandles = absl::InlinedVector<KeyHandle, 4>;
  static KeyHandles HandlesOf(const Attempt& attempt);
  void NoteKeys(const Attempt& attempt, bool failed, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // How many of the job's keys have failed since before `time`.
  size_t KeysFailing(const Attempt& attempt, absl::Time time) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // ---- Of jobs that wait ----
  // After each change of a triple's state. Whether an outage is over that the log has.
  bool NoteHealth(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool InYoungOutage(absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Whether a job may find out now whether a triple serves again. Says yes once in kTrialPause.
  bool TakeTrial(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::deque<std::unique_ptr<Attempt>> TakeLeaving(absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RunHolder();

  // The line for the log if the triple's state changed; empty otherwise.
  std::string Change(int triple, const std::string& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Log(int priority, const std::string& text) const;
  // What waits, for the metrics.
  static void Probe(void* arg, kdc_load* load);

  const absl::Duration timeout_;
  const mpc_log_function log_;
  kdc_metrics* const metrics_;
  const std::string log_prefix_;
  std::vector<std::string> names_;  // of the triples; stays
  std::vector<std::unique_ptr<JobClient>> clients_;  // complete before there are jobs

  absl::Mutex mu_;
  std::vector<State> states_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  // Since when no triple is healthy; in the future: one is. Before the first was there is nothing
  // to wait for.
  absl::Time none_since_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  absl::Time next_trial_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  bool told_held_ ABSL_GUARDED_BY(mu_) = false;  // the log says that jobs wait
  std::deque<std::unique_ptr<Attempt>> held_ ABSL_GUARDED_BY(mu_);
  // Keys with which no job has succeeded since then.
  absl::flat_hash_map<KeyHandle, absl::Time> failing_ ABSL_GUARDED_BY(mu_);
  SteadyCondition holder_wake_;
  std::thread holder_;
};

}  // namespace mpckdc::client

#endif  // KDC_PLUGIN_CLIENT_TRIPLES_H_
