// SPDX-License-Identifier: Apache-2.0
// Blocks to slices and back, two blocks of a lane at once (lane_pairs.h).
#ifndef MPC_SERVER_CIRCUIT_BITSLICE_TRANSPOSE_H_
#define MPC_SERVER_CIRCUIT_BITSLICE_TRANSPOSE_H_

#include "mpc-server/base/isa.h"
#include "mpc-server/circuit/bitslice/lane_pairs.h"
#include "mpc-server/circuit/bitslice/slices.h"

namespace mpckdc {

// The last group's rows between memory (64 bytes apart) and a message (row_bytes apart). Expand
// leaves the bytes of a row past row_bytes unchanged.
void CompactRows(const uint8_t* rows, size_t count, size_t row_bytes, uint8_t* wire);
void ExpandRows(const uint8_t* wire, size_t count, size_t row_bytes, uint8_t* rows);

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_BITSLICE_TRANSPOSE_H_
