// SPDX-License-Identifier: Apache-2.0
//
// Quotas and clocks in three engines: who is refused, what a job costs, what it does not.
#include <map>

#include "absl/strings/str_cat.h"
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

using ::testing::AllOf;
using ::testing::HasSubstr;

INSTANTIATE_TEST_SUITE_P(Keys, KeyQuotaTest, ::testing::ValuesIn(kGcmAndStock), NameOf);

// ---- Who is refused ----

TEST(EngineQuota, AreOffUnlessSet) {
  QuotaRealm realm;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
  for (int p = 0; p < kParties; ++p) EXPECT_EQ(realm.engine(p).Status().quota_buckets, 0u);
}

TEST_P(KeyQuotaTest, OnePrincipalIsRefusedAndTheOthersAreNot) {
  QuotaRealm realm(GetParam().enctype, Of(With(QuotaKind::kPrincipalLogins, kTwo)));
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
  const Job job = realm.Login(realm.alice);
  const PerParty<JobResult> refused = realm.RunEach(job);
  for (int p = 0; p < kParties; ++p) {
    EXPECT_VERDICT(refused[p], Verdict::kQuota);
    EXPECT_THAT(refused[p].judgement.detail,
                AllOf(HasSubstr("principal_logins"), HasSubstr("alice@EXAMPLE.COM"),
                      HasSubstr("free again in")))
        << "each server names the quota itself";
    EXPECT_EQ(realm.Refused(p, QuotaKind::kPrincipalLogins), 1u);
  }
  EXPECT_EQ(realm.LoginVerdict(realm.bob), Verdict::kOk);
  // The audit knows whose it was, and that nothing was computed.
  const BatchReport report = realm.recorder(1).Batches()[2];
  ASSERT_EQ(report.jobs.size(), 1u);
  EXPECT_EQ(report.jobs[0].principal, realm.alice.info.principal_id);
  EXPECT_EQ(report.aes_blocks, 0u);
}

TEST(EngineQuota, OneServersQuotaIsEnough) {
  QuotaRealm realm;
  QuotaRates rates;
  rates[QuotaKind::kPrincipalLogins] = kTwo;
  realm.engine(1).SetQuotas(rates);
  absl::SleepFor(absl::Milliseconds(1500));  // a heartbeat
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
  const Job job = realm.Login(realm.alice);
  const PerParty<JobResult> refused = realm.RunEach(job);
  for (int p = 0; p < kParties; ++p) EXPECT_VERDICT(refused[p], Verdict::kQuota);
  EXPECT_THAT(refused[0].judgement.detail, HasSubstr("server 1 said QUOTA"));
  EXPECT_THAT(refused[1].judgement.detail, HasSubstr("principal_logins"));
  EXPECT_EQ(realm.Refused(0, QuotaKind::kPrincipalLogins), 0u) << "it was not this server";
  EXPECT_EQ(realm.Refused(1, QuotaKind::kPrincipalLogins), 1u);
  realm.engine(1).SetQuotas(QuotaRates());
  absl::SleepFor(absl::Milliseconds(1500));
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
}

TEST(EngineQuota, ItIsOverWithTime) {
  QuotaRealm realm(With(QuotaKind::kPrincipalLogins, {60, 1}));
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kQuota);
  Verdict last = Verdict::kQuota;
  Eventually([&] { return (last = realm.LoginVerdict(realm.alice)) != Verdict::kQuota; });
  EXPECT_EQ(last, Verdict::kOk);
}

TEST(EngineQuota, AKdcIsOneWhateverItsSessions) {
  QuotaRealm realm(With(QuotaKind::kKdcLogins, kTwo));
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
  realm.kdc().session[0] ^= 1;  // another process of the same KDC
  EXPECT_EQ(realm.LoginVerdict(realm.bob), Verdict::kOk);
  realm.kdc().session[0] ^= 2;
  ExpectRefused(realm.Run(realm.Login(realm.bob)), Verdict::kQuota,
                "kdc_logins (1/min burst 2) of KDC kdc1");
  realm.kdc().name = "kdc2";
  EXPECT_EQ(realm.LoginVerdict(realm.bob), Verdict::kOk);
}

