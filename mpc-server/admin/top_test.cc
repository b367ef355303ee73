// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/admin/top.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "mpc-server/testing/admin_run_fixture.h"

namespace mpckdc::admin {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

v1::StatusReply Worked(uint64_t logins, uint64_t jobs, uint64_t batches) {
  v1::StatusReply status;
  status.set_started_us(7);
  status.set_logins(logins);
  status.set_jobs(jobs);
  status.set_jobs_failed(jobs / 10);
  status.set_batches(batches);
  status.set_batches_waited_us(1000 * batches);
  status.set_batches_agreed_us(2000 * batches);
  status.set_batches_computed_us(3000 * batches);
  return status;
}

TEST(TopTest, RatesAreOfTheTimeBetweenAndMeansOfItsBatches) {
  const Rates rates = RatesBetween(Worked(100, 300, 10), Worked(150, 400, 30), absl::Seconds(5));
  EXPECT_TRUE(rates.known);
  EXPECT_EQ(rates.logins, 10);
  EXPECT_EQ(rates.jobs, 20);
  EXPECT_EQ(rates.failed, 2);
  EXPECT_EQ(rates.batches, 4);
  EXPECT_EQ(rates.jobs_of_batch, 5);
  EXPECT_EQ(rates.waited, absl::Milliseconds(1));
  EXPECT_EQ(rates.agreed, absl::Milliseconds(2));
  EXPECT_EQ(rates.computed, absl::Milliseconds(3));
}

TEST(TopTest, AServerThatWasStartedInBetweenHasNone) {
  v1::StatusReply after = Worked(1, 2, 1);
  after.set_started_us(8);
  EXPECT_FALSE(RatesBetween(Worked(100, 300, 10), after, absl::Seconds(5)).known);
}

TEST(TopTest, CountersThatFallAndNoBatchesAreNoNumbersOfTheirOwn) {
  const Rates rates = RatesBetween(Worked(100, 300, 10), Worked(90, 200, 10), absl::Seconds(5));
  EXPECT_EQ(rates.logins, 0);
  EXPECT_EQ(rates.jobs_of_batch, 0);
}

TEST(TopTest, BarsGoFromOneEighthToFull) {
  EXPECT_EQ(Bars({}), "");
  EXPECT_EQ(Bars({0, 0}), "▁▁");
  EXPECT_EQ(Bars({0, 1, 4, 8}), "▁▁▄█");
}

TEST_F(RunTest, TopShowsDifferencesOfTwoLooks) {
  const Outcome shown = Expect(0, {"top", "--count", "2", "--interval", "0.1"},
                               {"LOGINS/S", "0.0 logins/s", "ready"});
  EXPECT_THAT(shown.out, Not(HasSubstr("\033[H")));  // no terminal
  std::istringstream looks(Expect(0, {"top", "--json", "--count", "2", "--interval", "0.1"}).out);
  json first, second;
  looks >> first >> second;
  EXPECT_TRUE(first["servers"][0]["rates"].is_null());
  EXPECT_EQ(second["servers"][2]["rates"]["jobs_per_s"], 0);
  EXPECT_EQ(second["logins_per_s"], 0);
}

TEST_F(RunTest, TopOfANarrowTerminalIsNotWrapped) {
  columns_ = [] { return size_t{40}; };
  const Outcome shown = Expect(0, {"top", "--count", "1"}, {"SERVER", "STATE", "ready"});
  const std::vector<std::string> lines = absl::StrSplit(shown.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 5u);
  for (const std::string& line : lines) {
    EXPECT_LE(line.size(), 40u + std::string("\033[2m\033[0m").size()) << line;
  }
}

// Somebody reads what goes through a pipe while top goes on.
TEST_F(RunTest, TopInAPipeLeavesAfterEachLook) {
  struct Flushed : std::stringbuf {
    int sync() override { return ++times, 0; }
    int times = 0;
  } buffer;
  std::ostream out(&buffer);
  EXPECT_EQ(RunTo(&out, &out, {"top", "--count", "2", "--interval", "0.1"}), 0);
  EXPECT_EQ(buffer.times, 2);
}

TEST_F(RunTest, TopGoesOnWithoutAServerAndSaysSoAtTheEnd) {
  realm_.servers[1]->Stop();
  Expect(3, {"top", "--count", "2", "--interval", "0.1"}, {"UNREACHABLE", "ready"});
  Expect(2, {"top", "--interval", "0"});
}

}  // namespace
}  // namespace mpckdc::admin
