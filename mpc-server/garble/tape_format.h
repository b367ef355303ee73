// SPDX-License-Identifier: Apache-2.0
// What the instruction sets' files read of a tape: see tape.h. Plain types.
#ifndef MPC_SERVER_GARBLE_TAPE_FORMAT_H_
#define MPC_SERVER_GARBLE_TAPE_FORMAT_H_

#include <cstddef>
#include <cstdint>

#include "mpc-server/garble/label.h"

namespace mpckdc::garble {

inline constexpr size_t kGroupGates = 8;
inline constexpr size_t kGatePad = 4;

inline constexpr uint16_t kZeroSlot = 0, kStepSlot = 1, kTrashSlot = 2, kFirstSlot = 3;

struct TapeXor {
  uint16_t out, a, b, c;
};
struct TapeScale {
  uint16_t out, a, mask;
};
struct TapeGate {
  uint16_t out, x, x2, y, y2, z;
};
struct TapeGroup {
  uint16_t xors, scales, gates;
};

struct HashKey {
  uint64_t low, high;  // S
};

// A block under way. A slot has `width` labels: [copy][lane]. Copies are of one garbling, and have
// gates of their own; lanes are garblings side by side.
//
//     rows     [gate][copy][lane][T_G, T_E]     gate `first + gate * copies + copy`
struct BlockRun {
  const TapeGroup* groups;
  size_t group_count;
  const TapeXor* xors;
  const TapeScale* scales;
  const TapeGate* gates;
  HashKey start;
  uint64_t first;
  size_t copies, lanes;
  const Label* delta;  // of each lane; only for garbling
  Label* slots;
  Label* garbled;        // rows, of a garbler;
  const Label* arrived;  // of an evaluator
  Label* scratch;        // 3 * kGroupGates * copies * lanes labels
};

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_TAPE_FORMAT_H_
