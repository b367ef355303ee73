// SPDX-License-Identifier: Apache-2.0
// Counter mode with the CPU's AES instructions, once over a vector type V of 1, 2 or 4 blocks per
// register. Internal to the files that are compiled for it.
//
// Both streams' rounds are interleaved: kAtOnce registers of each make independent chains, enough
// to hide the instruction's latency. What remains is its throughput, 4 blocks per cycle and round
// on the CPUs that have it.
#ifndef MPC_SERVER_SHARE_CTR_TEMPLATE_H_
#define MPC_SERVER_SHARE_CTR_TEMPLATE_H_

#include "mpc-server/share/ctr_stream.h"

#define MPCKDC_CTR_INLINE inline __attribute__((always_inline))

namespace mpckdc {

// The counter block with the position in native order, as two little-endian numbers. It is put
// together in registers: a load of bytes that were stored in pieces waits until they have left the
// store buffer, and with them all rows that the kernel before wrote.
struct CounterBlock {
  uint64_t low, high;
};
MPCKDC_CTR_INLINE CounterBlock MakeCounterBlock(const CtrPrefix& prefix, uint32_t position) {
  CounterBlock block;
  uint32_t third;
  __builtin_memcpy(&block.low, prefix.bytes, 8);
  __builtin_memcpy(&third, prefix.bytes + 8, 4);
  block.high = static_cast<uint64_t>(position) << 32 | third;
  return block;
}

void ExpandByAesni(const uint8_t key[16], CtrKey* out);  // ctr_aesni.cc

template <class V>
struct AesCounter {
  using T = typename V::T;
  // Latency times instructions per cycle is 3 to 4 for 512 bits, twice that for 256. Not more: a
  // shorter run of AES leaves the CPU's scheduler room for the work around it (AesZeros).
  static constexpr int kAtOnce = V::kBytes == 64 ? 2 : 4;
  static constexpr size_t kPerRegister = V::kBytes / 16;
  static constexpr size_t kBlocks = kPerRegister * kAtOnce;

  // All rounds but the last: of s under k1, and if kTwo of the same blocks under k2, into t.
  template <bool kTwo>
  MPCKDC_CTR_INLINE static void Rounds(const CtrKey& k1, const CtrKey& k2, T* s, T* t) {
    const T first1 = V::Key(k1, 0), first2 = V::Key(k2, 0);
#pragma GCC unroll 4
    for (int i = 0; i < kAtOnce; ++i) {
      if (kTwo) t[i] = V::Xor(s[i], first2);
      s[i] = V::Xor(s[i], first1);
    }
#pragma GCC unroll 9
    for (int r = 1; r < 10; ++r) {
      const T key1 = V::Key(k1, r), key2 = V::Key(k2, r);
#pragma GCC unroll 4
      for (int i = 0; i < kAtOnce; ++i) {
        s[i] = V::Round(s[i], key1);
        if (kTwo) t[i] = V::Round(t[i], key2);
      }
    }
  }

  // s = F(k1, s), or F(k1, s) ^ F(k2, s): there the last round of the second stream takes the first
  // stream's result as its round key. `last` is the first stream's last key, with two streams the
  // sum of both last keys.
  template <bool kTwo>
  MPCKDC_CTR_INLINE static void Encrypt(const CtrKey& k1, const CtrKey& k2, T last, T* s) {
    T t[kAtOnce];
    Rounds<kTwo>(k1, k2, s, t);
#pragma GCC unroll 4
    for (int i = 0; i < kAtOnce; ++i) {
      s[i] = V::LastRound(s[i], last);
      if (kTwo) s[i] = V::LastRound(t[i], s[i]);
    }
  }
  template <bool kTwo>
  static inline T LastKey(const CtrKey& k1, const CtrKey& k2) {
    return kTwo ? V::Xor(V::Key(k1, 10), V::Key(k2, 10)) : V::Key(k1, 10);
  }

  template <bool kTwo>
  static inline void Run(const CtrKey& k1, const CtrKey& k2, const CtrPrefix& prefix,
                         uint32_t position, uint8_t* out, size_t blocks) {
    const T last = LastKey<kTwo>(k1, k2);
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

  static inline void Counters(T* counter, T* s) {
#pragma GCC unroll 4
    for (int i = 0; i < kAtOnce; ++i) {
      s[i] = V::BigEndian(*counter);
      *counter = V::Advance(*counter);
    }
  }

  static void FillXor(const CtrKey& k1, const CtrKey& k2, const CtrPrefix& prefix,
                      uint32_t position, uint8_t* out, size_t blocks) {
    Run<true>(k1, k2, prefix, position, out, blocks);
  }
  static void Fill(const CtrKey& k, const CtrPrefix& prefix, uint32_t position, uint8_t* out,
                   size_t blocks) {
    Run<false>(k, k, prefix, position, out, blocks);
  }
  static void FillApart(const CtrKey& k1, const CtrKey& k2, const CtrPrefix& prefix,
                        uint32_t position, const StreamsApart& out, size_t blocks) {
    const T last1 = V::Key(k1, 10), last2 = V::Key(k2, 10);
    T counter = V::FirstCounter(prefix, position);
    for (size_t done = 0; done < blocks; done += kBlocks) {
      T s[kAtOnce], t[kAtOnce];
      Counters(&counter, s);
      Rounds<true>(k1, k2, s, t);
#pragma GCC unroll 4
      for (size_t i = 0; i < kAtOnce; ++i) {
        const size_t at = done + i * kPerRegister;
        if (at >= blocks) break;
        const T own = V::LastRound(s[i], last1), next = V::LastRound(t[i], last2);
        V::StoreFirst(out.own + 16 * at, own, blocks - at);
        V::StoreFirst(out.next + 16 * at, next, blocks - at);
        V::StoreFirst(out.sum + 16 * at, V::Xor(own, next), blocks - at);
      }
    }
  }
  static constexpr CtrFunctions Functions() { return {ExpandByAesni, FillXor, Fill, FillApart}; }
};

// Zero shares made by the kernel that uses them (ZeroSource), some rows of 64 bytes at a time. Made
// beside other work they cost less than before it: AES has one port of the CPU for itself, and
// what computes on rows has others.
template <class V>
class AesZeros {
 public:
  static constexpr bool kMakes = true;
  MPCKDC_CTR_INLINE explicit AesZeros(const ZeroSource* source) : source_(source) {
    if (source == nullptr) return;
    counter_ = V::FirstCounter(source->prefix, source->position);
    last_ = Counter::template LastKey<true>(*source->own, *source->next);
  }
  // The next `kRows` rows; nothing if there is no source.
  template <size_t kRows>
  MPCKDC_CTR_INLINE void Fill(uint8_t* rows) {
    static_assert(kRows * 4 % Counter::kBlocks == 0);
    if (source_ == nullptr) return;
    for (size_t done = 0; done < kRows * 64; done += 16 * Counter::kBlocks) {
      typename V::T s[Counter::kAtOnce];
      Counter::Counters(&counter_, s);
      Counter::template Encrypt<true>(*source_->own, *source_->next, last_, s);
#pragma GCC unroll 4
      for (int i = 0; i < Counter::kAtOnce; ++i) V::Store(rows + done + i * V::kBytes, s[i]);
    }
  }

 private:
  using Counter = AesCounter<V>;
  const ZeroSource* source_;
  typename V::T counter_{}, last_{};
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SHARE_CTR_TEMPLATE_H_
