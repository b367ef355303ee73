// SPDX-License-Identifier: Apache-2.0
// Level1Kernels' fold and functional by bit planes, over a word type V (point_sums.h) that also has
// ShiftLeft, ShiftRight and Set1. A linear form of a column's bits,
//
//   sum over wires k, nodes s of coefficient[k][s] * bit,      coefficients in K
//
// is 64 planes: plane i of 64 columns is the XOR of the rows (k, s) whose coefficient has bit i.
// Four rows at a time all 16 XORs of them are made, and a plane takes the one that its four
// coefficient bits name: those are public. The planes' transposes are the forms' values.
#ifndef MPC_SERVER_PROOF_FORM_PLANES_H_
#define MPC_SERVER_PROOF_FORM_PLANES_H_

#include <cstddef>
#include <cstdint>

#include "mpc-server/proof/level1_kernels.h"

namespace mpckdc::proof {
namespace {

// A wire in a form with coefficient not zero. mask[i]: the nodes whose coefficient has bit i.
struct FormUse {
  uint32_t form;
  uint32_t mask[64];
};
// Wire k's uses are uses[begin[k]] to uses[begin[k + 1]].
struct FormPlan {
  uint32_t forms;
  uint32_t begin[kMaxGadgetWires + 1];
  FormUse uses[1];  // as many as there are
};
inline constexpr size_t kMaxForms = 2 * kMaxProducts;
static_assert(sizeof(FormPlan) + kMaxForms * kMaxGadgetWires * sizeof(FormUse) <= kPlanBytes);

// Adds to a plan whose begin[wire + 1] is the end so far.
template <class C>
void AddUse(size_t form, size_t wire, K coefficient, const K* node, FormPlan& plan) {
  if (coefficient == K{}) return;
  FormUse& use = plan.uses[plan.begin[wire + 1]++];
  use.form = static_cast<uint32_t>(form);
  for (uint32_t& m : use.mask) m = 0;
  for (size_t s = 0; s < kNodes; ++s) {
    const uint64_t bits = C::Reduce(C::Multiply(coefficient.v, node[s].v));
    for (size_t i = 0; i < 64; ++i) use.mask[i] |= static_cast<uint32_t>(bits >> i & 1) << s;
  }
}

template <class V>
struct FormPlanes {
  using T = typename V::T;
  static constexpr size_t kElements = V::kBytes / 8;
  static constexpr size_t kGroups = kNodes / 4;

  static void MakeTables(const WireRows& rows, size_t wire, size_t element, T (*tables)[16]) {
    for (size_t g = 0; g < kGroups; ++g) {
      T* table = tables[g];
      table[0] = V::Zero();
      for (size_t s = 0; s < 4; ++s) {
        T row = V::Zero();
        if (4 * g + s < rows.nodes) {
          const size_t at = ((4 * g + s) * rows.wires + wire) * 64 + 8 * element;
          row = V::Load(rows.a + at);
          if (rows.b != nullptr) row = V::Xor(row, V::Load(rows.b + at));
        }
        for (size_t i = 0; i < size_t{1} << s; ++i)
          table[(size_t{1} << s) + i] = V::Xor(table[i], row);
      }
    }
  }

  static void AddPlanes(const FormUse& use, const T (*tables)[16], T* planes) {
    for (size_t i = 0; i < 64; ++i) {
      const uint32_t m = use.mask[i];
      T sum = planes[i];
      for (size_t g = 0; g < kGroups; ++g) sum = V::Xor(sum, tables[g][m >> 4 * g & 15]);
      planes[i] = sum;
    }
  }

  // Element e of v[i] is row i of a matrix of 64 by 64 bits for each e.
  template <int kShift>
  static void TransposeStep(uint64_t low, T* v) {
    const T mask = V::Set1(low);
    for (size_t i = 0; i < 64; ++i) {
      if (i & kShift) continue;
      T &a = v[i], &b = v[i + kShift];
      const T swap = V::And(V::Xor(V::template ShiftRight<kShift>(a), b), mask);
      b = V::Xor(b, swap);
      a = V::Xor(a, V::template ShiftLeft<kShift>(swap));
    }
  }
  static void Transpose(T* v) {
    TransposeStep<32>(0x00000000FFFFFFFF, v);
    TransposeStep<16>(0x0000FFFF0000FFFF, v);
    TransposeStep<8>(0x00FF00FF00FF00FF, v);
    TransposeStep<4>(0x0F0F0F0F0F0F0F0F, v);
    TransposeStep<2>(0x3333333333333333, v);
    TransposeStep<1>(0x5555555555555555, v);
  }

  struct Scratch {
    T tables[kGroups][16];
    T planes[kMaxForms][64];
  };
  static_assert(sizeof(Scratch) <= kScratchBytes);

  // Of kElements words from `element` on: element e of planes[form][b] is the value in column b of
  // word element + e.
  static void Values(const FormPlan& plan, const WireRows& rows, size_t element, Scratch& scratch) {
    for (size_t f = 0; f < plan.forms; ++f) {
      for (T& plane : scratch.planes[f]) plane = V::Zero();
    }
    for (size_t k = 0; k < rows.wires; ++k) {
      MakeTables(rows, k, element, scratch.tables);
      for (size_t i = plan.begin[k]; i < plan.begin[k + 1]; ++i) {
        const FormUse& use = plan.uses[i];
        AddPlanes(use, scratch.tables, scratch.planes[use.form]);
      }
    }
    for (size_t f = 0; f < plan.forms; ++f) Transpose(scratch.planes[f]);
  }
  static uint64_t ValueOf(const T& v, size_t e) {
    uint64_t value;
    __builtin_memcpy(&value, reinterpret_cast<const uint8_t*>(&v) + 8 * e, 8);
    return value;
  }
};

// C: the carry-less multiplication of single elements.
template <class V, class C>
struct FormPlaneKernels {
  using Planes = FormPlanes<V>;
  using Scratch = typename Planes::Scratch;

