// SPDX-License-Identifier: Apache-2.0
//
// The security mode that tests of engines and simulations run in: semi-honest, or active with
// MPCKDC_TESTED_SECURITY=active in the environment; ctest runs many of them in both. With
// kSemiHonest a lie goes unnoticed and attacks succeed; with kActive the session ends before
// anything leaves, and the liar is among those accused.
#ifndef MPC_SERVER_TESTING_TESTED_SECURITY_H_
#define MPC_SERVER_TESTING_TESTED_SECURITY_H_

#include <cstdlib>

#include "absl/strings/string_view.h"
#include "mpc-server/share/session.h"

namespace mpckdc {

inline Security TestedSecurity() {
  const char* mode = std::getenv("MPCKDC_TESTED_SECURITY");
  return mode != nullptr && absl::string_view(mode) == SecurityName(Security::kActive)
             ? Security::kActive
             : Security::kSemiHonest;
}

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_TESTED_SECURITY_H_
