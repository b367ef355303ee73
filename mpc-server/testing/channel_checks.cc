// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/channel_checks.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/base/clock.h"
#include "mpc-server/wire/ring.h"

namespace mpckdc {

using testing::HasSubstr;

absl::Time In(double seconds) { return SystemClock().Now() + absl::Seconds(seconds); }

void OnThreeThreads(const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int p = 0; p < kParties; ++p) threads.emplace_back([&body, p] { body(p); });
  for (std::thread& t : threads) t.join();
}

// What every channel must do, over any three channels.
void CheckChannels(const std::array<PeerChannel*, 3>& channels) {
  OnThreeThreads([&](int p) {
    PeerChannel& c = *channels[p];
    const uint8_t hello[1] = {static_cast<uint8_t>(10 + p)};
    EXPECT_TRUE(c.Send(Neighbour::kNext, FrameType::kHello, hello).ok());
    EXPECT_TRUE(c.Send(Neighbour::kPrev, FrameType::kAgreement, {}).ok());
    absl::StatusOr<Frame> a = c.Receive(Neighbour::kPrev, In(10));
    ASSERT_TRUE(a.ok()) << a.status();
    EXPECT_EQ(a->type, FrameType::kHello);
    EXPECT_EQ(a->payload, SecretBytes(1, static_cast<uint8_t>(10 + PrevParty(p))));
    absl::StatusOr<Frame> b = c.Receive(Neighbour::kNext, In(10));
    ASSERT_TRUE(b.ok()) << b.status();
    EXPECT_TRUE(b->payload.empty());
    EXPECT_TRUE(absl::IsDeadlineExceeded(c.Receive(Neighbour::kNext, In(0.02)).status()));
    c.BindSession(77);
    // Larger than any socket buffer, all directions at once.
    const size_t size = 12 << 20;
    uint16_t round = 0;
    for (size_t n : {size_t{1}, size_t{17000}, size}) {
      std::vector<uint8_t> next(n, static_cast<uint8_t>(p));
      std::vector<uint8_t> prev(n / 2, static_cast<uint8_t>(8 + p));
      std::vector<uint8_t> from_prev(n), from_next(n / 2);
      const absl::Status s =
          c.Exchange({77, 1, round++, "big"}, {next, absl::MakeSpan(from_prev), prev,
                                               absl::MakeSpan(from_next)}, In(60));
      ASSERT_TRUE(s.ok()) << s;
      EXPECT_EQ(from_prev, std::vector<uint8_t>(n, static_cast<uint8_t>(PrevParty(p))));
      EXPECT_EQ(from_next, std::vector<uint8_t>(n / 2, static_cast<uint8_t>(8 + NextParty(p))));
    }
    // 2 control frames, 3 rounds to next, 2 non-empty to prev.
    EXPECT_EQ(c.Counters().frames_sent, 7u);
    EXPECT_EQ(c.Counters().frames_received, 7u);
  });
  // A party that gives up is heard in the middle of a round; a silent one is named.
  OnThreeThreads([&](int p) {
    PeerChannel& c = *channels[p];
    uint8_t buffer[4];
    const RoundBuffers round = {buffer, absl::MakeSpan(buffer), {}, {}};
    const uint8_t why[5] = {'t', 'i', 'r', 'e', 'd'};
    if (p == 0) {
      EXPECT_TRUE(c.Send(Neighbour::kNext, FrameType::kAbort, why).ok());
      return;
    }
    const absl::Status s = c.Exchange({77, 2, 0, "stalled"}, round, In(p == 1 ? 10 : 0.2));
    if (p == 1) {
      EXPECT_TRUE(absl::IsAborted(s)) << s;
      EXPECT_THAT(s.ToString(), HasSubstr("tired"));
      EXPECT_THAT(s.ToString(), HasSubstr("P0"));
    } else {
      EXPECT_TRUE(s.ok()) << s;  // P1 had sent before it heard P0
    }
    EXPECT_THAT(c.Exchange({77, 3, 0, "late"}, round, In(0.1)).ToString(),
                HasSubstr(p == 1 ? "tired" : "P1"));
  });
}

