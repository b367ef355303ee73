// SPDX-License-Identifier: Apache-2.0
// Two labels in an AVX2 register. Compiled with -mavx2, -maes and -mvaes.
#include <immintrin.h>

#include "mpc-server/garble/half_gates_template.h"

namespace mpckdc::garble {
namespace {

struct Vaes256 {
  using T = __m256i;
  static constexpr size_t kLabels = 2;

  static T Load(const Label* p, size_t n) {
    if (n == 1) return _mm256_zextsi128_si256(LoadLabel(p));
    return _mm256_loadu_si256(reinterpret_cast<const T*>(p));
  }
  static void Store(Label* p, T v, size_t n) {
    if (n == 1) return StoreLabel(p, _mm256_castsi256_si128(v));
    _mm256_storeu_si256(reinterpret_cast<T*>(p), v);
  }
  static void StorePairs(Label* p, T a, T b, size_t n) {
    Store(p, _mm256_permute2x128_si256(a, b, 0x20), 2);
    if (n > 1) Store(p + 2, _mm256_permute2x128_si256(a, b, 0x31), 2);
  }
  static void LoadPairs(const Label* p, size_t n, T* a, T* b) {
    const T first = Load(p, 2), second = n > 1 ? Load(p + 2, 2) : _mm256_setzero_si256();
    *a = _mm256_permute2x128_si256(first, second, 0x20);
    *b = _mm256_permute2x128_si256(first, second, 0x31);
  }
  static T SetHalves(const uint64_t* low, uint64_t high) {
    return _mm256_set_epi64x(static_cast<long long>(high), static_cast<long long>(low[1]),
                             static_cast<long long>(high), static_cast<long long>(low[0]));
  }
  static T Same(const Label& v) { return _mm256_broadcastsi128_si256(LoadLabel(&v)); }
  static T Ones() { return _mm256_set_epi64x(0, 1, 0, 1); }
  static __m128i One(const Label* slots, uint16_t a, uint16_t b) {
    return _mm_xor_si128(LoadLabel(slots + a), LoadLabel(slots + b));
  }
  // The sums of two slots of two gates.
  template <class First, class Second>
  static T Gather(const Label* slots, const TapeGate* g, First a, Second b) {
    return _mm256_set_m128i(One(slots, a(g[1]), b(g[1])), One(slots, a(g[0]), b(g[0])));
  }
  static void PutOne(Label* slots, const TapeGate& g, __m128i v) {
    StoreLabel(slots + g.out, _mm_xor_si128(v, LoadLabel(slots + g.z)));
  }
  static void Scatter(Label* slots, const TapeGate* g, T v) {
    PutOne(slots, g[0], _mm256_castsi256_si128(v));
    PutOne(slots, g[1], _mm256_extracti128_si256(v, 1));
  }
  static T SetWords(uint32_t v) { return _mm256_set1_epi32(static_cast<int>(v)); }
  static T Xor(T a, T b) { return _mm256_xor_si256(a, b); }
  static T Xor3(T a, T b, T c) { return Xor(Xor(a, b), c); }
  static T Add(T a, T b) { return _mm256_add_epi64(a, b); }
  static T And(T a, T b) { return _mm256_and_si256(a, b); }
  // All bits of a label whose lowest bit is 1.
  static T Colours(T v) {
    const T low = _mm256_shuffle_epi32(v, 0x44);
    return _mm256_sub_epi64(_mm256_setzero_si256(), _mm256_and_si256(low, _mm256_set1_epi64x(1)));
  }
  static T Sigma(T v) {
    return _mm256_xor_si256(_mm256_shuffle_epi32(v, 0x4E),
                            _mm256_and_si256(v, _mm256_setr_epi64x(0, -1, 0, -1)));
  }
  static T Round(T s, T key) { return _mm256_aesenc_epi128(s, key); }
  static T LastRound(T s, T key) { return _mm256_aesenclast_epi128(s, key); }
  static T SpreadRotatedLast(T key) {
    return _mm256_shuffle_epi8(key, _mm256_set1_epi32(0x0C0F0E0D));
  }
  template <int kWords>
  static T ShiftWords(T v) {
    return _mm256_bslli_epi128(v, 4 * kWords);
  }
  template <int kWhich>
  static T Broadcast(T v) {
    return _mm256_permute2x128_si256(v, v, kWhich * 0x11);
  }
};

}  // namespace

constexpr HalfGateFunctions kHalfGatesVaes256 = HalfGates<Vaes256>::Functions();

}  // namespace mpckdc::garble
