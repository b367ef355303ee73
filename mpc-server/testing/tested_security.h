// SPDX-License-Identifier: Apache-2.0
//
// What the servers under test are expected to do about one of them that lies: with kSemiHonest the
// lie goes unnoticed and attacks succeed; with kActive the session ends before anything leaves, and
// the liar is among those accused. The suites of lies (agree/fault_attack_test.cc, sim/lies.h,
// sim/world.h) ask here, so they are switched with one line.
#ifndef MPC_SERVER_TESTING_TESTED_SECURITY_H_
#define MPC_SERVER_TESTING_TESTED_SECURITY_H_

#include "mpc-server/share/session.h"

namespace mpckdc {

inline constexpr Security kTestedSecurity = Security::kSemiHonest;

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_TESTED_SECURITY_H_
