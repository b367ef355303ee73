// SPDX-License-Identifier: Apache-2.0
// The error of a proof, seen: in a control build what coins and hashes draw comes from a subfield
// of q elements, and everything else is as it is. So lies are accepted, and not more often than
// doc/protocol.md says with q in the place of 2^64 and 2^128. The liar is P0.
//
// A polynomial that is not zero, of degree d in all, is zero at a random point of S^n, |S| = q,
// with probability at most d/q. Step by step, what must be zero for a lie to get through:
//
//   weights    of each node s: E_s, the sum of beta * row * word * x^lane w^k over the
//              wrong bits. Degree 3. Not the zero polynomial if for one element in one
//              word the sum of x^lane w^k is not zero (cancelling_test.cc).           3/q
//              Of a field item: one weight.                                           1/q
//   point      D = what is claimed of G, less G: degree 2 in each of 5 variables. At
//              the nodes it is E_s, elsewhere what the liar likes.                   10/q
//   products   D of d variables, degree 2 in each, whose sum over the nodes is the
//              error that is left; and the field items' error times a challenge of
//              its own: D + challenge * error of degree 2d.                          2d/q
//   levels     The same again; the last one's mask is a variable more.          6/q to 4/q
//
// The liar of these tests takes at each step the product of quadratics with two roots in S each: it
// is accepted with probability 1 - (1 - 2/q)^n for n variables, which is close to the bound.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>

#include "gtest/gtest.h"
#include "mpc-server/proof/bits64.h"
#include "mpc-server/proof/ghash_field.h"
#include "mpc-server/testing/lockstep_proofs.h"
#include "mpc-server/testing/long_tests.h"
#include "mpc-server/testing/proof_control.h"
#include "mpc-server/testing/subfield.h"
#include "mpc-server/testing/synthetic_logs.h"

namespace mpckdc::proof {
namespace {

constexpr int kLiar = 0, kRight = 1;

bool Accepted(const std::array<absl::Status, kParties>& statuses) {
  return statuses[1].ok() && statuses[2].ok();
}

// Standard deviations that a count may be off. The seeds are fixed, so a test fails always or
// never; with other seeds, once in a million.
constexpr double kSigmas = 5;

// Where it is used a third of the proofs still shows twice the rate: five deviations are less.
int Many(int trials) { return ShortOrLong(trials / 3, trials); }

struct Rate {
  uint64_t accepted = 0, trials = 0;

  double Deviation(double rate) const {
    return std::sqrt(static_cast<double>(trials) * rate * (1 - rate));
  }
  void ExpectBelow(double bound, const char* what) const {
    Print(bound, what);
    EXPECT_LE(static_cast<double>(accepted),
              static_cast<double>(trials) * bound + kSigmas * Deviation(bound))
        << what;
  }
  void ExpectNear(double rate, const char* what) const {
    EXPECT_GT(accepted, 0u) << what;
    EXPECT_NEAR(static_cast<double>(accepted), static_cast<double>(trials) * rate,
                kSigmas * Deviation(rate))
        << what;
  }
  void Print(double bound, const char* what) const {
    std::printf("%-44s %5lu of %lu accepted: %.4f, bound %.4f\n", what, accepted, trials,
                static_cast<double>(accepted) / static_cast<double>(trials), bound);
  }
};

// A bit that the liar sends to R.
struct Bit {
  size_t section, node, bit, lane;
};
void Flip(std::array<ProofLog, kParties>& logs, const Bit& at) {
  const ProofSection& s = logs[kRight].sections()[at.section];
  s.T(kProofLeft, at.node)[at.bit * s.row + at.lane / 8] ^= static_cast<uint8_t>(1 << at.lane % 8);
}

class SoundnessTest : public ::testing::Test {
 protected:
  ~SoundnessTest() override { ControlForTest() = {}; }

  // Proofs of the same logs with wrong bits, drawn anew by wrong() for each.
  Rate Trials(SyntheticLogs& logs, int trials, const std::function<std::vector<Bit>()>& wrong) {
    LockstepProofs proofs({{1, 2, 3}, {11, 12, ++coins_}});
    Rate rate;
    for (int i = 0; i < trials; ++i) {
      const std::vector<Bit> bits = wrong();
      for (const Bit& bit : bits) Flip(logs.logs(), bit);
      rate.accepted += Accepted(proofs.Prove(logs.logs()));
      ++rate.trials;
      for (const Bit& bit : bits) Flip(logs.logs(), bit);
    }
    return rate;
  }

