// SPDX-License-Identifier: Apache-2.0
// Level1Kernels::sums_at_points and sums_of_t over a word type V, which is one of gadget.h's that
// also multiplies rows by weights:
//
//   Sum                     of products, unreduced
//   AddProducts(s, row, w)  s + the sum over the word's elements of row * w
//   AddTo(s, parts)         adds a Sum to a SumParts
#ifndef MPC_SERVER_PROOF_POINT_SUMS_H_
#define MPC_SERVER_PROOF_POINT_SUMS_H_

#include <cstddef>
#include <cstdint>

#include "mpc-server/proof/level1_kernels.h"

namespace mpckdc::proof {
namespace {

template <class V, class G>
struct PointSums {
  using T = typename V::T;
  static constexpr size_t kRow = 64;
  static constexpr size_t kElements = V::kBytes / 8;
  static constexpr size_t kW = G::kWires;

  const K* weights;  // of the words at hand
  SumParts* next;    // of the next point

  static T LoadWeight(const K* w) { return V::Load(reinterpret_cast<const uint8_t*>(w)); }

  // The weighted sum of the outputs, of output j add(j, Q_j).
  template <class Add>
  static MPCKDC_PROOF_INLINE typename V::Sum Weighted(const T* wires, const K* weights, Add add) {
    typename V::Sum sum = V::ZeroSum();
    G::EvalEach(
        wires, [&](size_t j, T q) __attribute__((always_inline)) {
          sum = V::AddProducts(sum, add(j, q), LoadWeight(weights + j * kWords));
        });
    return sum;
  }
  // At the sum of some nodes.
  template <class... Node>
  MPCKDC_PROOF_INLINE void Point(const Node*... nodes) {
    T wires[kW];
#pragma GCC unroll 32
    for (size_t k = 0; k < kW; ++k) wires[k] = Sum(nodes[k]...);
    const auto none = [](size_t, T q) __attribute__((always_inline)) { return q; };
    V::AddTo(Weighted(wires, weights, none), *next++);
  }
  static MPCKDC_PROOF_INLINE T Sum(T a) { return a; }
  static MPCKDC_PROOF_INLINE T Sum(T a, T b) { return V::Xor(a, b); }
  static MPCKDC_PROOF_INLINE T Sum(T a, T b, T c, T d) { return V::Xor(V::Xor3(a, b, c), d); }

  // All points over 2^kVariables nodes; the last variable's digit is the slowest. `spare` is for
  // nodes at inf, of all variables but the first two. `corners`: also the points that are nodes.
  template <int kVariables>
  __attribute__((noinline)) void Points(const T* nodes, T* spare, bool corners) {
    if constexpr (kVariables == 2) {
      const T *n0 = nodes, *n1 = n0 + kW, *n2 = n1 + kW, *n3 = n2 + kW;
      corners ? Two(n0, n1) : Skip();
      Point(n0, n1);
      corners ? Two(n2, n3) : Skip();
      Point(n2, n3);
      Point(n0, n2);
      Point(n1, n3);
      Point(n0, n1, n2, n3);
    } else {
      constexpr size_t kHalf = (size_t{1} << (kVariables - 1)) * kW;
      Points<kVariables - 1>(nodes, spare, corners);
      Points<kVariables - 1>(nodes + kHalf, spare, corners);
      for (size_t i = 0; i < kHalf; ++i) spare[i] = V::Xor(nodes[i], nodes[kHalf + i]);
      Points<kVariables - 1>(spare, spare + kHalf, true);
    }
  }
  MPCKDC_PROOF_INLINE void Two(const T* a, const T* b) {
    Point(a);
    Point(b);
  }
  MPCKDC_PROOF_INLINE void Skip() { next += 2; }

  static constexpr size_t kHalfNodes = kNodes / 2 * kW;

  static MPCKDC_PROOF_INLINE T Row(const WireRows& rows, size_t i, size_t element) {
    if (i >= rows.nodes * kW) return V::Zero();
    const size_t at = i * kRow + 8 * element;
    AskFor(rows.a + at, rows.ahead);
    const T v = V::Load(rows.a + at);
    if (rows.b == nullptr) return v;
    AskFor(rows.b + at, rows.ahead);
    return V::Xor(v, V::Load(rows.b + at));
  }

  static void All(const WireRows& rows, const K* weights, bool corners, uint8_t* scratch,
                  SumParts* sums) {
    T* low = reinterpret_cast<T*>(scratch);  // nodes 0 to 15
    T* high = low + kHalfNodes;
    T* spare = high + kHalfNodes;
    static_assert((kNodes + 12) * kW * sizeof(T) <= kScratchBytes);
    for (size_t e = 0; e < rows.words; e += kElements) {
      PointSums run{weights + e, sums};
      for (size_t i = 0; i < kHalfNodes; ++i) low[i] = Row(rows, i, e);
      run.template Points<4>(low, spare, corners);
      for (size_t i = 0; i < kHalfNodes; ++i) {
        high[i] = Row(rows, kHalfNodes + i, e);
        low[i] = V::Xor(low[i], high[i]);
      }
      run.template Points<4>(high, spare, corners);
      run.template Points<4>(low, spare, true);
    }
  }

  static void OfT(const uint8_t* t, const WireRows& rows, bool add_q, const K* weights,
                  SumParts* sums) {
    for (size_t e = 0; e < rows.words; e += kElements) {
      for (size_t s = 0; s < rows.nodes; ++s) {
        const auto row = [&](size_t j) __attribute__((always_inline)) {
          const uint8_t* at = t + (s * G::kOutputs + j) * kRow + 8 * e;
          AskFor(at, rows.ahead);
          return V::Load(at);
        };
        typename V::Sum sum = V::ZeroSum();
        if (add_q) {
          T wires[kW];
          for (size_t k = 0; k < kW; ++k) {
            wires[k] = V::Load(rows.a + (s * kW + k) * kRow + 8 * e);
          }
          sum = Weighted(
              wires, weights + e, [&](size_t j, T q) __attribute__((always_inline)) {
                return V::Xor(q, row(j));
              });
        } else {
          for (size_t j = 0; j < G::kOutputs; ++j) {
            sum = V::AddProducts(sum, row(j), LoadWeight(weights + j * kWords + e));
          }
        }
        V::AddTo(sum, sums[s]);
      }
    }
  }
};

template <class V>
struct PointSumKernels {
  static void SumsAtPoints(Gadget gadget, const WireRows& rows, const K* weights, bool corners,
                           uint8_t* scratch, SumParts* sums) {
    VisitGadget<V>(gadget,
                   [&]<class G>() { PointSums<V, G>::All(rows, weights, corners, scratch, sums); });
  }
  static void SumsOfT(Gadget gadget, const uint8_t* t, const WireRows& rows, bool add_q,
                      const K* weights, SumParts* sums) {
    VisitGadget<V>(gadget, [&]<class G>() { PointSums<V, G>::OfT(t, rows, add_q, weights, sums); });
  }
};

}  // namespace
}  // namespace mpckdc::proof

#endif  // MPC_SERVER_PROOF_POINT_SUMS_H_
