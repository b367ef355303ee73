// SPDX-License-Identifier: Apache-2.0
// Three parties on lines of a rate and a distance; their clocks go on while messages pass.
#include "mpc-server/agree/line_trial.h"

#include <array>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/testing/memory_channel.h"
#include "mpc-server/wire/ring.h"

namespace mpckdc {
namespace {

constexpr double kMegabit = 1e6 / 8;

class PassedTime : public Clock {
 public:
  absl::Time Now() override { return now_; }
  void SleepUntil(absl::Time when) override { now_ = std::max(now_, when); }

 private:
  absl::Time now_ = absl::UnixEpoch();
};

// What comes from the next party comes over this line; what the previous one says only takes time.
struct OwnLine {
  double rate = 1000 * kMegabit;
  absl::Duration distance;
};

class OnLine : public PeerChannel {
 public:
  OnLine(PeerChannel& inner, const OwnLine& line, PassedTime& clock)
      : inner_(inner), line_(line), clock_(clock) {}

  absl::Status Post(const RoundId& id, absl::Span<const uint8_t> to_next,
                    absl::Span<const uint8_t> to_prev) override {
    posted_.push_back(to_prev.size());
    return inner_.Post(id, to_next, to_prev);
  }
  absl::Status Collect(const RoundId& id, absl::Span<uint8_t> from_prev,
                       absl::Span<uint8_t> from_next, absl::Time deadline) override {
    const absl::Status come =
        inner_.Collect(id, from_prev, from_next, absl::Now() + absl::Seconds(2));
    clock_.SleepUntil(clock_.Now() + line_.distance +
                      absl::Seconds(static_cast<double>(from_next.size()) / line_.rate));
    if (clock_.Now() > deadline) return absl::DeadlineExceededError("nothing moved");
    return come;
  }
  absl::Status Send(Neighbour to, FrameType type, absl::Span<const uint8_t> payload) override {
    return inner_.Send(to, type, payload);
  }
  absl::StatusOr<Frame> Receive(Neighbour from, absl::Time deadline) override {
    return inner_.Receive(from, deadline);
  }
  void BindSession(uint32_t session) override { inner_.BindSession(session); }
  ChannelCounters Counters() const override { return inner_.Counters(); }
  LineState Line(Neighbour) const override { return {line_.distance, 0}; }

  const std::vector<size_t>& posted() const { return posted_; }