  void DrawWeightsFrom(const Subfield& s) {
    ControlForTest().weight = [&s](K drawn) { return s.Of(drawn); };
    ControlForTest().item = [&s](F drawn) { return s.Of(drawn); };
  }

  std::mt19937_64 random_{1};
  uint64_t coins_ = 100;  // the seed of P2's: another one for each run
  const Subfield q16_{16}, q256_{256};
};

// ---- Weights ----

constexpr size_t kLanes = 70, kNodesUsed = 3;

void AddSections(SyntheticLogs& logs) {
  logs.Add(SectionShape{Gadget::kSbox17, kLanes, kNodesUsed});
  logs.Add(SectionShape{Gadget::kSbox22, 9, kNodesUsed});
  logs.Add(SectionShape{Gadget::kProducts3, kLanes, kNodesUsed});
}

TEST_F(SoundnessTest, WithWholeFieldsNothingIsAccepted) {
  SyntheticLogs logs(1);
  AddSections(logs);
  const auto any = [&] { return std::vector<Bit>{{0, random_() % kNodesUsed, random_() % 17, 3}}; };
  EXPECT_EQ(Trials(logs, 300, any).accepted, 0u);
  const auto none = [] { return std::vector<Bit>(); };
  EXPECT_EQ(Trials(logs, 100, none).accepted, 100u);
}

TEST_F(SoundnessTest, AWrongBitAgainstSmallWeights) {
  SyntheticLogs logs(1);
  AddSections(logs);
  for (const Subfield* s : {&q16_, &q256_}) {
    DrawWeightsFrom(*s);
    const auto q = static_cast<double>(s->size());
    const Rate rate = Trials(logs, s->size() == 16 ? Many(3000) : 6000, [&]() -> std::vector<Bit> {
      const size_t node = random_() % kNodesUsed;
      switch (random_() % 3) {
        case 0:
          return {{0, node, random_() % 17, random_() % kLanes}};
        case 1:
          return {{1, node, random_() % 22, random_() % 9}};
        default:
          return {{2, node, 0, random_() % kLanes}};
      }
    });
    rate.ExpectBelow(3 / q, "a wrong bit, small weights");
    rate.ExpectNear(1 - std::pow(1 - 1 / q, 3), "a wrong bit, small weights");
  }
}

// Errors that might cancel: each may under some weights.
TEST_F(SoundnessTest, SeveralWrongBitsAgainstSmallWeights) {
  SyntheticLogs logs(1);
  AddSections(logs);
  logs.Add(SectionShape{Gadget::kSbox17, kLanes, kNodesUsed});
  DrawWeightsFrom(q16_);
  const auto lane = [&] { return random_() % kLanes; };
  const std::vector<std::pair<const char*, std::function<std::vector<Bit>()>>> kinds = {
      {"two lanes of an output",
       [&] {
         return std::vector<Bit>{{0, 0, 2, 1}, {0, 0, 2, 66}};
       }},
      {"two elements of a lane",
       [&] {
         return std::vector<Bit>{{0, 1, 0, 5}, {0, 1, 9, 5}};
       }},
      {"an element's four bits",
       [&] {
         return std::vector<Bit>{{0, 1, 5, 5}, {0, 1, 6, 5}, {0, 1, 7, 5}, {0, 1, 8, 5}};
       }},
      {"two sections",
       [&] {
         return std::vector<Bit>{{0, 1, 3, 8}, {3, 1, 3, 8}};
       }},
      {"a row",
       [&] {
         std::vector<Bit> bits;
         for (size_t j = 0; j < kLanes; ++j) bits.push_back({0, 2, 11, j});
         return bits;
       }},
      {"a column",
       [&] {
         std::vector<Bit> bits;
         for (size_t j = 0; j < 17; ++j) bits.push_back({0, 2, j, 33});
         return bits;
       }},
      {"2 to 20 bits of a node",
       [&] {
         std::vector<Bit> bits;
         for (size_t n = 2 + random_() % 19; n-- > 0;)
           bits.push_back({0, 1, random_() % 17, lane()});
         return bits;
       }},
      {"2 to 20 bits of any",
       [&] {
         std::vector<Bit> bits;
         for (size_t n = 2 + random_() % 19; n-- > 0;) {
           bits.push_back({0, random_() % kNodesUsed, random_() % 17, lane()});
         }
         return bits;
       }},
  };
  uint64_t seen = 0;
  for (const auto& [what, bits] : kinds) {
    const Rate rate = Trials(logs, Many(1500), bits);
    rate.ExpectBelow(3.0 / 16, what);
    seen += rate.accepted;
  }
  EXPECT_GT(seen, static_cast<uint64_t>(Many(100)));
}

TEST_F(SoundnessTest, AWrongFieldItemAgainstSmallWeights) {
  SyntheticLogs logs(1);
  logs.Add(FieldShape{{1, 3, 2}});
  DrawWeightsFrom(q16_);
  logs.logs()[kRight].field_sections()[0].Sum(kProofLeft)[1][7] ^= 4;
  const Rate rate = Trials(logs, 3000, [] { return std::vector<Bit>(); });
  rate.ExpectBelow(1.0 / 16, "a wrong field item, small weights");
  rate.ExpectNear(1.0 / 16, "a wrong field item, small weights");
}

// ---- A prover that shares other sums than those of its bits ----

// A polynomial of degree 2 in one variable, by its values at 0, 1 and inf.
template <class T>
struct Factor {
  T at[3];

