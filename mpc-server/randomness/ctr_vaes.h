// SPDX-License-Identifier: Apache-2.0
// Counter mode with VAES, once over a vector type V of P = 2 or 4 blocks per register: four
// registers of each stream at a time. Internal to the files that are compiled for it.
//
// Both streams' rounds are interleaved: eight independent chains hide the instruction's latency.
// What remains is its throughput, 4 blocks per cycle and round on the CPUs that have it.
#ifndef MPC_SERVER_RANDOMNESS_CTR_VAES_H_
#define MPC_SERVER_RANDOMNESS_CTR_VAES_H_

#include "mpc-server/randomness/ctr_stream.h"

namespace mpckdc {

template <class V>
struct VaesCounter {
  using T = typename V::T;
  static constexpr int kAtOnce = 4;  // registers
  static constexpr size_t kPerRegister = V::kBytes / 16;
  static constexpr size_t kBlocks = kPerRegister * kAtOnce;

  // s = F(k1, s), or F(k1, s) ^ F(k2, s): there the last round of the second stream takes the first
  // stream's result as its round key. `last` is the first stream's last key, with two streams the
  // sum of both last keys.
  template <bool kTwo>
  static inline void Encrypt(const typename V::Keys& k1, const typename V::Keys& k2, T last,
                             T* s) {
    T t[kAtOnce];
#pragma GCC unroll 4
    for (int i = 0; i < kAtOnce; ++i) {
      if (kTwo) t[i] = V::Xor(s[i], k2.At(0));
      s[i] = V::Xor(s[i], k1.At(0));
    }
#pragma GCC unroll 9
    for (int r = 1; r < 10; ++r) {
#pragma GCC unroll 4
      for (int i = 0; i < kAtOnce; ++i) {
        s[i] = V::Round(s[i], k1.At(r));
        if (kTwo) t[i] = V::Round(t[i], k2.At(r));
      }
    }
#pragma GCC unroll 4
    for (int i = 0; i < kAtOnce; ++i) {
      s[i] = V::LastRound(s[i], last);
      if (kTwo) s[i] = V::LastRound(t[i], s[i]);
    }
  }

  template <bool kTwo>
  static inline void Run(const CtrKey& key1, const CtrKey& key2, const CtrPrefix& prefix,
                         uint32_t position, uint8_t* out, size_t blocks) {
    const typename V::Keys k1(key1), k2(key2);
    const T last = kTwo ? V::Xor(k1.At(10), k2.At(10)) : k1.At(10);
    T counter = V::FirstCounter(prefix, position);
    for (; blocks >= kBlocks; blocks -= kBlocks, out += 16 * kBlocks) {
      T s[kAtOnce];
      Counters(&counter, s);
      Encrypt<kTwo>(k1, k2, last, s);
#pragma GCC unroll 4
      for (int i = 0; i < kAtOnce; ++i) V::Store(out + i * V::kBytes, s[i]);
    }
    if (blocks == 0) return;
    T s[kAtOnce];
    Counters(&counter, s);
    Encrypt<kTwo>(k1, k2, last, s);
#pragma GCC unroll 4
    for (size_t i = 0; i < kAtOnce; ++i) {
      const size_t done = i * kPerRegister;
      if (blocks > done) V::StoreFirst(out + 16 * done, s[i], blocks - done);
    }
  }

 private:
  static inline void Counters(T* counter, T* s) {
#pragma GCC unroll 4
    for (int i = 0; i < kAtOnce; ++i) {
      s[i] = V::BigEndian(*counter);
      *counter = V::Advance(*counter);
    }
  }
};

}  // namespace mpckdc

// The body of each file.
#define MPCKDC_DEFINE_CTR(ISA, ...)                                                            \
  namespace mpckdc::ISA {                                                                      \
  void FillXor(const CtrKey& k1, const CtrKey& k2, const CtrPrefix& prefix, uint32_t position, \
               uint8_t* out, size_t blocks) {                                                  \
    __VA_ARGS__::Run<true>(k1, k2, prefix, position, out, blocks);                             \
  }                                                                                            \
  void Fill(const CtrKey& k, const CtrPrefix& prefix, uint32_t position, uint8_t* out,         \
            size_t blocks) {                                                                   \
    __VA_ARGS__::Run<false>(k, k, prefix, position, out, blocks);                              \
  }                                                                                            \
  }

#endif  // MPC_SERVER_RANDOMNESS_CTR_VAES_H_
