// SPDX-License-Identifier: Apache-2.0
// Counter mode with VAES on 512-bit registers, four of them (16 blocks) of each stream at a time.
// Compiled with AVX-512 flags: everything here is in namespace ctr_vaes512 or file-local.
#include <immintrin.h>

#include "mpc-server/randomness/ctr_isa.h"

namespace mpckdc {
namespace ctr_vaes512 {
namespace {

constexpr int kAtOnce = 4;                // registers
constexpr size_t kBlocks = 4 * kAtOnce;

struct Keys {
  __m512i k[11];
};

inline Keys Broadcast(const CtrKey& key) {
  Keys r;
  const auto* rk = reinterpret_cast<const __m128i*>(key.round_keys);
  for (int i = 0; i < 11; ++i) r.k[i] = _mm512_broadcast_i32x4(_mm_load_si128(rk + i));
  return r;
}

// Both streams' rounds interleaved: 2*kAtOnce independent chains hide the instruction's latency.
template <bool kTwo>
inline void Encrypt(const Keys& k1, const Keys& k2, __m512i s[kAtOnce], __m512i t[kAtOnce]) {
#pragma GCC unroll 4
  for (int i = 0; i < kAtOnce; ++i) {
    s[i] = _mm512_xor_si512(s[i], k1.k[0]);
    if (kTwo) t[i] = _mm512_xor_si512(t[i], k2.k[0]);
  }
#pragma GCC unroll 9
  for (int r = 1; r < 10; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < kAtOnce; ++i) {
      s[i] = _mm512_aesenc_epi128(s[i], k1.k[r]);
      if (kTwo) t[i] = _mm512_aesenc_epi128(t[i], k2.k[r]);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kAtOnce; ++i) {
    s[i] = _mm512_aesenclast_epi128(s[i], k1.k[10]);
    if (kTwo) s[i] = _mm512_xor_si512(s[i], _mm512_aesenclast_epi128(t[i], k2.k[10]));
  }
}

// Counters of one register with the position in native order, and the shuffle to big-endian.
inline __m512i FirstCounter(const CtrPrefix& prefix, uint32_t position) {
  alignas(16) uint8_t block[16];
  __builtin_memcpy(block, prefix.bytes, sizeof(prefix.bytes));
  __builtin_memcpy(block + 12, &position, 4);
  const __m512i all = _mm512_broadcast_i32x4(
      _mm_load_si128(reinterpret_cast<const __m128i*>(block)));
  return _mm512_add_epi32(all, _mm512_set_epi32(3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0));
}

template <bool kTwo>
inline void Run(const CtrKey& key1, const CtrKey& key2, const CtrPrefix& prefix,
                uint32_t position, uint8_t* out, size_t blocks) {
  const Keys k1 = Broadcast(key1), k2 = Broadcast(key2);
  const __m512i big_endian = _mm512_broadcast_i32x4(
      _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15, 14, 13, 12));
  const __m512i step = _mm512_set_epi32(4, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0);
  __m512i counter = FirstCounter(prefix, position);
  while (blocks != 0) {
    __m512i s[kAtOnce], t[kAtOnce];
    for (int i = 0; i < kAtOnce; ++i) {
      s[i] = t[i] = _mm512_shuffle_epi8(counter, big_endian);
      counter = _mm512_add_epi32(counter, step);
    }
    Encrypt<kTwo>(k1, k2, s, t);
    const size_t n = blocks < kBlocks ? blocks : kBlocks;
#pragma GCC unroll 4
    for (size_t i = 0; i < kAtOnce; ++i) {
      const size_t here = n <= 4 * i ? 0 : n - 4 * i < 4 ? n - 4 * i : 4;
      const auto mask = static_cast<__mmask8>((1u << 2 * here) - 1);
      _mm512_mask_storeu_epi64(out + 64 * i, mask, s[i]);
    }
    out += 16 * n;
    blocks -= n;
  }
}

}  // namespace

void FillXor(const CtrKey& k1, const CtrKey& k2, const CtrPrefix& prefix, uint32_t position,
             uint8_t* out, size_t blocks) {
  Run<true>(k1, k2, prefix, position, out, blocks);
}

void Fill(const CtrKey& k, const CtrPrefix& prefix, uint32_t position, uint8_t* out,
          size_t blocks) {
  Run<false>(k, k, prefix, position, out, blocks);
}

}  // namespace ctr_vaes512
}  // namespace mpckdc
