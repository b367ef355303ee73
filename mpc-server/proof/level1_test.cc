// SPDX-License-Identifier: Apache-2.0
// Every variant of the passes against their formulas, bit by bit.
#include "mpc-server/proof/level1.h"

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "mpc-server/base/isa.h"
#include "mpc-server/proof/field_kernels.h"

namespace mpckdc::proof {
namespace {

using Rows = std::vector<uint64_t>;

struct Case {
  Gadget gadget;
  size_t row_bytes;
  std::vector<size_t> nodes;  // of each section
  size_t lanes;
};

constexpr Weighting kWeightings[] = {Weighting::kOnU, Weighting::kRootOnBoth};

// What u and v of a column are multiplied with.
struct ColumnWeight {
  ColumnWeight(Weighting weighting, K omega, size_t lane) : u(omega * K{uint64_t{1} << lane}) {
    if (weighting == Weighting::kRootOnBoth) u = v = SquareRoot(u);
  }
  K u, v = kOne;
};

// Random sections: rows exactly as long as the nodes that there are, so that a sanitizer or
// valgrind sees a read beyond them.
struct Log {
  explicit Log(const Case& c) : of(c) {
    for (size_t i = 0; i < c.nodes.size(); ++i) {
      for (auto* role : {wires, t}) {
        const size_t count = role == wires ? GadgetWires(c.gadget) : GadgetBits(c.gadget);
        for (size_t r = 0; r < 2; ++r) role[r].push_back(RandomRows(c.nodes[i] * count));
      }
      omega.emplace_back();
      for (size_t w = 0; w < words(); ++w) omega.back().push_back(K{random()});
    }
    for (size_t i = 0; i < c.nodes.size(); ++i) {
      sections.push_back({{Bytes(wires[0][i]), Bytes(wires[1][i])},
                          {Bytes(t[0][i]), Bytes(t[1][i])},
                          omega[i].data(),
                          c.nodes[i]});
    }
    for (K& b : betas) b = K{random()};
    for (K& e : eq) e = K{random()};
  }
  static const uint8_t* Bytes(const Rows& r) { return reinterpret_cast<const uint8_t*>(r.data()); }
  size_t words() const { return of.row_bytes / 8; }
  Rows RandomRows(size_t rows) {
    Rows r(rows * words());
    for (size_t i = 0; i < r.size(); ++i) {
      const size_t first = 64 * (i % words());
      const size_t lanes = of.lanes <= first ? 0 : std::min<size_t>(64, of.lanes - first);
      r[i] = lanes == 0 ? 0 : random() >> (64 - lanes);
    }
    return r;
  }
  // A row's word; zero where there is no node.
  uint64_t Word(const std::vector<Rows>& of_role, size_t i, size_t s, size_t count, size_t k,
                size_t w) const {
    return s < of.nodes[i] ? of_role[i][(s * count + k) * words() + w] : 0;
  }
  uint64_t Wire(Wires which, size_t i, size_t s, size_t k, size_t w) const {
    const size_t count = GadgetWires(of.gadget);
    const uint64_t own = Word(wires[0], i, s, count, k, w);
    const uint64_t left = Word(wires[1], i, s, count, k, w);
    return which == Wires::kOwn ? own : which == Wires::kLeft ? left : own ^ left;
  }
  // Wire k of a column with the nodes' coefficients.
  K Folded(Wires which, size_t i, size_t k, size_t column) const {
    K e;
    for (size_t s = 0; s < kNodes; ++s) {
      if (Wire(which, i, s, k, column / 64) >> column % 64 & 1) e += eq[s];
    }
    return e;
  }
  Sections view() const { return {of.gadget, of.row_bytes, sections}; }

  // sum_j beta_j * (Q_j(x) + t_j), of a word.
  K Weighted(const uint64_t* x, const uint64_t* t_words) const {
    const QuadraticForms& forms = QuadraticFormsOf(of.gadget);
    K sum;
    for (size_t j = 0; j < GadgetBits(of.gadget); ++j) {
      uint64_t q = t_words[j];
      for (size_t i = 0; i < GadgetWires(of.gadget); ++i) {
        for (size_t k = 0; k < GadgetWires(of.gadget); ++k) {
          if (forms.pairs[j][i] >> k & 1) q ^= x[i] & x[k];
        }
      }
      sum += betas[j] * K{q};
    }
    return sum;
  }

