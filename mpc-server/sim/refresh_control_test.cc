// SPDX-License-Identifier: Apache-2.0
//
// Seeds see a server that does not do its part of a refresh: one that enters the next share epoch
// as soon as it is ready itself (integration-tests/intruder/mutants/Prepared.patch); and with two
// triples a machine that goes on with shares of before, where another of its party refreshed them
// (OwnEpoch.patch).
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/sim/world.h"
#include "mpc-server/testing/control.h"

namespace mpckdc::sim {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

std::string FirstViolation(uint64_t first, uint64_t last, bool triples) {
  for (uint64_t seed = first; seed <= last; ++seed) {
    if (!Refreshes({.seed = seed}) || HasTwoTriples({.seed = seed}) != triples) continue;
    const Outcome outcome = World({.seed = seed}).Run();
    if (!outcome.violations.empty()) return outcome.violations[0];
  }
  return "nothing";
}

TEST(SimControl, AServerThatEntersBeforeAllAreReadyIsSeen) {
  DropForTest("Prepared");
  EXPECT_THAT(FirstViolation(1, 200, false),
              AnyOf(HasSubstr("share epoch"), HasSubstr("different epochs"),
                    HasSubstr("no login succeeds")));
  UpholdForTest("Prepared");
}

TEST(SimControl, AMachineThatGoesOnWithSharesOfBeforeIsSeen) {
  DropForTest("OwnEpoch");
  EXPECT_THAT(FirstViolation(149, 400, true), HasSubstr("different records"));
  UpholdForTest("OwnEpoch");
}

}  // namespace
}  // namespace mpckdc::sim
