// SPDX-License-Identifier: Apache-2.0
// A gadget's weighted sum of outputs, sum_j beta_j Q_j, is one quadratic form over K. It is written
// as a sum of products of linear forms,
//
//   sum_j beta_j Q_j(e)  =  sum_m U_m(e) * V_m(e)
//
// for all e in K^wires. In the S-boxes' the last product is a square: the pair (S, S).
#ifndef MPC_SERVER_PROOF_FORMS_H_
#define MPC_SERVER_PROOF_FORMS_H_

#include <cstddef>
#include <cstdint>

#include "mpc-server/proof/field64.h"
#include "mpc-server/proof/gadget.h"

namespace mpckdc::proof {

inline constexpr size_t kMaxProducts = 9;

// Every output has a weight of its own. Three products would do for an S-box if the coordinates of
// an element of GF(16) = GF(2)[w] / (w^4 + w + 1) had the weights beta * w^k, w's root in K; but
// the lanes of a word have the weights x^b, and K has only 16 elements in a basis over GF(16): with
// 17 lanes and more there would be errors that no beta shows (message_proof_test.cc).

// The number of products, the square included. Some betas would need fewer; then the last but the
// square are zero, so that the number never depends on the betas.
constexpr size_t FormProductsOf(Gadget g) {
  return g == Gadget::kSbox17 ? 7 : g == Gadget::kSbox22 ? 9 : GadgetProducts(g);
}

// Row m: the coefficients of U_m and V_m.
struct ProductForms {
  size_t wires = 0;
  size_t products = 0;
  K u[kMaxProducts][kMaxGadgetWires];
  K v[kMaxProducts][kMaxGadgetWires];
};

// Output j is the sum of x_i * x_k over the bits k > i of pairs[j][i].
struct QuadraticForms {
  uint32_t pairs[kMaxGadgetBits][kMaxGadgetWires] = {};
};
// Read off the gadget's Eval: its values at the unit vectors and at the sums of two.
const QuadraticForms& QuadraticFormsOf(Gadget gadget);

// `betas`: one for each output, public.
ProductForms MakeProductForms(Gadget gadget, const K* betas);

}  // namespace mpckdc::proof

#endif  // MPC_SERVER_PROOF_FORMS_H_
