// SPDX-License-Identifier: Apache-2.0
// Level1Kernels' fold and functional by GF2P8AFFINEQB. Include only from files compiled with
// AVX-512 flags, -mavx512vbmi, -mgfni and -mvpclmulqdq.
//
// Eight columns at once, those of byte B of the rows. First the rows are turned round:
//
//   bits[wire][group of 8 nodes][B]   8 bytes: one for each column, bit 7 - n of node n of the
//   group
//
// A linear form of a column's bits with coefficients in K sends a byte to 8 bytes: the instruction
// with eight matrices, one in each 64 bits, does so for eight columns, all of them in each 64 bits.
// The results of all groups and wires are added, then byte o of column c goes from 8 * o + c to
// 8 * c + o.
#ifndef MPC_SERVER_PROOF_FORM_GFNI_H_
#define MPC_SERVER_PROOF_FORM_GFNI_H_

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "mpc-server/proof/field_template.h"
#include "mpc-server/proof/level1_kernels.h"
#include "mpc-server/proof/vec512.h"

namespace mpckdc::proof {
namespace {

// Byte 8 * i + k takes byte 8 * k + i.
struct TurnIndices {
  alignas(64) uint8_t byte[64];
};
constexpr TurnIndices MakeTurnIndices() {
  TurnIndices x{};
  for (int i = 0; i < 64; ++i) x.byte[i] = static_cast<uint8_t>(8 * (i % 8) + i / 8);
  return x;
}
constexpr TurnIndices kTurn = MakeTurnIndices();

struct FormGfni {
  using V = Vec512;
  using T = V::T;
  static constexpr size_t kGroups = kNodes / 8;
  static constexpr size_t kBytes = kColumns / 8;  // of a row

  static MPCKDC_PROOF_INLINE T TurnBytes(T v) {
    return _mm512_permutexvar_epi8(V::Load(kTurn.byte), v);
  }

  // Of eight nodes' coefficients for a bit, the matrices of the form's eight bytes.
  static MPCKDC_PROOF_INLINE T Matrices(T coefficients) {
    return _mm512_gf2p8affine_epi64_epi8(V::Set1(0x0102040810204080), TurnBytes(coefficients), 0);
  }

  // Where bits[..][B] is: the order in which Turn makes them.
  static constexpr size_t Place(size_t byte) {
    return byte % 16 / 2 * 8 + byte / 16 * 2 + byte % 2;
  }

  static MPCKDC_PROOF_INLINE T LoadRow(const WireRows& rows, size_t node, size_t wire) {
    if (node >= rows.nodes) return _mm512_setzero_si512();
    const size_t at = (node * rows.wires + wire) * 64;
    AskFor(rows.a + at, rows.ahead);
    const T v = V::Load(rows.a + at);
    if (rows.b == nullptr) return v;
    AskFor(rows.b + at, rows.ahead);
    return V::Xor(v, V::Load(rows.b + at));
  }

  // A wire's rows of eight nodes from `node` on, to kBytes words at Place(B).
  static MPCKDC_PROOF_INLINE void Turn(const WireRows& rows, size_t node, size_t wire,
                                       uint64_t* bits) {
    T r[8], p[8], q[8];
#pragma GCC unroll 8
    for (size_t i = 0; i < 8; ++i) r[i] = LoadRow(rows, node + i, wire);
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) {
      p[i] = _mm512_unpacklo_epi8(r[2 * i], r[2 * i + 1]);
      p[4 + i] = _mm512_unpackhi_epi8(r[2 * i], r[2 * i + 1]);
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) {  // i = 2 * (upper 8 bytes) + (upper nodes)
      const size_t from = i / 2 * 4 + i % 2 * 2;
      q[i] = _mm512_unpacklo_epi16(p[from], p[from + 1]);
      q[4 + i] = _mm512_unpackhi_epi16(p[from], p[from + 1]);
    }
    const T unit = V::Set1(0x8040201008040201);
    const auto put = [&](size_t place, T v) __attribute__((always_inline)) {
      V::Store(bits + 8 * place, _mm512_gf2p8affine_epi64_epi8(unit, v, 0));
    };
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) {  // i: upper 8 bytes, upper 4 of them
      const size_t from = i % 2 * 4 + i / 2 * 2;
      put(2 * i, _mm512_unpacklo_epi32(q[from], q[from + 1]));
      put(2 * i + 1, _mm512_unpackhi_epi32(q[from], q[from + 1]));
    }
  }
  static_assert(kMaxGadgetWires * kGroups * kBytes * 8 <= kScratchBytes);
  static void TurnAll(const WireRows& rows, uint64_t* bits) {
    for (size_t k = 0; k < rows.wires; ++k) {
      for (size_t g = 0; g < kGroups; ++g) Turn(rows, 8 * g, k, bits + (k * kGroups + g) * kBytes);
    }
  }

