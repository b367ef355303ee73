// SPDX-License-Identifier: Apache-2.0
// Rounds of AES with few AND gates: 32 for an S-box, either way, where the stages of
// circuit/aes/sbox.h have few opened bits instead. In the tower field (circuit/aes/tower_field.h)
//
//     ab                   9 gates: GF(16) over GF(4), Karatsuba twice
//     N^-1                 5 gates: Boyar, Peralta, SEA 2010
//     (a+b)M, bM           9 each
//
// The state's rows are in planes: bit k of row r of column c is row 16 * k + 4 * r + c. So the
// S-box is a program of eight rows in sixteen copies, and MixColumns one of 32 in four.
#ifndef MPC_SERVER_GARBLE_AES_ROUNDS_H_
#define MPC_SERVER_GARBLE_AES_ROUNDS_H_

#include <array>
#include <cstdint>

#include "mpc-server/garble/tape.h"

namespace mpckdc::garble {

inline constexpr size_t kSboxGates = 32;

inline constexpr size_t kSboxCopies = 16, kMixCopies = 4;

const Tape& SboxTape(bool encrypt);
// MixColumns, then the key; or the key, then InvMixColumns. Inputs: the state's rows, the key's.
const Tape& MixTape(bool encrypt);

// Row i comes from row order[i].
using RowOrder = std::array<uint16_t, 128>;
extern const RowOrder kPlanesOfBytes, kBytesOfPlanes;  // bit k of byte i is row 8 * i + k
extern const RowOrder kShiftRows, kShiftRowsBack;      // of planes

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_AES_ROUNDS_H_
