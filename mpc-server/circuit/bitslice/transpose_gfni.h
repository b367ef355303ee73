// SPDX-License-Identifier: Apache-2.0
// Transposing bits with GFNI's affine instruction, which transposes 8x8 bits in each 64-bit
// element; bytes are moved by interleaving. Once over a vector type V of P = 2 or 4 pieces of 16
// bytes. (transpose_template.h is the same for CPUs without GFNI.)
//
// Lane 8*g + l: byte g, bit l of every row. A unit is P neighbouring g, that is 8*P lanes.
//
//   8 registers, one per l        piece = g of the unit, byte = byte b of lane 8*g + l
//   3 steps of Interleave<1>      8 registers, one per pair p of bytes (2p, 2p+1):
//                                 piece = g, byte = (low bit of b, l)
//   Affine                        byte = (low bit of b, bit k): rows 16*p .. 16*p + 15
//   Arrange                       P bytes of each of the 16 rows, row after row      -> scratch
//   per pair p: gather of pieces of scratch, one piece per unit, and steps of Interleave<P>:
//                                 whole words of rows
//
// Scratch of one plane: [pair p: 8][unit: 64 / P][16 rows][P bytes] = 8 KB. The way back is the
// same from the bottom to the top.
#ifndef MPC_SERVER_CIRCUIT_BITSLICE_TRANSPOSE_GFNI_H_
#define MPC_SERVER_CIRCUIT_BITSLICE_TRANSPOSE_GFNI_H_

#include <cstddef>
#include <cstdint>

#include "mpc-server/circuit/bitslice/lane_pairs.h"

namespace mpckdc {

// A plane's scratch and what moves pieces between registers.
template <class V>
struct GfniPieces {
  using T = typename V::T;
  static constexpr size_t kPieces = V::kBytes / 16;
  static constexpr size_t kUnitLanes = 8 * kPieces;
  static constexpr size_t kUnits = 64 / kPieces;
  static constexpr size_t kPairs = 8;
  static constexpr size_t kRowsOfPiece = 16 / kPieces;  // rows that share a piece of scratch
  static constexpr size_t kPlaneScratch = kPairs * kUnits * V::kBytes;

  // A perfect shuffle of the registers and of the granules within pieces. With registers r and
  // positions q, both in binary: the top bit of r becomes the lowest of q, the top bit of q the
  // lowest of r.
  template <size_t kGranule, size_t kCount>
  static inline void Interleave(T* r) {
    T out[kCount];
#pragma GCC unroll 4
    for (size_t i = 0; i < kCount / 2; ++i) {
      out[2 * i] = V::template Low<kGranule>(r[i], r[i + kCount / 2]);
      out[2 * i + 1] = V::template High<kGranule>(r[i], r[i + kCount / 2]);
    }
#pragma GCC unroll 8
    for (size_t i = 0; i < kCount; ++i) r[i] = out[i];
  }
  // Registers x granules of a piece, kRowsOfPiece each: transposed.
  static inline void TransposePieces(T* r) {
#pragma GCC unroll 4
    for (size_t n = kRowsOfPiece; n > 1; n /= 2) Interleave<kPieces, kRowsOfPiece>(r);
  }

  static uint8_t* ScratchOf(uint8_t* plane, size_t pair, size_t unit) {
    return plane + (pair * kUnits + unit) * V::kBytes;
  }
};

template <class V>
struct GfniTransposer : GfniPieces<V> {
  using Pieces = GfniPieces<V>;
  using T = typename V::T;
  static constexpr size_t kRow = 64;
  static constexpr size_t kPieces = Pieces::kPieces, kUnitLanes = Pieces::kUnitLanes;
  static constexpr size_t kPairs = Pieces::kPairs, kRowsOfPiece = Pieces::kRowsOfPiece;
  static constexpr size_t kPlaneScratch = Pieces::kPlaneScratch;
  // Lanes whose memory is asked for while a lane is worked on.
  static constexpr size_t kPrefetchLanes = 32;
  static_assert(2 * kPlaneScratch + kPairBytes * kUnitLanes <= kTransposeScratchBytes);

  // --- blocks to rows --------------------------------------------------------------------------
  // lane[j] + offset is the address of the pair of the unit's lane j.
  static inline void UnitToScratch(const uint8_t* const* lane, size_t offset, uint8_t* scratch,
                                   size_t unit) {
    T x[8], a[8];
    // The affine instruction counts the rows of its matrix from the top: lane 7 goes first.
#pragma GCC unroll 8
    for (size_t i = 0; i < 8; ++i) V::LoadPieces(lane + 7 - i, 8, offset, &x[i], &a[i]);
    HalfToScratch(x, scratch, unit);
    HalfToScratch(a, scratch + kPlaneScratch, unit);
  }
  static inline void HalfToScratch(T* r, uint8_t* plane, size_t unit) {
    Pieces::template Interleave<1, 8>(r);
    Pieces::template Interleave<1, 8>(r);
    Pieces::template Interleave<1, 8>(r);
#pragma GCC unroll 8
    for (size_t p = 0; p < kPairs; ++p) {
      V::Store(Pieces::ScratchOf(plane, p, unit), V::ArrangeIn(V::TransposeBits(r[p])));
    }
  }

