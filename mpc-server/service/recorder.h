// SPDX-License-Identifier: Apache-2.0
//
// Writes what the engine answers into the audit log, before it leaves.
#ifndef MPC_SERVER_SERVICE_RECORDER_H_
#define MPC_SERVER_SERVICE_RECORDER_H_

#include "mpc-server/agree/batch_report.h"
#include "mpc-server/audit/audit_log.h"

namespace mpckdc {

class AuditRecorder : public JobRecorder {
 public:
  // Not owned; must outlive the engine.
  explicit AuditRecorder(AuditLog* audit) : audit_(audit) {}

  absl::Status Ready() override;
  absl::Status Record(const BatchReport& report) override;
  void RecordUnbatched(absl::Span<const BatchJob> jobs, uint64_t left_out) override;

 private:
  AuditLog* const audit_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_RECORDER_H_
