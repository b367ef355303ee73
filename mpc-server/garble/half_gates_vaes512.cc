// SPDX-License-Identifier: Apache-2.0
// Four labels in an AVX-512 register. Compiled with AVX-512 flags, -maes and -mvaes.
#include <immintrin.h>

#include "mpc-server/garble/half_gates_template.h"

namespace mpckdc::garble {
namespace {

struct Vaes512 {
  using T = __m512i;
  static constexpr size_t kLabels = 4;

  static __mmask8 First(size_t n) { return static_cast<__mmask8>((1u << 2 * n) - 1); }
  static T Load(const Label* p, size_t n) { return _mm512_maskz_loadu_epi64(First(n), p); }
  static void Store(Label* p, T v, size_t n) { _mm512_mask_storeu_epi64(p, First(n), v); }
  static void StorePairs(Label* p, T a, T b, size_t n) {
    const T low = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    const T high = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    Store(p, _mm512_permutex2var_epi64(a, low, b), n < 2 ? 2 * n : 4);
    if (n > 2) Store(p + 4, _mm512_permutex2var_epi64(a, high, b), 2 * n - 4);
  }
  static void LoadPairs(const Label* p, size_t n, T* a, T* b) {
    const T low = Load(p, n < 2 ? 2 * n : 4);
    const T high = n > 2 ? Load(p + 4, 2 * n - 4) : _mm512_setzero_si512();
    *a = _mm512_permutex2var_epi64(low, _mm512_setr_epi64(0, 1, 4, 5, 8, 9, 12, 13), high);
    *b = _mm512_permutex2var_epi64(low, _mm512_setr_epi64(2, 3, 6, 7, 10, 11, 14, 15), high);
  }
  static T SetHalves(const uint64_t* low, uint64_t high) {
    const T all = _mm512_set1_epi64(static_cast<long long>(high));
    const T lows =
        _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(low)));
    return _mm512_mask_permutexvar_epi64(all, 0x55, _mm512_setr_epi64(0, 0, 1, 0, 2, 0, 3, 0),
                                         lows);
  }
  static T Same(const Label& v) { return _mm512_broadcast_i32x4(LoadLabel(&v)); }
  static T Ones() { return _mm512_set4_epi64(0, 1, 0, 1); }
  static __m128i One(const Label* slots, uint16_t a, uint16_t b) {
    return _mm_xor_si128(LoadLabel(slots + a), LoadLabel(slots + b));
  }
  // The sums of two slots of four gates.
  template <class First, class Second>
  static T Gather(const Label* slots, const TapeGate* g, First a, Second b) {
    T v = _mm512_castsi128_si512(One(slots, a(g[0]), b(g[0])));
    v = _mm512_inserti32x4(v, One(slots, a(g[1]), b(g[1])), 1);
    v = _mm512_inserti32x4(v, One(slots, a(g[2]), b(g[2])), 2);
    return _mm512_inserti32x4(v, One(slots, a(g[3]), b(g[3])), 3);
  }
  static void PutOne(Label* slots, const TapeGate& g, __m128i v) {
    StoreLabel(slots + g.out, _mm_xor_si128(v, LoadLabel(slots + g.z)));
  }
  static void Scatter(Label* slots, const TapeGate* g, T v) {
    PutOne(slots, g[0], _mm512_castsi512_si128(v));
    PutOne(slots, g[1], _mm512_extracti32x4_epi32(v, 1));
    PutOne(slots, g[2], _mm512_extracti32x4_epi32(v, 2));
    PutOne(slots, g[3], _mm512_extracti32x4_epi32(v, 3));
  }
  static T SetWords(uint32_t v) { return _mm512_set1_epi32(static_cast<int>(v)); }
  static T Xor(T a, T b) { return _mm512_xor_si512(a, b); }
  static T Xor3(T a, T b, T c) { return _mm512_ternarylogic_epi64(a, b, c, 0x96); }
  static T Add(T a, T b) { return _mm512_add_epi64(a, b); }
  static T And(T a, T b) { return _mm512_and_si512(a, b); }
  // All bits of a label whose lowest bit is 1.
  static T Colours(T v) {
    const T low = _mm512_shuffle_epi32(v, _MM_PERM_BABA);
    return _mm512_sub_epi64(_mm512_setzero_si512(), _mm512_and_si512(low, _mm512_set1_epi64(1)));
  }
  static T Sigma(T v) {
    return _mm512_xor_si512(_mm512_shuffle_epi32(v, _MM_PERM_BADC),
                            _mm512_maskz_mov_epi64(0xAA, v));
  }
  static T Round(T s, T key) { return _mm512_aesenc_epi128(s, key); }
  static T LastRound(T s, T key) { return _mm512_aesenclast_epi128(s, key); }
  static T SpreadRotatedLast(T key) {
    return _mm512_shuffle_epi8(key, _mm512_set1_epi32(0x0C0F0E0D));
  }
  template <int kWords>
  static T ShiftWords(T v) {
    return _mm512_bslli_epi128(v, 4 * kWords);
  }
  template <int kWhich>
  static T Broadcast(T v) {
    return _mm512_shuffle_i32x4(v, v, kWhich * 0x55);
  }
};

}  // namespace

constexpr HalfGateFunctions kHalfGatesVaes512 = HalfGates<Vaes512>::Functions();

}  // namespace mpckdc::garble
