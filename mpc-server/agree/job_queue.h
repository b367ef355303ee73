// SPDX-License-Identifier: Apache-2.0
//
// The jobs that a server has accepted and no batch has taken. Not synchronised: the engine's mutex.
#ifndef MPC_SERVER_AGREE_JOB_QUEUE_H_
#define MPC_SERVER_AGREE_JOB_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "mpc-server/agree/agreement.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/compute/protocol_choice.h"
#include "mpc-server/job/received_job.h"
#include "mpc-server/judge/quota.h"

namespace mpckdc {

// Which ring computes a job (long_ring.h): kLong has a part under a key of enctypes 17 to 20.
enum class JobLength : uint8_t { kUnknown, kShort, kLong };

struct WaitingJob : ReceivedJob {
  GroupId group{};    // KdcKey(kdc)
  size_t blocks = 0;  // BlocksOfJob
  absl::Time next_try = absl::InfinitePast();  // leader: a server did not have it
  int misses = 0;
  bool unverified = false;  // its proof by certificate is being looked at: not here yet
  absl::AnyInvocable<void(JobResult)> done;  // called once, then empty

  // The engine's thread's, since a batch looked at the job.
  JobLength length = JobLength::kUnknown;
  bool measured = false;          // once all of its keys could be read: the same at the three
  CtsLoad load;                   // of what a long job computes in its next batch
  bool opens_first = false;       // which only opens its messages, and leaves the rest to another
  bool proven = false;            // they were opened, and are good
  std::optional<Judgement> refused;  // leader: a long job, as soon as it looked at it
  QuotaUse taken;                 // from its quotas, and not given back
  std::optional<QuotaKind> over;  // the quota by which this server refused it
};
using WaitingJobPtr = std::shared_ptr<WaitingJob>;
// What the three must agree on of a job: what was asked, and whether its messages were found good
// in a batch before. A server that restarted between the two does not know that.
Digest AgreedDigest(const WaitingJob& job, bool proven);
inline Digest AgreedDigest(const WaitingJob& job) { return AgreedDigest(job, job.proven); }

// What a job of a good shape takes of a batch: AES blocks (keystream, and one mask per tag) and the
// blocks under its checksums. Each of either kind takes a power of H in locked memory, or a share
// of the rounds of a hash.
size_t BlocksOfJob(const Job& job);
// Nonces that it takes: one per seal and make_mac.
size_t NoncesOfJob(const Job& job);

class JobQueue {
 public:
  // Records the id, so that ids of a session only rise: REFUSED when the session has used it, or a
  // higher one; UNAVAILABLE when too many other sessions were used lately.
  Judgement TakeId(const GroupId& group, JobId id, absl::Time now);
  bool IdTaken(const GroupId& group, JobId id) const;
  // It was here and its deadline passed, a moment ago.
  bool Expired(const GroupId& group, JobId id) const { return expired_.contains({group, id}); }

  void Add(WaitingJobPtr job);
  WaitingJobPtr Find(const GroupId& group, JobId id) const;
  // It is here, and a batch may take it.
  bool Here(const GroupId& group, JobId id) const;
  void Remove(const WaitingJob& job);

  // In order of arrival, those whose time has come and that fit: for the leader's next proposal.
  using Fits = absl::FunctionRef<bool(const WaitingJob&)>;
  std::vector<WaitingJobPtr> Ready(absl::Time now, Fits fits, size_t max_jobs,
                                   size_t max_blocks = limits::kMaxBatchBlocks) const;
  // A server did not have it: Ready() leaves it out for a while, each time longer.
  void TryAgain(WaitingJob& job, absl::Time now);
  // When Ready() will next change by time alone, or a deadline passes.
  absl::Time NextTry(absl::Time now) const;

  std::vector<WaitingJobPtr> TakeExpired(absl::Time now);
  std::vector<WaitingJobPtr> TakeAll();
  size_t size() const { return by_id_.size(); }

 private:
  using Key = std::pair<GroupId, JobId>;
  struct Session {
    JobId last = 0;
    absl::Time seen;
  };
  bool RoomForSession(absl::Time now);
  void RememberExpired(const Key& key);

  std::list<WaitingJobPtr> jobs_;
  absl::flat_hash_map<Key, std::list<WaitingJobPtr>::iterator> by_id_;
  absl::flat_hash_map<GroupId, Session> sessions_;
  absl::Time sessions_pruned_ = absl::InfinitePast();
  absl::flat_hash_set<Key> expired_;
  std::deque<Key> expired_order_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_AGREE_JOB_QUEUE_H_
