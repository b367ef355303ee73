// SPDX-License-Identifier: Apache-2.0
// Counter mode with AES-NI, a block per register. Compiled with -mavx2 -maes: everything here is in
// the template over a type of this file or file-local, so that no inline function leaks to others.
#include <immintrin.h>

#include "mpc-server/share/ctr_template.h"

namespace mpckdc {
namespace {

struct Aesni {
  using T = __m128i;
  static constexpr size_t kBytes = 16;

  static T Key(const CtrKey& key, int round) {
    return _mm_load_si128(reinterpret_cast<const T*>(key.round_keys) + round);
  }
  // Counters have the position in native order until BigEndian().
  static T FirstCounter(const CtrPrefix& prefix, uint32_t position) {
    const CounterBlock block = MakeCounterBlock(prefix, position);
    return _mm_set_epi64x(static_cast<long long>(block.high), static_cast<long long>(block.low));
  }
  static T Advance(T counter) { return _mm_add_epi32(counter, _mm_set_epi32(1, 0, 0, 0)); }
  static T BigEndian(T counter) {
    return _mm_shuffle_epi8(
        counter, _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15, 14, 13, 12));
  }
  static T Xor(T a, T b) { return _mm_xor_si128(a, b); }
  static T Round(T s, T key) { return _mm_aesenc_si128(s, key); }
  static T LastRound(T s, T key) { return _mm_aesenclast_si128(s, key); }
  static void Store(uint8_t* p, T v) { _mm_storeu_si128(reinterpret_cast<T*>(p), v); }
  static void StoreFirst(uint8_t* p, T v, size_t) { Store(p, v); }
};

// w[i] = w[i-4] ^ w[i-1] within a round key: a running XOR over its four words.
inline __m128i NextRoundKey(__m128i key, __m128i assist) {
  key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
  key = _mm_xor_si128(key, _mm_slli_si128(key, 8));
  return _mm_xor_si128(key, _mm_shuffle_epi32(assist, 0xFF));
}

}  // namespace

void ExpandByAesni(const uint8_t key[16], CtrKey* out) {
  auto* rk = reinterpret_cast<__m128i*>(out->round_keys);
  rk[0] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(key));
  // The round constant is part of the instruction.
  rk[1] = NextRoundKey(rk[0], _mm_aeskeygenassist_si128(rk[0], 0x01));
  rk[2] = NextRoundKey(rk[1], _mm_aeskeygenassist_si128(rk[1], 0x02));
  rk[3] = NextRoundKey(rk[2], _mm_aeskeygenassist_si128(rk[2], 0x04));
  rk[4] = NextRoundKey(rk[3], _mm_aeskeygenassist_si128(rk[3], 0x08));
  rk[5] = NextRoundKey(rk[4], _mm_aeskeygenassist_si128(rk[4], 0x10));
  rk[6] = NextRoundKey(rk[5], _mm_aeskeygenassist_si128(rk[5], 0x20));
  rk[7] = NextRoundKey(rk[6], _mm_aeskeygenassist_si128(rk[6], 0x40));
  rk[8] = NextRoundKey(rk[7], _mm_aeskeygenassist_si128(rk[7], 0x80));
  rk[9] = NextRoundKey(rk[8], _mm_aeskeygenassist_si128(rk[8], 0x1B));
  rk[10] = NextRoundKey(rk[9], _mm_aeskeygenassist_si128(rk[9], 0x36));
}

constexpr CtrFunctions kCtrAesni = AesCounter<Aesni>::Functions();

}  // namespace mpckdc
