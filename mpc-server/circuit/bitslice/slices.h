// SPDX-License-Identifier: Apache-2.0
// The layout that every instruction set and the wire share.
//
// Lane: one AES block. Slice: one bit position of all lanes. A group is 512 lanes; its slices are
// rows of 64 bytes:
//
//              lanes 0..7   8..15              504..511
//   row s     +-----------+-----------+-- --+-----------+     lane j is bit j%8 of byte j/8
//             |  byte 0   |  byte 1   | ... |  byte 63  |
//             +-----------+-----------+-- --+-----------+
//
// Row 8*b + k holds bit k (value 2^k) of byte b of the block. AVX-512 works on a whole row, AVX2 on
// halves, portable code on eight 64-bit words: the bytes in memory are the same. In messages the
// last group of a batch is cut: with n lanes each row has ceil(n/8) bytes, so a batch's message is
// the same whatever instruction set the sender has.
#ifndef MPC_SERVER_CIRCUIT_BITSLICE_SLICES_H_
#define MPC_SERVER_CIRCUIT_BITSLICE_SLICES_H_

#include <cstddef>
#include <cstdint>

namespace mpckdc {

inline constexpr size_t kGroupLanes = 512;
inline constexpr size_t kRowBytes = kGroupLanes / 8;
inline constexpr size_t kBlockRows = 128;  // slices of one AES block

inline constexpr size_t GroupCount(size_t lanes) {
  return (lanes + kGroupLanes - 1) / kGroupLanes;
}
inline constexpr size_t LanesInGroup(size_t lanes, size_t group) {
  const size_t rest = lanes - group * kGroupLanes;
  return rest < kGroupLanes ? rest : kGroupLanes;
}
// Bytes of one row of a group of `lanes` lanes in a message.
inline constexpr size_t WireRowBytes(size_t lanes) { return (lanes + 7) / 8; }
// Bytes of `rows` slices of all lanes in a message.
inline constexpr size_t WireBytes(size_t lanes, size_t rows) { return rows * ((lanes + 7) / 8); }

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_BITSLICE_SLICES_H_
