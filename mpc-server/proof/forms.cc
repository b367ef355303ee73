// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/proof/forms.h"

#include <array>
#include <cassert>

#include "mpc-server/proof/bits64.h"

namespace mpckdc::proof {
namespace {

// Lane 0 has no wire set, lane 1 + k only wire k (with wire i everywhere else set to 0 or 1).
template <class G>
void Outputs(int always, uint64_t* out) {
  uint64_t x[kMaxGadgetWires] = {};
  for (size_t k = 0; k < G::kWires; ++k) {
    x[k] = uint64_t{2} << k;
    if (static_cast<int>(k) == always) x[k] = ~uint64_t{0};
  }
  G::Eval(x, out);
}

template <class G>
QuadraticForms Polarise() {
  QuadraticForms f;
  uint64_t alone[kMaxGadgetBits], with[kMaxGadgetBits];
  Outputs<G>(-1, alone);
  for (size_t i = 0; i < G::kWires; ++i) {
    Outputs<G>(static_cast<int>(i), with);
    for (size_t j = 0; j < G::kOutputs; ++j) {
      // Q(e_i + e_k) + Q(e_i) + Q(e_k); Q(e_i) is in lane 0 of `with`.
      const uint64_t polar = with[j] ^ alone[j] ^ (with[j] & 1 ? ~uint64_t{0} : 0);
      const uint64_t above = ~uint64_t{0} << (i + 1);
      f.pairs[j][i] = static_cast<uint32_t>(polar >> 1 & above & ((uint64_t{1} << G::kWires) - 1));
    }
  }
  return f;
}

struct PolarisesGadget {
  template <class G>
  QuadraticForms operator()() const {
    return Polarise<G>();
  }
};

// The form sum_(i<k) a[i][k] x_i x_k + sum_i square[i] x_i^2; a is kept symmetric.
struct Elimination {
  size_t wires;
  K a[kMaxGadgetWires][kMaxGadgetWires];
  K square[kMaxGadgetWires];

  Elimination(Gadget gadget, const K* betas) : wires(GadgetWires(gadget)) {
    const QuadraticForms& forms = QuadraticFormsOf(gadget);
    for (size_t j = 0; j < GadgetBits(gadget); ++j) {
      for (size_t i = 0; i < wires; ++i) {
        for (uint32_t rest = forms.pairs[j][i]; rest != 0; rest &= rest - 1) {
          const auto k = static_cast<size_t>(__builtin_ctz(rest));
          a[i][k] += betas[j];
          a[k][i] += betas[j];
        }
      }
    }
  }

  // With p, q the pivot's wires, A = a[p][q], P and Q what p and q are multiplied with elsewhere:
  //   A x_p x_q + x_p P + x_q Q  =  (x_p + Q/A)(A x_q + P) + P Q/A
  void TakeOut(size_t p, size_t q, K* u, K* v) {
    const K inverse = Inverse(a[p][q]);
    for (size_t k = 0; k < wires; ++k) {
      if (k == p || k == q) continue;
      if (!(a[q][k] == K{})) u[k] = a[q][k] * inverse;
      v[k] = a[p][k];
    }
    u[p] = kOne;
    v[q] = a[p][q];
    for (size_t k = 0; k < wires; ++k) a[p][k] = a[k][p] = a[q][k] = a[k][q] = K{};
    for (size_t i = 0; i < wires; ++i) {
      if (i == p || u[i] == K{}) continue;
      for (size_t k = 0; k < wires; ++k) {
        if (k == q || v[k] == K{}) continue;
        const K product = u[i] * v[k];
        if (i == k) {
          square[i] += product;
        } else {
          a[i][k] += product;
          a[k][i] += product;
        }
      }
    }
  }
};

}  // namespace

const QuadraticForms& QuadraticFormsOf(Gadget gadget) {
  static const std::array<QuadraticForms, kGadgets> all = [] {
    std::array<QuadraticForms, kGadgets> made;
    for (size_t g = 0; g < kGadgets; ++g) {
      made[g] = VisitGadget<Bits64>(static_cast<Gadget>(g), PolarisesGadget());
    }
    return made;
  }();
  return all[static_cast<size_t>(gadget)];
}

ProductForms MakeProductForms(Gadget gadget, const K* betas) {
  Elimination rest(gadget, betas);
  ProductForms forms;
  forms.wires = rest.wires;
  forms.products = FormProductsOf(gadget);
  size_t m = 0;
  for (size_t p = 0; p < rest.wires; ++p) {
    for (size_t q = p + 1; q < rest.wires; ++q) {
      if (rest.a[p][q] == K{}) continue;
      assert(m < forms.products);
      rest.TakeOut(p, q, forms.u[m], forms.v[m]);
      ++m;
    }
  }
  // What is left is a sum of squares, and the square of a sum.
  K* u = forms.u[forms.products - 1];
  for (size_t i = 0; i < rest.wires; ++i) {
    if (rest.square[i] == K{}) continue;
    u[i] = forms.v[forms.products - 1][i] = SquareRoot(rest.square[i]);
  }
  return forms;
}

}  // namespace mpckdc::proof
