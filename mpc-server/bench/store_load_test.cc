// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/store_load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpc-server/testing/folder.h"

namespace mpckdc::bench {
namespace {

TEST(StoreLoadTest, FillsInPartsAndMeasuresWhatIsThere) {
  const TestFolder folder;
  const StoreOptions options = {.folder = folder.path(), .map_bytes = 64 << 20};
  size_t said = 0;
  {
    const auto store = *OpenStore(options);
    ASSERT_TRUE(FillStore(*store, 0, 300, [&](size_t done) { said = done; }).ok());
    EXPECT_EQ(said, 300u);
    EXPECT_EQ(*store->Count(KeyState::kCommitted), 300u);
    EXPECT_FALSE(store->Epoch().receiving);
    // The control: records that are not there are no cheap logins.
    const auto missing = MeasureStore(*store, 5000, 200, 16, 0);
    EXPECT_FALSE(missing.ok());
    EXPECT_FALSE(MeasureStore(*store, 300, 200, 16, 0).ok()) << "more than half of the users";
  }
  const auto store = *OpenStore(options);
  ASSERT_TRUE(FillStore(*store, 300, 5000, [](size_t) {}).ok());
  EXPECT_EQ(*store->Count(KeyState::kCommitted), 5000u);
  const auto costs = MeasureStore(*store, 5000, 200, 16, 0);
  ASSERT_TRUE(costs.ok()) << costs.status();
  for (const LoginCost& cost : {costs->first, costs->again, costs->claims}) {
    EXPECT_GT(cost.wall_us, 0);
    EXPECT_EQ(cost.database_cpu_us, 0);
  }
  EXPECT_GT(costs->first.cpu_us, 0);
  size_t entries = 0;
  ASSERT_TRUE(store->LoadReplayEntries([&](const ReplayEntry&) { ++entries; }).ok());
  EXPECT_EQ(entries, 200u);
}

}  // namespace
}  // namespace mpckdc::bench
