// SPDX-License-Identifier: Apache-2.0
//
// Seals whose keystream a server has released and whose tag it has not. The tag is linear in the
// shared powers of H, so it costs no message between the servers:
//
//   tag = GHASH(H; header length | header, ciphertext) + AES(Kg, J0)
//
// A server answers once per seal. Its share is masked under keys that follow from the hash of the
// job and of the tag request as it received them: if the three requests differ, the three answers
// combine to noise (key/output_format.h). Those keys come from the batch's, which live no longer
// than its seals, so a lost connection between the servers does not lose them.
//
// What the seals of a batch need is kept once for the batch, until the last of its jobs has all its
// tags or is forgotten: thousands of logins wait here at a time.
//
// Thread-safe.
#ifndef MPC_SERVER_JUDGE_PENDING_SEALS_H_
#define MPC_SERVER_JUDGE_PENDING_SEALS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/circuit/gcm/ghash.h"
#include "mpc-server/job/digest.h"
#include "mpc-server/job/job.h"
#include "mpc-server/share/output_masks.h"
#include "mpc-server/share/replicated_share.h"

namespace mpckdc {

// What the seals of one batch share.
struct SealBatch {
  OutputKeys keys;
  SecretVector<SharedBlock> masks;  // of each seal: this server's share of AES(Kg, J0)
  size_t powers_bytes = 0;          // locked memory of the powers of H that its seals refer to
};

// What finishing one seal takes.
struct PendingSeal {
  std::string header;
  Nonce nonce{};
  uint32_t max_plaintext = 0;
  uint32_t mask = 0;  // its index in the batch
  SharedPowers powers;  // none: the seal has its HMAC and takes no tag
};

struct PendingJob {
  std::shared_ptr<const SealBatch> batch;
  Digest digest{};  // of the job as received
  absl::InlinedVector<PendingSeal, 2> seals;
  bool waiting = false;  // for a tag of one of them
};

class PendingSeals {
 public:
  // Forgets the oldest jobs when limits::kMaxPendingSeals are kept, or kMaxPendingSealBytes.
  void Add(const KdcIdentity& kdc, JobId id, PendingJob job, absl::Time expires);
  TagResult Finish(const KdcIdentity& kdc, const TagRequest& request, absl::Time now);
  void Prune(absl::Time now);
  size_t size() const;
  size_t bytes() const;  // of the batches that have a job here

 private:
  using Key = std::pair<KdcIdentity, JobId>;
  struct Entry {
    PendingJob job;
    uint32_t answered = 0;  // a bit per seal
    absl::Time expires;
  };
  struct Taken {
    std::shared_ptr<const SealBatch> batch;
    Digest digest{};
    PendingSeal seal;
  };

  void DropOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Takes the seal out, so that it is answered once whatever happens next.
  Judgement Take(const KdcIdentity& kdc, const TagRequest& request, absl::Time now, Taken* out);
  void Erase(absl::flat_hash_map<Key, Entry>::iterator it) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  absl::flat_hash_map<Key, Entry> entries_ ABSL_GUARDED_BY(mu_);
  std::deque<std::pair<absl::Time, Key>> by_age_ ABSL_GUARDED_BY(mu_);
  size_t seals_ ABSL_GUARDED_BY(mu_) = 0;
  absl::flat_hash_map<const SealBatch*, size_t> jobs_of_ ABSL_GUARDED_BY(mu_);
  size_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_JUDGE_PENDING_SEALS_H_
