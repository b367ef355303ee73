// SPDX-License-Identifier: Apache-2.0
// Counter mode with AES-NI, four blocks of each stream at a time. Compiled with -mavx2 -maes:
// everything here is in namespace ctr_aesni or file-local, so that no inline function leaks to
// other files.
#include <immintrin.h>

#include "mpc-server/share/ctr_isa.h"

namespace mpckdc {
namespace ctr_aesni {
namespace {

constexpr int kAtOnce = 4;

inline __m128i CounterBlock(__m128i prefix, uint32_t position) {
  return _mm_insert_epi32(prefix, static_cast<int>(__builtin_bswap32(position)), 3);
}

// Both streams' rounds interleaved: 2*kAtOnce independent chains hide the instruction's latency.
template <bool kTwo>
inline void Encrypt(const CtrKey& k1, const CtrKey& k2, __m128i s[kAtOnce], __m128i t[kAtOnce]) {
  const auto* rk1 = reinterpret_cast<const __m128i*>(k1.round_keys);
  const auto* rk2 = reinterpret_cast<const __m128i*>(k2.round_keys);
  for (int i = 0; i < kAtOnce; ++i) {
    s[i] = _mm_xor_si128(s[i], rk1[0]);
    if (kTwo) t[i] = _mm_xor_si128(t[i], rk2[0]);
  }
#pragma GCC unroll 9
  for (int r = 1; r < 10; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < kAtOnce; ++i) {
      s[i] = _mm_aesenc_si128(s[i], rk1[r]);
      if (kTwo) t[i] = _mm_aesenc_si128(t[i], rk2[r]);
    }
  }
  for (int i = 0; i < kAtOnce; ++i) {
    s[i] = _mm_aesenclast_si128(s[i], rk1[10]);
    if (kTwo) s[i] = _mm_xor_si128(s[i], _mm_aesenclast_si128(t[i], rk2[10]));
  }
}

template <bool kTwo>
inline void Run(const CtrKey& k1, const CtrKey& k2, const CtrPrefix& prefix, uint32_t position,
                uint8_t* out, size_t blocks) {
  alignas(16) uint8_t start[16] = {};
  __builtin_memcpy(start, prefix.bytes, sizeof(prefix.bytes));
  const __m128i base = _mm_load_si128(reinterpret_cast<const __m128i*>(start));
  while (blocks != 0) {
    __m128i s[kAtOnce], t[kAtOnce];
    for (int i = 0; i < kAtOnce; ++i) {
      s[i] = t[i] = CounterBlock(base, position + static_cast<uint32_t>(i));
    }
    Encrypt<kTwo>(k1, k2, s, t);
    const size_t n = blocks < kAtOnce ? blocks : kAtOnce;
#pragma GCC unroll 4
    for (size_t i = 0; i < kAtOnce; ++i) {
      if (i < n) _mm_storeu_si128(reinterpret_cast<__m128i*>(out) + i, s[i]);
    }
    out += 16 * n;
    blocks -= n;
    position += static_cast<uint32_t>(n);
  }
}

// w[i] = w[i-4] ^ w[i-1] within a round key: a running XOR over its four words.
inline __m128i NextRoundKey(__m128i key, __m128i assist) {
  key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
  key = _mm_xor_si128(key, _mm_slli_si128(key, 8));
  return _mm_xor_si128(key, _mm_shuffle_epi32(assist, 0xFF));
}

}  // namespace

void Expand(const uint8_t key[16], CtrKey* out) {
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

void FillXor(const CtrKey& k1, const CtrKey& k2, const CtrPrefix& prefix, uint32_t position,
             uint8_t* out, size_t blocks) {
  Run<true>(k1, k2, prefix, position, out, blocks);
}

void Fill(const CtrKey& k, const CtrPrefix& prefix, uint32_t position, uint8_t* out,
          size_t blocks) {
  Run<false>(k, k, prefix, position, out, blocks);
}

}  // namespace ctr_aesni
}  // namespace mpckdc