TEST(EngineQuota, TicketOpensAndChecksumsOfAKdc) {
  EngineOptions options = With(QuotaKind::kKdcOpens, kTwo);
  options.quotas[QuotaKind::kKdcChecksums] = {1, 5};
  QuotaRealm realm(options);
  const std::string ticket = realm.Tgt("ticket");
  EXPECT_VERDICT(realm.Run(realm.OpenTicket(ticket)), Verdict::kOk);
  EXPECT_VERDICT(realm.Run(realm.Reissue(ticket)), Verdict::kOk);
  EXPECT_VERDICT(realm.Run(realm.OpenTicket(ticket)), Verdict::kQuota);
  EXPECT_VERDICT(realm.Run(realm.Reissue(ticket)), Verdict::kQuota);
  EXPECT_EQ(realm.ChecksumsVerdict(4), Verdict::kOk);
  EXPECT_EQ(realm.ChecksumsVerdict(2), Verdict::kQuota)
      << "a job costs as much as it has checksums";
  EXPECT_EQ(realm.ChecksumsVerdict(1), Verdict::kOk);
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
}

// ---- What a job costs ----

TEST_P(KeyQuotaTest, GuessesAreCountedApart) {
  EngineOptions options = With(QuotaKind::kPrincipalFailures, kTwo);
  options.quotas[QuotaKind::kPrincipalLogins] = {1, 5};
  QuotaRealm realm(GetParam().enctype, Of(options));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
  EXPECT_VERDICT(realm.Guess(realm.alice), Verdict::kBadTag);
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk) << "a guess is no login";
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kQuota);
  EXPECT_VERDICT(realm.Guess(realm.bob), Verdict::kBadTag);
  EXPECT_VERDICT(realm.Guess(realm.bob), Verdict::kBadTag);
  ExpectRefused(realm.Guess(realm.bob), Verdict::kQuota, "principal_failures");
  EXPECT_EQ(realm.LoginVerdict(realm.bob), Verdict::kQuota)
      << "nobody can tell a guess before it is computed";
}

// However many guesses come at once, no more than the burst are computed.
TEST_P(KeyQuotaTest, GuessesOfOneBatchCountTogether) {
  QuotaRealm realm(GetParam().enctype, Of(With(QuotaKind::kPrincipalFailures, {1, 3})));
  std::vector<Job> jobs;
  for (int i = 0; i < 40; ++i) {
    jobs.push_back(realm.Login(realm.alice, realm.AlteredPreauth(realm.alice)));
  }
  std::map<Verdict, int> verdicts;
  for (const JobResult& result : realm.RunAll(jobs)) ++verdicts[result.judgement.verdict];
  EXPECT_EQ(verdicts[Verdict::kBadTag], 3);
  EXPECT_EQ(verdicts[Verdict::kQuota], 37);
}

// A replayed or late pre-auth is no guess, and no login of the principal either.
TEST_P(KeyQuotaTest, WhoeverHasNoKeyCannotSpendAPrincipalsLogins) {
  QuotaRealm realm(GetParam().enctype, Of(With(QuotaKind::kPrincipalLogins, kTwo)));
  const std::string preauth = realm.Preauth(realm.alice);
  EXPECT_VERDICT(realm.Run(realm.Login(realm.alice, preauth)), Verdict::kOk);
  realm.kdc().name = "another";
  for (int i = 0; i < 5; ++i) {
    EXPECT_VERDICT(realm.Run(realm.Login(realm.alice, preauth)), Verdict::kReplay);
    EXPECT_VERDICT(realm.Guess(realm.alice), Verdict::kBadTag);
  }
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kQuota) << "the harness sees the quota";
}

