// SPDX-License-Identifier: Apache-2.0
//
// What the servers under test are expected to do about one of them that lies. The suites of lies
// (agree/fault_attack_test.cc, sim/deviations.h) ask here, so they are switched with one line.
#ifndef MPC_SERVER_TESTING_TESTED_SECURITY_H_
#define MPC_SERVER_TESTING_TESTED_SECURITY_H_

namespace mpckdc {

enum class TestedSecurity {
  kSemiHonest,  // the lie goes unnoticed: attacks succeed
  kActive,      // the session ends before anything leaves, and the liar is among those accused
};
// How the engines of tests run when nothing else is said.
inline constexpr TestedSecurity kTestedSecurity = TestedSecurity::kSemiHonest;

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_TESTED_SECURITY_H_
