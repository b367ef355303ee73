// SPDX-License-Identifier: Apache-2.0
// Four pieces in an AVX-512 register. Needs GFNI and AVX512-VBMI beyond the tier's instructions.
#include <immintrin.h>

#include "mpc-server/circuit/bitslice/transpose_gfni.h"

namespace mpckdc {
namespace {

// Byte 4*e + g of a register takes byte 16*g + e of another: ArrangeIn. Its inverse with the order
// of the eight rows of a byte turned round is ArrangeOut.
struct Indices {
  alignas(64) uint8_t in[64];
  alignas(64) uint8_t out[64];
};
constexpr Indices MakeIndices() {
  Indices i{};
  for (int g = 0; g < 4; ++g) {
    for (int e = 0; e < 16; ++e) {
      i.in[4 * e + g] = static_cast<uint8_t>(16 * g + e);
      i.out[16 * g + (e ^ 7)] = static_cast<uint8_t>(4 * e + g);
    }
  }
  return i;
}
constexpr Indices kIndices = MakeIndices();

struct Pieces512 {
  using T = __m512i;
  static constexpr size_t kBytes = 64;
  static T Load(const uint8_t* p) { return _mm512_loadu_si512(p); }
  static void Store(uint8_t* p, T v) { _mm512_storeu_si512(p, v); }
  static __m128i Piece(const uint8_t* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  }
  // Inserts from memory leave the port of the shuffles alone.
  static T Join(const uint8_t* p0, const uint8_t* p1, const uint8_t* p2, const uint8_t* p3) {
    T v = _mm512_castsi128_si512(Piece(p0));
    v = _mm512_inserti32x4(v, Piece(p1), 1);
    v = _mm512_inserti32x4(v, Piece(p2), 2);
    return _mm512_inserti32x4(v, Piece(p3), 3);
  }
  static void LoadPieces(const uint8_t* const* p, size_t step, size_t offset, T* x, T* a) {
    const uint8_t* p0 = p[0] + offset;
    const uint8_t* p1 = p[step] + offset;
    const uint8_t* p2 = p[2 * step] + offset;
    const uint8_t* p3 = p[3 * step] + offset;
    *x = Join(p0, p1, p2, p3);
    *a = Join(p0 + 16, p1 + 16, p2 + 16, p3 + 16);
  }
  static T LoadStride(const uint8_t* p, size_t stride) {
    return Join(p, p + stride, p + 2 * stride, p + 3 * stride);
  }
  static void StoreStride(uint8_t* p, size_t stride, T v) {
    const auto put = [&](size_t i, __m128i piece) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(p + i * stride), piece);
    };
    put(0, _mm512_castsi512_si128(v));
    put(1, _mm512_extracti32x4_epi32(v, 1));
    put(2, _mm512_extracti32x4_epi32(v, 2));
    put(3, _mm512_extracti32x4_epi32(v, 3));
  }
  template <size_t kGranule>
  static T Low(T a, T b) {
    return kGranule == 1 ? _mm512_unpacklo_epi8(a, b) : _mm512_unpacklo_epi32(a, b);
  }
  template <size_t kGranule>
  static T High(T a, T b) {
    return kGranule == 1 ? _mm512_unpackhi_epi8(a, b) : _mm512_unpackhi_epi32(a, b);
  }
  static T TransposeBits(T v) {
    const T unit = _mm512_set1_epi64(static_cast<long long>(0x8040201008040201));
    return _mm512_gf2p8affine_epi64_epi8(unit, v, 0);
  }
  static T ArrangeIn(T v) { return _mm512_permutexvar_epi8(Load(kIndices.in), v); }
  static T ArrangeOut(T v) { return _mm512_permutexvar_epi8(Load(kIndices.out), v); }
};

}  // namespace

constexpr TransposeFunctions kTransposeGfni512 = GfniTransposer<Pieces512>::Functions();

}  // namespace mpckdc
