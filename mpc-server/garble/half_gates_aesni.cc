// SPDX-License-Identifier: Apache-2.0
// One label in a register. Compiled with -mavx2 and -maes.
#include <immintrin.h>

#include "mpc-server/garble/half_gates_template.h"

namespace mpckdc::garble {
namespace {

struct Aesni {
  using T = __m128i;
  static constexpr size_t kLabels = 1;

  static T Load(const Label* p, size_t) { return _mm_loadu_si128(reinterpret_cast<const T*>(p)); }
  static void Store(Label* p, T v, size_t) { _mm_storeu_si128(reinterpret_cast<T*>(p), v); }
  static void StorePairs(Label* p, T a, T b, size_t) {
    Store(p, a, 1);
    Store(p + 1, b, 1);
  }
  static void LoadPairs(const Label* p, size_t, T* a, T* b) {
    *a = Load(p, 1);
    *b = Load(p + 1, 1);
  }
  static T SetHalves(const uint64_t* low, uint64_t high) {
    return _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(*low));
  }
  static T SetWords(uint32_t v) { return _mm_set1_epi32(static_cast<int>(v)); }
  static T Xor(T a, T b) { return _mm_xor_si128(a, b); }
  static T Xor3(T a, T b, T c) { return Xor(Xor(a, b), c); }
  static T Add(T a, T b) { return _mm_add_epi64(a, b); }
  static T And(T a, T b) { return _mm_and_si128(a, b); }
  // All bits of a label whose lowest bit is 1.
  static T Colours(T v) {
    const T low = _mm_shuffle_epi32(v, 0x44);
    return _mm_sub_epi64(_mm_setzero_si128(), _mm_and_si128(low, _mm_set1_epi64x(1)));
  }
  static T Sigma(T v) {
    return _mm_xor_si128(_mm_shuffle_epi32(v, 0x4E), _mm_and_si128(v, _mm_set_epi64x(-1, 0)));
  }
  static T Round(T s, T key) { return _mm_aesenc_si128(s, key); }
  static T LastRound(T s, T key) { return _mm_aesenclast_si128(s, key); }
  static T SpreadRotatedLast(T key) { return _mm_shuffle_epi8(key, _mm_set1_epi32(0x0C0F0E0D)); }
  template <int kWords>
  static T ShiftWords(T v) {
    return _mm_slli_si128(v, 4 * kWords);
  }
};

}  // namespace

constexpr HalfGateFunctions kHalfGatesAesni = HalfGates<Aesni>::Functions();

}  // namespace mpckdc::garble
