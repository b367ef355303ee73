// SPDX-License-Identifier: Apache-2.0
// Rounds of AES as programs with few AND gates: 32 for an S-box, either way, where the stages of
// circuit/aes/sbox.h have few opened bits instead. In the tower field (circuit/aes/tower_field.h)
//
//     ab                   9 gates: GF(16) over GF(4), Karatsuba twice
//     N^-1                 5 gates: Boyar, Peralta, SEA 2010
//     (a+b)M, bM           9 each
//
// A block's bit k of byte i is row 8 * i + k. Inputs: 128 rows of the state, then 128 of the round
// key that is added in the round; output: the state. The first key is added before: that is free.
#ifndef MPC_SERVER_GARBLE_AES_ROUNDS_H_
#define MPC_SERVER_GARBLE_AES_ROUNDS_H_

#include "mpc-server/circuit/hash/bit_recorder.h"

namespace mpckdc::garble {

inline constexpr size_t kSboxGates = 32;

enum class AesRound {
  kEncrypt,      // SubBytes, ShiftRows, MixColumns, key
  kEncryptLast,  // SubBytes, ShiftRows, key
  kDecrypt,      // InvShiftRows, InvSubBytes, key, InvMixColumns
  kDecryptLast,  // InvShiftRows, InvSubBytes, key
};
inline constexpr size_t kAesRoundKinds = 4;

const BitProgram& AesRoundProgram(AesRound round);

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_AES_ROUNDS_H_
