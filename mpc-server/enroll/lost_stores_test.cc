// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/enroll/lost_stores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mpckdc::enroll {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

v1::StatusReply Server(uint32_t party, bool initialised, uint64_t keys, uint64_t epoch = 1) {
  v1::StatusReply reply;
  reply.set_party(party);
  reply.set_initialised(initialised);
  reply.set_keys(keys);
  reply.set_epoch(epoch);
  return reply;
}

TEST(LostStores, OneIsRebuiltFromTheTwoOthers) {
  const auto lost =
      FindLostStores({Server(2, true, 7, 42), Server(0, true, 9, 42), Server(1, false, 0)});
  EXPECT_THAT(lost.empty, ElementsAre(1));
  EXPECT_THAT(lost.good, ElementsAre(0, 2));
  EXPECT_EQ(
      lost.What(),
      "the store of party 1 is empty, while parties 0 and 2 have 9 keys of the realm in share "
      "epoch 42");
  EXPECT_THAT(lost.WayOut(), HasSubstr("mpc-admin replace-party 1"));
  // A realm without keys that was refreshed has an epoch to lose.
  EXPECT_TRUE(FindLostStores({Server(0, true, 0, 2), Server(1, false, 0)}).any());
}

TEST(LostStores, OfTwoOneComesFromABackup) {
  const auto lost =
      FindLostStores({Server(0, false, 0), Server(1, true, 9, 3), Server(2, false, 0)});
  EXPECT_THAT(lost.empty, ElementsAre(0, 2));
  EXPECT_THAT(lost.What(), HasSubstr("the stores of parties 0 and 2 are empty, while party 1 has"));
  for (const char* text : {"backup of share epoch 3", "replace-party rebuilds the other",
                           "the keys are gone", "make a new realm"}) {
    EXPECT_THAT(lost.WayOut(), HasSubstr(text));
  }
  EXPECT_THAT(lost.WayOut(), Not(HasSubstr("from the two others")));
}

TEST(LostStores, ARealmInTheMakingOrBeingRebuiltHasLostNone) {
  EXPECT_FALSE(FindLostStores({Server(0, false, 0), Server(1, false, 0)}).any());
  EXPECT_FALSE(FindLostStores({Server(0, true, 0), Server(1, false, 0)}).any());
  EXPECT_FALSE(FindLostStores({Server(0, true, 5), Server(1, true, 0)}).any());
  v1::StatusReply receiving = Server(1, false, 0);
  receiving.set_receiving(true);
  EXPECT_FALSE(FindLostStores({Server(0, true, 5), receiving}).any());
}

}  // namespace
}  // namespace mpckdc::enroll
