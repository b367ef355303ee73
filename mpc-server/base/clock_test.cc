// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/base/clock.h"

#include <array>

#include "gtest/gtest.h"
#include "mpc-server/base/random_source.h"

namespace mpckdc {
namespace {

TEST(ClockTest, SleepUntilReturnsAfterTheTime) {
  const absl::Time when = SystemClock().Now() + absl::Milliseconds(5);
  SystemClock().SleepUntil(when);
  EXPECT_GE(SystemClock().Now(), when);
}

TEST(RandomSourceTest, SeededStreamsRepeatAndDiffer) {
  SeededRandomForTest a(1), b(1), c(2);
  std::array<uint8_t, 40> ra{}, rb{}, rc{}, ra2{};
  a.Fill(absl::MakeSpan(ra));
  b.Fill(absl::MakeSpan(rb));
  c.Fill(absl::MakeSpan(rc));
  a.Fill(absl::MakeSpan(ra2));
  EXPECT_EQ(ra, rb);
  EXPECT_NE(ra, rc);
  EXPECT_NE(ra, ra2);
}

TEST(RandomSourceTest, SystemRandomDiffersFromCallToCall) {
  std::array<uint8_t, 32> a{}, b{};
  SystemRandom().Fill(absl::MakeSpan(a));
  SystemRandom().Fill(absl::MakeSpan(b));
  EXPECT_NE(a, b);
}

// An empty vector's data is nullptr, which libsodium forbids; the sanitizers' builds show it.
TEST(RandomSourceTest, NothingFromNowhereIsFilledWithNothing) {
  SystemRandom().Fill({});
  SeededRandomForTest a(1), b(1);
  std::array<uint8_t, 8> ra{}, rb{};
  a.Fill({});
  a.Fill(absl::MakeSpan(ra));
  b.Fill(absl::MakeSpan(rb));
  EXPECT_NE(ra, rb) << "no call of its own";
}

}  // namespace
}  // namespace mpckdc