TEST(EngineQuota, AForgedHeaderSpendsNobodysReissues) {
  QuotaRealm realm(With(QuotaKind::kPrincipalReissues, kTwo));
  const std::string ticket = realm.Tgt("ticket");
  std::string forged = ticket;
  forged.back() ^= 1;
  for (int i = 0; i < 5; ++i) EXPECT_VERDICT(realm.Run(realm.Reissue(forged)), Verdict::kBadTag);
  EXPECT_VERDICT(realm.Run(realm.Reissue(ticket)), Verdict::kOk);
  EXPECT_VERDICT(realm.Run(realm.Reissue(ticket)), Verdict::kOk);
  const JobResult refused = realm.Run(realm.Reissue(ticket));
  EXPECT_VERDICT(refused, Verdict::kQuota);
  EXPECT_THAT(refused.judgement.detail,
              HasSubstr("of principal " + HandleText(realm.alice.info.principal_id)));
  EXPECT_VERDICT(realm.Run(realm.OpenTicket(ticket)), Verdict::kOk);
}

TEST_P(KeyQuotaTest, TheSecondHalfOfALoginIsPaidForByTheFirst) {
  QuotaRealm realm(GetParam().enctype, Of(With(QuotaKind::kPrincipalLogins, {1, 1})));
  const Job open = realm.OpenPreauth(realm.alice, realm.Preauth(realm.alice));
  ASSERT_VERDICT_OK(realm.Run(open));
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kQuota);
  for (const Verdict want : {Verdict::kOk, Verdict::kOk, Verdict::kRefused}) {
    EXPECT_VERDICT(realm.Run(realm.Granted(open.id)), want) << "two tickets, whatever the quota";
  }
}

// The job reaches P1 late: the others propose and vote on it again and again.
TEST_P(KeyQuotaTest, AJobThatIsProposedAgainIsChargedOnce) {
  QuotaRealm realm(GetParam().enctype, Of(With(QuotaKind::kPrincipalLogins, kTwo)));
  const Job late = realm.Login(realm.alice);
  EXPECT_VERDICT(realm.RunStaggered(late, absl::Milliseconds(200)), Verdict::kOk);
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kQuota);
}

TEST_P(KeyQuotaTest, WhatWasNeverComputedIsGivenBack) {
  QuotaRealm realm(GetParam().enctype, Of(With(QuotaKind::kPrincipalLogins, kTwo)));
  for (int i = 0; i < 4; ++i) {
    Job job = realm.Login(realm.alice);
    job.deadline_ms = 200;
    const PerParty<JobResult> answers = realm.RunAt({0, 2}, job);  // never at P1
    EXPECT_VERDICT(answers[0], Verdict::kDeadline);
  }
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kQuota);
}

TEST(EngineQuota, WhatAnotherServerRefusedIsGivenBack) {
  QuotaRealm realm(With(QuotaKind::kPrincipalLogins, kTwo));
  QuotaRates one;
  one[QuotaKind::kPrincipalLogins] = {1, 1};
  realm.engine(1).SetQuotas(one);
  absl::SleepFor(absl::Milliseconds(1500));  // a heartbeat
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kQuota);
  realm.engine(1).SetQuotas(QuotaRates());
  absl::SleepFor(absl::Milliseconds(1500));
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk) << "servers 0 and 2 have one left";
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kQuota);
}

// ---- Where it comes from ----

struct SourceRealm : QuotaRealm {
  using QuotaRealm::QuotaRealm;
  static constexpr Source kHome = {7, true}, kStranger = {8, true};

  JobResult LogIn(const Source& from) { return Run(From(from, Login(alice))); }
  JobResult GuessFrom(const Source& from) {
    return Run(From(from, Login(alice, AlteredPreauth(alice))));
  }
  static Job From(const Source& source, Job job) {
    job.source = source;
    return job;
  }
};

