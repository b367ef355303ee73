// SPDX-License-Identifier: Apache-2.0
//
// mpc-admin, and one function per command of it.
#ifndef MPC_SERVER_ADMIN_COMMANDS_H_
#define MPC_SERVER_ADMIN_COMMANDS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mpc-server/admin/exit_code.h"
#include "mpc-server/admin/session.h"

namespace mpckdc::admin {

// Each prints its result and returns the exit status, or an error that the caller prints.
absl::StatusOr<ExitCode> InitRealmCommand(Session& session);
absl::StatusOr<ExitCode> EnrollCommand(Session& session);
absl::StatusOr<ExitCode> ImportCommand(Session& session);
absl::StatusOr<ExitCode> RandkeyCommand(Session& session);
absl::StatusOr<ExitCode> DeleteCommand(Session& session);
absl::StatusOr<ExitCode> GcCommand(Session& session);
absl::StatusOr<ExitCode> RotateCommand(Session& session);
absl::StatusOr<ExitCode> ListCommand(Session& session);
absl::StatusOr<ExitCode> VerifyCommand(Session& session);
absl::StatusOr<ExitCode> PolicyCommand(Session& session);
absl::StatusOr<ExitCode> StatusCommand(Session& session);
absl::StatusOr<ExitCode> TopCommand(Session& session);
absl::StatusOr<ExitCode> RefreshCommand(Session& session);
absl::StatusOr<ExitCode> ReplacePartyCommand(Session& session);
absl::StatusOr<ExitCode> CatchUpCommand(Session& session);
absl::StatusOr<ExitCode> ReadmitCommand(Session& session);
absl::StatusOr<ExitCode> DoctorCommand(Session& session);
absl::StatusOr<ExitCode> TestLoginCommand(Session& session);
absl::StatusOr<ExitCode> AuditCommand(const Options& options, Console& console);

// The whole program for one command line (without the program's name); returns the exit status.
int RunAdmin(absl::Span<const std::string> arguments, Environment& environment);

// The real world.
Environment SystemEnvironment();

struct LoginVerdict {
  ExitCode code;
  const char* name;  // for --json
  const char* what;
  const char* next;
};

// What kinit's message (in the C locale) means.
LoginVerdict JudgeKinit(int exit_code, absl::string_view errors);

}  // namespace mpckdc::admin

#endif  // MPC_SERVER_ADMIN_COMMANDS_H_