  static Factor WithRoots(T a, T b) { return {{a * b, (kUnit<T> + a) * (kUnit<T> + b), kUnit<T>}}; }
  T At(T t) const { return at[0] + t * (at[0] + at[1] + at[2]) + t * t * at[2]; }
};

// What is claimed of G less what is true: error * a factor of each variable.
template <class T>
struct Difference {
  T error;
  std::vector<Factor<T>> factors;

  T AtPoint(size_t point) const {
    T value = error;
    for (const Factor<T>& f : factors) {
      value = value * f.at[point % 3];
      point /= 3;
    }
    return value;
  }
  T At(const std::vector<T>& r) const {
    T value = error;
    for (size_t i = 0; i < factors.size(); ++i) value = value * factors[i].At(r[i]);
    return value;
  }
};

// Shares sums that fit the wrong bit, each time with as many roots as there may be. Sees what is
// drawn, when it is; weights by the coin.
class LyingProver {
 public:
  // `roots`: the subfield that points and challenges may come from.
  LyingProver(const LockstepProofs& proofs, const ProofLog& log, const Bit& bit,
              const Subfield& roots)
      : proofs_(proofs), bit_(bit), roots_(roots), statement_(log) {}

  void Alter(absl::Span<uint8_t> sums) {
    if (call_ == 0) {
      AlterFirst(reinterpret_cast<K*>(sums.data()));
    } else {
      const F error = call_ == 1 ? F{first_.At(point_), K{}} : later_.At(challenges_);
      AlterLater(error, sums.data());
    }
    ++call_;
  }
  // P0 comes first; the two others draw the same.
  void SeePoint(K r) {
    if (point_.size() < first_.factors.size()) point_.push_back(r);
  }
  void SeeChallenge(F r) {
    if (challenges_.size() < later_.factors.size()) challenges_.push_back(r);
  }

 private:
  K Root(size_t from) { return roots_.elements()[from + random_() % (roots_.size() - from)]; }

  // At the nodes it is the weighted error of the bit's node, and zero at the others: a factor is 1
  // at the node's digit and zero at the other one; its second root is free.
  void AlterFirst(K* sums) {
    const ProofWeights weights(statement_.plan(), proofs_.coins()[0]);
    const ColumnPlan::Placed& placed = statement_.plan().gadgets[0].sections[bit_.section];
    const auto gadget = static_cast<size_t>(placed.section->gadget);
    first_.error = weights.bits[gadget][bit_.bit] * weights.WordsOf(placed)[bit_.lane / 64] *
                   K{uint64_t{1} << bit_.lane % 64};
    for (size_t i = 0; i < kNodeVariables; ++i) {
      const uint64_t digit = bit_.node >> i & 1;
      Factor<K> f = Factor<K>::WithRoots(K{1 - digit}, Root(2));
      const K scale = Inverse(f.at[digit]);
      for (K& value : f.at) value = value * scale;
      first_.factors.push_back(f);
    }
    for (size_t p = 0; p < kSumPoints; ++p) {
      if (!IsNode(kNodeVariables, p)) sums[p] += first_.AtPoint(p);
    }
  }

