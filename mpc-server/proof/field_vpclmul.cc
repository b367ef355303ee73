// SPDX-License-Identifier: Apache-2.0
// The fields' operations on eight elements of K, or four of F, at once. Needs VPCLMULQDQ beyond the
// tier's instructions.
#include <array>
#include <cstddef>

#include "mpc-server/proof/field_template.h"
#include "mpc-server/proof/vec512.h"

namespace mpckdc::proof {
namespace {

using V = Vec512;
using T = V::T;
using One = FieldTemplate<ClmulPclmul>;

struct FieldVpclmul {
  static constexpr size_t kKs = 8, kFs = 4;  // of a register

  // The last register of n elements, `each` words long, has fewer.
  template <class Step>
  static MPCKDC_PROOF_INLINE void ForEach(size_t n, size_t step, Step body) {
    size_t i = 0;
    for (; i + step <= n; i += step) body(i, step);
    if (i < n) body(i, n - i);
  }

  static K Dot(const K* a, const K* b, size_t n) {
    T sum = _mm512_setzero_si512();
    ForEach(
        n, kKs, [&](size_t i, size_t m) __attribute__((always_inline)) {
          sum = V::AddProducts(sum, V::LoadFirst(a + i, m), V::LoadFirst(b + i, m));
        });
    return V::ReducedSum(sum);
  }
  static void Scale(const K* a, K c, size_t n, K* out) {
    const T factor = V::Set1(c.v);
    ForEach(
        n, kKs, [&](size_t i, size_t m) __attribute__((always_inline)) {
          V::StoreFirst(out + i, V::Multiply(V::LoadFirst(a + i, m), factor), m);
        });
  }
  // Of four elements low, high in 128 bits: low + high at both places.
  static MPCKDC_PROOF_INLINE T Both(T f) {
    return V::Xor(f, _mm512_shuffle_epi32(f, _MM_PERM_BADC));
  }
  static MPCKDC_PROOF_INLINE T Pair(F f) {
    return _mm512_broadcast_i32x4(
        _mm_set_epi64x(static_cast<long long>(f.high.v), static_cast<long long>(f.low.v)));
  }
  // Products in F of four. With P = low*low, Q = high*high, R = both*both reduced:
  // low P + c*Q, high P + R.
  static MPCKDC_PROOF_INLINE T MultiplyF(T a, T b) {
    return ReduceF(V::Even(a, b), V::Odd(a, b), V::Even(Both(a), Both(b)));
  }
  static MPCKDC_PROOF_INLINE T ReduceF(T low, T high, T both) {
    const T pr = V::Reduce(low, both);  // P, R
    const T q = V::Reduce(high, high);  // Q, Q
    const T cq = V::Reduce(V::Even(q, V::Set1(kTraceOne.v)), _mm512_setzero_si512());
    // Place 0: P + cQ; place 1: R + P.
    return V::Xor3(pr, cq, _mm512_maskz_shuffle_epi32(0xCCCC, pr, _MM_PERM_BABA));
  }
  static F DotF(const F* a, const F* b, size_t n) {
    T low = _mm512_setzero_si512(), high = low, both = low;
    ForEach(
        n, kFs, [&](size_t i, size_t m) __attribute__((always_inline)) {
          const T x = V::LoadFirst(a + i, 2 * m), y = V::LoadFirst(b + i, 2 * m);
          low = V::Xor(low, V::Even(x, y));
          high = V::Xor(high, V::Odd(x, y));
          both = V::Xor(both, V::Even(Both(x), Both(y)));
        });
    return One::Reduced(WideF{V::SumOfLanes(low), V::SumOfLanes(high), V::SumOfLanes(both)});
  }
  // Four of K, each at both places of an F.
  static MPCKDC_PROOF_INLINE T Twice(const K* k, size_t m) {
    const T four = V::LoadFirst(k, m);
    return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3), four);
  }
  static void MultiplyAddF(const F* a, F c, size_t n, F* out) {
    const T factor = Pair(c);
    ForEach(
        n, kFs, [&](size_t i, size_t m) __attribute__((always_inline)) {
          const T product = MultiplyF(V::LoadFirst(a + i, 2 * m), factor);
          V::StoreFirst(out + i, V::Xor(V::LoadFirst(out + i, 2 * m), product), 2 * m);
        });
  }
  static void MultiplyAddKf(const K* a, F c, size_t n, F* out) {
    const T factor = Pair(c);
    ForEach(
        n, kFs, [&](size_t i, size_t m) __attribute__((always_inline)) {
          const T product = V::Multiply(Twice(a + i, m), factor);
          V::StoreFirst(out + i, V::Xor(V::LoadFirst(out + i, 2 * m), product), 2 * m);
        });
  }
  static void MultiplyEachFk(const F* a, const K* b, size_t n, F* out) {
    ForEach(
        n, kFs, [&](size_t i, size_t m) __attribute__((always_inline)) {
          V::StoreFirst(out + i, V::Multiply(V::LoadFirst(a + i, 2 * m), Twice(b + i, m)), 2 * m);
        });
  }
  // --- in parts ---