namespace {

// The bytes of round r from party p to one side: every round and pair differs.
std::vector<uint8_t> Pattern(int p, int r, size_t size) {
  std::vector<uint8_t> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * 7 + i / 251 + 50 * p + r);
  return bytes;
}

}  // namespace

// Rounds of very different sizes, `depth` of them under way at a time, both directions.
void CheckRoundsInFlight(const std::array<PeerChannel*, 3>& channels, int depth) {
  constexpr int kRounds = 12;
  const auto to_next = [](int r) { return size_t{r % 3 == 1 ? 17u : 5'000'000u + 777u * r}; };
  const auto to_prev = [](int r) { return size_t{r % 4 == 3 ? 0u : 3'000'000u - 999u * r}; };
  OnThreeThreads([&](int p) {
    PeerChannel& c = *channels[p];
    c.BindSession(9);
    std::vector<std::vector<uint8_t>> next, prev;
    for (int r = 0; r < kRounds; ++r) {
      next.push_back(Pattern(p, r, to_next(r)));
      prev.push_back(Pattern(p + 3, r, to_prev(r)));
    }
    for (int r = 0; r < kRounds + depth; ++r) {
      const RoundId posted = {9, 1, static_cast<uint16_t>(r), "post"};
      if (r < kRounds) {
        ASSERT_TRUE(c.Post(posted, next[r], prev[r]).ok());
      }
      const int k = r - depth;
      if (k < 0) continue;
      std::vector<uint8_t> from_prev(to_next(k)), from_next(to_prev(k));
      const absl::Status s =
          c.Collect({9, 1, static_cast<uint16_t>(k), "collect"}, absl::MakeSpan(from_prev),
                    absl::MakeSpan(from_next), In(60));
      ASSERT_TRUE(s.ok()) << s;
      EXPECT_TRUE(from_prev == Pattern(PrevParty(p), k, to_next(k))) << k;
      EXPECT_TRUE(from_next == Pattern(NextParty(p) + 3, k, to_prev(k))) << k;
      std::fill(next[k].begin(), next[k].end(), 0xEE);  // the caller's again
      std::fill(prev[k].begin(), prev[k].end(), 0xEE);
    }
    EXPECT_EQ(c.Counters().frames_sent, 21u);
    EXPECT_EQ(c.Counters().bytes_sent, c.Counters().bytes_received);
  });
}

// Several rounds posted, then one party gives up, or is silent, or collects in the wrong order.
void CheckFailuresInFlight(const std::array<PeerChannel*, 3>& channels) {
  OnThreeThreads([&](int p) {
    PeerChannel& c = *channels[p];
    std::vector<uint8_t> big(6 << 20), into(6 << 20);
    const auto collect = [&](uint16_t r, double seconds) {
      return c.Collect({9, 1, r, "stalled"}, absl::MakeSpan(into), {}, In(seconds));
    };
    if (p == 0) {  // posts one round of three and gives up
      EXPECT_TRUE(c.Post({9, 1, 0, "x"}, {}, {}).ok());
      EXPECT_TRUE(c.Send(Neighbour::kNext, FrameType::kAbort, std::vector<uint8_t>(5, 'a')).ok());
      return;
    }
    for (uint16_t r = 0; r < 3; ++r) EXPECT_TRUE(c.Post({9, 1, r, "x"}, big, {}).ok());
    if (p == 1) {
      const absl::Status s = collect(0, 10);
      EXPECT_TRUE(absl::IsAborted(s)) << s;
      EXPECT_THAT(s.ToString(), HasSubstr("prev (P0) in step \"stalled\": aaaaa"));
      EXPECT_TRUE(absl::IsAborted(c.Post({9, 1, 3, "x"}, big, {})));
    } else {
      // P1 ended with its rounds unsent, or P0 does not take ours: named, never silent.
      EXPECT_FALSE((collect(0, 0.5).ok() && collect(1, 0.5).ok() && collect(2, 0.5).ok()));
      EXPECT_THAT(collect(0, 0.1).ToString(), HasSubstr("stalled"));
    }
  });
}

}  // namespace mpckdc
