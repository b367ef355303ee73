// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/job/tgt_header.h"

#include "gtest/gtest.h"

namespace mpckdc {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
constexpr absl::Duration kLife = absl::Hours(24 * 7);
constexpr absl::Duration kSkew = absl::Seconds(300);

TgtHeader Header(absl::Time origin) { return NewTgtHeader(PrincipalId{9}, 77, origin, kLife); }

TEST(TgtHeader, RoundTrip) {
  const TgtHeader header = Header(kNow);
  const std::string bytes = EncodeTgtHeader(header);
  ASSERT_EQ(bytes.size(), kTgtHeaderBytes);
  EXPECT_EQ(bytes[0], 1);
  EXPECT_EQ(bytes[32], 77);
  EXPECT_EQ(DecodeTgtHeader(bytes), header);
  EXPECT_EQ(header.renewable_cap - header.origin_time, 7u * 24 * 3600);
}

TEST(TgtHeader, OtherVersionsAndLengthsAreNone) {
  std::string bytes = EncodeTgtHeader(Header(kNow));
  EXPECT_FALSE(DecodeTgtHeader(bytes.substr(1)).has_value());
  EXPECT_FALSE(DecodeTgtHeader(bytes + "x").has_value());
  bytes[0] = 2;
  EXPECT_FALSE(DecodeTgtHeader(bytes).has_value());
}

TEST(TgtHeader, OriginAge) {
  const auto verdict = [](absl::Duration age, absl::Duration life) {
    return CheckOriginAge(Header(kNow - age), kNow, life, kSkew).verdict;
  };
  EXPECT_EQ(verdict(absl::ZeroDuration(), kLife), Verdict::kOk);
  EXPECT_EQ(verdict(kLife + kSkew, kLife), Verdict::kOk);
  EXPECT_EQ(verdict(kLife + kSkew + absl::Seconds(1), kLife), Verdict::kRefused);
  EXPECT_EQ(verdict(-kSkew - absl::Seconds(1), kLife), Verdict::kRefused);
  // A policy made shorter counts at once; one made longer does not lift the ticket's own cap.
  EXPECT_EQ(verdict(absl::Hours(48), absl::Hours(24)), Verdict::kRefused);
  EXPECT_EQ(verdict(kLife + kSkew + absl::Seconds(1), 2 * kLife), Verdict::kRefused);
}

TEST(TgtHeader, TimesStopAtTheirEnd) {
  const TgtHeader header = NewTgtHeader({}, 1, absl::FromUnixSeconds(4294967290), kLife);
  EXPECT_EQ(header.origin_time, 4294967290u);
  EXPECT_EQ(header.renewable_cap, 4294967295u);
}

}  // namespace
}  // namespace mpckdc