  // The sum over the nodes is the error: of each factor's values at 0 and 1 it is 1. The mask's
  // variable counts at 0 only.
  void AlterLater(F error, uint8_t* sums) {
    const bool products = call_ == 1;
    const DotLevel* level = products ? nullptr : &statement_.levels()[call_ - 2];
    const size_t variables = products ? statement_.product_variables() : level->variables;
    later_ = {error, {}};
    challenges_.clear();
    while (later_.factors.size() < variables) {
      const bool mask = level != nullptr && level->masked() && later_.factors.size() > 0;
      const K a = Root(mask ? 1 : 0), b = Root(mask ? 1 : 0);
      Factor<F> f = Factor<F>::WithRoots({a, K{}}, {b, K{}});
      const F one = mask ? f.at[0] : f.at[0] + f.at[1];
      if (a == b || one == F{}) continue;
      for (F& value : f.at) value = value * Inverse(one);
      later_.factors.push_back(f);
    }
    for (size_t p = 1; p < PointCount(variables); ++p) {
      const F d = later_.AtPoint(p);
      if (products) {
        reinterpret_cast<K*>(sums)[p - 1] += d.low;
      } else {
        reinterpret_cast<F*>(sums)[p - 1] += d;
      }
    }
  }

  const LockstepProofs& proofs_;
  const Bit bit_;
  const Subfield& roots_;
  const Statement statement_;
  size_t call_ = 0;
  Difference<K> first_;
  Difference<F> later_;
  std::vector<K> point_;
  std::vector<F> challenges_;
  std::mt19937_64 random_{7};
};

class LyingProverTest : public SoundnessTest {
 protected:
  // Null: the whole field.
  struct Small {
    const Subfield *point, *challenges;
  };
  Rate Lie(SyntheticLogs& logs, int trials, const Subfield& roots, const Small& small) {
    const Bit bit = {0, 2, 0, 5};
    LockstepProofs proofs({{1, 2, 3}, {11, 12, ++coins_}});
    std::optional<LyingProver> liar;
    ControlForTest().point = [&](K r) {
      if (small.point != nullptr) r = small.point->Of(r);
      liar->SeePoint(r);
      return r;
    };
    ControlForTest().challenge = [&](F r) {
      if (small.challenges != nullptr) r = small.challenges->Of(r);
      liar->SeeChallenge(r);
      return r;
    };
    ControlForTest().sums = [&](int party, absl::Span<uint8_t> sums) {
      if (party == kLiar) liar->Alter(sums);
    };
    Flip(logs.logs(), bit);
    Rate rate;
    for (; rate.trials < static_cast<uint64_t>(trials); ++rate.trials) {
      liar.emplace(proofs, logs.logs()[kLiar], bit, roots);
      rate.accepted += Accepted(proofs.Prove(logs.logs()));
    }
    Flip(logs.logs(), bit);
    return rate;
  }
};

TEST_F(LyingProverTest, AgainstASmallPoint) {
  for (const Subfield* s : {&q16_, &q256_}) {
    SyntheticLogs logs(2);
    logs.Add(SectionShape{Gadget::kSbox17, 9, 5});
    const auto q = static_cast<double>(s->size());
    const Rate rate = Lie(logs, Many(4000), *s, {s, nullptr});
    rate.ExpectBelow(10 / q, "other first sums, small point");
    rate.ExpectNear(1 - std::pow(1 - 2 / q, 5), "other first sums, small point");
  }
}

TEST_F(LyingProverTest, AgainstSmallChallenges) {
  for (const Gadget gadget : {Gadget::kSbox17, Gadget::kProducts7}) {
    SyntheticLogs logs(3);
    logs.Add(SectionShape{gadget, 9, 5});
    const Statement statement(logs.logs()[0]);
    size_t variables = statement.product_variables();
    for (const DotLevel& level : statement.levels()) variables += level.variables;
    const auto n = static_cast<double>(variables);
    const Rate rate = Lie(logs, Many(6000), q256_, {nullptr, &q256_});
    rate.ExpectBelow(2 * n / 256, "other later sums, small challenges");
    rate.ExpectNear(1 - std::pow(1 - 2.0 / 256, n), "other later sums, small challenges");
  }
}

// Beside bits: with a constant more at all nodes, of which there is an even number, the product
// sums fit the claim of the bits as well, and it is a constant more at every point. It would make
// up for the field items' error if that were in K, as here; so the error has a challenge of its
// own.
class LieAboutFieldsTest : public SoundnessTest {
 protected:
  LieAboutFieldsTest() {
    logs_.Add(SectionShape{Gadget::kSbox17, 9, 5});
    logs_.Add(FieldShape{{1, 3, 2}});
    Block error{};
    error[7] = 4;
    Block& sum = logs_.logs()[kRight].field_sections()[0].Sum(kProofLeft)[1];
    sum = XorBlocks(sum, error);
    F wrong;
    FromGhash({&error, 1}, &wrong);
    ControlForTest().item = [weight = Inverse(wrong)](F) { return weight; };  // the error is 1
  }

