// SPDX-License-Identifier: Apache-2.0
// The fields' operations over a carry-less multiplication C (clmul_portable.h, clmul_pclmul.h).
#ifndef MPC_SERVER_PROOF_FIELD_TEMPLATE_H_
#define MPC_SERVER_PROOF_FIELD_TEMPLATE_H_

#include <cstddef>
#include <cstdint>

#include "mpc-server/proof/field_kernels.h"
#include "mpc-server/proof/points.h"

namespace mpckdc::proof {
namespace {

template <class C>
struct FieldTemplate {
  static MPCKDC_PROOF_INLINE K Reduced(WideK w) { return K{C::Reduce(w)}; }
  static MPCKDC_PROOF_INLINE WideK Wide(K a, K b) { return C::Multiply(a.v, b.v); }

  // A sum of products in F before reduction: of the low halves, of the high halves, and of the sums
  // of both. (a + b*y)(c + d*y) = ac + bd*y^2 + ((a + b)(c + d) + ac + bd)*y, y^2 = y + c.
  static MPCKDC_PROOF_INLINE void AddTo(WideF& w, F a, F b) {
    w.low += Wide(a.low, b.low);
    w.high += Wide(a.high, b.high);
    w.both += Wide(a.low + a.high, b.low + b.high);
  }
  static MPCKDC_PROOF_INLINE F Reduced(const WideF& w) {
    const K high_times_c = Reduced(Wide(Reduced(w.high), kTraceOne));
    return F{Reduced(w.low) + high_times_c, Reduced(w.low + w.both)};
  }

  static K Multiply(K a, K b) { return Reduced(Wide(a, b)); }
  static F MultiplyF(F a, F b) {
    WideF w;
    AddTo(w, a, b);
    return Reduced(w);
  }

  static K Dot(const K* a, const K* b, size_t n) {
    WideK sum;
    for (size_t i = 0; i < n; ++i) sum += Wide(a[i], b[i]);
    return Reduced(sum);
  }
  static void Scale(const K* a, K c, size_t n, K* out) {
    for (size_t i = 0; i < n; ++i) out[i] = Multiply(a[i], c);
  }
  static F DotF(const F* a, const F* b, size_t n) {
    WideF sum;
    for (size_t i = 0; i < n; ++i) AddTo(sum, a[i], b[i]);
    return Reduced(sum);
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
  static MPCKDC_PROOF_INLINE void AddTo(WideK& w, K a, K b) { w += Wide(a, b); }

  template <class T, class Sum>
  static void Points(const T* u, const T* v, size_t step, size_t parts, size_t variables, size_t n,
                     Sum* sums) {
    for (size_t i = 0; i < n; ++i) {
      T at_u[kMostPoints] = {}, at_v[kMostPoints] = {};
      for (size_t m = 0; m < parts; ++m) {
        at_u[PointOfNode(variables, m)] = u[m * step + i];
        at_v[PointOfNode(variables, m)] = v[m * step + i];
      }
      ForEachInfinity(variables, [&](size_t p, size_t zero, size_t one) {
        at_u[p] = at_u[zero] + at_u[one];
        at_v[p] = at_v[zero] + at_v[one];
      });
      for (size_t p = 0; p < PointCount(variables); ++p) AddTo(sums[p], at_u[p], at_v[p]);
    }
  }
  static void CombineKf(const K* a, size_t step, const F* c, size_t parts, size_t n, F* out) {
    for (size_t i = 0; i < n; ++i) {
      WideK low, high;
      for (size_t m = 0; m < parts; ++m) {
        low += Wide(a[m * step + i], c[m].low);
        high += Wide(a[m * step + i], c[m].high);
      }
      out[i] = F{Reduced(low), Reduced(high)};
    }
  }
  static void CombineF(const F* a, size_t step, const F* c, size_t parts, size_t n, F* out) {
    for (size_t i = 0; i < n; ++i) {
      WideF sum;
      for (size_t m = 0; m < parts; ++m) AddTo(sum, a[m * step + i], c[m]);
      out[i] = Reduced(sum);
    }
  }

  static constexpr FieldKernels Kernels() {
    return {Multiply,
            MultiplyF,
            Dot,
            Scale,
            DotF,
            MultiplyAddF,
            MultiplyAddKf,
            MultiplyEachFk,
            Points<K, WideK>,
            Points<F, WideF>,
            CombineKf,
            CombineF};
  }
};

}  // namespace
}  // namespace mpckdc::proof

#endif  // MPC_SERVER_PROOF_FIELD_TEMPLATE_H_
