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

inline constexpr size_t kMaxProducts = 7;

// Outputs that are coordinates of one element of GF(16) = GF(2)[w] / (w^4 + w + 1) (gadget.h) have
// one weight together: K has a root of w^4 + w + 1, and with beta, beta*w, beta*w^2 and beta*w^3
// the sum is beta times the element's image in K, which is not zero where the element is not. The
// image of a product of two elements is one product, where four betas for four bits need four.
inline constexpr K kImageOfW{0xa181e7d66f5ff794};
// Output j has the weight of output `first` times w^power.
struct OutputWeight {
  uint8_t first, power;
};
constexpr OutputWeight OutputWeightOf(Gadget g, size_t j) {
  constexpr OutputWeight kSbox17[] = {{0, 0}, {0, 1},  {0, 2},  {0, 3},  {4, 0}, {5, 0},
                                      {5, 1}, {5, 2},  {5, 3},  {9, 0},  {9, 1}, {9, 2},
                                      {9, 3}, {13, 0}, {13, 1}, {13, 2}, {13, 3}};
  // u is u0 + u1 * w^5.
  constexpr OutputWeight kSbox22[] = {{0, 0},  {0, 1},  {0, 2},  {0, 3},  {4, 0},  {4, 5},
                                      {6, 0},  {6, 1},  {6, 2},  {6, 3},  {10, 0}, {10, 1},
                                      {10, 2}, {10, 3}, {14, 0}, {14, 1}, {14, 2}, {14, 3},
                                      {18, 0}, {18, 1}, {18, 2}, {18, 3}};
  return g == Gadget::kSbox17 ? kSbox17[j] : g == Gadget::kSbox22 ? kSbox22[j] : OutputWeight{};
}
// betas[j] of each output, of which the first of each element are drawn.
void CompleteBetas(Gadget gadget, K* betas);

// So wires that are an element's coordinates have coefficients in every form that differ by the
// powers of w: wire k's is that of wire `first` times w^power.
struct WireWeight {
  uint8_t first, power;
};
MPCKDC_PROOF_INLINE constexpr WireWeight WireWeightOf(Gadget g, size_t k) {
  constexpr WireWeight kSbox17[] = {{0, 0},  {0, 1},  {0, 2},  {0, 3},  {4, 0},  {4, 1},
                                    {4, 2},  {4, 3},  {8, 0},  {9, 0},  {10, 0}, {11, 0},
                                    {12, 0}, {13, 0}, {13, 1}, {13, 2}, {13, 3}};
  constexpr WireWeight kSbox22[] = {{0, 0},  {0, 1},  {0, 2},  {0, 3},  {4, 0},  {4, 1},
                                    {4, 2},  {4, 3},  {8, 0},  {9, 0},  {10, 0}, {11, 0},
                                    {12, 0}, {12, 5}, {14, 0}, {14, 1}, {14, 2}, {14, 3},
                                    {18, 0}, {18, 1}, {18, 2}, {18, 3}};
  return g == Gadget::kSbox17   ? kSbox17[k]
         : g == Gadget::kSbox22 ? kSbox22[k]
                                : WireWeight{static_cast<uint8_t>(k), 0};
}

// The number of products for such betas, the square included. Some need fewer; then the last but
// the square are zero, so that the number never depends on the betas.
constexpr size_t FormProductsOf(Gadget g) {
  return g == Gadget::kSbox17 || g == Gadget::kSbox22 ? 4 : ProductsOf(g);
}

// Row m: the coefficients of U_m and V_m.
struct ProductForms {
  size_t wires = 0;
  size_t products = 0;
  K u[kMaxProducts][kMaxWires];
  K v[kMaxProducts][kMaxWires];
};

// Output j is the sum of x_i * x_k over the bits k > i of pairs[j][i].
struct QuadraticForms {
  uint32_t pairs[kMaxOutputs][kMaxWires] = {};
};
// Read off the gadget's Eval: its values at the unit vectors and at the sums of two.
const QuadraticForms& QuadraticFormsOf(Gadget gadget);

// `betas`: one for each output, complete and public.
ProductForms MakeProductForms(Gadget gadget, const K* betas);

}  // namespace mpckdc::proof

#endif  // MPC_SERVER_PROOF_FORMS_H_
