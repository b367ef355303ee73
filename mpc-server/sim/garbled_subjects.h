// SPDX-License-Identifier: Apache-2.0
//
// A garbled run (garble/garbled_run.h) as a computation to lie about: one for each evaluator, so
// that every party has every role.
#ifndef MPC_SERVER_SIM_GARBLED_SUBJECTS_H_
#define MPC_SERVER_SIM_GARBLED_SUBJECTS_H_

#include <memory>

#include "mpc-server/base/random_source.h"
#include "mpc-server/sim/subjects.h"

namespace mpckdc::sim {

// A block of AES is opened and compared; whether it fits and some of its bits are shown, and the
// block is an output.
std::unique_ptr<Subject> GarbledSubject(int evaluator, double share, RandomSource& random);

}  // namespace mpckdc::sim

#endif  // MPC_SERVER_SIM_GARBLED_SUBJECTS_H_
