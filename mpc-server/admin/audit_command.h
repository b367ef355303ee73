// SPDX-License-Identifier: Apache-2.0
//
// mpc-admin audit: works on files of the servers' audit logs, without configuration, certificates
// or network.
#ifndef MPC_SERVER_ADMIN_AUDIT_COMMAND_H_
#define MPC_SERVER_ADMIN_AUDIT_COMMAND_H_

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mpc-server/admin/console.h"
#include "mpc-server/admin/exit_code.h"
#include "mpc-server/admin/options.h"
#include "mpc-server/admin/session.h"
#include "mpc-server/audit/chain.h"
#include "mpc-server/audit/files.h"

namespace mpckdc::admin {

absl::StatusOr<ExitCode> AuditCommand(const Options& options, Console& console);

// ---- Its parts ----

absl::StatusOr<ExitCode> AuditReconcile(const Options& options, Console& console);

// How a break of a chain is shown.
nlohmann::json BreaksToJson(const std::vector<audit::Break>& breaks);
std::string Describe(const audit::Break& found);

// Shows progress over the bytes of files; EndProgress() ends it.
std::function<void(uint64_t)> ProgressOver(const std::vector<audit::LogFile>& files,
                                           Console* console);

}  // namespace mpckdc::admin

#endif  // MPC_SERVER_ADMIN_AUDIT_COMMAND_H_
