// SPDX-License-Identifier: Apache-2.0
//
// Quotas of users of other realms: whom their tickets count for, in three engines.
#include <string>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/job/ticket_header.h"
#include "mpc-server/key/message_format.h"
#include "mpc-server/testing/cts.h"
#include "mpc-server/testing/jobs.h"
#include "mpc-server/testing/quota_realm.h"

namespace mpckdc {
namespace {

using ::testing::HasSubstr;

// A realm with which keys are shared writes into its headers whom it likes.
TEST(ForeignQuota, AnotherRealmsHeadersSpendNobodysReissuesOfOurs) {
  QuotaRealm realm(With(QuotaKind::kPrincipalReissues, kTwo));
  const PlainKey cross =
      realm.AddKey("krbtgt/EXAMPLE.COM@OTHER", KeyClass::kTgs, kEnctypeAes256Gcm, Gate::kNone);
  const std::string ours = EncodeTicketHeader(
      NewTicketHeader(realm.alice.info.principal_id, 1, absl::Now(), absl::Hours(1)));
  const auto foreign = [&](uint8_t nonce) {
    Job job = realm.Reissue(PlainSealText(cross, kUsageTicket, Nonce{nonce}, ours, "from there"));
    job.opens[0].handle = cross.info.handle;
    return realm.Run(job);
  };
  EXPECT_VERDICT(foreign(1), Verdict::kOk);
  EXPECT_VERDICT(foreign(2), Verdict::kOk);
  const JobResult refused = foreign(3);
  EXPECT_VERDICT(refused, Verdict::kQuota);
  EXPECT_THAT(refused.judgement.detail, HasSubstr("of a user of krbtgt/EXAMPLE.COM@OTHER"));
  EXPECT_VERDICT(realm.Run(realm.Reissue(realm.Tgt("ticket"))), Verdict::kOk);
}

// ATTACK. The TGTs of ours that are made of another realm's all name the key between the realms. So one
// user of that realm who renews his again and again would keep out all of its users from renewing,
// forwarding and going on to a third realm; and who is refused here has done nothing.
TEST(ForeignQuota, AUserOfAnotherRealmKeepsOutNobodyElse) {
  QuotaRealm realm(With(QuotaKind::kPrincipalReissues, {1, 4}));
  const PlainKey cross =
      realm.AddKey("krbtgt/EXAMPLE.COM@OTHER", KeyClass::kTgs, kEnctypeAes256Gcm, Gate::kNone);
  const auto tgt_of = [&](const char* user, uint8_t nonce) {
    const std::string there = EncodeTicketHeader(
        NewTicketHeader(PrincipalIdOf(user), nonce, absl::Now(), absl::Hours(1)));
    Job job = realm.Reissue(PlainSealText(cross, kUsageTicket, Nonce{nonce}, there, "from there"));
    job.opens[0].handle = cross.info.handle;
    const JobResult result = realm.Run(job);
    EXPECT_VERDICT(result, Verdict::kOk);
    return realm.FinishSeal(result, 0, "a TGT of ours");
  };
  const std::string his = tgt_of("mallory@OTHER", 1), hers = tgt_of("bella@OTHER", 2);
  for (int i = 0; i < 3; ++i) EXPECT_VERDICT(realm.Run(realm.Reissue(his)), Verdict::kOk);
  const JobResult refused = realm.Run(realm.Reissue(his));
  EXPECT_VERDICT(refused, Verdict::kQuota) << "and what came of it is not his alone any more";
  EXPECT_THAT(refused.judgement.detail, HasSubstr("a user of another realm"));
  const std::string second = realm.FinishSeal(realm.Run(realm.Reissue(hers)), 0, "renewed");
  EXPECT_VERDICT(realm.Run(realm.Reissue(second)), Verdict::kOk);
  EXPECT_VERDICT(realm.Run(realm.Reissue(second)), Verdict::kOk);
  EXPECT_VERDICT(realm.Run(realm.Reissue(second)), Verdict::kQuota) << "four with the first";
}

// ATTACK. A user of another realm may go from us to a third realm and come back, without end: each
// time the third realm's honest servers, and ours, say in the header whose the ticket is. Who gets
// another number by each round has a full bucket each time, and keeps out all who come from there.
TEST(ForeignQuota, WhoGoesAroundBetweenRealmsIsOneUser) {
  QuotaRealm realm(With(QuotaKind::kPrincipalReissues, {1, 1}));
  const PlainKey from_third =
      realm.AddKey("krbtgt/EXAMPLE.COM@THIRD", KeyClass::kTgs, kEnctypeAes256Gcm, Gate::kNone);
  const PlainKey to_third =
      realm.AddKey("krbtgt/THIRD@EXAMPLE.COM", KeyClass::kTgs, kEnctypeAes256Gcm, Gate::kNone);
  uint8_t nonce = 0;
  const auto here = [&](const TicketHeader& header) {
    const std::string ticket = PlainSealText(from_third, kUsageTicket, Nonce{++nonce},
                                             EncodeTicketHeader(header), "from there");
    Job job = realm.Reissue(ticket, to_third);
    job.opens[0].handle = from_third.info.handle;
    return realm.Run(job);
  };
  // What THIRD's servers make of our ticket, which they open under the same key as we seal it.
  const auto there = [&](const JobResult& sealed) {
    const std::string ticket = realm.FinishSeal(sealed, 0, "to there");
    return ReissuedTicketHeader(*DecodeTicketHeader(ParseMessage(ticket)->header), to_third.info,
                                ForeignUser(to_third.info, ticket));
  };
  TicketHeader header = ReissuedTicketHeader(
      NewTicketHeader(PrincipalIdOf("mallory@OTHER"), 1, absl::Now(), absl::Hours(1)),
      to_third.info, kForeignUserBit | 1);
  size_t rounds = 0;
  for (; rounds < 2 * limits::kForeignUsersTogether; ++rounds) {
    const JobResult result = here(header);
    if (!result.judgement.ok()) break;
    header = there(result);
  }
  EXPECT_LE(rounds, 1 + kMostForeignHops) << "rounds of one user, of whom each has one";
  const TicketHeader bella =
      NewTicketHeader(PrincipalIdOf("bella@THIRD"), 1, absl::Now(), absl::Hours(1));
  EXPECT_VERDICT(here(bella), Verdict::kOk) << "and keeps out all others who come from there";
}

// ATTACK. What is sealed for another realm only that realm opens. A KDC that took it for a parent would
// have a user of ours counted as one of theirs: another one each time.
TEST(ForeignQuota, ATicketForAnotherRealmIsNoParent) {
  QuotaRealm realm(With(QuotaKind::kPrincipalReissues, kTwo));
  const PlainKey to_third =
      realm.AddKey("krbtgt/THIRD@EXAMPLE.COM", KeyClass::kTgs, kEnctypeAes256Gcm, Gate::kNone);
  JobResult result = realm.Run(realm.Reissue(realm.Tgt("alice's"), to_third));
  ASSERT_VERDICT_OK(result);
  Job job = realm.Reissue(realm.FinishSeal(result, 0, "to there"), to_third);
  job.opens[0].handle = to_third.info.handle;
  size_t more = 0;
  for (; more < 20; ++more) {
    job.id = realm.NextId();
    result = realm.Run(job);
    if (!result.judgement.ok()) break;
    job.opens[0].message = realm.FinishSeal(result, 0, "to there");
  }
  ExpectRefused(result, Verdict::kRefused, "another realm opens it");
  EXPECT_EQ(more, 0u) << "of alice's two reissues one is left";
}

// ---- Of a key of 17 to 20 between the realms, whose tickets say of nobody whose they are ----

struct StockRealm : QuotaRealm {
  using QuotaRealm::QuotaRealm;

