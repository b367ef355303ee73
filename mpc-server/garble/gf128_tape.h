// SPDX-License-Identifier: Apache-2.0
// Products in GCM's field: bit k of byte i is row 8 * i + k, as everywhere; SP 800-38D counts the
// bits of a byte from the other end.
#ifndef MPC_SERVER_GARBLE_GF128_TAPE_H_
#define MPC_SERVER_GARBLE_GF128_TAPE_H_

#include <cstddef>

#include "mpc-server/garble/tape.h"

namespace mpckdc::garble {

inline constexpr size_t kGf128Gates = 2187;  // 3^7: Karatsuba down to single bits

// 256 rows to 128.
const Tape& Gf128MultiplyTape();
// 128 rows to 128, without a gate.
const Tape& Gf128SquareTape();

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_GF128_TAPE_H_
