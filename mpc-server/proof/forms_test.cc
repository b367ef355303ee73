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
      K betas[kMaxOutputs], x[kMaxWires];
      for (K& b : betas) b = RandomK(random);
      for (K& e : x) e = RandomK(random);
      if (trial % 4 == 1) betas[trial % OutputsOf(gadget)] = K{};
      if (trial == 5) std::fill(betas, betas + kMaxOutputs, kOne);
      if (trial == 6) std::fill(betas, betas + kMaxOutputs, K{});
      CompleteBetas(gadget, betas);
      const ProductForms forms = MakeProductForms(gadget, betas);
      ASSERT_EQ(forms.products, FormProductsOf(gadget));
      K left, right;
      for (size_t j = 0; j < OutputsOf(gadget); ++j) {
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
    uint64_t x[kMaxWires], out[kMaxOutputs];
    for (uint64_t& v : x) v = random();
    VisitGadget<Bits64>(gadget, [&]<class G>() {
      EXPECT_EQ(G::kWires, WiresOf(gadget));
      EXPECT_EQ(G::kOutputs, OutputsOf(gadget));
      G::Eval(x, out);
    });
    for (size_t j = 0; j < OutputsOf(gadget); ++j) {
      uint64_t sum = 0;
      for (size_t i = 0; i < WiresOf(gadget); ++i) {
        EXPECT_EQ(quadratic.pairs[j][i] & ((uint32_t{2} << i) - 1), 0u);
        for (size_t k = 0; k < WiresOf(gadget); ++k) {
          if (quadratic.pairs[j][i] >> k & 1) sum ^= x[i] & x[k];
        }
      }
      EXPECT_EQ(sum, out[j]) << g << " " << j;
    }
  }
}

TEST(FormsTest, BothSboxesAreThreeProductsAndASquare) {
  std::mt19937_64 random(3);
  for (const Gadget gadget : {Gadget::kSbox17, Gadget::kSbox22}) {
    K betas[kMaxOutputs];
    for (K& b : betas) b = RandomK(random);
    CompleteBetas(gadget, betas);
    const ProductForms forms = MakeProductForms(gadget, betas);
    ASSERT_EQ(forms.products, 4u);
    for (size_t k = 0; k < forms.wires; ++k) EXPECT_TRUE(forms.u[3][k] == forms.v[3][k]);
  }
}

TEST(FormsTest, WiresOfAnElementDifferByPowers) {
  std::mt19937_64 random(4);
  for (size_t g = 0; g < kGadgets; ++g) {
    const auto gadget = static_cast<Gadget>(g);
    K betas[kMaxOutputs];
    for (K& b : betas) b = RandomK(random);
    CompleteBetas(gadget, betas);
    const ProductForms forms = MakeProductForms(gadget, betas);
    for (size_t k = 0; k < forms.wires; ++k) {
      const WireWeight weight = WireWeightOf(gadget, k);
      K factor = kOne;
      for (size_t i = 0; i < weight.power; ++i) factor = factor * kImageOfW;
      for (size_t m = 0; m < forms.products; ++m) {
        EXPECT_EQ(forms.u[m][k], forms.u[m][weight.first] * factor) << g << " " << k;
        EXPECT_EQ(forms.v[m][k], forms.v[m][weight.first] * factor) << g << " " << k;
      }
    }
  }
}

// The map of GF(16) into K keeps products, and only zero goes to zero: so an error in any of an
// element's bits is an error of its image.
TEST(FormsTest, TheImageOfAnElementIsThatOfAField) {
  const K w = kImageOfW;
  EXPECT_EQ(w * w * w * w + w + kOne, K{});
  const auto image = [&](const uint64_t* bits) {
    K sum, power = kOne;
    for (size_t k = 0; k < 4; ++k, power = power * w) {
      if ((bits[k] & 1) != 0) sum += power;
    }
    return sum;
  };
  for (uint64_t a = 0; a < 16; ++a) {
    for (uint64_t b = 0; b < 16; ++b) {
      uint64_t u[4], m[4], product[4];
      for (size_t k = 0; k < 4; ++k) {
        u[k] = a >> k & 1;
        m[k] = b >> k & 1;
      }
      NibbleBits<Bits64>::Multiply(u, NibbleBits<Bits64>::Factor(m), 0,
                                   [&](size_t k, uint64_t v) { product[k] = v; });
      EXPECT_EQ(image(u) * image(m), image(product));
    }
    uint64_t bits[4] = {a, a >> 1, a >> 2, a >> 3};
    EXPECT_EQ(image(bits) == K{}, a == 0);
  }
}

// Each output has a weight of its own up to the power: no two of an element have the same one.
TEST(FormsTest, WeightsOfAnElementsBitsDiffer) {
  for (const Gadget gadget : {Gadget::kSbox17, Gadget::kSbox22}) {
    for (size_t j = 0; j < OutputsOf(gadget); ++j) {
      const OutputWeight weight = OutputWeightOf(gadget, j);
      EXPECT_EQ(OutputWeightOf(gadget, weight.first).first, weight.first);
      EXPECT_EQ(OutputWeightOf(gadget, weight.first).power, 0);
      for (size_t i = 0; i < j; ++i) {
        const OutputWeight other = OutputWeightOf(gadget, i);
        EXPECT_FALSE(other.first == weight.first && other.power == weight.power);
      }
    }
  }
}

}  // namespace
}  // namespace mpckdc::proof
