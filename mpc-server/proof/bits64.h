// SPDX-License-Identifier: Apache-2.0
// 64 lanes in a machine word, for gadgets: the same as circuit/'s WordPortable, which lies above.
#ifndef MPC_SERVER_PROOF_BITS64_H_
#define MPC_SERVER_PROOF_BITS64_H_

#include <cstddef>
#include <cstdint>

#include "mpc-server/proof/field64.h"

namespace mpckdc::proof {
namespace {

struct Bits64 {
  using T = uint64_t;
  static constexpr size_t kBytes = 8;
  static MPCKDC_PROOF_INLINE T Load(const uint8_t* p) {
    T v;
    __builtin_memcpy(&v, p, sizeof(v));
    return v;
  }
  static MPCKDC_PROOF_INLINE void Store(uint8_t* p, T v) { __builtin_memcpy(p, &v, sizeof(v)); }
  static MPCKDC_PROOF_INLINE T Zero() { return 0; }
  static MPCKDC_PROOF_INLINE T Xor(T a, T b) { return a ^ b; }
  static MPCKDC_PROOF_INLINE T Xor3(T a, T b, T c) { return a ^ b ^ c; }
  static MPCKDC_PROOF_INLINE T And(T a, T b) { return a & b; }
  static MPCKDC_PROOF_INLINE T AndXor(T a, T b, T acc) { return (a & b) ^ acc; }
};

}  // namespace
}  // namespace mpckdc::proof

#endif  // MPC_SERVER_PROOF_BITS64_H_
