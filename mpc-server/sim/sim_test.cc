// SPDX-License-Identifier: Apache-2.0
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/sim/world.h"

namespace mpckdc::sim {
namespace {

using ::testing::HasSubstr;

TEST(Fibers, RunByTimeAndOrder) {
  Scheduler scheduler(absl::UnixEpoch());
  std::string trace;
  scheduler.Spawn("a", [&] {
    trace += 'a';
    scheduler.Sleep(absl::Seconds(2));
    trace += 'A';
  });
  Fiber* const b = scheduler.Spawn("b", [&] {
    trace += 'b';
    scheduler.Wait(absl::InfiniteFuture());
    trace += 'B';
  });
  scheduler.At(absl::FromUnixSeconds(1), [&] { scheduler.Wake(b); });
  scheduler.RunUntil(absl::FromUnixSeconds(10));
  EXPECT_EQ(trace, "abBA");
  EXPECT_EQ(scheduler.now(), absl::FromUnixSeconds(10));
}

TEST(Fibers, APausedFiberRunsLater) {
  Scheduler scheduler(absl::UnixEpoch());
  absl::Time ran;
  Fiber* const f = scheduler.Spawn("f", [&] {
    scheduler.Sleep(absl::Seconds(1));
    ran = scheduler.now();
  });
  scheduler.At(absl::FromUnixMillis(500),
               [&] { scheduler.Pause(f, absl::FromUnixSeconds(5)); });
  scheduler.RunUntil(absl::FromUnixSeconds(10));
  EXPECT_EQ(ran, absl::FromUnixSeconds(5));
}

TEST(Sim, SomeSeeds) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Outcome outcome = World({.seed = seed}).Run();
    EXPECT_TRUE(outcome.violations.empty()) << "seed " << seed << ": " << outcome.violations[0];
    EXPECT_GT(outcome.logins_ok, 10);
  }
}

TEST(Sim, ASeedReplaysExactly) {
  const Outcome a = World({.seed = 4}).Run();
  const Outcome b = World({.seed = 4}).Run();
  EXPECT_EQ(a.log, b.log);
  EXPECT_EQ(a.verdicts, b.verdicts);
  EXPECT_EQ(a.frames, b.frames);
}

// Without durable marks nonces repeat, and the invariant sees it.
TEST(Sim, ControlWithoutDurableMarks) {
  const Outcome outcome = World({.seed = 1, .forget_marks = true}).Run();
  ASSERT_FALSE(outcome.violations.empty());
  EXPECT_THAT(outcome.violations[0], HasSubstr("used a nonce"));
}

}  // namespace
}  // namespace mpckdc::sim
