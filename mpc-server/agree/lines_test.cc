// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/lines.h"

#include "gtest/gtest.h"
#include "mpc-server/testing/memory_channel.h"

namespace mpckdc {
namespace {

constexpr absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

// Of a channel only the line.
class LineOnly : public PeerChannel {
 public:
  absl::Status Post(const RoundId&, absl::Span<const uint8_t>, absl::Span<const uint8_t>) override {
    return absl::OkStatus();
  }
  absl::Status Collect(const RoundId&, absl::Span<uint8_t>, absl::Span<uint8_t>,
                       absl::Time) override {
    return absl::OkStatus();
  }
  absl::Status Send(Neighbour, FrameType, absl::Span<const uint8_t>) override {
    return absl::OkStatus();
  }
  absl::StatusOr<Frame> Receive(Neighbour, absl::Time) override {
    return absl::UnavailableError("");
  }
  void BindSession(uint32_t) override {}
  ChannelCounters Counters() const override { return {}; }
  LineState Line(Neighbour n) const override {
    LineState line = n == Neighbour::kPrev ? prev : next;
    line.sent = sent;
    return line;
  }

  LineState prev, next;
  uint64_t sent = 1 << 20;
};

TEST(Lines, TheFarthestPairAndTheSlowestLineCount) {
  SharedStatus status;
  Lines lines(0, &status);
  EXPECT_EQ(lines.Farthest().distance, absl::ZeroDuration());
  EXPECT_EQ(lines.Farthest().rate, 0u);
  LineOnly agreement, tables;
  agreement.prev.distance = absl::Milliseconds(2);
  agreement.next.distance = absl::Milliseconds(3);
  tables.next = {absl::Milliseconds(90), 1000};  // behind what waits to be sent
  lines.Measure(agreement, tables, kNow);
  EXPECT_EQ(lines.Farthest().distance, absl::Milliseconds(3));
  EXPECT_EQ(lines.Farthest().rate, 1000u);
  EXPECT_EQ(status.Get().line_next, (LineState{absl::Milliseconds(3), 1000}));
  // The pair that the leader is not one of.
  lines.Hear(1, {{absl::Milliseconds(3), 700}, {absl::Milliseconds(9), 0}});
  EXPECT_EQ(lines.Farthest().distance, absl::Milliseconds(9));
  EXPECT_EQ(lines.Farthest().rate, 700u);
}

constexpr uint64_t kRate = 3'000'000;

// As the kernel tells it: the last sample, again and again.
TEST(Lines, ARateThatNothingConfirmsIsDoubtedSlowly) {
  SharedStatus status;
  Lines lines(0, &status);
  LineOnly channel;
  const auto measured = [&](uint64_t rate, int seconds) {
    channel.next.rate = rate;
    channel.sent += 1 << 20;
    lines.Measure(channel, channel, kNow + absl::Seconds(seconds));
    return lines.own().next.rate;
  };
  EXPECT_EQ(measured(kRate, 0), kRate);
  for (int at = 1; at < 300; ++at) EXPECT_EQ(measured(at % 2 == 0 ? kRate : 0, at), kRate) << at;
  for (int at = 300; at < 600; ++at) EXPECT_EQ(measured(kRate, at), 2 * kRate) << at;
  EXPECT_EQ(measured(0, 600), 4 * kRate);
  EXPECT_EQ(measured(kRate, 7 * 300 + 299), 128 * kRate);
  EXPECT_EQ(measured(kRate, 9 * 300), 0u) << "faster than tables are made: no bound";
  EXPECT_EQ(measured(kRate, 1'000'000'000), 0u);
  // Tables were tried, and are known to be slow again.
  EXPECT_EQ(measured(kRate + 1, 1'000'000'001), kRate + 1);
  EXPECT_EQ(measured(0, 1'000'000'002), kRate + 1);
}

// Tables on it would end the session.
TEST(Lines, OfALineThatIsTooSlowForTablesNothingIsDoubted) {
  constexpr uint64_t kTooSlow = 60'000;
  ASSERT_TRUE(IsTooSlowForTables(kTooSlow));
  SharedStatus status;
  Lines lines(0, &status);
  LineOnly channel;
  lines.Tried({.quick_bytes = 0, .any_slow = true, .rate_own = kTooSlow}, kNow);
  lines.Measure(channel, channel, kNow + absl::Hours(24));
  EXPECT_EQ(lines.own().prev.rate, kTooSlow);
  EXPECT_EQ(lines.own().next.rate, 0u);
}

TEST(Lines, ASessionBeginsWithWhatWasTried) {
  SharedStatus status;
  Lines lines(0, &status);
  LineOnly channel;
  const auto measured = [&](absl::Duration later) {
    lines.Measure(channel, channel, kNow + later);
    return lines.own().prev.rate;
  };
  channel.prev.rate = 400 * kRate;
  EXPECT_EQ(measured(absl::ZeroDuration()), 400 * kRate);
  // A new connection, which has sent less than the last one had.
  const absl::Duration kAgain = absl::Seconds(10);
  channel.sent = 1000;
  lines.Tried({.quick_bytes = 8192, .any_slow = true, .rate_own = kRate}, kNow + kAgain);
  EXPECT_EQ(measured(kAgain), kRate) << "what was fast ten seconds ago";
  // The kernel knows better, as soon as it knows enough.
  channel.prev.rate = 2 * kRate;
  EXPECT_EQ(measured(kAgain), kRate);
  channel.sent += 1 << 20;
  EXPECT_EQ(measured(kAgain), 2 * kRate);
  // No line was slow for the longest filler.
  channel.sent = 0;
  lines.Tried({.quick_bytes = 8 << 20, .any_slow = false, .rate_own = 0}, kNow + 2 * kAgain);
  EXPECT_EQ(measured(2 * kAgain), 0u);
}

// Before the others have voted.
TEST(Lines, TheLeaderKnowsOfTheLineBetweenTheOthers) {
  SharedStatus status;
  Lines lines(0, &status);
  lines.Tried({.quick_bytes = 0, .any_slow = true, .rate_of_next = 700, .rate_of_prev = 500}, kNow);
  EXPECT_EQ(lines.Farthest().rate, 500u);
  lines.Hear(2, {});
  EXPECT_EQ(lines.Farthest().rate, 700u);
  lines.Hear(1, {});
  EXPECT_EQ(lines.Farthest().rate, 0u);
}

// Tables of gcm parts pass on the agreement's connection.
TEST(Lines, EitherConnectionTells) {
  SharedStatus status;
  Lines lines(0, &status);
  LineOnly agreement, tables;
  agreement.next.rate = kRate;
  lines.Measure(agreement, tables, kNow);
  EXPECT_EQ(lines.own().next.rate, kRate);
  agreement.sent += 1 << 20;
  agreement.next.rate = kRate / 2;
  tables.sent += 1 << 20;
  tables.next.rate = 2 * kRate;
  lines.Measure(agreement, tables, kNow);
  EXPECT_EQ(lines.own().next.rate, 2 * kRate);
}

TEST(Lines, TheBestRateOfAMinuteCounts) {
  SharedStatus status;
  Lines lines(0, &status);
  LineOnly channel;
  const auto measured = [&](uint64_t rate, int seconds) {
    channel.next.rate = rate;
    channel.sent += 1 << 20;
    lines.Measure(channel, channel, kNow + absl::Seconds(seconds));
    return lines.own().next.rate;
  };
  EXPECT_EQ(measured(0, 0), 0u);
  EXPECT_EQ(measured(500, 1), 500u);
  EXPECT_EQ(measured(100, 2), 500u);
  EXPECT_EQ(measured(900, 3), 900u);
  EXPECT_EQ(measured(0, 63), 900u);
  EXPECT_EQ(measured(300, 64), 300u);
  EXPECT_EQ(measured(200, -1000), 200u) << "the clock was set back";
}

// A connection that has little to send is held back by TCP's window and not by the line.
TEST(Lines, ALittleTellsNoRate) {
  SharedStatus status;
  Lines lines(0, &status);
  LineOnly channel;
  channel.next.rate = 1000;
  channel.sent = (1 << 20) - 1;
  lines.Measure(channel, channel, kNow);
  EXPECT_EQ(lines.own().next.rate, 0u);
  channel.sent += 1 << 20;
  lines.Measure(channel, channel, kNow);
  EXPECT_EQ(lines.own().next.rate, 1000u);
}

}  // namespace
}  // namespace mpckdc
