// SPDX-License-Identifier: Apache-2.0
// Transposing bits, once over words of independent 64-bit elements.
//
// A half block of 64 lanes is a 64x64 bit matrix: row j is lane j's 8 bytes as a little-endian
// number, column t is slice t. Transposing it takes six steps that swap blocks of 32, 16, .. 1 bits
// across the diagonal. A word of E elements does E such matrices (64*E lanes) at once.
#ifndef MPC_SERVER_BITSLICE_TRANSPOSE_COMMON_H_
#define MPC_SERVER_BITSLICE_TRANSPOSE_COMMON_H_

#include <cstddef>
#include <cstdint>

namespace mpckdc {

template <class W>
struct Transposer {
  using T = typename W::T;
  static constexpr size_t kBlock = 16;
  static constexpr size_t kRow = 64;             // bytes of a row
  static constexpr size_t kLanes = 8 * W::kBytes;

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

  static void ToRows(const uint8_t* blocks, uint8_t* rows, size_t lanes) {
    T m[64];
    for (size_t first = 0; first < lanes; first += kLanes) {
      for (size_t half = 0; half < 2; ++half) {
        const uint8_t* from = blocks + first * kBlock + 8 * half;
        for (size_t j = 0; j < 64; ++j) m[j] = W::Gather(from + j * kBlock, 64 * kBlock);
        Transpose(m);
        uint8_t* to = rows + 64 * half * kRow + first / 8;
        for (size_t t = 0; t < 64; ++t) W::Store(to + t * kRow, m[t]);
      }
    }
  }

  static void ToBlocks(const uint8_t* rows, uint8_t* blocks, size_t lanes) {
    T m[64];
    for (size_t first = 0; first < lanes; first += kLanes) {
      for (size_t half = 0; half < 2; ++half) {
        const uint8_t* from = rows + 64 * half * kRow + first / 8;
        for (size_t t = 0; t < 64; ++t) m[t] = W::Load(from + t * kRow);
        Transpose(m);
        uint8_t* to = blocks + first * kBlock + 8 * half;
        for (size_t j = 0; j < 64; ++j) W::Scatter(to + j * kBlock, 64 * kBlock, m[j]);
      }
    }
  }
};

}  // namespace mpckdc

// The body of each instruction set's file.
#define MPCKDC_DEFINE_TRANSPOSE(ISA, WORD)                                      \
  namespace mpckdc::ISA {                                                       \
  void ToRows(const uint8_t* blocks, uint8_t* rows, size_t lanes) {             \
    Transposer<WORD>::ToRows(blocks, rows, lanes);                              \
  }                                                                             \
  void ToBlocks(const uint8_t* rows, uint8_t* blocks, size_t lanes) {           \
    Transposer<WORD>::ToBlocks(rows, blocks, lanes);                            \
  }                                                                             \
  }

#endif  // MPC_SERVER_BITSLICE_TRANSPOSE_COMMON_H_
