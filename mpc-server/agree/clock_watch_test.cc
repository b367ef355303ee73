// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/clock_watch.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/agree/sealing.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/testing/memory_share_store.h"

namespace mpckdc {
namespace {

using ::testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
constexpr absl::Duration kLimit = absl::Minutes(5);

class Heard : public EngineObserver {
 public:
  void OnDegraded(const std::string& reason) override { degraded.push_back(reason); }
  void OnPeerSkew(int peer, absl::Duration skew) override { skews.emplace_back(peer, skew); }

  std::vector<std::string> degraded;
  std::vector<std::pair<int, absl::Duration>> skews;
};

struct Server {
  explicit Server(int party) : clocks(party, kLimit, &status, &observer) {}

  // What the previous and the next party's clocks say beyond this server's.
  std::string Trouble(absl::Duration prev, absl::Duration next) {
    clocks.Hear(Neighbour::kPrev, kNow + prev, kNow);
    clocks.Hear(Neighbour::kNext, kNow + next, kNow);
    clocks.Judge();
    EXPECT_EQ(status.Get().clock_suspect, !clocks.trouble().empty());
    return clocks.trouble();
  }

  SharedStatus status;
  Heard observer;
  ClockWatch clocks;
};

TEST(ClockWatch, ItTakesTwoAgainstOneOrTheLeader) {
  const absl::Duration hour = absl::Hours(1), none;
  EXPECT_EQ(Server(0).Trouble(hour, none), "");
  EXPECT_EQ(Server(0).Trouble(none, -hour), "");
  EXPECT_THAT(Server(0).Trouble(hour, -hour), HasSubstr("both peers' by -1h and 1h"));
  EXPECT_EQ(Server(1).Trouble(none, hour), "") << "P2";
  EXPECT_THAT(Server(1).Trouble(hour, none), HasSubstr("the leader's clock differs"));
  EXPECT_THAT(Server(2).Trouble(none, hour), HasSubstr("the leader's clock differs"));
  EXPECT_THAT(Server(2).Trouble(hour, hour), HasSubstr("differs from both peers'"));
}

TEST(ClockWatch, TheLeaderTakesNoNoncesThatOnePeerCannotReserve) {
  const absl::Duration hour = absl::Hours(1), none;
  Server leader(0), follower(1);
  EXPECT_EQ(leader.Trouble(kLimit, -kLimit), "");
  EXPECT_EQ(leader.clocks.NoNonces(), "");
  EXPECT_EQ(leader.Trouble(hour, none), "") << "its own clock may be good";
  EXPECT_THAT(leader.clocks.NoNonces(), HasSubstr("party 2 differs from the leader's by 1h"));
  leader.Trouble(none, -hour);
  EXPECT_THAT(leader.clocks.NoNonces(), HasSubstr("party 1 differs from the leader's by -1h"));
  leader.Trouble(none, none);
  EXPECT_EQ(leader.clocks.NoNonces(), "");
  follower.Trouble(none, hour);
  EXPECT_EQ(follower.clocks.NoNonces(), "") << "the leader decides";
}

TEST(ClockWatch, TheTextIsThatOfTheBeginningAndGoesWithTheTrouble) {
  Server server(0);
  const std::string first = server.Trouble(absl::Hours(1), absl::Hours(1));
  EXPECT_EQ(server.Trouble(absl::Hours(2), absl::Hours(1)), first);
  EXPECT_EQ(server.Trouble(absl::ZeroDuration(), absl::Hours(1)), "");
}

TEST(ClockWatch, ASkewIsToldOnceAndAgainWhenItIsWellBelow) {
  Server server(0);
  const absl::Duration large = 2 * limits::kMaxPeerSkew, less = limits::kMaxPeerSkew * 3 / 4;
  for (const absl::Duration skew : {large, large, less, absl::ZeroDuration(), less, large}) {
    server.Trouble(skew, absl::ZeroDuration());
  }
  ASSERT_EQ(server.observer.skews.size(), 3u);
  EXPECT_EQ(server.observer.skews[0], std::make_pair(2, large));
  EXPECT_EQ(server.observer.skews[1], std::make_pair(2, absl::ZeroDuration()));
}

TEST(ClockWatch, HeardBothLatelyByAClockThatDidNotJump) {
  Server server(0);
  server.clocks.Hear(Neighbour::kPrev, kNow, kNow);
  EXPECT_FALSE(server.clocks.HeardBoth(kNow));
  server.clocks.Hear(Neighbour::kNext, kNow, kNow + absl::Seconds(1));
  EXPECT_TRUE(server.clocks.HeardBoth(kNow + absl::Seconds(2)));
  EXPECT_FALSE(server.clocks.HeardBoth(kNow + absl::Seconds(3)));
  EXPECT_FALSE(server.clocks.HeardBoth(kNow)) << "the clock was set back";
}

TEST(Sealing, EachReasonStopsItAndIsToldOnce) {
  Server server(0);
  MemoryShareStore store(StoreIdentity{"R", 0, 7});
  Sealing sealing(&store, kLimit, &server.clocks, &server.status, &server.observer);
  ASSERT_TRUE(sealing.Load().ok());
  const auto reserve = [&] { return sealing.Reserve(sealing.Propose(kNow), 1, kNow); };
  EXPECT_EQ(reserve(), "");
  const NonceMark used = sealing.mark();

  server.Trouble(absl::Hours(1), absl::Hours(1));
  EXPECT_THAT(reserve(), HasSubstr("differs from both peers'"));
  EXPECT_EQ(sealing.mark(), used) << "no nonce is used up";
  EXPECT_EQ(server.status.Get().degraded, reserve());
  server.Trouble(absl::ZeroDuration(), absl::ZeroDuration());
  EXPECT_EQ(reserve(), "");

  sealing.Join(JoinNonce({1'900'000'000, 7, 0}), kNow);
  EXPECT_THAT(reserve(), HasSubstr("one of the two clocks is or was wrong"));
  sealing.NewSession();
  EXPECT_EQ(reserve(), "");

  EXPECT_THAT(sealing.Reserve(NonceMark{}, 1, kNow), HasSubstr("cannot reserve nonces"));
  EXPECT_EQ(sealing.Reserve(NonceMark{}, 0, kNow), "") << "nothing asked for";
  EXPECT_EQ(reserve(), "");
  EXPECT_EQ(server.observer.degraded.size(), 6u) << "three reasons, each gone again";
}

}  // namespace
}  // namespace mpckdc
