// SPDX-License-Identifier: Apache-2.0
//
// A realm on three engines, of which one loses its store and gets it back.
#ifndef MPC_SERVER_TESTING_HAND_OVER_FIXTURE_H_
#define MPC_SERVER_TESTING_HAND_OVER_FIXTURE_H_

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "mpc-server/testing/jobs.h"
#include "mpc-server/testing/rewriting.h"

namespace mpckdc {

class HandOverTest : public ::testing::TestWithParam<int> {
 protected:
  int lost() const { return GetParam(); }

  PerParty<absl::Status> AskAll(int party, absl::Duration limit = absl::Seconds(20)) {
    PerParty<absl::Notification> done;
    PerParty<absl::Status> status;
    for (int p = 0; p < kParties; ++p) {
      realm_.engine(p).Replace(party, absl::Now() + limit, [&, p](absl::Status s) {
        status[p] = std::move(s);
        done[p].Notify();
      });
    }
    for (auto& each : done) each.WaitForNotification();
    return status;
  }
  void LoseStore(int party) {
    realm_.Stop(party);
    realm_.LoseStore(party);
    realm_.Start(party);
  }
  void ExpectReplaced(int party) {
    for (const absl::Status& status : AskAll(party)) ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(Eventually([&] { return !realm_.store(party).Epoch().receiving; }));
  }
  void Rewrite(int p) {
    ASSERT_TRUE(RewriteAll(realm_.store(p)).ok());
    ASSERT_TRUE(realm_.store(p).EndRefresh().ok());
  }
  PerParty<KeyRecord> Records(const PlainKey& key) {
    return {*realm_.store(0).Get(key.info.handle), *realm_.store(1).Get(key.info.handle),
            *realm_.store(2).Get(key.info.handle)};
  }
  void ExpectSameKey(const PlainKey& key) {
    const auto joined = JoinKey(Records(key));
    ASSERT_TRUE(joined.ok()) << joined.status();
    EXPECT_EQ(joined->base, key.base);
  }
  bool LogsIn(const PlainKey& key) { return realm_.Run(realm_.Login(key)).judgement.ok(); }

  Realm realm_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_HAND_OVER_FIXTURE_H_
