// SPDX-License-Identifier: Apache-2.0
//
// Where logins by certificate are verified: on a thread of their own, for a signature takes a
// fraction of a millisecond and the engine's thread has batches to run. KDCs, by the names in their
// certificates, wait in lines of their own and take turns, so that one that sends garbage without
// end keeps none but itself waiting.
#ifndef MPC_SERVER_PKINIT_DESK_H_
#define MPC_SERVER_PKINIT_DESK_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "mpc-server/base/clock.h"
#include "mpc-server/job/certificate_proof.h"
#include "mpc-server/pkinit/verifier.h"

namespace mpckdc {

class CertificateDesk : public CertificateVerifier {
 public:
  // `clock` must outlive it. Without anchors everything is refused.
  CertificateDesk(const PkinitOptions& options, Clock* clock);
  ~CertificateDesk() override;

  // Answers what waits, and nothing after: before whoever is told goes.
  void Stop();
  // Reads anchors, pool and lists. On an error those in force stay.
  absl::Status Load();
  void Verify(const std::string& kdc, const CertificateProof& proof, absl::Time deadline,
              Done done) override;

  struct Counts {
    uint64_t verified = 0, refused = 0;
  };
  Counts counts() const;

 private:
  struct Waiting {
    CertificateProof proof;
    absl::Time deadline;
    Done done;
  };
  struct Line {
    std::deque<Waiting> waiting;
    size_t bytes = 0;  // of the proofs
  };
  void Main();
  bool SomethingToDo() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !lines_.empty();
  }

  const PkinitOptions options_;
  Clock* const clock_;
  mutable absl::Mutex mutex_;
  std::shared_ptr<const PkinitVerifier> verifier_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Line> lines_ ABSL_GUARDED_BY(mutex_);  // none is empty
  std::string last_ ABSL_GUARDED_BY(mutex_);  // whose turn it was
  Counts counts_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_PKINIT_DESK_H_
