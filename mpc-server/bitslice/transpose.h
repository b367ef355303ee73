// SPDX-License-Identifier: Apache-2.0
// Blocks to slices and back.
#ifndef MPC_SERVER_BITSLICE_TRANSPOSE_H_
#define MPC_SERVER_BITSLICE_TRANSPOSE_H_

#include "mpc-server/bitslice/slices.h"
#include "mpc-server/randomness/isa.h"

namespace mpckdc {

struct TransposeFunctions {
  // blocks: 512 of 16 bytes, lane after lane; rows: 128 of 64 bytes. `lanes` is how many matter:
  // the others' bits in `rows` (or blocks) are unspecified.
  void (*to_rows)(const uint8_t* blocks, uint8_t* rows, size_t lanes);
  void (*to_blocks)(const uint8_t* rows, uint8_t* blocks, size_t lanes);
};
const TransposeFunctions& TransposeFunctionsFor(Isa isa);

// The last group's rows between memory (64 bytes apart) and a message (row_bytes apart). Expand
// leaves the bytes of a row past row_bytes unchanged.
void CompactRows(const uint8_t* rows, size_t count, size_t row_bytes, uint8_t* wire);
void ExpandRows(const uint8_t* wire, size_t count, size_t row_bytes, uint8_t* rows);

}  // namespace mpckdc

#endif  // MPC_SERVER_BITSLICE_TRANSPOSE_H_