  // P0 guesses the challenge.
  Rate Guess(int trials, K guess) {
    const Statement statement(logs_.logs()[0]);
    size_t call = 0;
    ControlForTest().sums = [&](int party, absl::Span<uint8_t> sums) {
      if (party != kLiar || call++ != 1) return;
      auto* values = reinterpret_cast<K*>(sums.data());
      for (size_t p = 1; p < PointCount(statement.product_variables()); ++p) {
        if (IsNode(statement.product_variables(), p)) values[p - 1] += guess;
      }
    };
    LockstepProofs proofs({{1, 2, 3}, {11, 12, ++coins_}});
    Rate rate;
    for (; rate.trials < static_cast<uint64_t>(trials); ++rate.trials) {
      call = 0;
      rate.accepted += Accepted(proofs.Prove(logs_.logs()));
    }
    return rate;
  }

  SyntheticLogs logs_{5};
};

TEST_F(LieAboutFieldsTest, AConstantInTheProductSumsHidesNothing) {
  EXPECT_EQ(Guess(300, kOne).accepted, 0u);
}

// That one alone is small: each prover draws it behind the product's variables, the others draw the
// same later.
TEST_F(LieAboutFieldsTest, AgainstASmallChallenge) {
  const Statement statement(logs_.logs()[0]);
  size_t of_a_prover = statement.ProductDraws(), drawn = 0;
  for (const DotLevel& level : statement.levels()) of_a_prover += level.variables;
  std::vector<F> own;
  ControlForTest().challenge = [&](F r) {
    const size_t at = drawn++ % (9 * of_a_prover);
    if (at == 0) own.clear();
    if (at < 3 * of_a_prover && at % of_a_prover == statement.product_variables()) own.push_back(r);
    return std::find(own.begin(), own.end(), r) != own.end() ? q16_.Of(r) : r;
  };
  const Rate rate = Guess(Many(3000), q16_.elements()[5]);
  rate.ExpectNear(1.0 / 16, "a constant in the product sums, a small challenge");
}

// As much as a proof can be cheated at once, in one try.
TEST_F(LyingProverTest, AgainstSmallEverything) {
  SyntheticLogs logs(4);
  logs.Add(SectionShape{Gadget::kSbox17, 70, 5});
  for (int i = 0; i < 2; ++i) logs.Add(SectionShape{Gadget::kSbox17, 70, 32});
  const Statement statement(logs.logs()[0]);
  size_t variables = kNodeVariables + statement.product_variables();
  for (const DotLevel& level : statement.levels()) variables += level.variables;
  const auto n = static_cast<double>(variables);
  DrawWeightsFrom(q256_);
  const Rate rate = Lie(logs, Many(6000), q256_, {&q256_, &q256_});
  rate.ExpectBelow((3 + 2 * n) / 256, "everything small");
  rate.ExpectNear(1 - std::pow(1 - 1.0 / 256, 3) * std::pow(1 - 2.0 / 256, n), "everything small");
}

}  // namespace
}  // namespace mpckdc::proof
