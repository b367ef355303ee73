// SPDX-License-Identifier: Apache-2.0
// What comes of a batch of which all is garbled when the second garbler tells the two others
// different stories of it and serves each of them (testing/two_views.h).
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "mpc-server/testing/two_views.h"

namespace mpckdc::two_views {
namespace {

void ExpectNoHonestServerAccusedAlone(TwoViews& attack) {
  for (const int honest : {kE, kG1}) {
    const auto seen = attack.realm().engine(honest).Status().quarantine;
    if (!seen.has_value()) continue;
    std::printf("P%d accuses %s: %s\n", honest, seen->suspects.Text().c_str(), seen->text.c_str());
    EXPECT_TRUE(seen->suspects.Has(kLiar)) << seen->text;
    EXPECT_FALSE(seen->suspects.Has(honest)) << seen->text;
  }
}
bool Accused(TwoViews& attack) {
  const auto seen = [&](int p) { return attack.realm().engine(p).Status().quarantine.has_value(); };
  return Eventually([&] { return seen(kE) || seen(kG1); }, absl::Seconds(3));
}

// Two users' keys: the first garbler's labels are not of the share that the evaluator means.
TEST(TwoViewsTest, OfTwoUsersGetNoHonestGarblerAccusedAlone) {
  TwoViews attack(/*one_user=*/false);
  ASSERT_TRUE(attack.Run());
  EXPECT_TRUE(Accused(attack));
  ExpectNoHonestServerAccusedAlone(attack);
}

// One user's key: all labels fit. What is garbled of public bits differs from what is evaluated of
// them, so the evaluator ends with labels that the first garbler does not know.
TEST(TwoViewsTest, OfOneUserGetNoHonestEvaluatorAccusedAlone) {
  TwoViews attack(/*one_user=*/true);
  ASSERT_TRUE(attack.Run());
  EXPECT_TRUE(Accused(attack));
  ExpectNoHonestServerAccusedAlone(attack);
}

// And their hash follows from all bits of the key. Who has garbled knows what it would be for any
// key: it tries passwords, alone and for as long as it likes.
TEST(TwoViewsTest, OfOneUserGiveNoHashToTryPasswordsOn) {
  TwoViews attack(/*one_user=*/true);
  ASSERT_TRUE(attack.Run());
  const bool told = Eventually([&] { return attack.ToldByE().has_value(); }, absl::Seconds(3));
  if (!told) return;  // nothing leaves the evaluator
  const PlainKey& alice = attack.realm().alice;
  std::vector<PlainKey> guesses;
  for (uint8_t i = 1; i <= 10; ++i) {
    guesses.push_back(alice);
    guesses.back().base[5] ^= i;
  }
  const auto fits = [&](const PlainKey& guess) {
    const std::string would = attack.WouldTell(guess.base);
    return attack.ToldByE()->substr(0, would.size()) == would;
  };
  const auto wrong = std::count_if(guesses.begin(), guesses.end(), fits);
  const bool right = fits(alice);
  std::printf("what the evaluator told fits the user's key: %s; other keys: %d of %zu\n",
              right ? "yes" : "no", static_cast<int>(wrong), guesses.size());
  EXPECT_FALSE(right && wrong == 0) << "the liar tells the user's key from others by itself";
}

}  // namespace
}  // namespace mpckdc::two_views