  static inline void ScratchToRows(const uint8_t* plane, uint8_t* rows) {
    for (size_t p = 0; p < kPairs; ++p) {
      for (size_t o = 0; o < kRow; o += V::kBytes) {
        const uint8_t* from = Pieces::ScratchOf(const_cast<uint8_t*>(plane), p, o / kPieces);
#pragma GCC unroll 4
        for (size_t e = 0; e < kPieces; ++e) {
          T r[kRowsOfPiece];
#pragma GCC unroll 8
          for (size_t i = 0; i < kRowsOfPiece; ++i) {
            r[i] = V::LoadStride(from + i * V::kBytes + 16 * e, kRowsOfPiece * V::kBytes);
          }
          Pieces::TransposePieces(r);
#pragma GCC unroll 8
          for (size_t f = 0; f < kRowsOfPiece; ++f) {
            V::Store(rows + (16 * p + kRowsOfPiece * e + f) * kRow + o, r[f]);
          }
        }
      }
    }
  }

  static void ToRows(const LanePairs& from, uint8_t* x_rows, uint8_t* a_rows, uint8_t* scratch) {
    for (size_t first = 0; first < from.count; first += kUnitLanes) {
      const uint8_t* const* lanes = from.lanes + first;
      if (first + kPrefetchLanes + kUnitLanes <= from.count) {
        for (size_t j = 0; j < kUnitLanes; ++j) {
          __builtin_prefetch(lanes[kPrefetchLanes + j] + from.offset);
        }
      }
      const uint8_t* padded[kUnitLanes];
      if (from.count - first < kUnitLanes) {
        for (size_t j = 0; j < kUnitLanes; ++j) {
          padded[j] = first + j < from.count ? lanes[j] : lanes[0];
        }
        lanes = padded;
      }
      UnitToScratch(lanes, from.offset, scratch, first / kUnitLanes);
    }
    ScratchToRows(scratch, x_rows);
    ScratchToRows(scratch + kPlaneScratch, a_rows);
  }

  // --- rows to blocks --------------------------------------------------------------------------
  static inline void RowsToScratch(const uint8_t* rows, uint8_t* plane) {
    for (size_t p = 0; p < kPairs; ++p) {
      for (size_t o = 0; o < kRow; o += V::kBytes) {
        uint8_t* to = Pieces::ScratchOf(plane, p, o / kPieces);
#pragma GCC unroll 4
        for (size_t e = 0; e < kPieces; ++e) {
          T r[kRowsOfPiece];
#pragma GCC unroll 8
          for (size_t f = 0; f < kRowsOfPiece; ++f) {
            r[f] = V::Load(rows + (16 * p + kRowsOfPiece * e + f) * kRow + o);
          }
          Pieces::TransposePieces(r);
#pragma GCC unroll 8
          for (size_t i = 0; i < kRowsOfPiece; ++i) {
            V::StoreStride(to + i * V::kBytes + 16 * e, kRowsOfPiece * V::kBytes, r[i]);
          }
        }
      }
    }
  }

  // `out`: the first lane's 16 bytes.
  static inline void ScratchToUnit(const uint8_t* plane, size_t unit, uint8_t* out,
                                   size_t stride) {
    T r[8];
#pragma GCC unroll 8
    for (size_t p = 0; p < kPairs; ++p) {
      const T rows = V::Load(Pieces::ScratchOf(const_cast<uint8_t*>(plane), p, unit));
      r[p] = V::TransposeBits(V::ArrangeOut(rows));
    }
    Pieces::template Interleave<1, 8>(r);
    Pieces::template Interleave<1, 8>(r);
    Pieces::template Interleave<1, 8>(r);
    Pieces::template Interleave<1, 8>(r);
#pragma GCC unroll 8
    for (size_t l = 0; l < 8; ++l) V::StoreStride(out + l * stride, 8 * stride, r[l]);
  }

  static void ToPairs(const uint8_t* x_rows, const uint8_t* a_rows, const PairTargets& to,
                      uint8_t* scratch) {
    RowsToScratch(x_rows, scratch);
    RowsToScratch(a_rows, scratch + kPlaneScratch);
    for (size_t first = 0; first < to.count; first += kUnitLanes) {
      const size_t unit = first / kUnitLanes, n = to.count - first;
      if (n >= kUnitLanes) {
        uint8_t* out = to.out + first * to.stride;
        ScratchToUnit(scratch, unit, out, to.stride);
        ScratchToUnit(scratch + kPlaneScratch, unit, out + 16, to.stride);
        continue;
      }
      // A last, partial unit passes through the end of the scratch.
      uint8_t* rest = scratch + 2 * kPlaneScratch;
      ScratchToUnit(scratch, unit, rest, kPairBytes);
      ScratchToUnit(scratch + kPlaneScratch, unit, rest + 16, kPairBytes);
      for (size_t j = 0; j < n; ++j) {
        __builtin_memcpy(to.out + (first + j) * to.stride, rest + kPairBytes * j, kPairBytes);
      }
    }
  }

  static constexpr TransposeFunctions Functions() { return {ToRows, ToPairs}; }
};

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_BITSLICE_TRANSPOSE_GFNI_H_
