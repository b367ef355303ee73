// SPDX-License-Identifier: Apache-2.0
// 512 lanes in an AVX-512 register. Include only from files compiled with AVX-512 flags.
#ifndef MPC_SERVER_CIRCUIT_BITSLICE_WORD_AVX512_H_
#define MPC_SERVER_CIRCUIT_BITSLICE_WORD_AVX512_H_

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace mpckdc {

struct WordAvx512 {
  using T = __m512i;
  static constexpr size_t kBytes = 64;
  static T Load(const uint8_t* p) { return _mm512_loadu_si512(p); }
  static void Store(uint8_t* p, T v) { _mm512_storeu_si512(p, v); }
  static void StoreForLater(uint8_t* p, T v) { Store(p, v); }
  static void FinishStores() {}
  static T Zero() { return _mm512_setzero_si512(); }
  static T Not(T a) { return _mm512_ternarylogic_epi64(a, a, a, 0x55); }
  static T Xor(T a, T b) { return _mm512_xor_si512(a, b); }
  // Truth table index: 4*a + 2*b + c.
  static T Xor3(T a, T b, T c) { return _mm512_ternarylogic_epi64(a, b, c, 0x96); }
  static T And(T a, T b) { return _mm512_and_si512(a, b); }
  static T AndXor(T a, T b, T acc) { return _mm512_ternarylogic_epi64(a, b, acc, 0x6A); }

  template <int kShift>
  static T ShiftLeft(T a) {
    return _mm512_slli_epi64(a, kShift);
  }
  template <int kShift>
  static T ShiftRight(T a) {
    return _mm512_srli_epi64(a, kShift);
  }
  static T Set1(uint64_t v) { return _mm512_set1_epi64(static_cast<long long>(v)); }
  static T Gather(const uint8_t* p, size_t stride) {
    const T at = _mm512_mullo_epi64(_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0),
                                    _mm512_set1_epi64(static_cast<long long>(stride)));
    return _mm512_i64gather_epi64(at, p, 1);
  }
  static void Scatter(uint8_t* p, size_t stride, T v) {
    const T at = _mm512_mullo_epi64(_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0),
                                    _mm512_set1_epi64(static_cast<long long>(stride)));
    _mm512_i64scatter_epi64(p, at, v, 1);
  }
};

// The same, but rows that are read much later are written past the caches, line by line. Aligned
// to 64 bytes.
struct WordAvx512Far : WordAvx512 {
  static void StoreForLater(uint8_t* p, T v) { _mm512_stream_si512(reinterpret_cast<T*>(p), v); }
  // Before another thread reads them.
  static void FinishStores() { _mm_sfence(); }
};

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_BITSLICE_WORD_AVX512_H_
