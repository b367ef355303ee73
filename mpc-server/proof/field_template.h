// SPDX-License-Identifier: Apache-2.0
// The fields' operations over a carry-less multiplication C (clmul_portable.h, clmul_pclmul.h).
#ifndef MPC_SERVER_PROOF_FIELD_TEMPLATE_H_
#define MPC_SERVER_PROOF_FIELD_TEMPLATE_H_

#include <cstddef>
#include <cstdint>

#include "mpc-server/proof/field_kernels.h"

namespace mpckdc::proof {
namespace {

template <class C>
struct FieldTemplate {
  static MPCKDC_PROOF_INLINE K Reduced(WideK w) { return K{C::Reduce(w)}; }
  static MPCKDC_PROOF_INLINE WideK Wide(K a, K b) { return C::Multiply(a.v, b.v); }

  // A sum of products in F before reduction: of the low halves, of the high halves, and of the sums
  // of both. (a + b*y)(c + d*y) = ac + bd*y^2 + ((a + b)(c + d) + ac + bd)*y, y^2 = y + c.
  struct WideF {
    WideK low, high, sum;
    MPCKDC_PROOF_INLINE void Add(F a, F b) {
      low += Wide(a.low, b.low);
      high += Wide(a.high, b.high);
      sum += Wide(a.low + a.high, b.low + b.high);
    }
    MPCKDC_PROOF_INLINE F Reduce() const {
      const K high_times_c = Reduced(Wide(Reduced(high), kTraceOne));
      return F{Reduced(low) + high_times_c, Reduced(low + sum)};
    }
  };

  static K Multiply(K a, K b) { return Reduced(Wide(a, b)); }
  static F MultiplyF(F a, F b) {
    WideF w;
    w.Add(a, b);
    return w.Reduce();
  }

  static K Dot(const K* a, const K* b, size_t n) {
    WideK sum;
    for (size_t i = 0; i < n; ++i) sum += Wide(a[i], b[i]);
    return Reduced(sum);
  }
  static void MultiplyAdd(const K* a, K c, size_t n, K* out) {
    for (size_t i = 0; i < n; ++i) out[i] += Multiply(a[i], c);
  }
  static void Scale(const K* a, K c, size_t n, K* out) {
    for (size_t i = 0; i < n; ++i) out[i] = Multiply(a[i], c);
  }
  static void MultiplyEach(const K* a, const K* b, size_t n, K* out) {
    for (size_t i = 0; i < n; ++i) out[i] = Multiply(a[i], b[i]);
  }
  static F DotF(const F* a, const F* b, size_t n) {
    WideF sum;
    for (size_t i = 0; i < n; ++i) sum.Add(a[i], b[i]);
    return sum.Reduce();
  }
  static F DotFk(const F* a, const K* b, size_t n) {
    WideK low, high;
    for (size_t i = 0; i < n; ++i) {
      low += Wide(a[i].low, b[i]);
      high += Wide(a[i].high, b[i]);
    }
    return F{Reduced(low), Reduced(high)};
  }
  static void MultiplyAddF(const F* a, F c, size_t n, F* out) {
    for (size_t i = 0; i < n; ++i) out[i] += MultiplyF(a[i], c);
  }
  static void MultiplyAddKf(const K* a, F c, size_t n, F* out) {
    for (size_t i = 0; i < n; ++i) {
      out[i].low += Multiply(a[i], c.low);
      out[i].high += Multiply(a[i], c.high);
    }
  }
  static void MultiplyEachFk(const F* a, const K* b, size_t n, F* out) {
    for (size_t i = 0; i < n; ++i) {
      out[i] = F{Multiply(a[i].low, b[i]), Multiply(a[i].high, b[i])};
    }
  }
  static void FoldF(const F* zero, const F* one, F r, size_t n, F* out) {
    for (size_t i = 0; i < n; ++i) out[i] = zero[i] + MultiplyF(zero[i] + one[i], r);
  }
  static void FoldK(const K* zero, const K* one, F r, size_t n, F* out) {
    for (size_t i = 0; i < n; ++i) {
      const K step = zero[i] + one[i];
      out[i] = F{zero[i] + Multiply(step, r.low), Multiply(step, r.high)};
    }
  }

  static constexpr FieldKernels Kernels() {
    return {Multiply, MultiplyF,    Dot,           MultiplyAdd,    Scale, MultiplyEach, DotF,
            DotFk,    MultiplyAddF, MultiplyAddKf, MultiplyEachFk, FoldF, FoldK};
  }
};

}  // namespace
}  // namespace mpckdc::proof

#endif  // MPC_SERVER_PROOF_FIELD_TEMPLATE_H_
