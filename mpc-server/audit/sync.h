// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_AUDIT_SYNC_H_
#define MPC_SERVER_AUDIT_SYNC_H_

namespace mpckdc {

// When a line of the audit log is on the disk.
enum class AuditSync {
  kBatch,     // before what it says is answered: it survives a power failure
  kInterval,  // limits::kAuditSyncInterval later at most
  kNever,     // when the kernel likes
};

}  // namespace mpckdc

#endif  // MPC_SERVER_AUDIT_SYNC_H_
