// SPDX-License-Identifier: Apache-2.0
// GF(2^128) with the carry-less multiply instruction. Compiled with -mavx2 -mpclmul.
//
// With the bytes reversed, a block is the 128-bit number whose bit 127-i is the coefficient of x^i:
// reflected. The product of two reflected polynomials of degree 127 is the reflected product of
// degree 254 in 255 bits, so one shift left aligns it to 256 bits; then the low half (the
// coefficients of x^128 and up) is folded into the high half by x^128 = x^7 + x^2 + x + 1.
#include <immintrin.h>

#include <cstdint>

namespace mpckdc {
namespace {

struct Wide {
  __m128i low, high;
};

inline Wide CarrylessProduct(__m128i a, __m128i b) {
  const __m128i low = _mm_clmulepi64_si128(a, b, 0x00);
  const __m128i high = _mm_clmulepi64_si128(a, b, 0x11);
  const __m128i mid = _mm_xor_si128(_mm_clmulepi64_si128(a, b, 0x10),
                                    _mm_clmulepi64_si128(a, b, 0x01));
  return {_mm_xor_si128(low, _mm_slli_si128(mid, 8)), _mm_xor_si128(high, _mm_srli_si128(mid, 8))};
}

inline Wide ShiftLeftByOne(Wide w) {
  const __m128i low_carry = _mm_srli_epi64(w.low, 63), high_carry = _mm_srli_epi64(w.high, 63);
  const __m128i low = _mm_or_si128(_mm_slli_epi64(w.low, 1), _mm_slli_si128(low_carry, 8));
  const __m128i high = _mm_or_si128(_mm_slli_epi64(w.high, 1), _mm_slli_si128(high_carry, 8));
  return {low, _mm_or_si128(high, _mm_srli_si128(low_carry, 8))};
}

// Reflected, multiplying by x, x^2, x^7 is shifting right by 1, 2, 7. What falls off the low end
// wraps once more through the polynomial; computing that part first makes one pass enough.
inline __m128i Reduce(Wide w) {
  const __m128i fallen = _mm_xor_si128(
      _mm_slli_epi64(w.low, 63), _mm_xor_si128(_mm_slli_epi64(w.low, 62),
                                               _mm_slli_epi64(w.low, 57)));
  const __m128i d = _mm_xor_si128(w.low, _mm_slli_si128(fallen, 8));
  const __m128i carried = _mm_srli_si128(fallen, 8);
  __m128i r = _mm_xor_si128(_mm_srli_epi64(d, 1), _mm_srli_epi64(d, 2));
  r = _mm_xor_si128(r, _mm_srli_epi64(d, 7));
  r = _mm_xor_si128(r, _mm_xor_si128(d, carried));
  return _mm_xor_si128(r, w.high);
}

}  // namespace

void GfMultiplyPclmul(const uint8_t a[16], const uint8_t b[16], uint8_t out[16]) {
  const __m128i reverse = _mm_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m128i x = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(a)), reverse);
  const __m128i y = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b)), reverse);
  const __m128i z = Reduce(ShiftLeftByOne(CarrylessProduct(x, y)));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_shuffle_epi8(z, reverse));
}

}  // namespace mpckdc
