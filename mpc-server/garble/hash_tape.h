// SPDX-License-Identifier: Apache-2.0
// The recorded compressions (circuit/hash/hash_programs.h, rows as there) as tapes. Words are added
// one bit after the other: that has the fewest gates, and depth costs little here.
#ifndef MPC_SERVER_GARBLE_HASH_TAPE_H_
#define MPC_SERVER_GARBLE_HASH_TAPE_H_

#include "mpc-server/circuit/hash/hash_programs.h"
#include "mpc-server/garble/tape.h"

namespace mpckdc::garble {

// Made at first use and kept. From any thread.
const Tape& HashTape(HashKind hash, MessageKind message);

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_HASH_TAPE_H_
