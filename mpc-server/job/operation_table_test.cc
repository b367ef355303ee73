// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/job/operation_table.h"

#include <set>
#include <tuple>

#include "gtest/gtest.h"

namespace mpckdc {
namespace {

TEST(OperationTable, EachRowOnceAndOfAKnownOperation) {
  std::set<std::tuple<Operation, PartKind, uint32_t>> seen;
  for (const PartRule& rule : kPartRules) {
    EXPECT_TRUE(seen.insert({rule.operation, rule.kind, rule.usage}).second);
    ASSERT_NE(FindOperation(rule.operation), nullptr);
    EXPECT_LE(rule.min_count, rule.max_count);
    EXPECT_EQ(rule.of_client && !FindOperation(rule.operation)->needs_client, false);
  }
}

// Every class that a row allows has the row's usage among its keys.
TEST(OperationTable, UsagesExistInTheClassesAllowed) {
  for (const PartRule& rule : kPartRules) {
    for (const KeyClass c : {KeyClass::kUser, KeyClass::kTgs, KeyClass::kService, KeyClass::kTgsOld}) {
      if (!Allows(rule.classes, c)) continue;
      const auto usages = UsagesOf(c);
      EXPECT_NE(std::find(usages.begin(), usages.end(), rule.usage), usages.end());
    }
  }
}

// What makes tickets and replies has a precondition; checksums of authorization data have none.
TEST(OperationTable, NothingIsSealedWithoutAPrecondition) {
  for (const PartRule& rule : kPartRules) {
    if (rule.precondition != Precondition::kNothing) continue;
    EXPECT_EQ(rule.kind, PartKind::kMakeMac);
    EXPECT_TRUE(rule.usage == kUsagePacChecksum || rule.usage == kUsageCammac) << rule.usage;
  }
}

}  // namespace
}  // namespace mpckdc
