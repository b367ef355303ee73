// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_ADMIN_TEST_LOGIN_H_
#define MPC_SERVER_ADMIN_TEST_LOGIN_H_

#include <string>

#include "absl/strings/string_view.h"
#include "mpc-server/admin/exit_code.h"

namespace mpckdc::admin {

struct LoginVerdict {
  ExitCode code;
  const char* name;  // for --json
  const char* what;
  const char* next;
};

// What kinit's message (in the C locale) means.
LoginVerdict JudgeKinit(int exit_code, absl::string_view errors);

}  // namespace mpckdc::admin

#endif  // MPC_SERVER_ADMIN_TEST_LOGIN_H_
