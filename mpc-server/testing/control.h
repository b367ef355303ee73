// SPDX-License-Identifier: Apache-2.0
//
// Which defences a control build does without. The mutants of integration-tests/intruder/mutants ask
// it; no source of mpc-server does, and no installed program links it.
#ifndef MPC_SERVER_TESTING_CONTROL_H_
#define MPC_SERVER_TESTING_CONTROL_H_

#include <string>

namespace mpckdc {

// Whether no test has dropped the defence: its mutant's name without ".patch". A defence is dropped
// when its name is a line of the file that the environment variable MPCKDC_CONTROL_FILE names, read
// each time, or by DropForTest().
bool Upheld(const std::string& defence);

// From now on this process does without it, whatever the file says.
void DropForTest(const std::string& defence);
// Takes it back.
void UpholdForTest(const std::string& defence);

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_CONTROL_H_
