// SPDX-License-Identifier: Apache-2.0
// The recorded compressions: by hash, by what is known of the message, by adder. Recorded at first
// use and kept. Internal to circuit/.
//
//   rows       input: the state, then a shared block's words; public: K_t + W_t; output: the state
//   within a word of B bits at row r: bit i is row r + 8 * (B/8 - 1 - i/8) + i % 8, since the bytes
//   are big-endian and slices.h has the lowest bit of each byte first
#ifndef MPC_SERVER_CIRCUIT_HASH_HASH_PROGRAMS_H_
#define MPC_SERVER_CIRCUIT_HASH_HASH_PROGRAMS_H_

#include "mpc-server/circuit/hash/adder.h"
#include "mpc-server/circuit/hash/bit_recorder.h"
#include "mpc-server/key/hash_kind.h"

namespace mpckdc {

enum class MessageKind : uint8_t { kPublic, kShared };

// Input rows of the state; the block's follow.
inline constexpr size_t StateRows(HashKind hash) { return 128 * HashStateBlocks(hash); }

const BitProgram& HashProgram(HashKind hash, MessageKind message, Adder adder);

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_HASH_HASH_PROGRAMS_H_