  // x[p] for all points, given those of the nodes.
  template <size_t kVariables>
  static MPCKDC_PROOF_INLINE void Extend(T* x) {
    for (size_t place = 1; place < PointCount(kVariables); place *= 3) {
      for (size_t higher = 0; higher < PointCount(kVariables); higher += 3 * place) {
        for (size_t lower = 0; lower < place; ++lower) {
          T* at = x + higher + lower;
          at[2 * place] = V::Xor(at[0], at[place]);
        }
      }
    }
  }
  // Elements of `words` words, m of a register in each part.
  template <size_t kVariables>
  static MPCKDC_PROOF_INLINE void LoadNodes(const uint64_t* from, size_t step, size_t parts,
                                            size_t m, T* x) {
    for (size_t node = 0; node < size_t{1} << kVariables; ++node) {
      x[PointOfNode(kVariables, node)] =
          node < parts ? V::LoadFirst(from + node * step, m) : _mm512_setzero_si512();
    }
    Extend<kVariables>(x);
  }

  template <size_t kVariables>
  static void PointsOfK(const K* u, const K* v, size_t step, size_t parts, size_t n, WideK* sums) {
    constexpr size_t kAll = PointCount(kVariables);
    T at_u[kAll], at_v[kAll], sum[kAll];
    for (T& s : sum) s = _mm512_setzero_si512();
    for (size_t i = 0; i < n; i += kKs) {
      const size_t m = n - i < kKs ? n - i : kKs;
      LoadNodes<kVariables>(&u[i].v, step, parts, m, at_u);
      LoadNodes<kVariables>(&v[i].v, step, parts, m, at_v);
      for (size_t p = 0; p < kAll; ++p) sum[p] = V::AddProducts(sum[p], at_u[p], at_v[p]);
    }
    for (size_t p = 0; p < kAll; ++p) sums[p] += V::SumOfLanes(sum[p]);
  }
  static void PointsK(const K* u, const K* v, size_t step, size_t parts, size_t variables, size_t n,
                      WideK* sums) {
    constexpr auto kFor = std::array{PointsOfK<0>, PointsOfK<1>, PointsOfK<2>, PointsOfK<3>};
    kFor[variables](u, v, step, parts, n, sums);
  }