  static MPCKDC_PROOF_INLINE T Bits(const uint64_t* bits) { return V::Set1(*bits); }
  static MPCKDC_PROOF_INLINE T Apply(const uint64_t* bits, T matrices) {
    return _mm512_gf2p8affine_epi64_epi8(Bits(bits), matrices, 0);
  }

  // --- fold ---

  struct Use {
    uint8_t matrices[kGroups][64];
  };
  static constexpr size_t kMaxUses = 2 * kMaxProducts * kMaxGadgetWires;
  // Form f is of uses begin[f] to begin[f + 1]; form 2m is U_m, 2m + 1 is V_m, empty if it is the
  // same as U_m.
  struct FoldPlan {
    Use use[kMaxUses];
    uint32_t wire[kMaxUses];
    uint32_t begin[2 * kMaxProducts + 1];
    bool same[kMaxProducts];
  };
  static_assert(sizeof(FoldPlan) <= kPlanBytes);

  static void AddUse(K coefficient, size_t wire, const K* eq, FoldPlan& plan, uint32_t& end) {
    if (coefficient == K{}) return;
    const T factor = V::Set1(coefficient.v);
    for (size_t g = 0; g < kGroups; ++g) {
      const T each = V::Multiply(V::Load(eq + 8 * g), factor);
      V::Store(plan.use[end].matrices[g], Matrices(each));
    }
    plan.wire[end++] = static_cast<uint32_t>(wire);
  }
  static void PlanFold(const ProductForms& forms, const K* eq, uint8_t* memory) {
    auto& plan = *reinterpret_cast<FoldPlan*>(memory);
    uint32_t end = 0;
    plan.begin[0] = 0;
    for (size_t m = 0; m < forms.products; ++m) {
      plan.same[m] = true;
      for (size_t k = 0; k < forms.wires; ++k) {
        if (!(forms.u[m][k] == forms.v[m][k])) plan.same[m] = false;
        AddUse(forms.u[m][k], k, eq, plan, end);
      }
      plan.begin[2 * m + 1] = end;
      for (size_t k = 0; k < forms.wires && !plan.same[m]; ++k) {
        AddUse(forms.v[m][k], k, eq, plan, end);
      }
      plan.begin[2 * m + 2] = end;
    }
  }

  // Form f in 32 columns, those of bytes 4 * quad to 4 * quad + 3.
  static MPCKDC_PROOF_INLINE void FormOfQuad(const FoldPlan& plan, size_t f, const uint64_t* bits,
                                             size_t quad, T* out) {
    T sum[4];
    for (T& s : sum) s = _mm512_setzero_si512();
    const uint64_t* at = bits + Place(4 * quad);
    for (uint32_t i = plan.begin[f]; i < plan.begin[f + 1]; ++i) {
      const uint64_t* b = at + plan.wire[i] * (kGroups * kBytes);
#pragma GCC unroll 2
      for (size_t g = 0; g < kGroups; g += 2) {
        const T m0 = V::Load(plan.use[i].matrices[g]), m1 = V::Load(plan.use[i].matrices[g + 1]);
#pragma GCC unroll 4
        for (size_t c = 0; c < 4; ++c) {
          const uint64_t* p = b + g * kBytes + Place(c);
          sum[c] = V::Xor3(sum[c], Apply(p, m0), Apply(p + kBytes, m1));
        }
      }
    }
#pragma GCC unroll 4
    for (size_t c = 0; c < 4; ++c) out[c] = TurnBytes(sum[c]);
  }

