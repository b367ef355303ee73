// SPDX-License-Identifier: Apache-2.0
// 256 lanes in an AVX2 register. Include only from files compiled with -mavx2.
#ifndef MPC_SERVER_CIRCUIT_BITSLICE_WORD_AVX2_H_
#define MPC_SERVER_CIRCUIT_BITSLICE_WORD_AVX2_H_

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace mpckdc {

struct WordAvx2 {
  using T = __m256i;
  static constexpr size_t kBytes = 32;
  static T Load(const uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const T*>(p)); }
  static void Store(uint8_t* p, T v) { _mm256_storeu_si256(reinterpret_cast<T*>(p), v); }
  static void StoreForLater(uint8_t* p, T v) { Store(p, v); }
  static void FinishStores() {}
  static T Zero() { return _mm256_setzero_si256(); }
  static T Not(T a) { return _mm256_xor_si256(a, _mm256_set1_epi8(-1)); }
  static T Xor(T a, T b) { return _mm256_xor_si256(a, b); }
  static T Xor3(T a, T b, T c) { return Xor(Xor(a, b), c); }
  static T And(T a, T b) { return _mm256_and_si256(a, b); }
  static T AndXor(T a, T b, T acc) { return Xor(And(a, b), acc); }

  template <int kShift>
  static T ShiftLeft(T a) {
    return _mm256_slli_epi64(a, kShift);
  }
  template <int kShift>
  static T ShiftRight(T a) {
    return _mm256_srli_epi64(a, kShift);
  }
  static T Set1(uint64_t v) { return _mm256_set1_epi64x(static_cast<long long>(v)); }
  static T Gather(const uint8_t* p, size_t stride) {
    const auto two = [stride](const uint8_t* q) {
      return _mm_unpacklo_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(q)),
                                _mm_loadl_epi64(reinterpret_cast<const __m128i*>(q + stride)));
    };
    return _mm256_inserti128_si256(_mm256_castsi128_si256(two(p)), two(p + 2 * stride), 1);
  }
  static void Scatter(uint8_t* p, size_t stride, T v) {
    alignas(32) uint64_t e[4];
    _mm256_store_si256(reinterpret_cast<T*>(e), v);
    for (int i = 0; i < 4; ++i) __builtin_memcpy(p + static_cast<size_t>(i) * stride, &e[i], 8);
  }
};

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_BITSLICE_WORD_AVX2_H_