EngineOptions Shares(const Rate& common, const Rate& known) {
  EngineOptions options = With(QuotaKind::kPrincipalFailures, common);
  options.quotas[QuotaKind::kKnownFailures] = known;
  return options;
}

TEST(EngineSources, AStrangersGuessesDoNotKeepTheUserOutFromHome) {
  SourceRealm realm(Shares(kTwo, kTwo));
  ASSERT_VERDICT_OK(realm.LogIn({7, false}));  // a datagram teaches
  EXPECT_VERDICT(realm.GuessFrom(realm.kStranger), Verdict::kBadTag);
  EXPECT_VERDICT(realm.GuessFrom({7, false}), Verdict::kBadTag);
  EXPECT_VERDICT(realm.LogIn(realm.kStranger), Verdict::kQuota);
  EXPECT_VERDICT(realm.LogIn({}), Verdict::kQuota) << "a KDC that says no source";
  for (int i = 0; i < 5; ++i) EXPECT_VERDICT(realm.LogIn(realm.kHome), Verdict::kOk);
  const Job spoofed = realm.From({7, false}, realm.Login(realm.alice));
  for (const JobResult& result : realm.RunEach(spoofed)) {
    EXPECT_VERDICT(result, Verdict::kUnproved) << "each server tells the KDC";
    EXPECT_THAT(result.judgement.detail, HasSubstr("by TCP"));
  }
  EXPECT_TRUE(Eventually([&] { return realm.engine(1).Status().quota_known == 1; }));
  EXPECT_VERDICT(realm.GuessFrom(realm.kHome), Verdict::kBadTag);
  EXPECT_VERDICT(realm.GuessFrom(realm.kHome), Verdict::kBadTag);
  ExpectRefused(realm.LogIn(realm.kHome), Verdict::kQuota, "known_failures");
}

// One server that has forgotten, or has not learnt, is enough: what a restart costs.
TEST(EngineSources, ARestartForgets) {
  SourceRealm realm(Shares(kTwo, kTwo));
  ASSERT_VERDICT_OK(realm.LogIn(realm.kHome));
  realm.Stop(1);
  realm.Start(1);
  ASSERT_TRUE(realm.WaitConnected());
  EXPECT_VERDICT(realm.GuessFrom(realm.kStranger), Verdict::kBadTag);
  EXPECT_VERDICT(realm.GuessFrom(realm.kStranger), Verdict::kBadTag);
  EXPECT_VERDICT(realm.LogIn(realm.kHome), Verdict::kQuota);
}

TEST(EngineSources, AGrantedLoginTeachesToo) {
  SourceRealm realm(Shares(kTwo, kTwo));
  ASSERT_VERDICT_OK(realm.Run(
      realm.From(realm.kHome, realm.OpenPreauth(realm.alice, realm.Preauth(realm.alice)))));
  EXPECT_VERDICT(realm.GuessFrom(realm.kStranger), Verdict::kBadTag);
  EXPECT_VERDICT(realm.GuessFrom(realm.kStranger), Verdict::kBadTag);
  EXPECT_VERDICT(realm.LogIn(realm.kHome), Verdict::kOk);
}

TEST(EngineSources, GarbageTicketsAreRefusedByTheirSource) {
  SourceRealm realm(With(QuotaKind::kSourceFailures, kTwo));
  const std::string ticket = realm.Tgt("ticket");
  std::string forged = ticket;
  forged.back() ^= 1;
  const auto open = [&](const Source& from, const std::string& message) {
    return realm.Run(realm.From(from, realm.OpenTicket(message)));
  };
  EXPECT_VERDICT(open(realm.kStranger, forged), Verdict::kBadTag);
  EXPECT_VERDICT(realm.Run(realm.From(realm.kStranger, realm.Reissue(forged))), Verdict::kBadTag);
  ExpectRefused(open(realm.kStranger, forged), Verdict::kQuota, "source_failures");
  EXPECT_VERDICT(open(realm.kHome, ticket), Verdict::kOk);
  EXPECT_VERDICT(open({8, false}, forged), Verdict::kBadTag);
  EXPECT_VERDICT(open({8, false}, forged), Verdict::kBadTag);
  EXPECT_VERDICT(open({8, false}, ticket), Verdict::kUnproved);
  EXPECT_VERDICT(open({}, forged), Verdict::kBadTag) << "kadmind and older KDCs say no source";
}

