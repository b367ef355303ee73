// SPDX-License-Identifier: Apache-2.0
//
// For control builds alone: which defences are dropped. Never part of an installed program.
#ifndef MPC_SERVER_DEFENCE_CONTROL_H_
#define MPC_SERVER_DEFENCE_CONTROL_H_

#include <string>

#include "mpc-server/defence/defence.h"

namespace mpckdc {

// The defence's name without the k: "Gate".
std::string DefenceName(Defence defence);

// From now on this process does without it, whatever the file below says.
void DropForTest(Defence defence);

// Otherwise Upheld() reads, each time it is asked, the names in the file that the environment
// variable MPCKDC_CONTROL_FILE names; a defence whose name is a line of it is dropped.

}  // namespace mpckdc

#endif  // MPC_SERVER_DEFENCE_CONTROL_H_
