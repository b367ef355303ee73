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
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "integration-tests/storm/job_oracle.h"
#include "integration-tests/storm/run.h"
#include "integration-tests/storm/users.h"
#include "kdc-plugin/client/mpc_client.h"

namespace mpckdc::storm {

class JobLoad : public Load {
 public:
  JobLoad(const Options* options, std::vector<User>* users, const RealmHandles* handles,
          Control* control);
  ~JobLoad() override;

  absl::Status Start();
  // Logins that fail at once are begun again here, not in a callback.
  void Tick() override;
  bool HasEnded() const override { return control_.in_flight == 0; }  // each job has a timeout
  absl::Status End(std::vector<Tally>& tallies, Series& series) override;

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
  // Replies are sealed by jobs of their own: users' keys are of enctypes 17 to 20.
  bool seals_replies_later() const { return !gcm_; }
  size_t seals() const { return gcm_ ? 2 : 1; }
  void End(Flight* flight, mpc_verdict verdict, const std::string& complaint);

  const Options& o_;
  const RealmHandles* const handles_;
  Control& control_;
  const bool gcm_;  // the users' keys
  Principal tgs_name_;
  std::vector<mpc_client*> clients_;
  std::vector<std::unique_ptr<Flight>> flights_;
  const absl::Time begin_;

  absl::Mutex mu_;
  std::deque<User*> free_users_ ABSL_GUARDED_BY(mu_);  // a key serves one login at a time
  std::vector<Flight*> parked_ ABSL_GUARDED_BY(mu_);   // to begin at the next Tick()
  uint64_t number_ ABSL_GUARDED_BY(mu_) = 0;           // of the next login
  std::vector<Tally> tallies_ ABSL_GUARDED_BY(mu_);    // by stage
  Series series_ ABSL_GUARDED_BY(mu_);
};

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_JOB_LOAD_H_
