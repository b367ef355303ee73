// SPDX-License-Identifier: Apache-2.0
//
// Each deviation of the table in doc/garbled.md against three engines and real batches: it is
// found, and no honest server is accused alone.
#include <cstdio>
#include <optional>
#include <string>
#include <tuple>
#include <variant>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/testing/garbled_attack.h"

namespace mpckdc::garbled_attack {
namespace {

// Enctype, and how many batches were honest: so each server is E.
class LiesTest : public ::testing::TestWithParam<std::tuple<int32_t, int>> {
 protected:
  // The finder's report of its batch is what it quarantines itself for; both go into logs.
  static void ExpectReported(GarbledAttack& attack, int finder) {
    const absl::Status reported = attack.realm().recorder(finder).Batches().back().status;
    ASSERT_TRUE(SuspectsOf(reported).has_value()) << reported;
    EXPECT_EQ(reported.message(), attack.SeenBy(finder)->text);
    EXPECT_EQ(*SuspectsOf(reported), attack.SeenBy(finder)->suspects);
  }
};

TEST_P(LiesTest, AreFoundWhereTheTableSays) {
  const auto [enctype, honest] = GetParam();
  for (const Lie& lie : kLies) {
    SCOPED_TRACE(lie.what);
    GarbledAttack attack(enctype);
    for (int i = 0; i < honest; ++i) {
      ASSERT_VERDICT_OK(attack.Run(attack.OpenPreauth(), nullptr).combined);
    }
    const End end = attack.Run(attack.OpenPreauth(), &lie);
    EXPECT_EQ(end.told, 1u);
    EXPECT_FALSE(end.combined.judgement.ok()) << "the KDC has nothing";
    ASSERT_TRUE(attack.Found(lie, end.batch));
    const int finder = PartyOf(lie.finder, end.batch), liar = PartyOf(lie.liar, end.batch);
    attack.ExpectNoHonestServerAccusedAlone(liar);
    ExpectReported(attack, finder);
    EXPECT_VERDICT(end.answers[finder], Verdict::kUnavailable);
    if (lie.finder == kE) {
      EXPECT_FALSE(end.result_left) << "E tells nothing before it has checked";
      for (const JobResult& answer : end.answers) EXPECT_VERDICT(answer, Verdict::kUnavailable);
    }
    if (honest == 0) {
      std::printf("enctype %d, %s of %s: %s\n", enctype, lie.what, kRoleNames[lie.liar],
                  attack.SeenBy(finder)->text.c_str());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Enctypes, LiesTest,
                         ::testing::Combine(::testing::Values(17, 18, 19, 20),
                                            ::testing::Values(0, 1, 2)));

// Whoever alters the commitment to one value of a bit learns nothing from the failure: it comes for
// both values, in the same words.
TEST(CommitmentTest, WhetherARunFailsTellsNoBit) {
  for (size_t commitment = 0; commitment < 24; ++commitment) {
    const auto at = static_cast<ptrdiff_t>(sizeof(Label) * (1 + commitment));
    const Lie lie = {"another commitment", kG1, kE, at, kE, false, kTables, ""};
    GarbledAttack attack(kEnctypeAes128Sha1);
    const End end = attack.Run(attack.OpenPreauth(), &lie);
    EXPECT_EQ(end.told, 1u);
    EXPECT_TRUE(attack.Found(lie, end.batch)) << commitment;
    EXPECT_FALSE(end.result_left);
  }
}

// ---- A whole login ----

// The ticket is made in rounds beside the pre-authentication's run; then comes the request's
// checksum.
class LoginTest : public ::testing::TestWithParam<int32_t> {
 protected:
  // A long message of G1 to E is altered: the first one, or the first behind a round without one.
  void ExpectFound(bool of_checksum) {
    constexpr Role liar = kG1, evaluator = kE;
    GarbledAttack attack(GetParam());
    bool told = false, ended = false;
    std::optional<size_t> last;
    attack.wires().SetAlter([&](Role from, Role to, size_t round, absl::Span<uint8_t> bytes) {
      if (told || from != liar || to != evaluator || bytes.size() < 4000) return;
      ended = ended || (last.has_value() && round > *last + 1);
      last = round;
      if (of_checksum && !ended) return;
      bytes[40] ^= 1;
      told = true;
    });
    Realm& realm = attack.realm();
    const End end = attack.Run(realm.Login(realm.alice), nullptr);
    EXPECT_TRUE(told);
    for (const JobResult& answer : end.answers) EXPECT_VERDICT(answer, Verdict::kUnavailable);
    const Lie lie = {"a table", liar, evaluator, 0, evaluator, false, kTables, ""};
    EXPECT_TRUE(attack.Found(lie, end.batch));
    attack.ExpectNoHonestServerAccusedAlone(PartyOf(liar, end.batch));
  }
};

TEST_P(LoginTest, AnAlteredPreauthenticationEndsItAll) { ExpectFound(false); }
TEST_P(LoginTest, AnAlteredChecksumEndsItAll) { ExpectFound(true); }

INSTANTIATE_TEST_SUITE_P(Enctypes, LoginTest, ::testing::Values(17, 18, 19, 20));

// Permute bits are G1's and G2's component of an output, E's is G1's too: whoever gives the KDC
// another one is contradicted by its other holder.
TEST(OutputTest, AnotherComponentIsNamedByTheKdc) {
  GarbledAttack attack(kEnctypeAes128Sha256);
  for (int liar = 0; liar < kParties; ++liar) {
    End end = attack.Run(attack.OpenPreauth(), nullptr);
    ASSERT_VERDICT_OK(end.combined);
    std::visit([](auto& open) { open.share[3] ^= 1; }, end.answers[liar].opens[0]);
    const JobResult combined = Combine(end.answers);
    EXPECT_EQ(combined.judgement.verdict, Verdict::kInconsistent);
    EXPECT_THAT(combined.judgement.detail, ::testing::HasSubstr(absl::StrCat("P", liar)));
  }
}

}  // namespace
}  // namespace mpckdc::garbled_attack
