// SPDX-License-Identifier: Apache-2.0
// Two pieces in an AVX2 register. Needs GFNI beyond the tier's instructions.
#include <immintrin.h>

#include "mpc-server/circuit/bitslice/transpose_gfni.h"

namespace mpckdc {
namespace {

struct Pieces256 {
  using T = __m256i;
  static constexpr size_t kBytes = 32;
  static T Load(const uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const T*>(p)); }
  static void Store(uint8_t* p, T v) { _mm256_storeu_si256(reinterpret_cast<T*>(p), v); }
  static __m128i Piece(const uint8_t* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  }
  static T Join(const uint8_t* p0, const uint8_t* p1) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(Piece(p0)), Piece(p1), 1);
  }
  static void LoadPieces(const uint8_t* const* p, size_t step, size_t offset, T* x, T* a) {
    const uint8_t* p0 = p[0] + offset;
    const uint8_t* p1 = p[step] + offset;
    *x = Join(p0, p1);
    *a = Join(p0 + 16, p1 + 16);
  }
  static T LoadStride(const uint8_t* p, size_t stride) { return Join(p, p + stride); }
  static void StoreStride(uint8_t* p, size_t stride, T v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(v));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p + stride), _mm256_extracti128_si256(v, 1));
  }
  template <size_t kGranule>
  static T Low(T a, T b) {
    return kGranule == 1 ? _mm256_unpacklo_epi8(a, b) : _mm256_unpacklo_epi16(a, b);
  }
  template <size_t kGranule>
  static T High(T a, T b) {
    return kGranule == 1 ? _mm256_unpackhi_epi8(a, b) : _mm256_unpackhi_epi16(a, b);
  }
  static T TransposeBits(T v) {
    const T unit = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201));
    return _mm256_gf2p8affine_epi64_epi8(unit, v, 0);
  }
  // Byte 2*e + g takes byte 16*g + e: first the middle halves change places, then, within pieces,
  // byte 2*k + g takes byte 8*g + k.
  static T ArrangeIn(T v) {
    const T index = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
    return _mm256_shuffle_epi8(_mm256_permute4x64_epi64(v, 0xD8), index);
  }
  // The inverse, with the order of the eight rows of a byte turned round.
  static T ArrangeOut(T v) {
    const T index = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(14, 12, 10, 8, 6, 4, 2, 0, 15, 13, 11, 9, 7, 5, 3, 1));
    return _mm256_permute4x64_epi64(_mm256_shuffle_epi8(v, index), 0xD8);
  }
};

}  // namespace

constexpr TransposeFunctions kTransposeGfni256 = GfniTransposer<Pieces256>::Functions();

}  // namespace mpckdc
