// SPDX-License-Identifier: Apache-2.0
// Transposing bits, once over words of independent 64-bit elements.
//
// 8 bytes of 64 lanes are a 64x64 bit matrix: row j is lane j's bytes as a little-endian
// number, column t is slice t. Transposing it takes six steps that swap blocks of 32, 16, .. 1 bits
// across the diagonal. A word of E elements does E such matrices (64*E lanes) at once.
#ifndef MPC_SERVER_CIRCUIT_BITSLICE_TRANSPOSE_TEMPLATE_H_
#define MPC_SERVER_CIRCUIT_BITSLICE_TRANSPOSE_TEMPLATE_H_

#include <cstddef>
#include <cstdint>

#include "mpc-server/circuit/bitslice/lane_pairs.h"

namespace mpckdc {

template <class W>
struct Transposer {
  using T = typename W::T;
  static constexpr size_t kRow = 64;             // bytes of a row
  static constexpr size_t kLanes = 8 * W::kBytes;
  static constexpr size_t kPrefetchLanes = 64;

  // Swaps the high kShift bits of each 2*kShift of m[i] with the low ones of m[i + kShift].
  template <int kShift>
  static void Step(T* m, uint64_t low) {
    const T mask = W::Set1(low);
    for (int i = 0; i < 64; i += 2 * kShift) {
      for (int k = i; k < i + kShift; ++k) {
        const T t = W::And(W::Xor(W::template ShiftRight<kShift>(m[k]), m[k + kShift]), mask);
        m[k] = W::Xor(m[k], W::template ShiftLeft<kShift>(t));
        m[k + kShift] = W::Xor(m[k + kShift], t);
      }
    }
  }

  static void Transpose(T* m) {
    Step<32>(m, 0x00000000FFFFFFFF);
    Step<16>(m, 0x0000FFFF0000FFFF);
    Step<8>(m, 0x00FF00FF00FF00FF);
    Step<4>(m, 0x0F0F0F0F0F0F0F0F);
    Step<2>(m, 0x3333333333333333);
    Step<1>(m, 0x5555555555555555);
  }

  // Quarter q of a pair: bytes 8*q .. 8*q + 7, 64 rows.
  static constexpr size_t kQuarterRows = 64;

  static void ToRows(const LanePairs& from, uint8_t* x_rows, uint8_t* a_rows, uint8_t* scratch) {
    for (size_t j = 0; j < from.count; ++j) {
      if (j + kPrefetchLanes < from.count) {
        __builtin_prefetch(from.lanes[j + kPrefetchLanes] + from.offset);
      }
      __builtin_memcpy(scratch + j * kPairBytes, from.lanes[j] + from.offset, kPairBytes);
    }
    T m[64];
    for (size_t first = 0; first < from.count; first += kLanes) {
      for (size_t q = 0; q < 4; ++q) {
        const uint8_t* pairs = scratch + first * kPairBytes + 8 * q;
        for (size_t j = 0; j < 64; ++j) m[j] = W::Gather(pairs + j * kPairBytes, 64 * kPairBytes);
        Transpose(m);
        uint8_t* to = (q < 2 ? x_rows : a_rows) + kQuarterRows * (q % 2) * kRow + first / 8;
        for (size_t t = 0; t < 64; ++t) W::Store(to + t * kRow, m[t]);
      }
    }
  }

  static void ToPairs(const uint8_t* x_rows, const uint8_t* a_rows, const PairTargets& to,
                      uint8_t* scratch) {
    T m[64];
    for (size_t first = 0; first < to.count; first += kLanes) {
      for (size_t q = 0; q < 4; ++q) {
        const uint8_t* from =
            (q < 2 ? x_rows : a_rows) + kQuarterRows * (q % 2) * kRow + first / 8;
        for (size_t t = 0; t < 64; ++t) m[t] = W::Load(from + t * kRow);
        Transpose(m);
        uint8_t* pairs = scratch + first * kPairBytes + 8 * q;
        for (size_t j = 0; j < 64; ++j) {
          W::Scatter(pairs + j * kPairBytes, 64 * kPairBytes, m[j]);
        }
      }
    }
    for (size_t j = 0; j < to.count; ++j) {
      __builtin_memcpy(to.out + j * to.stride, scratch + j * kPairBytes, kPairBytes);
    }
  }

  static constexpr TransposeFunctions Functions() { return {ToRows, ToPairs}; }
};

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_BITSLICE_TRANSPOSE_TEMPLATE_H_
