// SPDX-License-Identifier: Apache-2.0
// The passes on whole rows of 512 lanes. Needs GFNI, AVX512-VBMI and VPCLMULQDQ beyond the tier's
// instructions.
#include "mpc-server/proof/form_gfni.h"
#include "mpc-server/proof/point_sums.h"
#include "mpc-server/proof/vec512.h"

namespace mpckdc::proof {
namespace {

struct Row512 {
  using T = __m512i;
  using Sum = __m512i;
  static constexpr size_t kBytes = 64;
  static MPCKDC_PROOF_INLINE T Load(const uint8_t* p) { return _mm512_loadu_si512(p); }
  static MPCKDC_PROOF_INLINE T Zero() { return _mm512_setzero_si512(); }
  static MPCKDC_PROOF_INLINE T Xor(T a, T b) { return _mm512_xor_si512(a, b); }
  static MPCKDC_PROOF_INLINE T Xor3(T a, T b, T c) { return Vec512::Xor3(a, b, c); }
  static MPCKDC_PROOF_INLINE T And(T a, T b) { return _mm512_and_si512(a, b); }
  // Truth table index: 4 * a + 2 * b + acc.
  static MPCKDC_PROOF_INLINE T AndXor(T a, T b, T acc) {
    return _mm512_ternarylogic_epi64(a, b, acc, 0x6A);
  }

  static MPCKDC_PROOF_INLINE Sum ZeroSum() { return Zero(); }
  static MPCKDC_PROOF_INLINE Sum AddProducts(Sum sum, T row, T weight) {
    asm("" : "+v"(weight));  // one load, not one for each of the two instructions
    return Vec512::AddProducts(sum, row, weight);
  }
  static MPCKDC_PROOF_INLINE void AddTo(Sum sum, SumParts& parts) {
    Vec512::Store(parts.part, Xor(sum, Vec512::Load(parts.part)));
  }
};
using Points = PointSumKernels<Row512>;

}  // namespace

constexpr Level1Kernels kLevel1Gfni512 = {Points::SumsAtPoints,     Points::SumsOfT,
                                          FormGfni::PlanFold,       FormGfni::Fold,
                                          FormGfni::PlanFunctional, FormGfni::Functional};

}  // namespace mpckdc::proof
