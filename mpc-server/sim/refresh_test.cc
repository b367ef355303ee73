// SPDX-License-Identifier: Apache-2.0
//
// Refreshes of the shares in simulated realms: on lines of any length, and what becomes of one that
// is cut off.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/sim/small_realm.h"

namespace mpckdc::sim {
namespace {

struct RefreshRealm : SmallRealm {
  void Ask(uint64_t from, absl::Duration limit = absl::Seconds(30)) {
    for (int p = 0; p < kParties; ++p) {
      servers.process(p)->engine->Refresh(from, servers.clock(p).Now() + limit,
                                          [](const absl::Status&) {});
    }
  }
  uint64_t EpochOf(int p) { return servers.process(p)->store->Epoch().epoch; }
  uint64_t Sessions(int p) { return servers.process(p)->engine->Status().sessions; }
};

// One session ends, at all three, and the next one is in the next epoch, with no pause: however
// long a vote takes. Who has both votes does not close its lines under a third that lacks one.
TEST(SimRefresh, BeginsAtOnceHoweverFarTheServersAre) {
  for (int from = 0; from < kParties; ++from) {
    for (int to = 0; to < kParties; ++to) {
      if (from == to) continue;
      RefreshRealm realm;
      realm.Start();
      realm.network.Slow(from, to, absl::Milliseconds(30), absl::Milliseconds(30), 0);
      realm.Ask(1);
      realm.RunFor(absl::Milliseconds(600));
      for (int p = 0; p < kParties; ++p) {
        EXPECT_EQ(realm.EpochOf(p), 2u) << "slow from " << from << " to " << to;
        EXPECT_EQ(realm.Sessions(p), 2u) << "slow from " << from << " to " << to;
      }
      realm.Submit(1);
      realm.RunFor(absl::Seconds(1));
      EXPECT_EQ(realm.answers[1], (std::vector<Verdict>{Verdict::kOk, Verdict::kOk, Verdict::kOk}));
    }
  }
}

// Nobody is at fault where a line breaks amid a refresh: the next session refreshes.
TEST(SimRefresh, ALineThatBreaksDelaysItByOneSession) {
  for (const char* at : {"send agreement", "send hello", "receive seed", "send confirm"}) {
    for (int skip = 0; skip < 6; ++skip) {
      RefreshRealm realm;
      int left = -1;
      realm.servers.SetStepHook([&](int p, const absl::string_view step) {
        if (p == 1 && step == at && left-- == 0) realm.network.Cut(1, 2);
        return false;
      });
      realm.Start();
      left = skip;
      realm.Ask(1);
      realm.RunFor(absl::Seconds(4));
      for (int p = 0; p < kParties; ++p) EXPECT_EQ(realm.EpochOf(p), 2u) << at << " " << skip;
    }
  }
}

// One of the three was restarted and knows nothing of the lines, which the others tried in the
// session before. Found by seed 66.
TEST(SimRefresh, TheFirstSessionOfAProcessMayRefresh) {
  for (int restarted = 0; restarted < kParties; ++restarted) {
    RefreshRealm realm;
    realm.Start();
    realm.servers.Kill(restarted, "the test");
    realm.servers.Start(restarted);
    realm.Ask(1);
    realm.RunFor(absl::Milliseconds(1500));
    for (int p = 0; p < kParties; ++p) {
      EXPECT_EQ(realm.EpochOf(p), 2u) << p;
      EXPECT_TRUE(realm.servers.process(p)->engine->Status().peers_connected) << p;
    }
    realm.Submit(1);
    realm.RunFor(absl::Milliseconds(200));
    EXPECT_EQ(realm.answers[1], (std::vector<Verdict>{Verdict::kOk, Verdict::kOk, Verdict::kOk}));
  }
}

// By their own clocks, one of which was hours ahead when the last epoch was entered.
TEST(SimRefresh, TheServersAskByThemselves) {
  RefreshRealm realm;
  realm.servers.SetRefreshes({.every = absl::Seconds(20), .wish = absl::Seconds(40)});
  realm.Start();
  realm.servers.clock(1).Set(absl::Hours(5));
  realm.RunFor(absl::Seconds(25));
  for (int p = 0; p < kParties; ++p) EXPECT_EQ(realm.EpochOf(p), 2u) << p;
  realm.servers.clock(1).Set(absl::ZeroDuration());
  realm.RunFor(absl::Seconds(30));
  for (int p = 0; p < kParties; ++p) EXPECT_EQ(realm.EpochOf(p), 3u) << p;
}

}  // namespace
}  // namespace mpckdc::sim
