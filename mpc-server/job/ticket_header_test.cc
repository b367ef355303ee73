// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/job/ticket_header.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

namespace mpckdc {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
constexpr absl::Duration kLife = absl::Hours(24 * 7);
constexpr absl::Duration kSkew = absl::Seconds(300);

TicketHeader Header(absl::Time origin) {
  return NewTicketHeader(PrincipalId{9}, 77, origin, kLife);
}

TEST(TicketHeader, RoundTrip) {
  const TicketHeader header = Header(kNow);
  const std::string bytes = EncodeTicketHeader(header);
  ASSERT_EQ(bytes.size(), kTicketHeaderBytes);
  EXPECT_EQ(bytes[0], 1);
  EXPECT_EQ(bytes[32], 77);
  EXPECT_EQ(DecodeTicketHeader(bytes), header);
  EXPECT_EQ(header.renewable_cap - header.origin_time, 7u * 24 * 3600);
}

TEST(TicketHeader, OneMadeFromATicketSaysSo) {
  KeyInfo key;
  key.principal = "krbtgt/R@R";
  key.principal_id = PrincipalId{8};
  TicketHeader want = Header(kNow);
  want.initial = false;
  const TicketHeader made = ReissuedTicketHeader(Header(kNow), key, kForeignUserBit | 5);
  EXPECT_EQ(made, want);
  EXPECT_EQ(EncodeTicketHeader(made)[0], 2);
  EXPECT_EQ(DecodeTicketHeader(EncodeTicketHeader(made)), made);
  EXPECT_EQ(ReissuedTicketHeader(made, key, kForeignUserBit | 6), made);
}

// Who has its key writes what he likes into the header, so it vouches for nobody but itself.
TEST(TicketHeader, OneMadeFromAnotherRealmsTicketNamesThatRealmsKey) {
  KeyInfo key;
  key.principal = "krbtgt/R@OTHER";
  key.principal_id = PrincipalId{8};
  TicketHeader want = Header(kNow);
  want.initial = false;
  want.principal = key.principal_id;
  want.origin_job = kForeignUserBit | 5;
  EXPECT_EQ(ReissuedTicketHeader(Header(kNow), key, kForeignUserBit | 5), want);
}

std::string MessageOf(const TicketHeader& header) {
  return std::string(12, 'n') + static_cast<char>(kTicketHeaderBytes) + EncodeTicketHeader(header) +
         std::string(64, 'c');
}

// One number for all tickets of a user under a key; of tickets without a header one for each.
TEST(TicketHeader, UsersOfAnotherRealmHaveNumbers) {
  KeyInfo key, other;
  key.enctype = other.enctype = kEnctypeAes256Gcm;
  key.principal_id = PrincipalId{8};
  other.principal_id = PrincipalId{7};
  const TicketHeader bella = NewTicketHeader(PrincipalId{1}, 3, kNow, kLife),
                     later = NewTicketHeader(PrincipalId{1}, 4, kNow + absl::Hours(1), kLife),
                     marco = NewTicketHeader(PrincipalId{2}, 3, kNow, kLife);
  const JobId number = ForeignUser(key, MessageOf(bella));
  EXPECT_NE(number & kForeignUserBit, 0u);
  EXPECT_EQ(ForeignUser(key, MessageOf(later)), number);
  EXPECT_NE(ForeignUser(key, MessageOf(marco)), number);
  EXPECT_NE(ForeignUser(other, MessageOf(bella)), number);
  // Users of a third realm have numbers there already, beside that realm's name.
  KeyInfo between;
  between.principal = "krbtgt/OTHER@THIRD";
  between.principal_id = PrincipalId{6};
  const auto third = [&](JobId user) {
    return MessageOf(ReissuedTicketHeader(bella, between, kForeignUserBit | user));
  };
  EXPECT_NE(ForeignUser(key, third(1)), ForeignUser(key, third(2)));
  EXPECT_EQ(ForeignUser(key, third(1)), ForeignUser(key, third(1)));
  // Who goes around between two realms has few numbers.
  between.enctype = kEnctypeAes256Gcm;
  std::set<JobId> here;
  JobId user = number;
  for (int round = 0; round < 20; ++round) {
    const JobId there =
        ForeignUser(between, MessageOf(ReissuedTicketHeader(bella, key, user)));
    user = ForeignUser(key, third(there));
    here.insert(user);
  }
  EXPECT_LE(here.size(), 1 + kMostForeignHops);
  key.enctype = 18;
  EXPECT_NE(ForeignUser(key, "one ticket"), ForeignUser(key, "another"));
  EXPECT_EQ(ForeignUser(key, "one ticket"), ForeignUser(key, "one ticket"));
}

// A KDC numbers its jobs as it likes.
TEST(TicketHeader, NoJobsNumberMakesAUserAnotherRealms) {
  EXPECT_EQ(NewTicketHeader(PrincipalId{1}, kForeignUserBit | 3, kNow, kLife).origin_job, 3u);
}

// Only that realm knows when its user logged in: what is made of it ages from now.
TEST(TicketHeader, OneMadeFromATicketWithoutHeaderNamesItsKeyAndBeginsNow) {
  KeyInfo key;
  key.principal_id = PrincipalId{8};
  const TicketHeader made =
      ForeignTicketHeader(key, kForeignUserBit | 9, kNow, absl::Hours(24));
  EXPECT_EQ(EncodeTicketHeader(made)[0], 2);
  EXPECT_EQ(made.principal, key.principal_id);
  EXPECT_EQ(made.origin_time, absl::ToUnixSeconds(kNow));
  EXPECT_EQ(made.renewable_cap - made.origin_time, 24u * 3600);
  EXPECT_EQ(made.origin_job, kForeignUserBit | 9);
}

TEST(TicketHeader, OtherVersionsAndLengthsAreNone) {
  std::string bytes = EncodeTicketHeader(Header(kNow));
  EXPECT_FALSE(DecodeTicketHeader(bytes.substr(1)).has_value());
  EXPECT_FALSE(DecodeTicketHeader(bytes + "x").has_value());
  for (const char version : {'\0', '\3'}) {
    bytes[0] = version;
    EXPECT_FALSE(DecodeTicketHeader(bytes).has_value());
  }
}

TEST(TicketHeader, OriginAge) {
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

TEST(TicketHeader, TimesStopAtTheirEnd) {
  const TicketHeader header = NewTicketHeader({}, 1, absl::FromUnixSeconds(4294967290), kLife);
  EXPECT_EQ(header.origin_time, 4294967290u);
  EXPECT_EQ(header.renewable_cap, 4294967295u);
}

}  // namespace
}  // namespace mpckdc
