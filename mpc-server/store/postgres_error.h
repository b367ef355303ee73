// SPDX-License-Identifier: Apache-2.0
//
// What PostgreSQL says went wrong, as the codes of kv.h, with what the administrator can do.
#ifndef MPC_SERVER_STORE_POSTGRES_ERROR_H_
#define MPC_SERVER_STORE_POSTGRES_ERROR_H_

#include <libpq-fe.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace mpckdc {

// No connection could be made. PermissionDenied: not let in; FailedPrecondition: no such database
// or role; else Unavailable.
absl::Status ConnectError(absl::string_view message);
// The server runs, and lets nobody in beside those who are.
bool IsNoneLeft(const absl::Status& status);
// Unavailable: the connection ended, or the server does not answer.
absl::Status GoneError(absl::string_view message);
// OK unless it is the result of a statement that failed.
absl::Status StatementError(const PGresult* result);

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_POSTGRES_ERROR_H_