  static void Fold(const uint8_t* memory, const ProductForms& forms, const WireRows& rows,
                   const FoldWeights& weights, uint8_t* scratch, const FoldedSection& out) {
    const auto& plan = *reinterpret_cast<const FoldPlan*>(memory);
    auto* bits = reinterpret_cast<uint64_t*>(scratch);
    TurnAll(rows, bits);
    // Quads whose bits lie in the same lines, one after the other.
    for (size_t i = 0; i < kBytes / 4; ++i) {
      const size_t quad = i / 4 + i % 4 * 4;
      for (size_t m = 0; m < forms.products; ++m) {
        T u[4], v[4];
        FormOfQuad(plan, 2 * m, bits, quad, u);
        if (plan.same[m]) {
          for (size_t c = 0; c < 4; ++c) v[c] = u[c];
        } else {
          FormOfQuad(plan, 2 * m + 1, bits, quad, v);
        }
        const size_t at = 32 * quad;
        for (size_t c = 0; c < 4; ++c) {
          const T weight = V::Load(weights.column + at + 8 * c);
          u[c] = V::Multiply(u[c], weight);
          if (weights.both) v[c] = V::Multiply(v[c], weight);
          V::Store(out.u + m * out.product_step + at + 8 * c, u[c]);
          V::Store(out.v + m * out.product_step + at + 8 * c, v[c]);
        }
      }
    }
  }

  // --- functional ---

  struct FunctionalPlan {
    uint8_t matrices[kGroups][64];
    F wire_u[kMaxGadgetWires], wire_v[kMaxGadgetWires];
  };
  static_assert(sizeof(FunctionalPlan) <= kPlanBytes);

  static void PlanFunctional(Gadget gadget, const K* node, const F* wire_u, const F* wire_v,
                             uint8_t* memory) {
    auto& plan = *reinterpret_cast<FunctionalPlan*>(memory);
    for (size_t g = 0; g < kGroups; ++g) {
      V::Store(plan.matrices[g], Matrices(V::Load(node + 8 * g)));
    }
    for (size_t k = 0; k < GadgetWires(gadget); ++k) {
      plan.wire_u[k] = wire_u[k];
      plan.wire_v[k] = wire_v[k];
    }
  }

  // sums[i] = sum over the columns of halves[i] * (the wire's bits with the nodes' coefficients).
  template <size_t kHalves>
  static MPCKDC_PROOF_INLINE void WireSums(const uint64_t* bits, const FunctionalPlan& plan,
                                           const K* const* halves, K* sums) {
    T matrices[kGroups], sum[kHalves];
    for (size_t g = 0; g < kGroups; ++g) matrices[g] = V::Load(plan.matrices[g]);
    for (T& s : sum) s = _mm512_setzero_si512();
#pragma GCC unroll 2
    for (size_t byte = 0; byte < kBytes; ++byte) {
      const uint64_t* b = bits + Place(byte);
      const T e01 = V::Xor(Apply(b, matrices[0]), Apply(b + kBytes, matrices[1]));
      const T e = TurnBytes(
          V::Xor3(e01, Apply(b + 2 * kBytes, matrices[2]), Apply(b + 3 * kBytes, matrices[3])));
#pragma GCC unroll 4
      for (size_t i = 0; i < kHalves; ++i) {
        sum[i] = V::AddProducts(sum[i], e, V::Load(halves[i] + 8 * byte));
      }
    }
    for (size_t i = 0; i < kHalves; ++i) sums[i] = V::ReducedSum(sum[i]);
  }

  static void Functional(const uint8_t* memory, const WireRows& rows,
                         const FunctionalColumns& columns, uint8_t* scratch, F* u, F* v) {
    using One = FieldTemplate<ClmulPclmul>;
    const auto& plan = *reinterpret_cast<const FunctionalPlan*>(memory);
    auto* all_bits = reinterpret_cast<uint64_t*>(scratch);
    const bool same = columns.u[0] == columns.v[0] && columns.u[1] == columns.v[1];
    const K* const halves[] = {columns.u[0], columns.u[1], columns.v[0], columns.v[1]};
    TurnAll(rows, all_bits);
    WideF sum_u, sum_v;
    for (size_t k = 0; k < rows.wires; ++k) {
      const uint64_t* bits = all_bits + k * (kGroups * kBytes);
      K sums[4];
      if (same) {
        WireSums<2>(bits, plan, halves, sums);
        sums[2] = sums[0];
        sums[3] = sums[1];
      } else {
        WireSums<4>(bits, plan, halves, sums);
      }
      One::AddTo(sum_u, plan.wire_u[k], F{sums[0], sums[1]});
      One::AddTo(sum_v, plan.wire_v[k], F{sums[2], sums[3]});
    }
    *u += One::Reduced(sum_u);
    *v += One::Reduced(sum_v);
  }
};

}  // namespace
}  // namespace mpckdc::proof

#endif  // MPC_SERVER_PROOF_FORM_GFNI_H_
