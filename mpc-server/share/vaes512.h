// SPDX-License-Identifier: Apache-2.0
// Four blocks in an AVX-512 register. Include only from files compiled with AVX-512 flags, -mvaes.
#ifndef MPC_SERVER_SHARE_VAES512_H_
#define MPC_SERVER_SHARE_VAES512_H_

#include <immintrin.h>

#include "mpc-server/share/ctr_template.h"

namespace mpckdc {
namespace {

struct Vaes512 {
  using T = __m512i;
  static constexpr size_t kBytes = 64;

  // A round key for every block of a register. It is broadcast at the load, which costs little
  // beside the chains that use it: the registers are for what a kernel computes around them.
  static T Key(const CtrKey& key, int round) {
    const auto* k = reinterpret_cast<const __m128i*>(key.round_keys);
    return _mm512_broadcast_i32x4(_mm_load_si128(k + round));
  }

  // Counters have the position in native order until BigEndian().
  static T FirstCounter(const CtrPrefix& prefix, uint32_t position) {
    const CounterBlock block = MakeCounterBlock(prefix, position);
    const T all = _mm512_broadcast_i32x4(_mm_set_epi64x(
        static_cast<long long>(block.high), static_cast<long long>(block.low)));
    return _mm512_add_epi32(all,
                            _mm512_set_epi32(3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0));
  }
  static T Advance(T counter) {
    return _mm512_add_epi32(counter,
                            _mm512_set_epi32(4, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0));
  }
  static T BigEndian(T counter) {
    return _mm512_shuffle_epi8(
        counter, _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15,
                                                      14, 13, 12)));
  }
  static T Xor(T a, T b) { return _mm512_xor_si512(a, b); }
  static T Round(T s, T key) { return _mm512_aesenc_epi128(s, key); }
  static T LastRound(T s, T key) { return _mm512_aesenclast_epi128(s, key); }
  static void Store(uint8_t* p, T v) { _mm512_storeu_si512(p, v); }
  static void StoreFirst(uint8_t* p, T v, size_t blocks) {
    const auto mask = static_cast<__mmask8>(blocks >= 4 ? 0xFF : (1u << 2 * blocks) - 1);
    _mm512_mask_storeu_epi64(p, mask, v);
  }
};

}  // namespace
}  // namespace mpckdc

#endif  // MPC_SERVER_SHARE_VAES512_H_
