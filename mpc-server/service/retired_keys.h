// SPDX-License-Identifier: Apache-2.0
//
// Keys that somebody had deleted (store/retired.h): what the calls of AdminService about them do,
// and who collects them.
#ifndef MPC_SERVER_SERVICE_RETIRED_KEYS_H_
#define MPC_SERVER_SERVICE_RETIRED_KEYS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpc-server/agree/engine_status.h"
#include "mpc-server/audit/audit_log.h"
#include "mpc-server/store/share_store.h"
#include "proto/admin.pb.h"

namespace mpckdc {

// Collects retired keys when the grace time is over, each server by itself: a key that one server
// has collected is unknown to all jobs, and what the others still have of it is no use.
//
// A server whose clock runs ahead, or leaps, would collect too early: so keys are judged by the last
// time that both others confirmed, and only while they are there. Thread safe, as the store and the
// log are.
class RetiredCollector {
 public:
  RetiredCollector(ShareStore* store, AuditLog* audit, absl::Duration grace)
      : store_(store), audit_(audit), grace_(grace) {}

  absl::Duration grace() const { return grace_; }
  // One transaction of at most limits::kCollectAtOnce keys, with its audit line; returns how many
  // there were. FailedPrecondition: the clock is not to be relied on.
  absl::StatusOr<size_t> Collect(const EngineStatus& status);

 private:
  ShareStore* const store_;
  AuditLog* const audit_;
  const absl::Duration grace_;
};

// The calls; `details` is what the audit line of the act says.
absl::Status DeleteKeysCall(ShareStore& store, absl::Time now, const v1::DeleteKeysRequest& request,
                            v1::DeleteKeysReply* reply, AuditLog::Fields* details);
absl::Status RestoreKeysCall(ShareStore& store, const v1::RestoreKeysRequest& request,
                             v1::RestoreKeysReply* reply, AuditLog::Fields* details);

// Fills in since when those of the keys are retired, which are in the order of their handles.
absl::Status FillRetired(const ShareStore& store, std::vector<v1::ListKeysReply>* replies);

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_RETIRED_KEYS_H_
