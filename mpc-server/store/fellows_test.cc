// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/store/fellows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpc-server/base/limits.h"

namespace mpckdc {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

Fellow At(int triple, absl::Duration ago, uint64_t epoch = 2) {
  return {triple, {static_cast<uint8_t>(triple + 1)}, kNow - ago, epoch};
}

int ForemanOf(std::vector<Fellow> all, int steward) {
  int foreman = -1, count = 0;
  for (int triple = 0; triple < limits::kMaxTriples; ++triple) {
    if (!IsForeman(all, triple, steward, kNow)) continue;
    foreman = triple;
    ++count;
  }
  EXPECT_LE(count, 1);
  return foreman;
}

TEST(Fellows, ANoteIsReadAsItWasWritten) {
  const Fellow fellow = At(3, absl::Microseconds(17), 0x0102030405060708);
  const SecretBytes bytes = EncodeFellow(fellow);
  ASSERT_EQ(bytes.size(), 33u);
  const auto read = DecodeFellow(3, bytes);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->name, fellow.name);
  EXPECT_EQ(read->seen, fellow.seen);
  EXPECT_EQ(read->epoch, fellow.epoch);
  EXPECT_EQ(read->triple, 3);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeFellow(3, absl::MakeConstSpan(bytes).subspan(0, size)).ok());
  }
}

TEST(Fellows, NamesOfItems) {
  for (int triple = 0; triple < limits::kMaxTriples; ++triple) {
    EXPECT_EQ(TripleOfItem(FellowItem(triple)), triple);
  }
  EXPECT_EQ(TripleOfItem("item/worker/"), -1);
  EXPECT_EQ(TripleOfItem("item/steward"), -1);
}

TEST(Fellows, OneDoesTheWork) {
  const absl::Duration up = absl::Seconds(3), down = absl::Seconds(40);
  EXPECT_EQ(ForemanOf({At(0, up), At(1, up), At(2, up)}, 0), 0);
  EXPECT_EQ(ForemanOf({At(0, up), At(1, up), At(2, up)}, 1), 1);
  EXPECT_EQ(ForemanOf({At(0, up), At(1, down), At(2, up)}, 1), 0);
  EXPECT_EQ(ForemanOf({At(2, up), At(1, up), At(0, down)}, 0), 1);
  EXPECT_EQ(ForemanOf({At(0, down), At(1, down)}, 0), -1);
  // The steward's machine may be noted nowhere yet.
  EXPECT_EQ(ForemanOf({At(1, up), At(2, up)}, 0), 1);
}

TEST(Fellows, TheOldKeyStaysForWhoIsAwayAWhile) {
  EXPECT_THAT(Behind({}, 2, kNow), ::testing::IsEmpty());
  EXPECT_THAT(Behind({At(0, absl::Seconds(1)), At(1, absl::Hours(11), 1), At(2, absl::Hours(13), 1),
                      At(3, absl::Hours(11), 2)},
                     2, kNow),
              ::testing::ElementsAre(1));
}

}  // namespace
}  // namespace mpckdc
