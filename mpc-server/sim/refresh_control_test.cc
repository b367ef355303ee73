// SPDX-License-Identifier: Apache-2.0
//
// Seeds see a server that does not do its part of a refresh: one that enters the next share epoch
// as soon as it is ready itself (integration-tests/intruder/mutants/Prepared.patch).
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/sim/world.h"
#include "mpc-server/testing/control.h"

namespace mpckdc::sim {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

std::string FirstViolation() {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    if (!Refreshes({.seed = seed})) continue;
    const Outcome outcome = World({.seed = seed}).Run();
    if (!outcome.violations.empty()) return outcome.violations[0];
  }
  return "nothing";
}

TEST(SimControl, AServerThatEntersBeforeAllAreReadyIsSeen) {
  DropForTest("Prepared");
  EXPECT_THAT(FirstViolation(), AnyOf(HasSubstr("share epoch"), HasSubstr("different epochs"),
                                      HasSubstr("no login succeeds")));
  UpholdForTest("Prepared");
}

}  // namespace
}  // namespace mpckdc::sim
