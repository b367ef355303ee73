// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/store/record_cache.h"

#include <gtest/gtest.h>

#include "mpc-server/testing/records.h"

namespace mpckdc {
namespace {

class RecordCacheTest : public ::testing::Test {
 protected:
  RecordCache::Record Record() {
    return std::make_shared<const KeyRecord>(RecordForTest(random_, "alice@EXAMPLE.COM"));
  }
  SeededRandomForTest random_{4};
};

TEST_F(RecordCacheTest, HoldsOneVersion) {
  RecordCache cache(1 << 20);
  const auto record = Record();
  cache.Add(5, record->info.handle, record);
  EXPECT_EQ(cache.Find(5, record->info.handle), record);
  EXPECT_EQ(cache.Find(4, record->info.handle), nullptr) << "a reader of the past";
  EXPECT_EQ(cache.Find(5, record->info.handle), record) << "changes nothing";
  EXPECT_EQ(cache.Find(6, record->info.handle), nullptr) << "somebody changed keys";
  EXPECT_EQ(cache.Find(5, record->info.handle), nullptr) << "and it is gone";
  cache.Add(5, record->info.handle, record);
  EXPECT_EQ(cache.Find(6, record->info.handle), nullptr) << "what was read before is not added";
  EXPECT_EQ(cache.bytes(), 0u);
}

TEST_F(RecordCacheTest, ForgetsTheOneUnusedForLongest) {
  const auto first = Record(), second = Record(), third = Record();
  RecordCache one(1 << 20);
  one.Add(1, first->info.handle, first);
  RecordCache cache(2 * one.bytes());
  cache.Add(1, first->info.handle, first);
  cache.Add(1, second->info.handle, second);
  EXPECT_NE(cache.Find(1, first->info.handle), nullptr);
  cache.Add(1, third->info.handle, third);
  EXPECT_EQ(cache.Find(1, second->info.handle), nullptr);
  EXPECT_NE(cache.Find(1, first->info.handle), nullptr);
  EXPECT_NE(cache.Find(1, third->info.handle), nullptr);
  EXPECT_LE(cache.bytes(), 2 * one.bytes());
  EXPECT_EQ(cache.Usage().records, 2u);
  EXPECT_EQ(cache.Usage().found, 3u);
  EXPECT_EQ(cache.Usage().missed, 1u);
  cache.Clear();
  EXPECT_EQ(cache.Find(1, first->info.handle), nullptr);
  EXPECT_EQ(cache.bytes(), 0u);
}

}  // namespace
}  // namespace mpckdc