  static void PlanFold(const ProductForms& forms, const K* eq, uint8_t* memory) {
    auto& plan = *reinterpret_cast<FormPlan*>(memory);
    plan.forms = static_cast<uint32_t>(2 * forms.products);
    plan.begin[0] = 0;
    for (size_t k = 0; k < forms.wires; ++k) {
      plan.begin[k + 1] = plan.begin[k];
      for (size_t m = 0; m < forms.products; ++m) {
        AddUse<C>(2 * m, k, forms.u[m][k], eq, plan);
        AddUse<C>(2 * m + 1, k, forms.v[m][k], eq, plan);
      }
    }
  }

  static void Fold(const uint8_t* memory, const ProductForms& forms, const WireRows& rows,
                   const FoldWeights& weights, uint8_t* scratch_memory, const FoldedSection& out) {
    const auto& plan = *reinterpret_cast<const FormPlan*>(memory);
    auto& scratch = *reinterpret_cast<Scratch*>(scratch_memory);
    for (size_t at = 0; at < rows.words; at += Planes::kElements) {
      Planes::Values(plan, rows, at, scratch);
      for (size_t m = 0; m < forms.products; ++m) {
        for (size_t e = 0; e < Planes::kElements; ++e) {
          for (size_t b = 0; b < 64; ++b) {
            const size_t column = 64 * (at + e) + b;
            const K weight = weights.column[column];
            const uint64_t u = Planes::ValueOf(scratch.planes[2 * m][b], e);
            uint64_t v = Planes::ValueOf(scratch.planes[2 * m + 1][b], e);
            if (weights.both) v = C::Reduce(C::Multiply(v, weight.v));
            out.u[m * out.product_step + column].v = C::Reduce(C::Multiply(u, weight.v));
            out.v[m * out.product_step + column].v = v;
          }
        }
      }
    }
    // Words that nobody looked at.
    const size_t done =
        (rows.words + Planes::kElements - 1) / Planes::kElements * Planes::kElements;
    for (size_t m = 0; m < forms.products; ++m) {
      for (size_t l = 64 * done; l < kColumns; ++l) {
        out.u[m * out.product_step + l] = out.v[m * out.product_step + l] = K{};
      }
    }
  }

  // Four forms: the halves of u, then of v.
  static void PlanFunctional(Gadget gadget, const K* node, const F* wire_u, const F* wire_v,
                             uint8_t* memory) {
    auto& plan = *reinterpret_cast<FormPlan*>(memory);
    plan.forms = 4;
    plan.begin[0] = 0;
    for (size_t k = 0; k < GadgetWires(gadget); ++k) {
      plan.begin[k + 1] = plan.begin[k];
      AddUse<C>(0, k, wire_u[k].low, node, plan);
      AddUse<C>(1, k, wire_u[k].high, node, plan);
      AddUse<C>(2, k, wire_v[k].low, node, plan);
      AddUse<C>(3, k, wire_v[k].high, node, plan);
    }
  }

  // The sum of (low + high*y) * (c_low + c_high*y), unreduced.
  struct SumF {
    WideK low, high, both;
    void Add(uint64_t l, uint64_t h, K c_low, K c_high) {
      low += C::Multiply(l, c_low.v);
      high += C::Multiply(h, c_high.v);
      both += C::Multiply(l ^ h, c_low.v ^ c_high.v);
    }
    F Reduced() const {
      const uint64_t l = C::Reduce(low), h = C::Reduce(high);
      return F{K{l ^ C::Reduce(C::Multiply(h, kTraceOne.v))}, K{C::Reduce(both) ^ l}};
    }
  };

  static void Functional(const uint8_t* memory, const WireRows& rows,
                         const FunctionalColumns& columns, uint8_t* scratch_memory, F* u, F* v) {
    const auto& plan = *reinterpret_cast<const FormPlan*>(memory);
    auto& scratch = *reinterpret_cast<Scratch*>(scratch_memory);
    SumF sum_u, sum_v;
    for (size_t at = 0; at < rows.words; at += Planes::kElements) {
      Planes::Values(plan, rows, at, scratch);
      for (size_t e = 0; e < Planes::kElements; ++e) {
        for (size_t b = 0; b < 64; ++b) {
          const auto value = [&](size_t f) { return Planes::ValueOf(scratch.planes[f][b], e); };
          const size_t l = 64 * (at + e) + b;
          sum_u.Add(value(0), value(1), columns.u[0][l], columns.u[1][l]);
          sum_v.Add(value(2), value(3), columns.v[0][l], columns.v[1][l]);
        }
      }
    }
    *u += sum_u.Reduced();
    *v += sum_v.Reduced();
  }
};

}  // namespace
}  // namespace mpckdc::proof

#endif  // MPC_SERVER_PROOF_FORM_PLANES_H_
