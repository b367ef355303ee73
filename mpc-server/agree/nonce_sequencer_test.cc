// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/nonce_sequencer.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/testing/memory_share_store.h"

namespace mpckdc {
namespace {

using ::testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
constexpr uint16_t kCluster = 7;

class NonceTest : public ::testing::Test {
 protected:
  NonceTest() { Restart(); }
  void Restart() {
    nonces_ = std::make_unique<NonceSequencer>(&store_, absl::Seconds(300));
    EXPECT_TRUE(nonces_->Load().ok());
  }
  NonceMark Take(uint64_t count, absl::Time now) {
    const NonceMark base = nonces_->Propose(now);
    const absl::Status status = nonces_->Reserve(base, count, now);
    EXPECT_TRUE(status.ok()) << status;
    return base;
  }

  MemoryShareStore store_{StoreIdentity{"R", 0, kCluster}};
  std::unique_ptr<NonceSequencer> nonces_;
};

TEST_F(NonceTest, FormatIsSecondsClusterSequence) {
  const NonceMark nonce = JoinNonce({0x01020304, 0x0506, 0x0708090a0b0c});
  for (int i = 0; i < 12; ++i) EXPECT_EQ(nonce[i], i + 1);
  EXPECT_EQ(NonceText(nonce), "16909060.1286.7731092785932");
  EXPECT_EQ(SplitNonce(AdvanceNonce(nonce, 5)).sequence, 0x0708090a0b0cu + 5);
}

TEST_F(NonceTest, GrowsWithinASecondAcrossSecondsAndWhenTheClockGoesBack) {
  NonceMark end = AdvanceNonce(Take(10, kNow), 10);
  EXPECT_EQ(Take(3, kNow), end);
  const NonceMark later = Take(1, kNow + absl::Seconds(2));
  EXPECT_EQ(SplitNonce(later).sequence, 0u);
  const NonceMark back = Take(1, kNow - absl::Hours(3));
  EXPECT_EQ(back, AdvanceNonce(later, 1));
}

TEST_F(NonceTest, ARestartStartsAtTheDurableMark) {
  const NonceMark used = Take(1000, kNow);
  Restart();
  EXPECT_GE(nonces_->Propose(kNow), AdvanceNonce(used, 1000));
  const absl::Status low = nonces_->Check(used, 1, kNow);
  EXPECT_THAT(std::string(low.message()), HasSubstr("may have been used"));
}

TEST_F(NonceTest, OneWriteServesSomeSeconds) {
  Take(1, kNow);
  const NonceMark mark = nonces_->mark();
  for (int s = 0; s < 15; ++s) Take(100, kNow + absl::Seconds(s));
  EXPECT_EQ(nonces_->mark(), mark);
  Take(1, kNow + absl::Seconds(16));
  EXPECT_GT(nonces_->mark(), mark);
}

TEST_F(NonceTest, RestartsInALoopDoNotPushTheTimeAway) {
  for (int i = 0; i < 100; ++i) {
    Take(5, kNow);
    Restart();
  }
  EXPECT_LE(SplitNonce(nonces_->mark()).seconds, absl::ToUnixSeconds(kNow) + 17);
}

TEST_F(NonceTest, RefusesOtherClustersAndTimesAhead) {
  EXPECT_FALSE(nonces_->Check(JoinNonce({1'800'000'000, 8, 0}), 1, kNow).ok());
  EXPECT_FALSE(nonces_->Check(JoinNonce({1'800'000'400, kCluster, 0}), 1, kNow).ok());
  EXPECT_TRUE(nonces_->Check(JoinNonce({1'800'000'200, kCluster, 0}), 1, kNow).ok());
  const NonceMark last = JoinNonce({1'800'000'000, kCluster, (1ull << 48) - 1});
  EXPECT_FALSE(nonces_->Check(last, 1, kNow).ok());
}

TEST_F(NonceTest, JoinsTheHighestMark) {
  const NonceMark peer = JoinNonce({1'800'000'016, kCluster, 99});
  ASSERT_TRUE(nonces_->Join(peer, kNow).ok());
  EXPECT_EQ(nonces_->Propose(kNow), peer);
  EXPECT_FALSE(nonces_->Check(JoinNonce({1'800'000'000, kCluster, 0}), 1, kNow).ok());
  EXPECT_FALSE(nonces_->Join(JoinNonce({1'800'090'000, kCluster, 0}), kNow).ok());
  EXPECT_FALSE(nonces_->Join(JoinNonce({1'800'000'000, 8, 0}), kNow).ok());
  EXPECT_TRUE(nonces_->Join(NonceMark{}, kNow).ok());
}

// The peers start at this server's mark, so it must do so too.
TEST_F(NonceTest, ASessionStartsAtTheOwnMarkWhenThatIsTheHighest) {
  Take(1, kNow);
  const NonceMark mark = nonces_->mark();
  ASSERT_TRUE(nonces_->Join(NonceMark{}, kNow).ok());
  EXPECT_EQ(nonces_->Propose(kNow), mark);
  EXPECT_TRUE(nonces_->Check(AdvanceNonce(mark, 3), 1, kNow).ok());
}

TEST_F(NonceTest, JoinsAfterAllClocksWereSetBack) {
  Take(1, kNow);
  const NonceMark peer = AdvanceNonce(nonces_->mark(), 7);
  EXPECT_TRUE(nonces_->Join(peer, kNow - absl::Hours(5)).ok());
  EXPECT_EQ(nonces_->Propose(kNow - absl::Hours(5)), peer);
}

// ATTACK. A server that lies about its mark may put the nonces an hour ahead, once. If each lie counted
// from the one before, a night of sessions would put them years ahead for good: what the realm seals
// from then on would never be old.
TEST_F(NonceTest, APeerPushesTheTimeAwayByAnHourAndNoMore) {
  absl::Time now = kNow;
  for (int session = 0; session < 1000; ++session, now += absl::Seconds(1)) {
    const uint32_t seconds = SplitNonce(nonces_->mark()).seconds;
    (void)nonces_->Join(JoinNonce({seconds + 3600, kCluster, 0}), now);
    (void)nonces_->Join(JoinNonce({seconds + 15, kCluster, 0}), now);
    Take(1, now);  // a login
    if (session % 10 == 0) Restart();
  }
  EXPECT_LE(SplitNonce(nonces_->mark()).seconds, absl::ToUnixSeconds(now) + 3600 + 17);
}

// ATTACK. Nor does it leave none to use: a mark at the end of its second's numbers would have the realm
// stand still until that second is over, long after the liar is gone.
TEST_F(NonceTest, APeerUsesUpNoSecond) {
  for (const uint64_t left : {1ull, (1ull << 32) + 10, (1ull << 33) + 10}) {
    const uint32_t seconds =
        std::max<uint32_t>(SplitNonce(nonces_->mark()).seconds, 1'800'003'000);
    const NonceMark lie = JoinNonce({seconds, kCluster, kNonceSequenceEnd - left});
    ASSERT_TRUE(nonces_->Join(lie, kNow).ok());
    EXPECT_GE(Take(5, kNow), lie);
    Take(5, kNow);
    Restart();
    Take(5, kNow);
  }
  EXPECT_LE(SplitNonce(nonces_->mark()).seconds, 1'800'003'010);
}

TEST_F(NonceTest, AWriteThatFailsUsesNothing) {
  store_.FailWrites(absl::ResourceExhaustedError("disk full"));
  const NonceMark base = nonces_->Propose(kNow);
  EXPECT_EQ(nonces_->Reserve(base, 4, kNow).code(), absl::StatusCode::kResourceExhausted);
  store_.FailWrites(absl::OkStatus());
  EXPECT_EQ(Take(4, kNow), base);
}

// Found by seed 757 of the simulation with two triples. In one second, or while nonces run before
// the clock, the next mark would be the one that stands there already.
TEST_F(NonceTest, AWriteWhoseAnswerWasLostStopsNothing) {
  Take(1, kNow + absl::Minutes(4));
  for (const absl::Time now : {kNow + absl::Minutes(5), kNow}) {
    store_.engine().LoseAnswer("raise nonce mark", absl::UnavailableError("the answer is lost"));
    const NonceMark base = AdvanceNonce(nonces_->mark(), 1);
    EXPECT_TRUE(absl::IsUnavailable(nonces_->Reserve(base, 4, now)));
    const absl::Status again = nonces_->Reserve(base, 4, now);
    EXPECT_TRUE(again.ok()) << again;
    const NonceMark used = AdvanceNonce(base, 4);
    EXPECT_GT(*store_.ReadNonceMark(), used);
  }
}

}  // namespace
}  // namespace mpckdc
