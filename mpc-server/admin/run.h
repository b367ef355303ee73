// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_ADMIN_RUN_H_
#define MPC_SERVER_ADMIN_RUN_H_

#include <string>

#include "absl/types/span.h"
#include "mpc-server/admin/session.h"

namespace mpckdc::admin {

// The whole program for one command line (without the program's name); returns the exit status.
int RunAdmin(absl::Span<const std::string> arguments, Environment& environment);

// The real world.
Environment SystemEnvironment();

}  // namespace mpckdc::admin

#endif  // MPC_SERVER_ADMIN_RUN_H_
