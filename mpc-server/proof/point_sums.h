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

  static MPCKDC_PROOF_INLINE typename V::Sum Weighted(const T* out, const K* weights) {
    typename V::Sum sum = V::ZeroSum();
#pragma GCC unroll 32
    for (size_t j = 0; j < G::kOutputs; ++j) {
      sum = V::AddProducts(sum, out[j], LoadWeight(weights + j * kWords));
    }
    return sum;
  }

  // One function, not 243 copies.
  __attribute__((noinline)) void Point(const T* wires) {
    T out[G::kOutputs];
    G::Eval(wires, out);
    V::AddTo(Weighted(out, weights), *next++);
  }

  // All points over 2^kVariables nodes; the last variable's digit is the slowest. `spare` is for
  // the nodes at inf, one less than there are nodes.
  template <int kVariables>
  __attribute__((noinline)) void Points(const T* nodes, T* spare) {
    if constexpr (kVariables == 0) {
      Point(nodes);
    } else {
      constexpr size_t kHalf = (size_t{1} << (kVariables - 1)) * kW;
      Points<kVariables - 1>(nodes, spare);
      Points<kVariables - 1>(nodes + kHalf, spare);
      for (size_t i = 0; i < kHalf; ++i) spare[i] = V::Xor(nodes[i], nodes[kHalf + i]);
      Points<kVariables - 1>(spare, spare + kHalf);
    }
  }

  // Nodes first to first + 15, into `out`; with `add` to what is there.
  static void LoadHalf(const WireRows& rows, size_t first, size_t element, bool add, T* out) {
    for (size_t s = 0; s < kNodes / 2; ++s) {
      T* node = out + s * kW;
      const bool there = first + s < rows.nodes;
      for (size_t k = 0; k < kW; ++k) {
        T v = V::Zero();
        if (there) {
          const size_t at = ((first + s) * kW + k) * kRow + 8 * element;
          v = V::Load(rows.a + at);
          if (rows.b != nullptr) v = V::Xor(v, V::Load(rows.b + at));
        }
        node[k] = add ? V::Xor(node[k], v) : v;
      }
    }
  }

  static void All(const WireRows& rows, const K* weights, uint8_t* scratch, SumParts* sums) {
    T* nodes = reinterpret_cast<T*>(scratch);
    T* spare = nodes + kNodes / 2 * kW;
    static_assert((kNodes - 1) * kW * sizeof(T) <= kScratchBytes);
    for (size_t e = 0; e < rows.words; e += kElements) {
      PointSums run{weights + e, sums};
      for (size_t digit = 0; digit < 3; ++digit) {
        LoadHalf(rows, digit == 1 ? kNodes / 2 : 0, e, false, nodes);
        if (digit == 2) LoadHalf(rows, kNodes / 2, e, true, nodes);
        run.template Points<4>(nodes, spare);
      }
    }
  }

  static void OfT(const uint8_t* t, const WireRows& rows, bool add_q, const K* weights,
                  SumParts* sums) {
    for (size_t e = 0; e < rows.words; e += kElements) {
      for (size_t s = 0; s < rows.nodes; ++s) {
        T out[G::kOutputs];
        for (T& o : out) o = V::Zero();
        if (add_q) {
          T wires[kW];
          for (size_t k = 0; k < kW; ++k) {
            wires[k] = V::Load(rows.a + (s * kW + k) * kRow + 8 * e);
          }
          G::Eval(wires, out);
        }
        for (size_t j = 0; j < G::kOutputs; ++j) {
          out[j] = V::Xor(out[j], V::Load(t + (s * G::kOutputs + j) * kRow + 8 * e));
        }
        V::AddTo(Weighted(out, weights + e), sums[s]);
      }
    }
  }
};

template <class V>
struct PointSumKernels {
  static void SumsAtPoints(Gadget gadget, const WireRows& rows, const K* weights, uint8_t* scratch,
                           SumParts* sums) {
    VisitGadget<V>(gadget, [&]<class G>() { PointSums<V, G>::All(rows, weights, scratch, sums); });
  }
  static void SumsOfT(Gadget gadget, const uint8_t* t, const WireRows& rows, bool add_q,
                      const K* weights, SumParts* sums) {
    VisitGadget<V>(gadget, [&]<class G>() { PointSums<V, G>::OfT(t, rows, add_q, weights, sums); });
  }
};

}  // namespace
}  // namespace mpckdc::proof

#endif  // MPC_SERVER_PROOF_POINT_SUMS_H_