TEST(EngineSources, GarbageInDatagramsIsCountedPerKdc) {
  SourceRealm realm(With(QuotaKind::kUnprovedFailures, kTwo));
  const std::string ticket = realm.Tgt("ticket");
  std::string forged = ticket;
  forged.back() ^= 1;
  const auto open = [&](const Source& from, const std::string& message) {
    return realm.Run(realm.From(from, realm.OpenTicket(message))).judgement.verdict;
  };
  EXPECT_EQ(open({100, false}, forged), Verdict::kBadTag);
  EXPECT_EQ(open({101, false}, forged), Verdict::kBadTag);
  EXPECT_EQ(open({102, false}, ticket), Verdict::kUnproved);
  EXPECT_EQ(open({102, true}, ticket), Verdict::kOk);
  realm.kdc().name = "kdc2";
  EXPECT_EQ(open({102, false}, ticket), Verdict::kOk);
}

// Anybody may be nobody. What a stranger takes as such is his own source's, whatever the quotas of
// one principal are; and nobody else's logins count so.
TEST(EngineSources, WhoIsNobodyTakesHisSourcesShare) {
  EngineOptions options = With(QuotaKind::kAnonymousLogins, kTwo);
  options.quotas[QuotaKind::kPrincipalLogins] = kTwo;
  options.quotas[QuotaKind::kPrincipalReissues] = kTwo;
  SourceRealm realm(options);
  const PlainKey nobody = realm.AddKey(AnonymousOf("EXAMPLE.COM"), KeyClass::kUser,
                                       kEnctypeAes128Gcm, Gate::kKdcTrusted);
  const auto login = [&](const Source& from) {
    return realm.Run(realm.From(from, realm.Login(nobody, "")));
  };
  for (int i = 0; i < 2; ++i) ASSERT_VERDICT_OK(login(realm.kStranger));
  ExpectRefused(login(realm.kStranger), Verdict::kQuota, "anonymous_logins");
  EXPECT_VERDICT(login({realm.kStranger.id, false}), Verdict::kOk) << "a datagram's share";
  EXPECT_VERDICT(login({realm.kStranger.id, false}), Verdict::kOk);
  EXPECT_VERDICT(login({realm.kStranger.id, false}), Verdict::kUnproved);

  const JobResult made = login(realm.kHome);
  ASSERT_VERDICT_OK(made);
  const std::string tgt = realm.FinishSeal(made, 0, "nobody's ticket");
  const auto header = DecodeTicketHeader(ParseMessage(tgt)->header);
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->principal, PrincipalIdOf("WELLKNOWN/ANONYMOUS@EXAMPLE.COM"));
  const auto reissue = [&](const Source& from) {
    return realm.Run(realm.From(from, realm.Reissue(tgt)));
  };
  EXPECT_VERDICT(reissue(realm.kHome), Verdict::kOk);
  ExpectRefused(reissue(realm.kHome), Verdict::kQuota, "anonymous_logins");
  EXPECT_VERDICT(reissue({9, true}), Verdict::kOk);

  for (int i = 0; i < 2; ++i) {
    EXPECT_VERDICT(realm.Run(realm.From(realm.kStranger, realm.Login(realm.guest, ""))),
                   Verdict::kOk);
  }
  ExpectRefused(realm.Run(realm.From(realm.kStranger, realm.Login(realm.guest, ""))),
                Verdict::kQuota, "principal_logins");
}

// ---- Clocks ----

