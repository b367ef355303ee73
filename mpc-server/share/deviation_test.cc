// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/share/deviation.h"

#include <gtest/gtest.h>

#include "absl/status/statusor.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc {
namespace {

TEST(DeviationTest, SaysWhoMayHaveBeenIt) {
  const absl::Status status = Deviation(Suspects::Neighbours(1), "two stories");
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_EQ(status.message(), "two stories [deviated: P0 or P2]");
  ASSERT_TRUE(SuspectsOf(status).has_value());
  EXPECT_TRUE(SuspectsOf(status)->Has(0));
  EXPECT_FALSE(SuspectsOf(status)->Has(1));
  EXPECT_TRUE(SuspectsOf(status)->Has(2));
}

TEST(DeviationTest, AnErrorWithoutAPayloadAccusesNobody) {
  EXPECT_FALSE(IsDeviation(absl::OkStatus()));
  EXPECT_FALSE(IsDeviation(absl::DataLossError("two stories [deviated: P0 or P2]")));
}

TEST(DeviationTest, TheViewsOfTwoServersMeetInOne) {
  EXPECT_EQ(Suspects::Neighbours(0) & Suspects::Neighbours(2), Suspects::One(1));
  EXPECT_EQ(Suspects::One(1).Text(), "P1");
  EXPECT_TRUE((Suspects::One(1) & Suspects::One(2)).empty());
  EXPECT_EQ(Suspects::One(1) | Suspects::One(2), Suspects::Neighbours(0));
}

TEST(DeviationTest, AMaskIsReadBackOrRefused) {
  for (int party = 0; party < kParties; ++party) {
    EXPECT_EQ(Suspects::FromMask(Suspects::One(party).mask()), Suspects::One(party));
  }
  EXPECT_FALSE(Suspects::FromMask(8).has_value());
  EXPECT_FALSE(Suspects::FromMask(uint64_t{1} << 32).has_value());
}

TEST(DeviationTest, PassesThroughTheMacrosAndNewTexts) {
  const auto first = []() -> absl::StatusOr<int> { return Deviation(Suspects::One(2), "x"); };
  const auto second = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const int value, first());
    return value == 0 ? absl::OkStatus() : absl::InternalError("");
  };
  const absl::Status renamed = WithText(second(), "batch 7: x");
  EXPECT_EQ(SuspectsOf(renamed), Suspects::One(2));
  EXPECT_EQ(renamed.message(), "batch 7: x");
}

TEST(DeviationTest, WeighsMoreThanTheErrorsThatFollowFromIt) {
  const absl::Status lost = absl::UnavailableError("lost"), late = absl::DeadlineExceededError("");
  const absl::Status lie = Deviation(Suspects::One(0), "lie");
  EXPECT_EQ(Weightier(lost, lie), lie);
  EXPECT_EQ(Weightier(lie, lost), lie);
  EXPECT_EQ(Weightier(late, lost), late);
  EXPECT_EQ(Weightier(absl::OkStatus(), lost), lost);
}

}  // namespace
}  // namespace mpckdc
