// SPDX-License-Identifier: Apache-2.0
// Blocks to slices and back, two blocks of a lane at once (lane_pairs.h).
#ifndef MPC_SERVER_CIRCUIT_BITSLICE_TRANSPOSE_H_
#define MPC_SERVER_CIRCUIT_BITSLICE_TRANSPOSE_H_

#include <vector>

#include "mpc-server/base/isa.h"
#include "mpc-server/circuit/bitslice/lane_pairs.h"
#include "mpc-server/circuit/bitslice/slices.h"

namespace mpckdc {

// Each plane of rows is 128 rows of 64 bytes. The bits of lanes past `count` are unspecified in
// rows. `scratch`: kTransposeScratchBytes of secret memory.
struct TransposeFunctions {
  void (*to_rows)(const LanePairs& from, uint8_t* x_rows, uint8_t* a_rows, uint8_t* scratch);
  void (*to_pairs)(const uint8_t* x_rows, const uint8_t* a_rows, const PairTargets& to,
                   uint8_t* scratch);
};

// A tier (Isa) may have several, because some of its CPUs have more instructions than it asks for.
struct TransposeVariant {
  const char* name;
  Isa tier;
  bool (*supported)();  // beyond the tier's own instructions
  TransposeFunctions functions;
};
// All that this CPU can run, the best of a tier last.
std::vector<TransposeVariant> SupportedTransposes();
// The best of the tier.
const TransposeFunctions& TransposeFunctionsFor(Isa isa);

// The last group's rows between memory (64 bytes apart) and a message (row_bytes apart). Expand
// leaves the bytes of a row past row_bytes unchanged.
void CompactRows(const uint8_t* rows, size_t count, size_t row_bytes, uint8_t* wire);
void ExpandRows(const uint8_t* wire, size_t count, size_t row_bytes, uint8_t* rows);

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_BITSLICE_TRANSPOSE_H_
