// SPDX-License-Identifier: Apache-2.0
// The passes on 256 lanes at once.
#include "mpc-server/proof/clmul_pclmul.h"
#include "mpc-server/proof/form_planes.h"
#include "mpc-server/proof/point_sums.h"

namespace mpckdc::proof {
namespace {

struct Row256 {
  using T = __m256i;
  using Sum = __m128i;
  static constexpr size_t kBytes = 32;
  static MPCKDC_PROOF_INLINE T Load(const uint8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const T*>(p));
  }
  static MPCKDC_PROOF_INLINE T Zero() { return _mm256_setzero_si256(); }
  static MPCKDC_PROOF_INLINE T Xor(T a, T b) { return _mm256_xor_si256(a, b); }
  static MPCKDC_PROOF_INLINE T Xor3(T a, T b, T c) { return Xor(Xor(a, b), c); }
  static MPCKDC_PROOF_INLINE T And(T a, T b) { return _mm256_and_si256(a, b); }
  static MPCKDC_PROOF_INLINE T AndXor(T a, T b, T acc) { return Xor(And(a, b), acc); }
  template <int kShift>
  static MPCKDC_PROOF_INLINE T ShiftLeft(T a) {
    return _mm256_slli_epi64(a, kShift);
  }
  template <int kShift>
  static MPCKDC_PROOF_INLINE T ShiftRight(T a) {
    return _mm256_srli_epi64(a, kShift);
  }
  static MPCKDC_PROOF_INLINE T Set1(uint64_t v) {
    return _mm256_set1_epi64x(static_cast<long long>(v));
  }

  static MPCKDC_PROOF_INLINE Sum ZeroSum() { return _mm_setzero_si128(); }
  static MPCKDC_PROOF_INLINE Sum AddHalf(Sum sum, __m128i row, __m128i weight) {
    sum = _mm_xor_si128(sum, _mm_clmulepi64_si128(row, weight, 0x00));
    return _mm_xor_si128(sum, _mm_clmulepi64_si128(row, weight, 0x11));
  }
  static MPCKDC_PROOF_INLINE Sum AddProducts(Sum sum, T row, T weight) {
    sum = AddHalf(sum, _mm256_castsi256_si128(row), _mm256_castsi256_si128(weight));
    return AddHalf(sum, _mm256_extracti128_si256(row, 1), _mm256_extracti128_si256(weight, 1));
  }
  static MPCKDC_PROOF_INLINE void AddTo(Sum sum, SumParts& parts) {
    auto* to = reinterpret_cast<__m128i*>(parts.part);
    _mm_storeu_si128(to, _mm_xor_si128(sum, _mm_loadu_si128(to)));
  }
};
using Points = PointSumKernels<Row256>;
using Planes = FormPlaneKernels<Row256, ClmulPclmul>;

}  // namespace

constexpr Level1Kernels kLevel1Avx2 = {Points::SumsAtPoints,   Points::SumsOfT,
                                       Planes::PlanFold,       Planes::Fold,
                                       Planes::PlanFunctional, Planes::Functional};

}  // namespace mpckdc::proof
