// SPDX-License-Identifier: Apache-2.0
//
// How another server's deviation is told: to administrators and to the audit log.
#ifndef MPC_SERVER_SERVICE_DEVIATIONS_H_
#define MPC_SERVER_SERVICE_DEVIATIONS_H_

#include "mpc-server/agree/deviation_report.h"
#include "mpc-server/audit/audit_log.h"
#include "proto/admin.pb.h"

namespace mpckdc {

v1::Quarantine ToProto(const DeviationReport& report);
// `suspects`, `text`, `ring` and `batch`.
AuditLog::Fields DeviationFields(const DeviationReport& report);

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_DEVIATIONS_H_
