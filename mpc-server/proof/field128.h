// SPDX-License-Identifier: Apache-2.0
// F = K[y] / (y^2 + y + c), 2^128 elements, c = x^61. The polynomial is irreducible because c has
// trace 1. An element low + high*y is 16 bytes; K lies in F as the elements with high = 0.
//
// Nothing here branches on an element or indexes by one.
#ifndef MPC_SERVER_PROOF_FIELD128_H_
#define MPC_SERVER_PROOF_FIELD128_H_

#include <cstddef>
#include <cstdint>

#include "mpc-server/proof/field64.h"

namespace mpckdc::proof {

struct F {
  K low, high;

  friend MPCKDC_PROOF_INLINE F operator+(F a, F b) { return F{a.low + b.low, a.high + b.high}; }
  friend MPCKDC_PROOF_INLINE F& operator+=(F& a, F b) {
    a.low += b.low;
    a.high += b.high;
    return a;
  }
  friend MPCKDC_PROOF_INLINE bool operator==(F a, F b) {
    return a.low == b.low && a.high == b.high;
  }
};

inline constexpr K kTraceOne{uint64_t{1} << 61};  // c

F operator*(F a, F b);
F operator*(F a, K b);
F Inverse(F a);  // of zero: zero

// The sum of a[i] * b[i].
F Dot(const F* a, const F* b, size_t n);
// out[i] += a[i] * c.
void MultiplyAdd(const F* a, F c, size_t n, F* out);
void MultiplyAdd(const K* a, F c, size_t n, F* out);
// out[i] = a[i] * b[i]. `out` may be `a`.
void MultiplyEach(const F* a, const K* b, size_t n, F* out);
// Of vectors in parts: part m begins at m * step.
// sums[p] += sum over the columns i < n of u * v at point p, all points of `variables`, at most 3;
// the parts are their nodes, missing ones zero (points.h).
inline constexpr size_t kMostPoints = 27;
void AddPoints(const K* u, const K* v, size_t step, size_t parts, size_t variables, size_t n,
               K* sums);
void AddPoints(const F* u, const F* v, size_t step, size_t parts, size_t variables, size_t n,
               F* sums);
// out[i] = sum over the parts of a[m * step + i] * c[m].
void Combine(const K* a, size_t step, const F* c, size_t parts, size_t n, F* out);
void Combine(const F* a, size_t step, const F* c, size_t parts, size_t n, F* out);

}  // namespace mpckdc::proof

#endif  // MPC_SERVER_PROOF_FIELD128_H_