TEST(EngineClock, AServerAgainstBothPeersJudgesNoTimestamp) {
  for (const int wrong : {0, 1, 2}) {
    for (const absl::Duration off : {absl::Hours(-2), absl::Hours(2)}) {
      SCOPED_TRACE(absl::StrCat("server ", wrong, " off by ", absl::FormatDuration(off)));
      QuotaRealm realm;
      const std::string ticket = realm.Tgt("ticket");
      realm.clock(wrong).Set(off);
      Eventually([&] {
        const EngineStatus status = realm.engine(wrong).Status();
        return status.clock_suspect && absl::StrContains(status.degraded, "both peers'");
      });  // before, a batch may have said that the leader's clock differs
      EXPECT_THAT(realm.engine(wrong).Status().degraded,
                  AllOf(HasSubstr("this server's clock differs from both peers'"),
                        HasSubstr("2h"), HasSubstr("chrony")));
      const Job open = realm.OpenTicket(ticket);
      const PerParty<JobResult> opened = realm.RunEach(open);
      for (const JobResult& result : opened) {
        EXPECT_VERDICT(result, Verdict::kUnavailable) << result.judgement.detail;
      }
      EXPECT_THAT(opened[wrong].judgement.detail, HasSubstr("differs from both peers'"));
      EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kUnavailable);
      realm.clock(wrong).Set(absl::ZeroDuration());
      EXPECT_TRUE(Eventually([&] { return realm.LoginVerdict(realm.alice) == Verdict::kOk; }));
      EXPECT_EQ(realm.engine(wrong).Status().degraded, "");
    }
  }
}

TEST(EngineClock, OnePeersClockIsThatPeersTrouble) {
  QuotaRealm realm;
  realm.clock(1).Set(absl::Hours(1));
  EXPECT_TRUE(Eventually([&] { return realm.engine(1).Status().clock_suspect; }));
  EXPECT_FALSE(realm.engine(0).Status().clock_suspect);
  EXPECT_FALSE(realm.engine(2).Status().clock_suspect);
  EXPECT_EQ(realm.engine(0).Status().degraded, "");
  EXPECT_GT(realm.engine(0).Status().skew_next, absl::Minutes(59));
  // What depends on no clock goes on.
  EXPECT_EQ(realm.ChecksumsVerdict(1), Verdict::kUnavailable) << "it takes a nonce";
  const Job verify = realm.VerifyChecksum(realm.tgt, "pac", std::string(28, 'x'));
  EXPECT_VERDICT(realm.Run(verify), Verdict::kBadTag);
}

// Two servers that follow one wrong time source: the third refuses, and what the two reserved
// meanwhile must not lie so far ahead that the three never seal again.
TEST(EngineClock, TwoClocksThatWereAheadCostNothingAfterwards) {
  for (const auto& [first, second] : {std::pair{0, 1}, {2, 0}}) {
    SCOPED_TRACE(absl::StrCat("servers ", first, " and ", second));
    QuotaRealm realm;
    ASSERT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
    for (const int party : {first, second}) {
      realm.clock(party).Set(absl::Hours(24 * 400));
      absl::SleepFor(absl::Milliseconds(1500));  // longer than a heartbeat
      EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kUnavailable);
    }
    for (const int party : {first, second}) realm.clock(party).Set(absl::ZeroDuration());
    realm.hub().CloseCurrent();
    EXPECT_TRUE(Eventually([&] { return realm.LoginVerdict(realm.alice) == Verdict::kOk; }))
        << realm.engine(0).Status().degraded << "; " << realm.engine(1).Status().degraded << "; "
        << realm.engine(2).Status().degraded;
  }
}