  const Case of;
  std::mt19937_64 random{11};
  std::vector<Rows> wires[2], t[2];
  std::vector<std::vector<K>> omega;
  std::vector<Section> sections;
  K betas[kMaxGadgetBits], eq[kNodes];
};

bool InPoint(size_t node, size_t point) {
  for (size_t variable = 0; variable < 5; ++variable, point /= 3, node /= 2) {
    if (point % 3 != 2 && point % 3 != node % 2) return false;
  }
  return true;
}

bool HasInf(size_t point) { return point != 0 && (point % 3 == 2 || HasInf(point / 3)); }

std::vector<K> SumsAtPointsByDefinition(const Log& log) {
  std::vector<K> sums(kPoints);
  const uint64_t zeros[kMaxGadgetBits] = {};
  for (size_t i = 0; i < log.of.nodes.size(); ++i) {
    for (size_t w = 0; w < log.words(); ++w) {
      for (size_t p = 0; p < kPoints; ++p) {
        uint64_t x[kMaxGadgetWires] = {};
        for (size_t s = 0; s < kNodes; ++s) {
          if (!InPoint(s, p)) continue;
          for (size_t k = 0; k < GadgetWires(log.of.gadget); ++k) {
            x[k] ^= log.Wire(Wires::kSum, i, s, k, w);
          }
        }
        sums[p] += log.omega[i][w] * log.Weighted(x, zeros);
      }
    }
  }
  return sums;
}

std::vector<K> SumsOfTByDefinition(const Log& log, Role role) {
  std::vector<K> sums(kNodes);
  const size_t outputs = GadgetBits(log.of.gadget);
  for (size_t i = 0; i < log.of.nodes.size(); ++i) {
    for (size_t s = 0; s < kNodes; ++s) {
      for (size_t w = 0; w < log.words(); ++w) {
        uint64_t x[kMaxGadgetWires] = {}, t[kMaxGadgetBits];
        for (size_t k = 0; role == Role::kLeft && k < GadgetWires(log.of.gadget); ++k) {
          x[k] = log.Wire(Wires::kLeft, i, s, k, w);
        }
        for (size_t j = 0; j < outputs; ++j) {
          t[j] = log.Word(log.t[role == Role::kLeft ? 1 : 0], i, s, outputs, j, w);
        }
        sums[s] += log.omega[i][w] * log.Weighted(x, t);
      }
    }
  }
  return sums;
}

class Level1Test : public testing::TestWithParam<Case> {
 protected:
  template <class Check>
  void ForEachVariant(Check check) {
    for (const auto& variant : AllLevel1Kernels().supported()) {
      SCOPED_TRACE(variant.name);
      Level1 level1(variant.functions);
      check(level1);
      check(level1);  // with what the first left in its buffers
    }
  }
  Log log{GetParam()};
};

TEST_P(Level1Test, SumsAtPoints) {
  const std::vector<K> expected = SumsAtPointsByDefinition(log);
  ForEachVariant([&](Level1& level1) {
    for (bool corners : {true, false}) {
      std::vector<WideK> sums(kPoints, WideK{5, 0});
      level1.SumsAtPoints(log.view(), log.betas, corners, sums.data());
      for (size_t p = 0; p < kPoints; ++p) {
        const K sum = corners || HasInf(p) ? expected[p] : K{};
        ASSERT_EQ(Reduce(sums[p]).v, (sum + K{5}).v) << p;
      }
    }
  });
}

TEST_P(Level1Test, SumsOfT) {
  for (Role role : {Role::kOwn, Role::kLeft}) {
    const std::vector<K> expected = SumsOfTByDefinition(log, role);
    ForEachVariant([&](Level1& level1) {
      std::vector<WideK> sums(kNodes, WideK{5, 0});
      level1.SumsOfT(log.view(), role, log.betas, sums.data());
      for (size_t s = 0; s < kNodes; ++s) {
        ASSERT_EQ(Reduce(sums[s]).v, (expected[s] + K{5}).v) << s;
      }
    });
  }
}

TEST_P(Level1Test, Fold) {
  const ProductForms forms = MakeProductForms(log.of.gadget, log.betas);
  const size_t columns = log.view().columns(), sections = log.of.nodes.size();
  // Products outermost, with a gap after every product.
  const size_t section_step = columns, product_step = sections * columns + 8;
  const size_t size = forms.products * product_step;
  const auto check = [&](Level1& level1, Weighting weighting) {
    std::vector<K> u(size, K{7}), v(size, K{7}), expected_u = u, expected_v = v;
    level1.Fold(log.view(), log.eq, forms, weighting,
                {u.data(), v.data(), section_step, product_step});
    for (size_t i = 0; i < sections; ++i) {
      for (size_t l = 0; l < columns; ++l) {
        K e[kMaxGadgetWires];
        for (size_t k = 0; k < forms.wires; ++k) e[k] = log.Folded(Wires::kSum, i, k, l);
        const ColumnWeight weight(weighting, log.omega[i][l / 64], l % 64);
        for (size_t m = 0; m < forms.products; ++m) {
          const size_t at = i * section_step + m * product_step + l;
          expected_u[at] = weight.u * Dot(forms.u[m], e, forms.wires);
          expected_v[at] = weight.v * Dot(forms.v[m], e, forms.wires);
        }
      }
    }
    EXPECT_TRUE(u == expected_u);
    EXPECT_TRUE(v == expected_v);
  };
  for (Weighting weighting : kWeightings) {
    ForEachVariant([&](Level1& level1) { check(level1, weighting); });
  }
}

TEST_P(Level1Test, Functional) {
  const auto random_f = [&] { return F{K{log.random()}, K{log.random()}}; };
  const size_t columns = log.view().columns(), wires = GadgetWires(log.of.gadget);
  std::vector<F> wire_u(wires), wire_v(wires), column(columns), section(log.of.nodes.size());
  for (auto* list : {&wire_u, &wire_v, &column, &section}) {
    for (F& f : *list) f = random_f();
  }
  const auto check = [&](Wires which, Weighting weighting) {
    F u{K{5}, K{}}, v{K{}, K{6}};
    for (size_t i = 0; i < section.size(); ++i) {
      for (size_t l = 0; l < columns; ++l) {
        F in_u, in_v;
        for (size_t k = 0; k < wires; ++k) {
          const K e = log.Folded(which, i, k, l);
          in_u += wire_u[k] * e;
          in_v += wire_v[k] * e;
        }
        const ColumnWeight weight(weighting, log.omega[i][l / 64], l % 64);
        u += in_u * column[l] * section[i] * weight.u;
        v += in_v * column[l] * section[i] * weight.v;
      }
    }
    ForEachVariant([&](Level1& level1) {
      FunctionalSums sums = {F{K{5}, K{}}, F{K{}, K{6}}};
      level1.Evaluate(
          log.view(), which,
          {log.eq, wire_u.data(), wire_v.data(), column.data(), section.data(), weighting}, sums);
      EXPECT_EQ(sums.u, u);
      EXPECT_EQ(sums.v, v);
    });
  };
  for (Weighting weighting : kWeightings) {
    for (Wires which : {Wires::kOwn, Wires::kLeft, Wires::kSum}) check(which, weighting);
  }
}

// A variant that is missing in a table would not be tested at all.
TEST(KernelTablesTest, HaveAVariantForEveryTier) {
  const auto& fields = AllFieldKernels().supported();
  const auto& passes = AllLevel1Kernels().supported();
  ASSERT_EQ(fields.size(), passes.size());
  for (size_t i = 0; i < fields.size(); ++i) EXPECT_EQ(fields[i].tier, passes[i].tier);
  EXPECT_GE(fields.size(), IsaSupported(Isa::kAvx2) ? 2u : 1u);
}

std::vector<Case> AllCases() {
  std::vector<Case> all;
  for (size_t g = 0; g < kGadgets; ++g) {
    const auto gadget = static_cast<Gadget>(g);
    all.push_back({gadget, 8, {32}, 64});
    all.push_back({gadget, 64, {32}, 512});
  }
  for (Gadget gadget : {Gadget::kSbox17, Gadget::kSbox22, Gadget::kProducts1}) {
    all.push_back({gadget, 8, {5}, 3});
    all.push_back({gadget, 8, {32, 32, 32, 32, 32, 32, 32, 32, 32, 31, 17}, 61});
    all.push_back({gadget, 64, {32, 16}, 512});
    all.push_back({gadget, 64, {32, 1}, 77});
    all.push_back({gadget, 64, {19}, 300});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Cases, Level1Test, testing::ValuesIn(AllCases()),
                         [](const testing::TestParamInfo<Case>& info) {
                           const Case& c = info.param;
                           return "gadget" + std::to_string(static_cast<int>(c.gadget)) + "_rows" +
                                  std::to_string(c.row_bytes) + "_lanes" + std::to_string(c.lanes) +
                                  "_sections" + std::to_string(c.nodes.size()) + "_of" +
                                  std::to_string(c.nodes[0]);
                         });

}  // namespace
}  // namespace mpckdc::proof
