// SPDX-License-Identifier: Apache-2.0
//
// Seeds in which everything is garbled.
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "mpc-server/sim/report.h"
#include "mpc-server/sim/world.h"

namespace mpckdc::sim {
namespace {

// All logins are garbled: servers are killed, stopped and cut off amid tables and at the result,
// and what is asserted of all runs holds.
TEST(SimOfGarbled, LoginsAmidFaults) {
  Report sum;
  for (uint64_t seed = 4; seed <= 120; seed += 5) {
    ASSERT_TRUE(GarblesAll(seed));
    const Outcome outcome = World({.seed = seed}).Run();
    EXPECT_TRUE(outcome.violations.empty()) << "seed " << seed << ": " << outcome.violations[0];
    EXPECT_GT(outcome.Event("logins that succeeded"), 10u) << "seed " << seed;
    sum.Add(seed, outcome);
  }
  for (const char* step : {"garbled/tables", "garbled/result"}) {
    for (const FaultKind kind : {FaultKind::kKill, FaultKind::kPause, FaultKind::kCut}) {
      const std::string name = absl::StrCat(FaultName(kind), " at ", step);
      std::printf("%s: %zu\n", name.c_str(), static_cast<size_t>(sum.faults[name]));
      EXPECT_GT(sum.faults[name], 2u) << name;
    }
  }
  for (const int enctype : {17, 18, 19, 20}) {
    EXPECT_GT(sum.events[absl::StrCat("replies of enctype ", enctype)], 5u) << enctype;
  }
  EXPECT_EQ(sum.steps["hmac/sha1"], 0u);
  EXPECT_GT(sum.verdicts["REPLAY"], 30u);
  EXPECT_GT(sum.verdicts["BAD_TAG"], 30u);
}

}  // namespace
}  // namespace mpckdc::sim
