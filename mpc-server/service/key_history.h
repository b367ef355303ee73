// SPDX-License-Identifier: Apache-2.0
//
// Who may have keys compared (AdminService.CompareKeys), and how often.
//
// Whoever changes passwords can ask with it whether a guess is right: it stages keys made from the
// guess and compares. So each staged key that is compared costs a token of its principal's, before
// anything is computed; six keys of one password cost six, since they may be six guesses. The
// buckets are in memory: a restart fills them.
//
// A key that got another principal's name (RenameKeys) says whose the first of its copies was, and
// tokens are taken from that principal's bucket as well as from the present one's: all copies of a
// key have one bucket, at each of a party's machines, before and after a restart, and a name that
// joins them adds nothing. How often a key gets a name is bounded in the same way.
#ifndef MPC_SERVER_SERVICE_KEY_HISTORY_H_
#define MPC_SERVER_SERVICE_KEY_HISTORY_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "mpc-server/agree/job_engine.h"
#include "mpc-server/audit/audit_log.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/judge/token_bucket.h"
#include "mpc-server/store/share_store.h"
#include "proto/admin.pb.h"

namespace mpckdc {

// Staged keys of a principal that are compared: so many at once at most, and in the time.
struct ComparedRates {
  uint32_t per_hour = limits::kComparedPerHour;
  uint32_t per_day = limits::kComparedPerDay;

  friend bool operator==(const ComparedRates&, const ComparedRates&) = default;
};

absl::Duration MonotonicTime();

using PrincipalIds = absl::flat_hash_set<PrincipalId>;

// Thread safe, as the store is.
class KeyHistory {
 public:
  // `elapsed`: a clock that nobody sets.
  KeyHistory(const ShareStore* store, const ComparedRates& rates,
             std::function<absl::Duration()> elapsed = MonotonicTime)
      : store_(*store), elapsed_(std::move(elapsed)), rates_(rates) {}

  void SetRates(const ComparedRates& rates);

  // `caller` staged keys of the transaction.
  void NoteStager(const TransactionId& txn, const std::string& caller);

  // What the engine is to be asked, after the quota was taken; `details` is what the audit line
  // says. PermissionDenied: the keys are of several principals, or the transaction is somebody
  // else's. ResourceExhausted: the quota is used up.
  absl::StatusOr<CompareRequest> Admit(const v1::CompareKeysRequest& request,
                                       const std::string& caller, AuditLog::Fields* details);

  // Does what `stage` does, which renames these keys, and counts those whose copies were staged.
  // ResourceExhausted: one of them was renamed too often. One call after the other, so that calls at
  // the same time are counted as well.
  absl::StatusOr<RenamedKeys> Rename(absl::Span<const RenamedKey> keys,
                                     absl::FunctionRef<absl::StatusOr<RenamedKeys>()> stage);

 private:
  absl::Status AdmitRename(absl::Span<const RenamedKey> keys);
  void NoteRename(const PrincipalIds& lineages);
  absl::Status CheckStager(const TransactionId& txn, const std::string& caller) const;
  absl::StatusOr<KeyInfo> CheckStaged(const CompareRequest& request) const;
  // Fills request->guessed.
  absl::Status CheckOld(const KeyInfo& of, CompareRequest* request) const;
  absl::Status Take(const KeyInfo& of, const PrincipalIds& owners, uint32_t keys);

  struct Compared {
    TokenBucket hour, day;
    absl::Duration full_at() const { return std::max(hour.full_at(), day.full_at()); }
  };

  const ShareStore& store_;
  const std::function<absl::Duration()> elapsed_;
  absl::Mutex renaming_ ABSL_ACQUIRED_BEFORE(mutex_);  // held while keys are staged
  mutable absl::Mutex mutex_;
  ComparedRates rates_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<TransactionId, std::string> stagers_ ABSL_GUARDED_BY(mutex_);
  std::list<TransactionId> staged_ ABSL_GUARDED_BY(mutex_);  // those, the oldest first
  // Two tables: who fills one has nothing in the other forgotten.
  absl::flat_hash_map<PrincipalId, Compared> compared_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<PrincipalId, TokenBucket> renamed_ ABSL_GUARDED_BY(mutex_);
};

// Answers of the engine as a reply.
void FillAnswers(absl::Span<const CompareResult> results, v1::CompareKeysReply* reply,
                 AuditLog::Fields* details);

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_KEY_HISTORY_H_