  template <size_t kVariables>
  static void PointsOfF(const F* u, const F* v, size_t step, size_t parts, size_t n, WideF* sums) {
    constexpr size_t kAll = PointCount(kVariables);
    T at_u[kAll], at_v[kAll], low[kAll], high[kAll], both[kAll];
    for (size_t p = 0; p < kAll; ++p) low[p] = high[p] = both[p] = _mm512_setzero_si512();
    for (size_t i = 0; i < n; i += kFs) {
      const size_t m = n - i < kFs ? n - i : kFs;
      LoadNodes<kVariables>(&u[i].low.v, 2 * step, parts, 2 * m, at_u);
      LoadNodes<kVariables>(&v[i].low.v, 2 * step, parts, 2 * m, at_v);
      for (size_t p = 0; p < kAll; ++p) {
        low[p] = V::Xor(low[p], V::Even(at_u[p], at_v[p]));
        high[p] = V::Xor(high[p], V::Odd(at_u[p], at_v[p]));
        both[p] = V::Xor(both[p], V::Even(Both(at_u[p]), Both(at_v[p])));
      }
    }
    for (size_t p = 0; p < kAll; ++p) {
      sums[p].low += V::SumOfLanes(low[p]);
      sums[p].high += V::SumOfLanes(high[p]);
      sums[p].both += V::SumOfLanes(both[p]);
    }
  }
  static void PointsF(const F* u, const F* v, size_t step, size_t parts, size_t variables, size_t n,
                      WideF* sums) {
    constexpr auto kFor = std::array{PointsOfF<0>, PointsOfF<1>, PointsOfF<2>, PointsOfF<3>};
    kFor[variables](u, v, step, parts, n, sums);
  }

  // Eight of K by an element of F: their halves, eight of each, become elements in order.
  static void CombineKf(const K* a, size_t step, const F* c, size_t parts, size_t n, F* out) {
    const T first = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
    const T second = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
    ForEach(
        n, kKs, [&](size_t i, size_t m) __attribute__((always_inline)) {
          T low_even = _mm512_setzero_si512();
          T low_odd = low_even, high_even = low_even, high_odd = low_even;
          for (size_t part = 0; part < parts; ++part) {
            const T x = V::LoadFirst(a + part * step + i, m);
            const T low = V::Set1(c[part].low.v), high = V::Set1(c[part].high.v);
            low_even = V::Xor(low_even, V::Even(x, low));
            low_odd = V::Xor(low_odd, V::Odd(x, low));
            high_even = V::Xor(high_even, V::Even(x, high));
            high_odd = V::Xor(high_odd, V::Odd(x, high));
          }
          const T lows = V::Reduce(low_even, low_odd), highs = V::Reduce(high_even, high_odd);
          V::StoreFirst(out + i, _mm512_permutex2var_epi64(lows, first, highs), 2 * m);
          if (m > kFs) {
            V::StoreFirst(out + i + kFs, _mm512_permutex2var_epi64(lows, second, highs),
                          2 * (m - kFs));
          }
        });
  }
  static void CombineF(const F* a, size_t step, const F* c, size_t parts, size_t n, F* out) {
    ForEach(
        n, kFs, [&](size_t i, size_t m) __attribute__((always_inline)) {
          T low = _mm512_setzero_si512(), high = low, both = low;
          for (size_t part = 0; part < parts; ++part) {
            const T x = V::LoadFirst(a + part * step + i, 2 * m), factor = Pair(c[part]);
            low = V::Xor(low, V::Even(x, factor));
            high = V::Xor(high, V::Odd(x, factor));
            both = V::Xor(both, V::Even(Both(x), Both(factor)));
          }
          V::StoreFirst(out + i, ReduceF(low, high, both), 2 * m);
        });
  }
};

}  // namespace

constexpr FieldKernels kFieldVpclmul = {
    One::Multiply,
    One::MultiplyF,
    FieldVpclmul::Dot,
    FieldVpclmul::Scale,
    FieldVpclmul::DotF,
    FieldVpclmul::MultiplyAddF,
    FieldVpclmul::MultiplyAddKf,
    FieldVpclmul::MultiplyEachFk,
    FieldVpclmul::PointsK,
    FieldVpclmul::PointsF,
    FieldVpclmul::CombineKf,
    FieldVpclmul::CombineF,
};

}  // namespace mpckdc::proof
