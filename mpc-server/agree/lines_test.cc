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

// As the kernel tells it: the last sample, again and again.
TEST(Lines, ARateThatNothingConfirmsIsForgotten) {
  SharedStatus status;
  Lines lines(0, &status);
  LineOnly channel;
  const auto measured = [&](uint64_t rate, int seconds) {
    channel.next.rate = rate;
    channel.sent += 1 << 20;
    lines.Measure(channel, channel, kNow + absl::Seconds(seconds));
    return lines.own().next.rate;
  };
  EXPECT_EQ(measured(300, 0), 300u);
  for (int at = 1; at <= 300; ++at) EXPECT_EQ(measured(at % 2 == 0 ? 300 : 0, at), 300u) << at;
  for (int at = 301; at < 1000; ++at) EXPECT_EQ(measured(at % 2 == 0 ? 300 : 0, at), 0u) << at;
  EXPECT_EQ(measured(200, 1000), 200u);
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
