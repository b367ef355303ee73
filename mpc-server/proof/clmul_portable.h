// SPDX-License-Identifier: Apache-2.0
// Carry-less multiplication without an instruction for it, in constant time where the CPU's integer
// multiplication is.
#ifndef MPC_SERVER_PROOF_CLMUL_PORTABLE_H_
#define MPC_SERVER_PROOF_CLMUL_PORTABLE_H_

#include <cstdint>

#include "mpc-server/proof/field64.h"

namespace mpckdc::proof {
namespace {

struct ClmulPortable {
  // Bits 0..63 of the product. Of each operand only every fourth bit is multiplied at once, by the
  // integer multiplication: a place of the product has at most 16 summands, and 16 only at the top,
  // so its carries stay in the three places above it, which are cleared.
  static uint64_t LowHalf(uint64_t a, uint64_t b) {
    constexpr uint64_t kEveryFourth = 0x1111111111111111;
    uint64_t a_part[4], b_part[4], sum = 0;
    for (int i = 0; i < 4; ++i) {
      a_part[i] = a & kEveryFourth << i;
      b_part[i] = b & kEveryFourth << i;
    }
    for (int k = 0; k < 4; ++k) {
      uint64_t part = 0;
      for (int i = 0; i < 4; ++i) part ^= a_part[i] * b_part[(k - i) & 3];
      sum |= part & kEveryFourth << k;
    }
    return sum;
  }
  static uint64_t Reverse(uint64_t v) {
    v = (v >> 1 & 0x5555555555555555) | (v & 0x5555555555555555) << 1;
    v = (v >> 2 & 0x3333333333333333) | (v & 0x3333333333333333) << 2;
    v = (v >> 4 & 0x0F0F0F0F0F0F0F0F) | (v & 0x0F0F0F0F0F0F0F0F) << 4;
    return __builtin_bswap64(v);
  }

  // Bits 63..126 of the product are bits 63..0 of the product of the reversed operands.
  static WideK Multiply(uint64_t a, uint64_t b) {
    return WideK{LowHalf(a, b), Reverse(LowHalf(Reverse(a), Reverse(b))) >> 1};
  }
  static uint64_t Reduce(WideK w) { return ReduceByShifts(w); }

  // x^64 = x^4 + x^3 + x + 1; what the first step moves past bit 63 is at most 4 bits.
  static MPCKDC_PROOF_INLINE uint64_t ReduceByShifts(WideK w) {
    const uint64_t past = w.high >> 63 ^ w.high >> 61 ^ w.high >> 60;
    const uint64_t h = w.high ^ past;
    return w.low ^ h ^ h << 1 ^ h << 3 ^ h << 4;
  }
};

}  // namespace
}  // namespace mpckdc::proof

#endif  // MPC_SERVER_PROOF_CLMUL_PORTABLE_H_
