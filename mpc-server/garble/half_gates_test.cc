// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/half_gates.h"

#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "mpc-server/base/isa.h"

namespace mpckdc::garble {
namespace {

struct Gates {
  GateRange range;
  std::vector<Label> delta, a, b, rows, c;

  Gates(uint64_t seed, size_t gates, size_t lanes) {
    std::mt19937_64 random(seed);
    const auto draw = [&](std::vector<Label>& labels, size_t count) {
      labels.resize(count);
      for (Label& l : labels) l = {random(), random()};
    };
    range = {{random(), random()}, random() >> 2, gates, lanes};
    draw(delta, lanes);
    for (Label& d : delta) d.low |= 1;
    draw(a, gates * lanes);
    draw(b, gates * lanes);
    rows.resize(kAndRows * gates * lanes);
    c.resize(gates * lanes);
  }
  size_t elements() const { return c.size(); }
  void Garble(const HalfGateFunctions& f) {
    f.garble(range, delta.data(), a.data(), b.data(), rows.data(), c.data());
  }
  // What the evaluator gets who holds the labels of these values.
  std::vector<Label> Evaluate(const HalfGateFunctions& f, bool x, bool y) const {
    std::vector<Label> la(a), lb(b), out(c.size());
    for (size_t i = 0; i < la.size(); ++i) {
      la[i] = a[i] ^ delta[i % range.lanes].If(x);
      lb[i] = b[i] ^ delta[i % range.lanes].If(y);
    }
    f.evaluate(range, la.data(), lb.data(), rows.data(), out.data());
    return out;
  }
};

constexpr size_t kLanes[] = {1, 2, 3, 4, 5, 7, 8, 12, 16};

TEST(HalfGatesTest, GiveTheLabelOfTheProduct) {
  for (const auto& variant : AllHalfGates().supported()) {
    for (const size_t lanes : kLanes) {
      for (size_t gates = 1; gates <= 9; ++gates) {
        Gates g(100 * lanes + gates, gates, lanes);
        g.Garble(variant.functions);
        for (const bool x : {false, true}) {
          for (const bool y : {false, true}) {
            const std::vector<Label> out = g.Evaluate(variant.functions, x, y);
            for (size_t i = 0; i < g.elements(); ++i) {
              ASSERT_EQ(out[i], g.c[i] ^ g.delta[i % lanes].If(x && y))
                  << variant.name << ", " << lanes << " lanes, gate " << i / lanes;
            }
          }
        }
      }
    }
  }
}

TEST(HalfGatesTest, AllInstructionSetsGarbleAlike) {
  const HalfGateFunctions& portable = AllHalfGates().For(Isa::kPortable);
  for (const auto& variant : AllHalfGates().supported()) {
    for (const size_t lanes : kLanes) {
      for (size_t gates = 1; gates <= 9; ++gates) {
        Gates g(lanes * gates, gates, lanes), oracle(lanes * gates, gates, lanes);
        g.Garble(variant.functions);
        oracle.Garble(portable);
        EXPECT_EQ(g.rows, oracle.rows) << variant.name << ", " << lanes << " lanes";
        EXPECT_EQ(g.c, oracle.c) << variant.name << ", " << lanes << " lanes";
        std::vector<Label> hashes(gates), oracles(gates);
        variant.functions.hash(g.range.start, 7, g.a.data(), gates, hashes.data());
        portable.hash(g.range.start, 7, g.a.data(), gates, oracles.data());
        EXPECT_EQ(hashes, oracles) << variant.name;
      }
    }
  }
}

// Nothing is written behind the last element.
TEST(HalfGatesTest, KeepTheirBounds) {
  for (const auto& variant : AllHalfGates().supported()) {
    for (const size_t lanes : kLanes) {
      Gates g(1, 3, lanes);
      const Label mark = {0x0123456789abcdef, 42};
      g.rows.push_back(mark);
      g.c.push_back(mark);
      g.Garble(variant.functions);
      EXPECT_EQ(g.rows.back(), mark) << variant.name << ", " << lanes << " lanes";
      EXPECT_EQ(g.c.back(), mark);
    }
  }
}

// Lanes share tweaks, and gates do not: equal inputs give other rows in each gate and half.
TEST(HalfGatesTest, EachHalfOfAGateHasAKeyOfItsOwn) {
  Gates g(5, 4, 1);
  std::fill(g.a.begin(), g.a.end(), Label{2, 3});
  std::fill(g.b.begin(), g.b.end(), Label{2, 3});
  for (const auto& variant : AllHalfGates().supported()) {
    g.Garble(variant.functions);
    for (size_t i = 0; i < g.rows.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        // T_E has a's label beside the hashes.
        const Label difference = g.rows[i] ^ g.rows[j];
        EXPECT_FALSE(difference == Label{} || difference == g.a[0]) << variant.name;
      }
    }
  }
}

}  // namespace
}  // namespace mpckdc::garble
