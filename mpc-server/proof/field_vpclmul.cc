// SPDX-License-Identifier: Apache-2.0
// The fields' operations on eight elements of K, or four of F, at once. Needs VPCLMULQDQ beyond the
// tier's instructions.
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
  static void MultiplyAdd(const K* a, K c, size_t n, K* out) {
    const T factor = V::Set1(c.v);
    ForEach(
        n, kKs, [&](size_t i, size_t m) __attribute__((always_inline)) {
          const T product = V::Multiply(V::LoadFirst(a + i, m), factor);
          V::StoreFirst(out + i, V::Xor(V::LoadFirst(out + i, m), product), m);
        });
  }
  static void Scale(const K* a, K c, size_t n, K* out) {
    const T factor = V::Set1(c.v);
    ForEach(
        n, kKs, [&](size_t i, size_t m) __attribute__((always_inline)) {
          V::StoreFirst(out + i, V::Multiply(V::LoadFirst(a + i, m), factor), m);
        });
  }
  static void MultiplyEach(const K* a, const K* b, size_t n, K* out) {
    ForEach(
        n, kKs, [&](size_t i, size_t m) __attribute__((always_inline)) {
          V::StoreFirst(out + i, V::Multiply(V::LoadFirst(a + i, m), V::LoadFirst(b + i, m)), m);
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
    const T low = V::Even(a, b), high = V::Odd(a, b);
    const T both = V::Even(Both(a), Both(b));
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
    return One::WideF{V::SumOfLanes(low), V::SumOfLanes(high), V::SumOfLanes(both)}.Reduce();
  }
  // Four of K, each at both places of an F.
  static MPCKDC_PROOF_INLINE T Twice(const K* k, size_t m) {
    const T four = V::LoadFirst(k, m);
    return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3), four);
  }
  static F DotFk(const F* a, const K* b, size_t n) {
    T low = _mm512_setzero_si512(), high = low;
    ForEach(
        n, kFs, [&](size_t i, size_t m) __attribute__((always_inline)) {
          const T x = V::LoadFirst(a + i, 2 * m), y = Twice(b + i, m);
          low = V::Xor(low, V::Even(x, y));
          high = V::Xor(high, V::Odd(x, y));
        });
    return F{V::ReducedSum(low), V::ReducedSum(high)};
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
  static void FoldF(const F* zero, const F* one, F r, size_t n, F* out) {
    const T factor = Pair(r);
    ForEach(
        n, kFs, [&](size_t i, size_t m) __attribute__((always_inline)) {
          const T z = V::LoadFirst(zero + i, 2 * m);
          const T step = V::Xor(z, V::LoadFirst(one + i, 2 * m));
          V::StoreFirst(out + i, V::Xor(z, MultiplyF(step, factor)), 2 * m);
        });
  }
  static void FoldK(const K* zero, const K* one, F r, size_t n, F* out) {
    const T factor = Pair(r);
    ForEach(
        n, kFs, [&](size_t i, size_t m) __attribute__((always_inline)) {
          const T z = Twice(zero + i, m);
          const T step = V::Xor(z, Twice(one + i, m));
          const T start = _mm512_maskz_mov_epi64(0x55, z);
          V::StoreFirst(out + i, V::Xor(start, V::Multiply(step, factor)), 2 * m);
        });
  }
};

}  // namespace

constexpr FieldKernels kFieldVpclmul = {
    One::Multiply,
    One::MultiplyF,
    FieldVpclmul::Dot,
    FieldVpclmul::MultiplyAdd,
    FieldVpclmul::Scale,
    FieldVpclmul::MultiplyEach,
    FieldVpclmul::DotF,
    FieldVpclmul::DotFk,
    FieldVpclmul::MultiplyAddF,
    FieldVpclmul::MultiplyAddKf,
    FieldVpclmul::MultiplyEachFk,
    FieldVpclmul::FoldF,
    FieldVpclmul::FoldK,
};

}  // namespace mpckdc::proof
