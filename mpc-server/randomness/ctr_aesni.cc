// SPDX-License-Identifier: Apache-2.0
// Counter mode with AES-NI, four blocks of each stream at a time. Compiled with -mavx2 -maes:
// everything here is in namespace ctr_aesni or file-local, so that no inline function leaks to
// other files.
#include <immintrin.h>

#include "mpc-server/randomness/ctr_isa.h"

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

}  // namespace

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
