// SPDX-License-Identifier: Apache-2.0
//
// Login jobs in a closed loop, as krb5kdc sends them: job, ciphertexts, tags.
//
//     users' keys of GCM                                  of 17 to 20
//     submit LOGIN (open 1, seal 2, seal 3, mac 56)       submit LOGIN (open 1, seal 2, mac 56)
//       -> result: keystreams -> two ciphertexts            -> result: keystream -> ciphertext
//            -> two tag requests                                 -> tag request, and
//                                                                submit SEAL_GRANTED (seal 3)
//            -> both have come: the login is done -> the next one
//                 a sample: first compared with the oracle, its ticket opened by a job OPEN_TICKET
#ifndef INTEGRATION_TESTS_STORM_JOB_LOAD_H_
#define INTEGRATION_TESTS_STORM_JOB_LOAD_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "integration-tests/storm/handles.h"
#include "integration-tests/storm/histogram.h"
#include "integration-tests/storm/job_oracle.h"
#include "integration-tests/storm/tally.h"
#include "integration-tests/storm/users.h"
#include "kdc-plugin/client/mpc_client.h"

namespace mpckdc::storm {

struct JobPlan {
  std::string realm;
  std::array<std::string, MPC_SERVERS> servers;
  std::string ca, certificate, key;
  int clients = 1;              // as how many KDC processes
  size_t in_flight = 16;
  uint32_t ticket_bytes = 0;
  uint32_t reply_bytes = 0;
  uint32_t check_every = 1;     // of how many logins one is compared with the oracle
  absl::Duration timeout;
};

struct JobTally {
  uint64_t started = 0;
  uint64_t ok = 0;
  uint64_t failed = 0;          // a verdict that is not OK, of the job or of a tag
  uint64_t wrong_answers = 0;
  uint64_t compared = 0;        // with the oracle
  uint64_t tickets_opened = 0;  // by the servers, of these
  std::map<std::string, uint64_t> verdicts;
  std::vector<std::string> complaints;
  LatencyHistogram login;       // submission to second tag, or to the reply
  LatencyHistogram job;         // submission to result
};

class JobLoad {
 public:
  JobLoad(JobPlan plan, std::vector<User>* users, const RealmHandles* handles);
  ~JobLoad();

  absl::Status Start();
  // Logins that fail at once are begun again here, not in a callback. Call every few milliseconds.
  void Tick();
  // From now on logins are counted; what was before is forgotten.
  void BeginMeasuring();
  // No login begins any more. Idle() is true when the last one has ended.
  void StopBeginning() { stop_ = true; }
  bool Idle() const;

  void LimitTo(int64_t logins);   // that still begin
  bool LimitReached() const;

  struct Live {
    uint64_t ok, ended, failed, in_flight;
  };
  Live Look() const;
  JobTally TakeTally();
  Series TakeSeries();

 private:
  struct Flight;

  void Begin(Flight* flight);
  void Fill(Flight* flight);
  static void OnJob(void* arg, mpc_result* result);
  static void OnTag(void* arg, mpc_verdict verdict, const uint8_t* tag, const char* detail);
  static void OnReply(void* arg, mpc_result* result);
  static void OnTicketOpened(void* arg, mpc_result* result);
  void AskForTags(Flight* flight);
  void AskForTagAndReply(Flight* flight);
  void Arrived(Flight* flight);
  void Finish(Flight* flight);
  // Replies are sealed by jobs of their own: users' keys are of 17 to 20.
  bool seals_replies_later() const { return !gcm_; }
  size_t seals() const { return gcm_ ? 2 : 1; }
  void End(Flight* flight, mpc_verdict verdict, const std::string& complaint);
  bool MayBegin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const JobPlan plan_;
  const RealmHandles* const handles_;
  const bool gcm_;  // the users' keys
  Principal tgs_name_;
  std::vector<mpc_client*> clients_;
  std::vector<std::unique_ptr<Flight>> flights_;
  std::atomic<bool> stop_{false};

  mutable absl::Mutex mu_;
  std::deque<User*> free_users_ ABSL_GUARDED_BY(mu_);  // a key serves one login at a time
  std::vector<Flight*> parked_ ABSL_GUARDED_BY(mu_);   // to begin at the next Tick()
  int64_t may_begin_ ABSL_GUARDED_BY(mu_) = INT64_MAX;
  uint64_t number_ ABSL_GUARDED_BY(mu_) = 0;           // of the next login
  size_t in_flight_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t ended_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t ok_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t failed_ ABSL_GUARDED_BY(mu_) = 0;
  JobTally tally_ ABSL_GUARDED_BY(mu_);
  Series series_ ABSL_GUARDED_BY(mu_);
  absl::Time begin_;
};

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_JOB_LOAD_H_