  // One of as many tickets as a user of that realm likes to fetch there.
  Job FromThere(char confounder, const Source& source) {
    Job job = Reissue(CtsSeal(*FindEnctype(kEnctypeAes256Sha1), cross.base, kUsageTicket,
                              std::string(16, confounder), std::string(180, 'S')));
    job.opens[0].handle = cross.info.handle;
    job.source = source;
    return job;
  }
  Job Again(const std::string& tgt, const Source& source) {
    Job job = Reissue(tgt);
    job.source = source;
    return job;
  }

  const PlainKey cross =
      AddKey("krbtgt/EXAMPLE.COM@STOCK", KeyClass::kTgs, kEnctypeAes256Sha1, Gate::kNone);
};

constexpr Source kHis = {5, true}, kHers = {6, true};

// ATTACK. Where each ticket has a bucket one user takes all that the users of his realm have together.
TEST(ForeignQuota, AUserWithManyTicketsWithoutHeaderKeepsOutNobodyElse) {
  StockRealm realm(With(QuotaKind::kPrincipalReissues, {1, 1}));
  int his = 0;
  for (char ticket = 'A'; ticket <= 'z'; ++ticket) {
    his += realm.Run(realm.FromThere(ticket, kHis)).judgement.ok();
  }
  EXPECT_EQ(his, 1);
  EXPECT_VERDICT(realm.Run(realm.FromThere('b', kHers)), Verdict::kOk);
}

// Nor does what they become here help him, nor a datagram from each address that he thinks of.
TEST(ForeignQuota, WhatIsMadeOfTicketsWithoutHeaderCountsWhereItIsUsed) {
  StockRealm realm(With(QuotaKind::kPrincipalReissues, kTwo));
  const auto tgt = [&](char ticket, const Source& source) {
    const JobResult made = realm.Run(realm.FromThere(ticket, source));
    EXPECT_VERDICT(made, Verdict::kOk);
    return realm.FinishSeal(made, 0, "a TGT of ours");
  };
  const std::string first = tgt('m', kHis), second = tgt('n', kHis);
  EXPECT_VERDICT(realm.Run(realm.Again(first, kHis)), Verdict::kQuota);
  EXPECT_VERDICT(realm.Run(realm.Again(second, kHis)), Verdict::kQuota);
  const std::string hers = tgt('b', kHers);
  EXPECT_VERDICT(realm.Run(realm.Again(hers, kHers)), Verdict::kOk);
  EXPECT_VERDICT(realm.Run(realm.Again(hers, kHers)), Verdict::kQuota);
}

TEST(ForeignQuota, DatagramsWithTicketsWithoutHeaderCountTogetherAndGoByTcp) {
  StockRealm realm(With(QuotaKind::kPrincipalReissues, kTwo));
  int taken = 0;
  for (uint64_t address = 100; address < 110; ++address) {
    const JobResult result =
        realm.Run(realm.FromThere(static_cast<char>(address), {address, false}));
    taken += result.judgement.ok();
    if (!result.judgement.ok()) {
      ExpectRefused(result, Verdict::kUnproved, "by TCP this request has a share of its own");
    }
  }
  EXPECT_EQ(taken, 2);
  EXPECT_VERDICT(realm.Run(realm.FromThere('b', kHers)), Verdict::kOk);
}

}  // namespace
}  // namespace mpckdc
