// SPDX-License-Identifier: Apache-2.0
// The gadgets' formulas (share/gadgets.h has the list): bit j is Q_j(wires) + l_j(wires). Eval is
// Q, EvalLinear is l, both over a word type W (circuit/bitslice/word_*.h). The only formulas of a
// gadget in proof/ are these: forms.h reads the quadratic forms off Eval.
//
// The S-boxes' stages are those of circuit/aes/sbox.h in the tower basis (tower_field.h): a + b *
// theta is the byte to be inverted, product and scale are taken before the linear map after them.
#ifndef MPC_SERVER_PROOF_GADGET_H_
#define MPC_SERVER_PROOF_GADGET_H_

#include <cstddef>

#include "mpc-server/proof/field64.h"
#include "mpc-server/share/gadgets.h"

namespace mpckdc::proof {

// Arithmetic of GF(16) = GF(2)[w] / (w^4 + w + 1), coordinate by coordinate.
template <class W>
struct NibbleBits {
  using T = typename W::T;

  // A factor m of products: multiplication by it is a matrix whose entries are m_k or one of these.
  struct Factor {
    const T* m;
    T m03, m23, m12;
    MPCKDC_PROOF_INLINE explicit Factor(const T* of)
        : m(of), m03(W::Xor(of[0], of[3])), m23(W::Xor(of[2], of[3])), m12(W::Xor(of[1], of[2])) {}
  };
  static MPCKDC_PROOF_INLINE T Row(const T* u, T c0, T c1, T c2, T c3) {
    return W::AndXor(u[3], c3, W::AndXor(u[2], c2, W::AndXor(u[1], c1, W::And(u[0], c0))));
  }
  // put(first + k, coordinate k of u * m).
  template <class Put>
  static MPCKDC_PROOF_INLINE void Multiply(const T* u, const Factor& f, size_t first, Put put) {
    const T* m = f.m;
    put(first, Row(u, m[0], m[3], m[2], m[1]));
    put(first + 1, Row(u, m[1], f.m03, f.m23, f.m12));
    put(first + 2, Row(u, m[2], m[1], f.m03, f.m23));
    put(first + 3, Row(u, m[3], m[2], m[1], f.m03));
  }
  static MPCKDC_PROOF_INLINE void Add(const T* u, const T* v, T* out) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) out[k] = W::Xor(u[k], v[k]);
  }

  // a^2 + nu * b^2, the linear part of the norm a^2 + ab + nu * b^2.
  static MPCKDC_PROOF_INLINE void NormLinear(const T* x, T* out) {
    const T* a = x;
    const T* b = x + 4;
    const T b012 = W::Xor3(b[0], b[1], b[2]);
    out[0] = W::Xor3(W::Xor(a[0], a[2]), b[0], b[3]);
    out[1] = W::Xor(a[2], b012);
    out[2] = W::Xor3(W::Xor(a[1], a[3]), b[2], b[3]);
    out[3] = W::Xor3(a[3], b[3], b012);
  }
  // N^4.
  static MPCKDC_PROOF_INLINE void FourthPower(const T* n, T* out) {
    const T n23 = W::Xor(n[2], n[3]);
    out[0] = W::Xor3(n[0], n[1], n23);
    out[1] = W::Xor(n[1], n[3]);
    out[2] = n23;
    out[3] = n[3];
  }
  // w^5 * v.
  static MPCKDC_PROOF_INLINE void TimesW5(const T* v, T* out) {
    out[0] = W::Xor(v[2], v[3]);
    out[1] = W::Xor(v[0], v[2]);
    out[2] = W::Xor3(v[0], v[1], v[3]);
    out[3] = W::Xor(v[1], v[2]);
  }
};

// Eval of all outputs at once, from EvalEach(wires, put), which calls put(j, Q_j) for every output:
// then what is done with an output can be done among the formulas of the others.
template <class G, class T>
struct GadgetOf {
  static MPCKDC_PROOF_INLINE void Eval(const T* x, T* out) {
    G::EvalEach(
        x, [out](size_t j, T v) __attribute__((always_inline)) { out[j] = v; });
  }
};

// N = x^17, q = n0 n1 + n2 n3, M = N^-1, ((a + b) * M, b * M).
template <class W>
struct Sbox17Gadget : GadgetOf<Sbox17Gadget<W>, typename W::T> {
  using T = typename W::T;
  using Bits = NibbleBits<W>;
  static constexpr size_t kWires = GadgetWires(Gadget::kSbox17);
  static constexpr size_t kOutputs = GadgetBits(Gadget::kSbox17);

  template <class Put>
  static MPCKDC_PROOF_INLINE void EvalEach(const T* x, Put put) {
    const T *b = x + 4, *n = x + 8, *m = x + 13;
    Bits::Multiply(x, typename Bits::Factor(b), 0, put);
    put(4, W::AndXor(n[0], n[1], W::And(n[2], n[3])));
    Inverse(n, x[12], put);
    T sum[4];
    Bits::Add(x, b, sum);
    const typename Bits::Factor factor(m);
    Bits::Multiply(sum, factor, 9, put);
    Bits::Multiply(b, factor, 13, put);
  }
  static MPCKDC_PROOF_INLINE void EvalLinear(const T* x, T* out) {
    Bits::NormLinear(x, out);
    for (size_t j = 4; j < kOutputs; ++j) out[j] = W::Zero();
    const T* n = x + 8;
    const T n123 = W::Xor3(n[1], n[2], n[3]);
    out[5] = W::Xor(n[0], n123);
    out[6] = n[3];
    out[7] = W::Xor(n[2], n[3]);
    out[8] = n123;
  }

