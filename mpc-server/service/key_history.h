// SPDX-License-Identifier: Apache-2.0
//
// Who may have keys compared (AdminService.CompareKeys), and how often.
//
// Whoever changes passwords can ask with it whether a guess is right: it stages keys made from the
// guess and compares. So each staged key that is compared costs a token of its principal's, before
// anything is computed; six keys of one password cost six, since they may be six guesses. The
// buckets are in memory: a restart fills them.
//
// A key that gets another principal's name (RenameKeys) takes its old name's bucket along, and how
// often it may get one is bounded too: otherwise a guesser would give it a name for each guess.
#ifndef MPC_SERVER_SERVICE_KEY_HISTORY_H_
#define MPC_SERVER_SERVICE_KEY_HISTORY_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <list>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
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

  // Before keys of a principal are renamed, ResourceExhausted: they were too often; and after.
  absl::Status AdmitRename(const std::string& from);
  void NoteRename(const std::string& from, const std::string& to);

 private:
  absl::Status CheckStager(const TransactionId& txn, const std::string& caller) const;
  absl::StatusOr<KeyInfo> CheckStaged(const CompareRequest& request) const;
  absl::Status CheckOld(const CompareRequest& request, const KeyInfo& of) const;
  absl::Status Take(const KeyInfo& of, uint32_t keys);
  // Under which all names that a principal's keys had since the start are counted.
  PrincipalId FirstName(PrincipalId id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeRoom(const PrincipalId& id, absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  struct Buckets {
    TokenBucket hour, day, renamed;
    absl::Duration full_at() const { return std::max(day.full_at(), renamed.full_at()); }
  };

  const ShareStore& store_;
  const std::function<absl::Duration()> elapsed_;
  mutable absl::Mutex mutex_;
  ComparedRates rates_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<TransactionId, std::string> stagers_ ABSL_GUARDED_BY(mutex_);
  std::list<TransactionId> staged_ ABSL_GUARDED_BY(mutex_);  // those, the oldest first
  absl::flat_hash_map<PrincipalId, Buckets> buckets_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<PrincipalId, PrincipalId> named_before_ ABSL_GUARDED_BY(mutex_);
};

// Answers of the engine as a reply.
void FillAnswers(absl::Span<const CompareResult> results, v1::CompareKeysReply* reply,
                 AuditLog::Fields* details);

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_KEY_HISTORY_H_
