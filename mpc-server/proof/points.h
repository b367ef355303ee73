// SPDX-License-Identifier: Apache-2.0
// Polynomials of degree at most two in each of d variables, by their values at the 3^d points of
// {0, 1, inf}^d, where the value at inf is the coefficient of t^2:
//
//     g(t) = g(0) (1 + t)  +  g(1) t  +  g(inf) (t^2 + t)
//
// A product of two multilinear functions is one, and a multilinear function's value at inf is the
// sum of those at 0 and 1: points need additions only.
//
// Numbering: point p has digits p = sum_i p_i 3^i, p_i = 0, 1, 2 for 0, 1, inf; node s of {0,1}^d
// has bits s = sum_i s_i 2^i.
#ifndef MPC_SERVER_PROOF_POINTS_H_
#define MPC_SERVER_PROOF_POINTS_H_

#include <array>
#include <cstddef>

#include "absl/types/span.h"
#include "mpc-server/proof/field128.h"
#include "mpc-server/proof/field64.h"

namespace mpckdc::proof {

MPCKDC_PROOF_INLINE constexpr size_t PointCount(size_t variables) {
  size_t n = 1;
  for (size_t i = 0; i < variables; ++i) n *= 3;
  return n;
}

// May be used in the files of every instruction set, as all up to ForEachInfinity.
// The point that node s is.
MPCKDC_PROOF_INLINE constexpr size_t PointOfNode(size_t variables, size_t node) {
  size_t point = 0, place = 1;
  for (size_t i = 0; i < variables; ++i, place *= 3) point += (node >> i & 1) * place;
  return point;
}

// Whether the point is a node: no digit is inf.
MPCKDC_PROOF_INLINE constexpr bool IsNode(size_t variables, size_t point) {
  for (size_t i = 0; i < variables; ++i, point /= 3) {
    if (point % 3 == 2) return false;
  }
  return true;
}

// Calls make(point, zero, one) for each point with an inf, whose value is the sum of those of
// `zero` and `one`, which are nodes or were made before.
template <class Make>
MPCKDC_PROOF_INLINE void ForEachInfinity(size_t variables, Make make) {
  const size_t all = PointCount(variables);
  for (size_t i = 0, place = 1; i < variables; ++i, place *= 3) {
    for (size_t p = 2 * place; p < all; ++p) {
      // Later digits that are inf are made later, from these.
      if (p / place % 3 != 2 || !IsNode(variables - i - 1, p / place / 3)) continue;
      make(p, p - 2 * place, p - place);
    }
  }
}

template <class T>
inline constexpr T kUnit{};
template <>
inline constexpr K kUnit<K> = kOne;
template <>
inline constexpr F kUnit<F> = {kOne, K{}};

// eq(r, s) of each node s: the coefficients of the multilinear extension at r.
template <class T>
void NodeCoefficients(absl::Span<const T> r, T* out) {
  out[0] = kUnit<T>;
  for (size_t i = 0; i < r.size(); ++i) {
    const size_t n = size_t{1} << i;
    for (size_t s = 0; s < n; ++s) {
      out[n + s] = out[s] * r[i];
      out[s] = out[s] + out[n + s];
    }
  }
}

// The coefficients with which the points' values give the polynomial's value at r.
template <class T>
void PointCoefficients(absl::Span<const T> r, T* out) {
  out[0] = kUnit<T>;
  for (size_t i = 0, n = 1; i < r.size(); ++i, n *= 3) {
    const T square = r[i] * r[i] + r[i];
    for (size_t p = 0; p < n; ++p) {
      out[2 * n + p] = out[p] * square;
      out[n + p] = out[p] * r[i];
      out[p] = out[p] + out[n + p];
    }
  }
}

}  // namespace mpckdc::proof

#endif  // MPC_SERVER_PROOF_POINTS_H_
