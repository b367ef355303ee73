// SPDX-License-Identifier: Apache-2.0
//
// The security mode that tests of engines and simulations run in: active, as servers are; or
// semi-honest with MPCKDC_TESTED_SECURITY=semi-honest in the environment, which ctest adds for what
// is about the difference. With kActive the session ends before anything leaves, and the liar is
// among those accused; with kSemiHonest a lie goes unnoticed and attacks succeed.
#ifndef MPC_SERVER_TESTING_TESTED_SECURITY_H_
#define MPC_SERVER_TESTING_TESTED_SECURITY_H_

#include <cstdio>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "mpc-server/share/session.h"

namespace mpckdc {

inline Security TestedSecurity() {
  const char* value = std::getenv("MPCKDC_TESTED_SECURITY");
  const absl::string_view mode = value == nullptr ? "" : value;
  if (mode.empty() || mode == SecurityName(Security::kActive)) return Security::kActive;
  if (mode == SecurityName(Security::kSemiHonest)) return Security::kSemiHonest;
  std::fprintf(stderr, "MPCKDC_TESTED_SECURITY is \"%s\", not active or semi-honest\n", value);
  std::abort();
}

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_TESTED_SECURITY_H_
