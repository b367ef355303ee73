// SPDX-License-Identifier: Apache-2.0
//
// AdminService.RenameKeys (store/renamed.cc).
#ifndef MPC_SERVER_SERVICE_RENAME_KEYS_H_
#define MPC_SERVER_SERVICE_RENAME_KEYS_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "mpc-server/audit/audit_log.h"
#include "mpc-server/service/key_history.h"
#include "mpc-server/store/share_store.h"
#include "proto/admin.pb.h"

namespace mpckdc {

// `details` is what the audit line of the act says: both names, and each pair of handles.
absl::Status RenameKeysCall(ShareStore& store, KeyHistory* history, absl::Time now,
                            const v1::RenameKeysRequest& request, v1::RenameKeysReply* reply,
                            AuditLog::Fields* details);

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_RENAME_KEYS_H_
