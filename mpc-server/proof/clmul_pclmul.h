// SPDX-License-Identifier: Apache-2.0
// Carry-less multiplication by its instruction. Include only from files compiled with -mpclmul.
#ifndef MPC_SERVER_PROOF_CLMUL_PCLMUL_H_
#define MPC_SERVER_PROOF_CLMUL_PCLMUL_H_

#include <immintrin.h>

#include <cstdint>

#include "mpc-server/proof/field64.h"

namespace mpckdc::proof {
namespace {

struct ClmulPclmul {
  static MPCKDC_PROOF_INLINE __m128i Low(uint64_t a) {
    return _mm_cvtsi64_si128(static_cast<long long>(a));
  }
  static MPCKDC_PROOF_INLINE WideK Multiply(uint64_t a, uint64_t b) {
    const __m128i p = _mm_clmulepi64_si128(Low(a), Low(b), 0);
    return WideK{static_cast<uint64_t>(_mm_cvtsi128_si64(p)),
                 static_cast<uint64_t>(_mm_extract_epi64(p, 1))};
  }
  static MPCKDC_PROOF_INLINE uint64_t Reduce(WideK w) {
    const uint64_t past = w.high >> 63 ^ w.high >> 61 ^ w.high >> 60;
    const uint64_t h = w.high ^ past;
    return w.low ^ h ^ h << 1 ^ h << 3 ^ h << 4;
  }
};

}  // namespace
}  // namespace mpckdc::proof

#endif  // MPC_SERVER_PROOF_CLMUL_PCLMUL_H_
