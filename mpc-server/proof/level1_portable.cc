// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/proof/bits64.h"
#include "mpc-server/proof/clmul_portable.h"
#include "mpc-server/proof/form_planes.h"
#include "mpc-server/proof/point_sums.h"

namespace mpckdc::proof {
namespace {

struct Word64 : Bits64 {
  using Sum = WideK;
  static Sum ZeroSum() { return Sum{}; }
  static Sum AddProducts(Sum sum, T row, T weight) {
    return sum + ClmulPortable::Multiply(row, weight);
  }
  static void AddTo(Sum sum, SumParts& parts) { parts.part[0] += sum; }
  template <int kShift>
  static T ShiftLeft(T a) {
    return a << kShift;
  }
  template <int kShift>
  static T ShiftRight(T a) {
    return a >> kShift;
  }
  static T Set1(uint64_t v) { return v; }
};
using Points = PointSumKernels<Word64>;
using Planes = FormPlaneKernels<Word64, ClmulPortable>;

}  // namespace

constexpr Level1Kernels kLevel1Portable = {Points::SumsAtPoints,   Points::SumsOfT,
                                           Planes::PlanFold,       Planes::Fold,
                                           Planes::PlanFunctional, Planes::Functional};

}  // namespace mpckdc::proof
