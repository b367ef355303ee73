// SPDX-License-Identifier: Apache-2.0
// Two blocks in an AVX2 register. Include only from files compiled with -mavx2 -mvaes.
#ifndef MPC_SERVER_SHARE_VAES256_H_
#define MPC_SERVER_SHARE_VAES256_H_

#include <immintrin.h>

#include "mpc-server/share/ctr_template.h"

namespace mpckdc {
namespace {

struct Vaes256 {
  using T = __m256i;
  static constexpr size_t kBytes = 32;

  // A round key for every block of a register. It is broadcast at the load, which costs little
  // beside the chains that use it: the registers are for what a kernel computes around them.
  static T Key(const CtrKey& key, int round) {
    const auto* k = reinterpret_cast<const __m128i*>(key.round_keys);
    return _mm256_broadcastsi128_si256(_mm_load_si128(k + round));
  }

  // Counters have the position in native order until BigEndian().
  static T FirstCounter(const CtrPrefix& prefix, uint32_t position) {
    const CounterBlock block = MakeCounterBlock(prefix, position);
    const T all = _mm256_broadcastsi128_si256(_mm_set_epi64x(
        static_cast<long long>(block.high), static_cast<long long>(block.low)));
    return _mm256_add_epi32(all, _mm256_set_epi32(1, 0, 0, 0, 0, 0, 0, 0));
  }
  static T Advance(T counter) {
    return _mm256_add_epi32(counter, _mm256_set_epi32(2, 0, 0, 0, 2, 0, 0, 0));
  }
  static T BigEndian(T counter) {
    return _mm256_shuffle_epi8(
        counter, _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
                                                           15, 14, 13, 12)));
  }
  static T Xor(T a, T b) { return _mm256_xor_si256(a, b); }
  static T Round(T s, T key) { return _mm256_aesenc_epi128(s, key); }
  static T LastRound(T s, T key) { return _mm256_aesenclast_epi128(s, key); }
  static void Store(uint8_t* p, T v) { _mm256_storeu_si256(reinterpret_cast<T*>(p), v); }
  static void StoreFirst(uint8_t* p, T v, size_t blocks) {
    if (blocks >= 2) return Store(p, v);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(v));
  }
};

}  // namespace
}  // namespace mpckdc

#endif  // MPC_SERVER_SHARE_VAES256_H_
