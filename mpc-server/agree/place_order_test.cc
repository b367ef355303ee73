// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/place_order.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mpckdc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ShareStore::KeyPlace At(uint64_t place, uint8_t handle) { return {place, Handle{handle}}; }

TEST(PlaceOrder, OfNothing) {
  PlaceOrder order;
  EXPECT_THAT(order.Next(3), IsEmpty());
  order.Add({});
  EXPECT_THAT(order.Next(3), IsEmpty());
  EXPECT_EQ(order.size(), 0u);
}

// As many as are asked for, whichever part they were listed in, and each once.
TEST(PlaceOrder, GoesByThePlaces) {
  PlaceOrder order;
  order.Add({At(7, 1), At(2, 2), At(5, 3)});
  order.Add({At(1, 4)});
  order.Add({At(6, 5), At(3, 6), At(4, 7)});
  EXPECT_EQ(order.size(), 7u);
  EXPECT_THAT(order.Next(4), ElementsAre(Handle{4}, Handle{2}, Handle{6}, Handle{7}));
  EXPECT_THAT(order.Next(0), IsEmpty());
  EXPECT_THAT(order.Next(4), ElementsAre(Handle{3}, Handle{5}, Handle{1}));
  EXPECT_THAT(order.Next(4), IsEmpty());
}

// Of a store of version 1 none has a place: all have the same.
TEST(PlaceOrder, KeysWithoutAPlace) {
  PlaceOrder order;
  order.Add({At(0, 2), At(9, 1)});
  order.Add({At(0, 3), At(0, 4)});
  EXPECT_THAT(order.Next(9), ElementsAre(Handle{2}, Handle{3}, Handle{4}, Handle{1}));
}

TEST(PlaceOrder, ManyParts) {
  PlaceOrder order;
  std::vector<ShareStore::KeyPlace> all;
  uint64_t place = 1;
  for (int part = 0; part < 50; ++part) {
    std::vector<ShareStore::KeyPlace> some;
    for (int i = 0; i < 37; ++i) {
      place = place * 48271 % 2147483647;
      some.push_back({place, Handle{static_cast<uint8_t>(part), static_cast<uint8_t>(i)}});
    }
    all.insert(all.end(), some.begin(), some.end());
    order.Add(some);
  }
  std::sort(all.begin(), all.end());
  std::vector<Handle> expected, got;
  for (const auto& key : all) expected.push_back(key.handle);
  for (std::vector<Handle> next; !(next = order.Next(11)).empty();) {
    got.insert(got.end(), next.begin(), next.end());
  }
  EXPECT_EQ(got, expected);
}

}  // namespace
}  // namespace mpckdc
