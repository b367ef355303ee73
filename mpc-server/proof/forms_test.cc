// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/proof/forms.h"

#include <random>

#include "gtest/gtest.h"
#include "mpc-server/proof/bits64.h"

namespace mpckdc::proof {
namespace {

K RandomK(std::mt19937_64& random) { return K{random()}; }

K Evaluate(const K* row, const K* x, size_t wires) { return Dot(row, x, wires); }

TEST(FormsTest, ProductsAreTheQuadraticForm) {
  std::mt19937_64 random(1);
  for (size_t g = 0; g < kGadgets; ++g) {
    const auto gadget = static_cast<Gadget>(g);
    const QuadraticForms& quadratic = QuadraticFormsOf(gadget);
    for (int trial = 0; trial < 20; ++trial) {
      K betas[kMaxGadgetBits], x[kMaxGadgetWires];
      for (K& b : betas) b = RandomK(random);
      for (K& e : x) e = RandomK(random);
      if (trial % 4 == 1) betas[trial % GadgetBits(gadget)] = K{};
      if (trial == 5) std::fill(betas, betas + kMaxGadgetBits, kOne);
      if (trial == 6) std::fill(betas, betas + kMaxGadgetBits, K{});
      const ProductForms forms = MakeProductForms(gadget, betas);
      ASSERT_EQ(forms.products, FormProductsOf(gadget));
      K left, right;
      for (size_t j = 0; j < GadgetBits(gadget); ++j) {
        for (size_t i = 0; i < forms.wires; ++i) {
          for (size_t k = 0; k < forms.wires; ++k) {
            if (quadratic.pairs[j][i] >> k & 1) left += betas[j] * x[i] * x[k];
          }
        }
      }
      size_t used = 0;
      for (size_t m = 0; m < forms.products; ++m) {
        const K u = Evaluate(forms.u[m], x, forms.wires);
        right += u * Evaluate(forms.v[m], x, forms.wires);
        used += !(u == K{});
      }
      EXPECT_EQ(left.v, right.v) << g;
      // Random betas need every product that there is.
      if (trial == 0) {
        EXPECT_EQ(used, FormProductsOf(gadget)) << g;
      }
    }
  }
}

// Eval of bits is the sum of the pairs that were read off it, and the pairs have no x_i * x_i.
TEST(FormsTest, PairsAreThoseOfEval) {
  std::mt19937_64 random(2);
  for (size_t g = 0; g < kGadgets; ++g) {
    const auto gadget = static_cast<Gadget>(g);
    const QuadraticForms& quadratic = QuadraticFormsOf(gadget);
    uint64_t x[kMaxGadgetWires], out[kMaxGadgetBits];
    for (uint64_t& v : x) v = random();
    VisitGadget<Bits64>(gadget, [&]<class G>() {
      EXPECT_EQ(G::kWires, GadgetWires(gadget));
      EXPECT_EQ(G::kOutputs, GadgetBits(gadget));
      G::Eval(x, out);
    });
    for (size_t j = 0; j < GadgetBits(gadget); ++j) {
      uint64_t sum = 0;
      for (size_t i = 0; i < GadgetWires(gadget); ++i) {
        EXPECT_EQ(quadratic.pairs[j][i] & ((uint32_t{2} << i) - 1), 0u);
        for (size_t k = 0; k < GadgetWires(gadget); ++k) {
          if (quadratic.pairs[j][i] >> k & 1) sum ^= x[i] & x[k];
        }
      }
      EXPECT_EQ(sum, out[j]) << g << " " << j;
    }
  }
}

// The S-box with 17 outputs is six products and a square, as was derived by hand.
TEST(FormsTest, SboxHasSixProductsAndASquare) {
  std::mt19937_64 random(3);
  K betas[kMaxGadgetBits];
  for (K& b : betas) b = RandomK(random);
  const ProductForms forms = MakeProductForms(Gadget::kSbox17, betas);
  ASSERT_EQ(forms.products, 7u);
  for (size_t k = 0; k < forms.wires; ++k) EXPECT_TRUE(forms.u[6][k] == forms.v[6][k]);
}

}  // namespace
}  // namespace mpckdc::proof