// ATTACK. By the time that its peers confirm a server collects deleted keys and forgets replays. One peer
// that is as wrong as this server, or says so, confirms nothing while the other contradicts.
TEST(EngineClock, OnePeerAloneConfirmsNoTime) {
  for (const auto& [leaped, agrees] : {std::pair{0, 2}, {1, 0}, {2, 1}}) {
    SCOPED_TRACE(absl::StrCat("server ", leaped, ", and server ", agrees, " that agrees"));
    QuotaRealm realm;
    const auto confirmed = [&] { return realm.engine(leaped).Status().clock_confirmed; };
    ASSERT_TRUE(Eventually([&] { return confirmed() > absl::Now() - absl::Seconds(5); }));
    realm.clock(agrees).Set(absl::Hours(26));
    realm.clock(leaped).Set(absl::Hours(26));
    absl::SleepFor(absl::Seconds(3));  // longer than a heartbeat: housekeeping was there
    EXPECT_LT(confirmed(), absl::Now() + absl::Hours(1)) << "a day of grace is over in a moment";
    for (const int party : {leaped, agrees}) realm.clock(party).Set(absl::ZeroDuration());
    EXPECT_TRUE(Eventually([&] { return realm.LoginVerdict(realm.alice) == Verdict::kOk; }));
    EXPECT_TRUE(Eventually([&] { return confirmed() > absl::Now() - absl::Seconds(3); }));
  }
}

TEST(EngineClock, SmallDifferencesAreToldAndHarmless) {
  QuotaRealm realm;
  realm.clock(2).Set(absl::Seconds(30));
  Eventually([&] { return !realm.observer(0).PeerSkews().empty(); });
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
  const auto told = realm.observer(0).PeerSkews();
  ASSERT_EQ(told.size(), 1u) << "once, not with every message";
  EXPECT_EQ(told[0].first, 2);
  EXPECT_GT(told[0].second, absl::Seconds(29));
  EXPECT_FALSE(realm.engine(2).Status().clock_suspect);
}

// ---- Job ids after restarts ----

// A KDC that was broken into keeps its session id over a restart of the servers, and sends the old
// ids again.
TEST(EngineJobIds, AfterARestartOfAllNothingIsLeftThatAnOldIdCouldUse) {
  QuotaRealm realm;
  const Job login = realm.Login(realm.alice);
  const JobResult first = realm.Run(login);
  ASSERT_VERDICT_OK(first);
  realm.RestartAll();
  const TagRequest tag{login.id, 0, std::string(100, 'c')};
  for (const TagResult& result : realm.Tags(tag)) {
    EXPECT_EQ(result.judgement.verdict, Verdict::kRefused) << "pending seals died";
  }
  EXPECT_VERDICT(realm.Run(realm.Granted(login.id)), Verdict::kRefused) << "grants died";
  realm.RestartAll();
  EXPECT_VERDICT(realm.Run(login), Verdict::kOk) << "what is left of the pre-auth's grant";
  realm.RestartAll();
  EXPECT_VERDICT(realm.Run(login), Verdict::kReplay)
      << "the id is new to the servers, the pre-auth is not";
  const JobResult again = realm.Run(realm.Login(realm.alice));
  ASSERT_VERDICT_OK(again);
  EXPECT_LT(GcmOf(first.seals[0]).nonce, GcmOf(again.seals[0]).nonce) << "nonces go on";
}

TEST(EngineJobIds, AfterARestartOfOneTheOthersRemember) {
  QuotaRealm realm;
  const Job login = realm.Login(realm.alice);
  ASSERT_VERDICT_OK(realm.Run(login));
  realm.Stop(1);
  realm.Start(1);
  ASSERT_TRUE(realm.WaitConnected());
  Job again = LoginJob(login.id, realm.alice, realm.tgt, realm.Preauth(realm.alice));
  again.deadline_ms = 500;
  const PerParty<JobResult> answers = realm.RunEach(again);
  EXPECT_VERDICT(answers[0], Verdict::kRefused);
  EXPECT_VERDICT(answers[2], Verdict::kRefused);
  EXPECT_FALSE(answers[1].judgement.ok());
  for (const JobResult& answer : answers) EXPECT_TRUE(answer.seals.empty());
}

}  // namespace
}  // namespace mpckdc
