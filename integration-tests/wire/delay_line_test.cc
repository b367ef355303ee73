// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/wire/delay_line.h"

#include <cstring>
#include <deque>
#include <random>
#include <string>
#include <tuple>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mpckdc::wire {
namespace {

using Delivered = std::tuple<int, std::string, int64_t>;  // to, bytes, due

void Put(DelayLine& line, int to, const std::string& text, int64_t now, size_t wire_bytes = 0) {
  ASSERT_FALSE(line.Room().empty());
  std::memcpy(line.Room().data(), text.data(), text.size());
  line.Send(to, text.size(), wire_bytes, now);
}

std::vector<Delivered> Due(DelayLine& line, int64_t now) {
  std::vector<Delivered> all;
  line.Deliver(now, [&](const DelayLine::Packet& p) {
    all.emplace_back(p.to, std::string(p.bytes.begin(), p.bytes.end()), p.due);
  });
  return all;
}

TEST(DelayLine, DeliversAfterTheDelayAndNotBefore) {
  DelayLine line({.delay_ns = 1000});
  EXPECT_EQ(line.NextDue(), kNever);
  Put(line, 1, "one", 50);
  EXPECT_EQ(line.NextDue(), 1050);
  EXPECT_TRUE(Due(line, 1049).empty());
  EXPECT_THAT(Due(line, 1050), testing::ElementsAre(Delivered{1, "one", 1050}));
  EXPECT_EQ(line.NextDue(), kNever);
  EXPECT_EQ(line.in_flight(), 0u);
}

TEST(DelayLine, DeliversToAllPortsInTheOrderOfTime) {
  DelayLine line({.delay_ns = 10});
  Put(line, 2, "a", 0);
  Put(line, 0, "b", 1);
  Put(line, 2, "c", 2);
  Put(line, 1, "d", 30);
  EXPECT_THAT(Due(line, 12), testing::ElementsAre(Delivered{2, "a", 10}, Delivered{0, "b", 11},
                                                  Delivered{2, "c", 12}));
  EXPECT_EQ(line.most_in_flight(), 4u);
  EXPECT_EQ(line.in_flight(), 1u);
}

TEST(DelayLine, APortCarriesItsRateAndNoMore) {
  DelayLine line({.delay_ns = 100, .bits_per_second = 8e9});  // a byte each nanosecond
  Put(line, 0, "a", 0, 1000);
  Put(line, 0, "b", 0, 500);
  Put(line, 1, "c", 0, 10);  // another port: does not wait
  Put(line, 0, "d", 5000, 1);  // the port has long been free
  EXPECT_THAT(Due(line, 9000),
              testing::ElementsAre(Delivered{1, "c", 110}, Delivered{0, "a", 1100},
                                   Delivered{0, "b", 1600}, Delivered{0, "d", 5101}));
  EXPECT_EQ(line.longest_wait_ns(), 1000);
}

TEST(DelayLine, HasNoRoomWhenAllSlotsAreTaken) {
  DelayLine line({.delay_ns = 10, .slots = 2});
  Put(line, 0, "a", 0);
  Put(line, 1, "b", 0);
  EXPECT_TRUE(line.Room().empty());
  EXPECT_EQ(Due(line, 10).size(), 2u);
  EXPECT_FALSE(line.Room().empty());
}

// Against the obvious model: a list per port.
TEST(DelayLine, LosesAndMixesUpNothing) {
  std::mt19937 random(7);
  DelayLine line({.delay_ns = 100, .slots = 16});
  std::deque<Delivered> expected[3];
  int64_t now = 0;
  for (int step = 0; step < 20000; ++step) {
    now += random() % 30;
    if (random() % 2 == 0 && !line.Room().empty()) {
      const int to = static_cast<int>(random() % 3);
      Put(line, to, std::to_string(step), now);
      expected[to].emplace_back(to, std::to_string(step), now + 100);
    }
    for (const Delivered& d : Due(line, now)) {
      std::deque<Delivered>& queue = expected[std::get<0>(d)];
      ASSERT_FALSE(queue.empty());
      ASSERT_EQ(d, queue.front());
      ASSERT_LE(std::get<2>(d), now);
      queue.pop_front();
    }
    for (const auto& queue : expected) {
      ASSERT_TRUE(queue.empty() || std::get<2>(queue.front()) > now) << "overdue";
    }
  }
  EXPECT_GT(line.most_in_flight(), 4u);
}

}  // namespace
}  // namespace mpckdc::wire