 private:
  PeerChannel& inner_;
  const OwnLine line_;
  PassedTime& clock_;
  std::vector<size_t> posted_;
};

struct Tries {
  std::array<absl::StatusOr<LineTrial>, kParties> found = {LineTrial(), LineTrial(), LineTrial()};
  std::array<std::vector<size_t>, kParties> posted;
  absl::Duration took;  // the longest
};

Tries Try(const std::array<OwnLine, kParties>& lines, size_t most = limits::kLineTrialBytes,
          const MemoryRing::Interceptor& alter = nullptr) {
  MemoryRing ring;
  if (alter) ring.SetInterceptor(alter);
  Tries tries;
  std::array<PassedTime, kParties> clocks;
  std::vector<std::thread> threads;
  for (int p = 0; p < kParties; ++p) {
    threads.emplace_back([&, p] {
      OnLine channel(ring.channel(p), lines[p], clocks[p]);
      tries.found[p] = TryLines(channel, clocks[p], {.session = 1, .batch = 1, .round = 1}, most);
      tries.posted[p] = channel.posted();
      if (!tries.found[p].ok()) ring.Close();
    });
  }
  for (std::thread& t : threads) t.join();
  for (PassedTime& c : clocks) tries.took = std::max(tries.took, c.Now() - absl::UnixEpoch());
  return tries;
}
Tries TryAlike(const OwnLine& line) { return Try({line, line, line}); }

TEST(LineTrial, AFastLineCarriesTheLongestFiller) {
  const Tries tries = TryAlike({1000 * kMegabit, absl::Milliseconds(10)});
  for (const auto& found : tries.found) {
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_FALSE(found->any_slow);
    EXPECT_EQ(found->quick_bytes, limits::kLineTrialBytes);
    EXPECT_EQ(found->rate_own, 0u);
  }
  EXPECT_LT(tries.took, absl::Milliseconds(250));
}

TEST(LineTrial, ASlowLineIsMeasuredSoon) {
  struct {
    double mbit;
    absl::Duration most;
  } const cases[] = {{0.1, absl::Milliseconds(700)},
                     {1, absl::Milliseconds(400)},
                     {8, absl::Milliseconds(800)},
                     {17, absl::Milliseconds(500)},
                     {100, absl::Milliseconds(400)}};
  for (const auto& c : cases) {
    const Tries tries = TryAlike({c.mbit * kMegabit, absl::Milliseconds(1)});
    EXPECT_LT(tries.took, c.most) << c.mbit;
    for (const auto& found : tries.found) {
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_TRUE(found->any_slow);
      const auto rate = static_cast<double>(found->rate_own);
      EXPECT_LE(rate, c.mbit * kMegabit) << "more than it carries";
      EXPECT_GE(rate, 0.95 * c.mbit * kMegabit);
      EXPECT_LE(static_cast<double>(found->quick_bytes) / (c.mbit * kMegabit), 0.16);
    }
  }
}

// The way between two of them is no rate.
TEST(LineTrial, AFarLineIsNoSlowLine) {
  const Tries tries = TryAlike({1000 * kMegabit, absl::Milliseconds(150)});
  for (const auto& found : tries.found) {
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_FALSE(found->any_slow);
  }
}

// P1 receives what P2 sends over the slow line: P2 sends tables there.
TEST(LineTrial, AllStopAtOneSlowLineAndKnowIt) {
  const OwnLine fast, slow = {2 * kMegabit, absl::ZeroDuration()};
  const Tries tries = Try({fast, slow, fast});
  for (int p = 0; p < kParties; ++p) {
    ASSERT_TRUE(tries.found[p].ok()) << tries.found[p].status();
    EXPECT_TRUE(tries.found[p]->any_slow);
    EXPECT_EQ(tries.found[p]->quick_bytes, size_t{32} << 10);
    EXPECT_EQ(tries.found[p]->rate_own != 0, p == 2) << p;
    EXPECT_EQ(tries.posted[p], tries.posted[0]);
  }
  EXPECT_NEAR(static_cast<double>(tries.found[2]->rate_own), 2 * kMegabit, 10);
  EXPECT_EQ(tries.found[0]->rate_of_prev, tries.found[2]->rate_own);
  EXPECT_EQ(tries.found[1]->rate_of_next, tries.found[2]->rate_own);
  EXPECT_EQ(tries.found[0]->rate_of_next + tries.found[1]->rate_of_prev, 0u);
}

TEST(LineTrial, NoFillerIsLongerThanTheLimit) {
  for (const size_t most : {size_t{0}, size_t{1}, size_t{100}, size_t{100'000}}) {
    const Tries tries = Try({}, most);
    for (int p = 0; p < kParties; ++p) {
      ASSERT_TRUE(tries.found[p].ok()) << tries.found[p].status();
      EXPECT_EQ(tries.found[p]->quick_bytes, std::min(most, size_t{32} << 10));
      EXPECT_EQ(tries.posted[p].empty(), most == 0);
      for (const size_t bytes : tries.posted[p]) EXPECT_LE(bytes, std::max<size_t>(most, 5));
    }
  }
}

// P1 tells P0 that its filler took long, and P2 that it did not: then they wait for different
// messages, and nobody is believed.
TEST(LineTrial, WhoTellsTwoStoriesEndsIt) {
  const Tries tries = Try({}, limits::kLineTrialBytes, [](MemoryRing::Intercepted& m) {
    if (m.step == "line trial's time" && m.from == 1 && m.to == 0) m.payload[4] = 1;
  });
  EXPECT_TRUE(tries.found[0].ok());
  EXPECT_FALSE(tries.found[1].ok() && tries.found[2].ok());
}

// A time of zero is no endless rate, and one that is endless is a rate.
TEST(LineTrial, AnyToldTimeIsARate) {
  for (const uint8_t byte : {0x00, 0xFF}) {
    const Tries tries = Try({}, limits::kLineTrialBytes, [&](MemoryRing::Intercepted& m) {
      if (m.step != "line trial's time" || m.from != 1) return;
      std::fill(m.payload.begin(), m.payload.end(), byte);
      m.payload[4] = 1;
    });
    ASSERT_TRUE(tries.found[2].ok());
    EXPECT_GT(tries.found[2]->rate_own, 0u);
  }
}

}  // namespace
}  // namespace mpckdc
