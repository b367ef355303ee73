// SPDX-License-Identifier: Apache-2.0
//
// Writes what the engine answers into the audit log, before it leaves; of a flood of refused jobs
// their number, within about a second after.
#ifndef MPC_SERVER_SERVICE_RECORDER_H_
#define MPC_SERVER_SERVICE_RECORDER_H_

#include "mpc-server/agree/batch_report.h"
#include "mpc-server/audit/audit_log.h"
#include "mpc-server/service/refused_jobs.h"

namespace mpckdc {

class AuditRecorder : public JobRecorder {
 public:
  // Not owned; must outlive the engine.
  AuditRecorder(AuditLog* audit, Clock* clock) : audit_(audit), clock_(*clock), refused_(clock) {}

  absl::Status Ready() override;
  absl::Status Record(const BatchReport& report) override;
  void RecordUnbatched(absl::Span<const BatchJob> jobs, uint64_t left_out) override;
  void WriteCounts() override;

 private:
  std::string Listed(absl::Span<const BatchJob> jobs, absl::Time time);

  AuditLog* const audit_;
  Clock& clock_;
  RefusedJobs refused_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_RECORDER_H_