 private:
  // q * (n1 + n2, n3, n0, n1) + products of two of n.
  template <class Put>
  static MPCKDC_PROOF_INLINE void Inverse(const T* n, T q, Put put) {
    const T p01 = W::And(n[0], n[1]), p02 = W::And(n[0], n[2]), p23 = W::And(n[2], n[3]);
    const T cubic = W::Xor(p02, W::AndXor(n[1], n[2], p01));
    put(5, W::AndXor(q, W::Xor(n[1], n[2]), W::Xor(cubic, p23)));
    const T p13_23 = W::AndXor(n[1], n[3], p23);
    put(6, W::AndXor(q, n[3], W::Xor(cubic, p13_23)));
    const T p03 = W::And(n[0], n[3]);
    put(7, W::AndXor(q, n[0], W::Xor(p02, p03)));
    put(8, W::AndXor(q, n[1], W::Xor3(p01, p03, p13_23)));
  }
};

// N = x^17, u = N^10 = u0 + u1 * w^5, v = x^16 * N^4 = ((a + b) * N^4, b * N^4), u * v.
template <class W>
struct Sbox22Gadget : GadgetOf<Sbox22Gadget<W>, typename W::T> {
  using T = typename W::T;
  using Bits = NibbleBits<W>;
  static constexpr size_t kWires = GadgetWires(Gadget::kSbox22);
  static constexpr size_t kOutputs = GadgetBits(Gadget::kSbox22);

  template <class Put>
  static MPCKDC_PROOF_INLINE void EvalEach(const T* x, Put put) {
    const T *b = x + 4, *n = x + 8, *u = x + 12, *v = x + 14;
    Bits::Multiply(x, typename Bits::Factor(b), 0, put);
    const T n12 = W::Xor(n[1], n[2]);
    put(4, W::AndXor(n[0], n12, W::And(n[1], W::Xor(n[2], n[3]))));
    put(5, W::AndXor(n[1], n[2], W::And(n[3], W::Xor(n[0], n12))));
    T n4[4], sum[4];
    Bits::FourthPower(n, n4);
    Bits::Add(x, b, sum);
    const typename Bits::Factor factor(n4);
    Bits::Multiply(sum, factor, 6, put);
    Bits::Multiply(b, factor, 10, put);
#pragma GCC unroll 2
    for (size_t half = 0; half < 8; half += 4) {
      T turned[4];
      Bits::TimesW5(v + half, turned);
#pragma GCC unroll 4
      for (size_t k = 0; k < 4; ++k) {
        put(14 + half + k, W::AndXor(u[0], v[half + k], W::And(u[1], turned[k])));
      }
    }
  }
  static MPCKDC_PROOF_INLINE void EvalLinear(const T* x, T* out) {
    Bits::NormLinear(x, out);
    for (size_t j = 4; j < kOutputs; ++j) out[j] = W::Zero();
    const T* n = x + 8;
    out[4] = W::Xor3(n[0], n[1], n[3]);
    out[5] = W::Xor(n[1], n[2]);
  }
};

template <class W, size_t N>
struct ProductsGadgetOf : GadgetOf<ProductsGadgetOf<W, N>, typename W::T> {
  using T = typename W::T;
  static constexpr size_t kWires = GadgetWires(ProductsGadget(N)), kOutputs = 1;

  template <class Put>
  static MPCKDC_PROOF_INLINE void EvalEach(const T* x, Put put) {
    T sum = W::And(x[0], x[1]);
#pragma GCC unroll 8
    for (size_t m = 1; m < N; ++m) sum = W::AndXor(x[2 * m], x[2 * m + 1], sum);
    put(0, sum);
  }
  static MPCKDC_PROOF_INLINE void EvalLinear(const T*, T* out) { out[0] = W::Zero(); }
};

// visit.template operator()<G>() for the gadget's template over W.
template <class W, class Visitor>
MPCKDC_PROOF_INLINE auto VisitGadget(Gadget g, Visitor visit) {
  switch (g) {
    case Gadget::kSbox22:
      return visit.template operator()<Sbox22Gadget<W>>();
    case Gadget::kProducts1:
      return visit.template operator()<ProductsGadgetOf<W, 1>>();
    case Gadget::kProducts2:
      return visit.template operator()<ProductsGadgetOf<W, 2>>();
    case Gadget::kProducts3:
      return visit.template operator()<ProductsGadgetOf<W, 3>>();
    case Gadget::kProducts4:
      return visit.template operator()<ProductsGadgetOf<W, 4>>();
    case Gadget::kProducts5:
      return visit.template operator()<ProductsGadgetOf<W, 5>>();
    case Gadget::kProducts6:
      return visit.template operator()<ProductsGadgetOf<W, 6>>();
    case Gadget::kProducts7:
      return visit.template operator()<ProductsGadgetOf<W, 7>>();
    case Gadget::kSbox17:
      break;
  }
  return visit.template operator()<Sbox17Gadget<W>>();
}

}  // namespace mpckdc::proof

#endif  // MPC_SERVER_PROOF_GADGET_H_
