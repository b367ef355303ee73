// SPDX-License-Identifier: Apache-2.0
// Whether two strings of bits are equal, and some bits only if they are.
//
//     rows in      computed [bits], given [bits], gated [gated]
//     rows out     ok, then gated AND ok
#ifndef MPC_SERVER_GARBLE_CHECK_PROGRAM_H_
#define MPC_SERVER_GARBLE_CHECK_PROGRAM_H_

#include <cstddef>

#include "mpc-server/garble/tape.h"

namespace mpckdc::garble {

// bits - 1 + gated AND gates.
constexpr size_t CheckGates(size_t bits, size_t gated) { return bits - 1 + gated; }

// Recorded at first use and kept: of each size there is one. From any thread.
const Tape& CheckTape(size_t bits, size_t gated);

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_CHECK_PROGRAM_H_
