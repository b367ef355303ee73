// SPDX-License-Identifier: Apache-2.0
// Where slicing finds its blocks, and the functions that slice. A lane brings two blocks at once,
// the two halves of a share:
//
//        +--------------------+--------------------+
//        |  x: 16 bytes       |  a: 16 bytes       |     one pair; any alignment
//        +--------------------+--------------------+
//
// A header for the instruction sets' files too: plain types, no functions.
#ifndef MPC_SERVER_CIRCUIT_BITSLICE_LANE_PAIRS_H_
#define MPC_SERVER_CIRCUIT_BITSLICE_LANE_PAIRS_H_

#include <cstddef>
#include <cstdint>

namespace mpckdc {

template <class F>
class IsaTable;  // base/isa.h

inline constexpr size_t kPairBytes = 32;
// A group's pairs, and room for one register's worth of lanes beyond them.
inline constexpr size_t kTransposeScratchBytes = 512 * kPairBytes + 32 * kPairBytes;

// Lane j's pair lies at lanes[j] + offset.
struct LanePairs {
  const uint8_t* const* lanes = nullptr;
  size_t count = 0;  // 1..512
  size_t offset = 0;
};

// Lane j's pair goes to out + j * stride.
struct PairTargets {
  uint8_t* out = nullptr;
  size_t stride = kPairBytes;
  size_t count = 0;
};

// Each plane of rows is 128 rows of 64 bytes. The bits of lanes past `count` are unspecified in
// rows. `scratch`: kTransposeScratchBytes of secret memory.
struct TransposeFunctions {
  void (*to_rows)(const LanePairs& from, uint8_t* x_rows, uint8_t* a_rows, uint8_t* scratch);
  void (*to_pairs)(const uint8_t* x_rows, const uint8_t* a_rows, const PairTargets& to,
                   uint8_t* scratch);
};
extern const TransposeFunctions kTransposePortable, kTransposeAvx2, kTransposeAvx512,
    kTransposeGfni256, kTransposeGfni512;
const IsaTable<TransposeFunctions>& AllTransposes();

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_BITSLICE_LANE_PAIRS_H_
