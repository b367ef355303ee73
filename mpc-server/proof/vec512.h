// SPDX-License-Identifier: Apache-2.0
// Eight elements of K in an AVX-512 register. Include only from files compiled with AVX-512 flags
// and -mvpclmulqdq.
#ifndef MPC_SERVER_PROOF_VEC512_H_
#define MPC_SERVER_PROOF_VEC512_H_

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "mpc-server/proof/clmul_pclmul.h"
#include "mpc-server/proof/field64.h"

namespace mpckdc::proof {
namespace {

// x^64 times what (x^4 + x^3 + x) * high has above bit 63, reduced, for each value of the four
// highest bits of `high`.
struct LostBits {
  alignas(16) uint8_t of[16];
};
constexpr LostBits MakeLostBits() {
  LostBits lost{};
  for (unsigned top = 0; top < 16; ++top) {
    const unsigned past = top ^ top >> 1 ^ top >> 3;
    lost.of[top] = static_cast<uint8_t>(past ^ past << 1 ^ past << 3 ^ past << 4);
  }
  return lost;
}
constexpr LostBits kLost = MakeLostBits();

struct Vec512 {
  using T = __m512i;

  static MPCKDC_PROOF_INLINE T Load(const void* p) { return _mm512_loadu_si512(p); }
  static MPCKDC_PROOF_INLINE void Store(void* p, T v) { _mm512_storeu_si512(p, v); }
  static MPCKDC_PROOF_INLINE T Set1(uint64_t v) {
    return _mm512_set1_epi64(static_cast<long long>(v));
  }
  // The first n of eight; others are zero, and are not stored.
  static MPCKDC_PROOF_INLINE __mmask8 First(size_t n) {
    return static_cast<__mmask8>(n >= 8 ? 0xFF : (1u << n) - 1);
  }
  static MPCKDC_PROOF_INLINE T LoadFirst(const void* p, size_t n) {
    return _mm512_maskz_loadu_epi64(First(n), p);
  }
  static MPCKDC_PROOF_INLINE void StoreFirst(void* p, T v, size_t n) {
    _mm512_mask_storeu_epi64(p, First(n), v);
  }
  static MPCKDC_PROOF_INLINE T Xor(T a, T b) { return _mm512_xor_si512(a, b); }
  static MPCKDC_PROOF_INLINE T Xor3(T a, T b, T c) {
    return _mm512_ternarylogic_epi64(a, b, c, 0x96);
  }
  // Products of the elements at even and at odd places, unreduced, one in 128 bits.
  static MPCKDC_PROOF_INLINE T Even(T a, T b) { return _mm512_clmulepi64_epi128(a, b, 0x00); }
  static MPCKDC_PROOF_INLINE T Odd(T a, T b) { return _mm512_clmulepi64_epi128(a, b, 0x11); }
  static MPCKDC_PROOF_INLINE T AddProducts(T sum, T a, T b) {
    return Xor3(sum, Even(a, b), Odd(a, b));
  }

  // Unreduced products to elements in order. x^4 + x^3 + x + 1 = (x + 1)(x^3 + 1); what the shifts
  // by it lose depends on the four highest bits.
  static MPCKDC_PROOF_INLINE T Reduce(T even, T odd) {
    const T low = _mm512_unpacklo_epi64(even, odd), high = _mm512_unpackhi_epi64(even, odd);
    const T lost = _mm512_shuffle_epi8(
        _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(kLost.of))),
        _mm512_srli_epi64(high, 60));
    const T y = Xor(high, _mm512_slli_epi64(high, 1));
    return Xor(Xor3(low, lost, y), _mm512_slli_epi64(y, 3));
  }
  static MPCKDC_PROOF_INLINE T Multiply(T a, T b) { return Reduce(Even(a, b), Odd(a, b)); }

  static MPCKDC_PROOF_INLINE WideK SumOfLanes(T sum) {
    const __m256i half =
        _mm256_xor_si256(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64(sum, 1));
    const __m128i one =
        _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    return WideK{static_cast<uint64_t>(_mm_cvtsi128_si64(one)),
                 static_cast<uint64_t>(_mm_extract_epi64(one, 1))};
  }
  static MPCKDC_PROOF_INLINE K ReducedSum(T sum) { return K{ClmulPclmul::Reduce(SumOfLanes(sum))}; }
};

}  // namespace
}  // namespace mpckdc::proof

#endif  // MPC_SERVER_PROOF_VEC512_H_
