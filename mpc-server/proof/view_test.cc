// SPDX-License-Identifier: Apache-2.0
// What those who check a proof see of it says nothing about the secrets. Of a proof by P0, R is P1
// and L is P2. What R does not know is k_0, which P0 and L share: so the logs, coins, challenges
// and the other keys stay as they are, k_0 is drawn again and again, and everything that R receives
// must be uniform and without relation to each other. Likewise L, without k_1. Without the mask of
// u and v, or without the salt of the hashes, it is not, and that is seen.
#include <cmath>
#include <cstring>

#include <set>

#include "gtest/gtest.h"
#include "mpc-server/testing/control.h"
#include "mpc-server/testing/lockstep_proofs.h"
#include "mpc-server/testing/proof_control.h"
#include "mpc-server/testing/subfield.h"
#include "mpc-server/testing/synthetic_logs.h"

namespace mpckdc::proof {
namespace {

// How far counts are from equal ones, in standard deviations of chi-square.
double Sigmas(const std::vector<uint32_t>& counts) {
  double n = 0, chi = 0;
  for (const uint32_t c : counts) n += c;
  const double expected = n / static_cast<double>(counts.size());
  for (const uint32_t c : counts) chi += (c - expected) * (c - expected) / expected;
  const auto freedom = static_cast<double>(counts.size() - 1);
  return (chi - freedom) / std::sqrt(2 * freedom);
}

// Of some hundreds of statistics none is off by so much by chance (the tail of chi-square is longer
// than the normal one's); a constant is off by thousands.
constexpr double kMostSigmas = 12;

// Words of 8 bytes of the same messages in many runs.
class Views {
 public:
  void Add(const std::vector<uint8_t>& message) {
    std::vector<uint64_t> words(message.size() / 8);
    std::memcpy(words.data(), message.data(), 8 * words.size());
    all_.push_back(std::move(words));
  }
  size_t words() const { return all_[0].size(); }

  // Of the lowest 4 bits of a word.
  double Uniformity(size_t word) const {
    std::vector<uint32_t> counts(16);
    for (const auto& view : all_) ++counts[view[word] % 16];
    return Sigmas(counts);
  }
  // Of the lowest 2 bits of two words together.
  double Uniformity(size_t word, size_t other) const {
    std::vector<uint32_t> counts(16);
    for (const auto& view : all_) ++counts[4 * (view[word] % 4) + view[other] % 4];
    return Sigmas(counts);
  }
  double WorstOf(size_t first, size_t end) const {
    double worst = 0;
    for (size_t w = first; w < end; ++w) worst = std::max(worst, Uniformity(w));
    return worst;
  }
  double WorstPairWith(size_t word) const {
    double worst = 0;
    for (size_t w = 0; w < words(); ++w) {
      if (w != word) worst = std::max(worst, Uniformity(w, word));
    }
    return worst;
  }

 private:
  std::vector<std::vector<uint64_t>> all_;
};

class ViewTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kRuns = 1500;

  ViewTest() {
    // Hashed challenges would vary with what is hashed.
    ControlForTest().challenge = [](F) { return F{K{0x123456789ABCDEF1}, K{0xFEDCBA9876543211}}; };
    logs_.Add(SectionShape{Gadget::kSbox17, 9, 5});
    logs_.Add(SectionShape{Gadget::kProducts2, 70, 3});
    logs_.Add(FieldShape{{1, 2}});
  }
  ~ViewTest() override {
    ControlForTest() = {};
    UpholdForTest("ProofMask");
    UpholdForTest("ProofSalt");
  }

  // take(round, view) adds to the view what is seen in it.
  Views See(size_t unknown_key,
            const std::function<void(const LockstepRound&, std::vector<uint8_t>&)>& take) {
    Views views;
    for (uint64_t run = 0; run < kRuns; ++run) {
      LockstepSeeds seeds;
      seeds.keys[unknown_key] = 1000 + run;
      LockstepProofs proofs(seeds);
      std::vector<uint8_t> view;
      for (const absl::Status& s :
           proofs.Prove(logs_.logs(), [&](LockstepRound& round) { take(round, view); })) {
        EXPECT_TRUE(s.ok()) << s;
      }
      views.Add(view);
    }
    return views;
  }

  // Sums and levels, then u and v of L. L's claim is what makes u*v fit: R could say it beforehand.
  Views SeenByR() {
    return See(0, [](const LockstepRound& round, std::vector<uint8_t>& view) {
      if (round.step == "proof/sums" || round.step == "proof/levels") {
        view.insert(view.end(), round.to_next[0].begin(), round.to_next[0].end());
      } else if (round.step == "proof/end") {
        view.insert(view.end(), round.to_prev[2].begin(), round.to_prev[2].begin() + 2 * sizeof(F));
      }
    });
  }
  // The hashes; what stands before them, the coins and the context, it knows.
  Views SeenByL() {
    return See(1, [](const LockstepRound& round, std::vector<uint8_t>& view) {
      if (round.step != "proof/levels") return;
      view.insert(view.end(), round.to_prev[0].begin() + sizeof(Digest), round.to_prev[0].end());
    });
  }

  static constexpr size_t kEndWords = 4;
  SyntheticLogs logs_{6};
};

TEST_F(ViewTest, WhatRSeesIsUniform) {
  const Views views = SeenByR();
  const size_t end = views.words() - kEndWords;
  EXPECT_GT(end, kSumPoints - kProofNodes);
  EXPECT_LT(views.WorstOf(0, end), kMostSigmas);
  EXPECT_LT(views.WorstOf(end, views.words()), kMostSigmas);
  for (size_t w = end; w < views.words(); ++w) EXPECT_LT(views.WorstPairWith(w), kMostSigmas);
}

TEST_F(ViewTest, WithoutTheMaskUAndVAreSecretsThemselves) {
  DropForTest("ProofMask");
  const Views views = SeenByR();
  const size_t end = views.words() - kEndWords;
  EXPECT_LT(views.WorstOf(0, end), kMostSigmas);
  for (size_t w = end; w < views.words(); ++w) EXPECT_GT(views.Uniformity(w), 100) << w;
}

TEST_F(ViewTest, WhatLSeesIsUniform) {
  const Views views = SeenByL();
  EXPECT_LT(views.WorstOf(0, views.words()), kMostSigmas);
}

// Then L, who knows its own shares, tries out what the sums are made of. (Those of the last level
// have R's half of the mask in them.)
TEST_F(ViewTest, WithoutTheSaltLCanConfirmAGuess) {
  DropForTest("ProofSalt");
  const Views views = SeenByL();
  const size_t last = views.words() - sizeof(Digest) / 8;
  for (size_t w = 0; w < last; ++w) EXPECT_GT(views.Uniformity(w), 100) << w;
}

// ---- The dot product's last level, over 4 elements and exhaustively ----

using View = std::array<uint64_t, 6>;  // L's u, v and claim

class LastLevel {
 public:
  // Secret u and v of two columns, all of which L holds.
  using Secrets = std::array<K, 4>;

  // What R sees of L, given R's own shares and half of the mask, when L's half is (mask_u, mask_v).
  View Of(const Secrets& s, const std::vector<F>& r, const std::vector<F>& shares, K mask_u,
          K mask_v) {
    const F right_mask{kX, K{}};
    dot_.Resize(1);
    std::fill(dot_.u(), dot_.u() + kDotRow, F{});
    std::fill(dot_.v(), dot_.v() + kDotRow, F{});
    for (size_t i = 0; i < 2; ++i) {
      dot_.u()[i] = {s[i], K{}};
      dot_.v()[i] = {s[2 + i], K{}};
    }
    // At zero a fold leaves the first part.
    for (size_t level = 0; level + 1 < dot_.levels().size(); ++level) {
      dot_.Fold(std::vector<F>(dot_.levels()[level].variables));
    }
    const DotLevel& last = dot_.levels().back();
    dot_.SetMask(F{mask_u, K{}} + right_mask, F{mask_v, K{}} + right_mask);
    std::vector<F> left(last.points() - 1);
    dot_.Values(left.data());
    for (size_t p = 0; p < left.size(); ++p) left[p] += shares[p];
    dot_.Fold(r);
    std::array<F, 4> eq;
    NodeCoefficients(absl::MakeConstSpan(r), eq.data());
    const F mine = eq[last.mask_node()] * right_mask;
    const F claim = NextClaim(last, F{s[0] * s[2] + s[1] * s[3], K{}}, left, r);
    const F u = dot_.u()[0] + mine, v = dot_.v()[0] + mine;
    return {u.low.v, u.high.v, v.low.v, v.high.v, claim.low.v, claim.high.v};
  }

 private:
  DotProver dot_;
};

TEST(ExhaustiveViewTest, TheEndIsTheSameForAllSecrets) {
  const Subfield four(4);
  const auto& all = four.elements();
  LastLevel level;
  std::mt19937_64 random(1);
  size_t other_without_mask = 0;
  for (const K r0 : all) {
    for (const K r1 : all) {
      if (r1 == K{} || r0 == kOne) continue;  // the mask's coefficient r1 (1 + r0) is zero
      const std::vector<F> r = {{r0, K{}}, {r1, K{}}};
      std::vector<F> shares(8);
      for (F& f : shares) f = four.Of(F{K{random()}, K{}});
      const auto views = [&](const LastLevel::Secrets& secrets, bool masked) {
        std::multiset<View> seen;
        for (const K mask_u : all) {
          for (const K mask_v : all) {
            seen.insert(level.Of(secrets, r, shares, masked ? mask_u : K{}, masked ? mask_v : K{}));
          }
        }
        return seen;
      };
      const std::multiset<View> zero = views({}, true), bare = views({}, false);
      EXPECT_EQ(std::set<View>(zero.begin(), zero.end()).size(), 16u);
      for (size_t n = 1; n < 256; ++n) {
        const LastLevel::Secrets secrets = {all[n % 4], all[n / 4 % 4], all[n / 16 % 4],
                                            all[n / 64]};
        EXPECT_EQ(views(secrets, true), zero) << n;
        if (n % 16 == 1) other_without_mask += views(secrets, false) != bare;
      }
    }
  }
  EXPECT_GT(other_without_mask, 50u);
}

}  // namespace
}  // namespace mpckdc::proof
