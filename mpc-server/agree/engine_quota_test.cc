// SPDX-License-Identifier: Apache-2.0
//
// Quotas and clocks in three engines: who is refused, what a job costs, what it does not.
#include <map>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/job/operation_table.h"
#include "mpc-server/job/tgt_header.h"
#include "mpc-server/key/message_format.h"
#include "mpc-server/testing/engines.h"

namespace mpckdc {

std::ostream& operator<<(std::ostream& out, Verdict verdict) { return out << VerdictName(verdict); }

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Rate kTwo = {1, 2};  // two, and one a minute: longer than a test takes

EngineOptions With(QuotaKind kind, const Rate& rate) {
  EngineOptions options;
  options.quotas[kind] = rate;
  return options;
}

struct Realm {
  explicit Realm(const EngineOptions& options = {}) : three(options) {
    alice = three.AddKey("alice@EXAMPLE.COM", KeyClass::kUser, kEnctypeAes128Gcm);
    bob = three.AddKey("bob@EXAMPLE.COM", KeyClass::kUser, kEnctypeAes128Gcm);
    tgt = three.AddKey("krbtgt/EXAMPLE.COM@EXAMPLE.COM", KeyClass::kTgs, kEnctypeAes128Gcm,
                       Gate::kNone);
    three.StartAll();
    EXPECT_TRUE(three.WaitConnected());
  }

  std::string Preauth(const PlainKey& key) {
    return SealPreauth(key, absl::Now(), three.random());
  }
  std::string WrongPreauth(const PlainKey& key) {
    std::string preauth = Preauth(key);
    preauth.back() ^= 1;
    return preauth;
  }
  JobResult Login(const PlainKey& key) { return Login(key, Preauth(key)); }
  JobResult Login(const PlainKey& key, const std::string& preauth) {
    return three.Run(LoginJob(three.NextId(), key, tgt, preauth));
  }
  Verdict LoginVerdict(const PlainKey& key) { return Login(key).judgement.verdict; }
  Verdict GuessVerdict(const PlainKey& key) {
    return Login(key, WrongPreauth(key)).judgement.verdict;
  }
  std::string Ticket() {
    const JobResult result = Login(alice);
    EXPECT_TRUE(result.judgement.ok()) << result.judgement.detail;
    return three.FinishSeal(result, 0, "ticket");
  }
  Job OpenTicket(const std::string& ticket) {
    Job job;
    job.id = three.NextId();
    job.operation = Operation::kOpenTicket;
    job.opens.push_back({tgt.info.handle, kUsageTicket, ticket});
    return job;
  }
  Job Reissue(const std::string& ticket) {
    Job job = OpenTicket(ticket);
    job.operation = Operation::kReissueTicket;
    job.seals.push_back({tgt.info.handle, kUsageTicket, 100});
    return job;
  }
  Job Checksums(size_t count) {
    Job job;
    job.id = three.NextId();
    job.operation = Operation::kMakeChecksum;
    for (size_t i = 0; i < count; ++i) job.make_macs.push_back({tgt.info.handle, 17, "pac"});
    return job;
  }
  uint64_t Refused(int party, QuotaKind kind) {
    return three.engine(party).Status().quota_refused[static_cast<size_t>(kind)];
  }

  ThreeEngines three;
  PlainKey alice, bob, tgt;
};

Verdict VerdictOf(const JobResult& result) { return result.judgement.verdict; }

// ---- Who is refused ----

TEST(EngineQuota, AreOffUnlessSet) {
  Realm realm;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
  for (int p = 0; p < kParties; ++p) EXPECT_EQ(realm.three.engine(p).Status().quota_buckets, 0u);
}

TEST(EngineQuota, OnePrincipalIsRefusedAndTheOthersAreNot) {
  Realm realm(With(QuotaKind::kPrincipalLogins, kTwo));
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
  const Job job =
      LoginJob(realm.three.NextId(), realm.alice, realm.tgt, realm.Preauth(realm.alice));
  const PerParty<JobResult> refused = realm.three.Run(PerParty<Job>{job, job, job});
  for (int p = 0; p < kParties; ++p) {
    EXPECT_EQ(VerdictOf(refused[p]), Verdict::kQuota);
    EXPECT_THAT(refused[p].judgement.detail,
                AllOf(HasSubstr("principal_logins"), HasSubstr("alice@EXAMPLE.COM"),
                      HasSubstr("free again in")))
        << "each server names the quota itself";
    EXPECT_TRUE(refused[p].seals.empty());
    EXPECT_EQ(realm.Refused(p, QuotaKind::kPrincipalLogins), 1u);
  }
  EXPECT_EQ(realm.LoginVerdict(realm.bob), Verdict::kOk);
  // The audit knows whose it was, and that nothing was computed.
  const BatchReport report = realm.three.observer(1).Batches()[2];
  ASSERT_EQ(report.jobs.size(), 1u);
  EXPECT_EQ(report.jobs[0].principal, realm.alice.info.principal_id);
  EXPECT_EQ(report.aes_blocks, 0u);
}

TEST(EngineQuota, OneServersQuotaIsEnough) {
  Realm realm;
  QuotaRates rates;
  rates[QuotaKind::kPrincipalLogins] = kTwo;
  realm.three.engine(1).SetQuotas(rates);
  absl::SleepFor(absl::Milliseconds(1500));  // a heartbeat
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
  const Job job =
      LoginJob(realm.three.NextId(), realm.alice, realm.tgt, realm.Preauth(realm.alice));
  const PerParty<JobResult> refused = realm.three.Run(PerParty<Job>{job, job, job});
  for (int p = 0; p < kParties; ++p) EXPECT_EQ(VerdictOf(refused[p]), Verdict::kQuota);
  EXPECT_THAT(refused[0].judgement.detail, HasSubstr("server 1 said QUOTA"));
  EXPECT_THAT(refused[1].judgement.detail, HasSubstr("principal_logins"));
  EXPECT_EQ(realm.Refused(0, QuotaKind::kPrincipalLogins), 0u) << "it was not this server";
  EXPECT_EQ(realm.Refused(1, QuotaKind::kPrincipalLogins), 1u);
  realm.three.engine(1).SetQuotas(QuotaRates());
  absl::SleepFor(absl::Milliseconds(1500));
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
}

TEST(EngineQuota, ItIsOverWithTime) {
  Realm realm(With(QuotaKind::kPrincipalLogins, {60, 1}));
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kQuota);
  const absl::Time limit = absl::Now() + absl::Seconds(30);
  Verdict last = Verdict::kQuota;
  while (last == Verdict::kQuota && absl::Now() < limit) {
    absl::SleepFor(absl::Milliseconds(200));
    last = realm.LoginVerdict(realm.alice);
  }
  EXPECT_EQ(last, Verdict::kOk);
}

TEST(EngineQuota, AKdcIsOneWhateverItsSessions) {
  Realm realm(With(QuotaKind::kKdcLogins, kTwo));
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
  realm.three.kdc().session[0] ^= 1;  // another process of the same KDC
  EXPECT_EQ(realm.LoginVerdict(realm.bob), Verdict::kOk);
  realm.three.kdc().session[0] ^= 2;
  const JobResult refused = realm.Login(realm.bob);
  EXPECT_EQ(VerdictOf(refused), Verdict::kQuota);
  EXPECT_THAT(refused.judgement.detail, HasSubstr("kdc_logins (1/min burst 2) of KDC kdc1"));
  realm.three.kdc().name = "kdc2";
  EXPECT_EQ(realm.LoginVerdict(realm.bob), Verdict::kOk);
}

TEST(EngineQuota, TicketOpensAndChecksumsOfAKdc) {
  EngineOptions options = With(QuotaKind::kKdcOpens, kTwo);
  options.quotas[QuotaKind::kKdcChecksums] = {1, 5};
  Realm realm(options);
  const std::string ticket = realm.Ticket();
  EXPECT_EQ(VerdictOf(realm.three.Run(realm.OpenTicket(ticket))), Verdict::kOk);
  EXPECT_EQ(VerdictOf(realm.three.Run(realm.Reissue(ticket))), Verdict::kOk);
  EXPECT_EQ(VerdictOf(realm.three.Run(realm.OpenTicket(ticket))), Verdict::kQuota);
  EXPECT_EQ(VerdictOf(realm.three.Run(realm.Reissue(ticket))), Verdict::kQuota);
  EXPECT_EQ(VerdictOf(realm.three.Run(realm.Checksums(4))), Verdict::kOk);
  EXPECT_EQ(VerdictOf(realm.three.Run(realm.Checksums(2))), Verdict::kQuota)
      << "a job costs as much as it has checksums";
  EXPECT_EQ(VerdictOf(realm.three.Run(realm.Checksums(1))), Verdict::kOk);
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
}

// ---- What a job costs ----

TEST(EngineQuota, GuessesAreCountedApart) {
  EngineOptions options = With(QuotaKind::kPrincipalFailures, kTwo);
  options.quotas[QuotaKind::kPrincipalLogins] = {1, 5};
  Realm realm(options);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
  EXPECT_EQ(realm.GuessVerdict(realm.alice), Verdict::kBadTag);
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk) << "a guess is no login";
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kQuota);
  EXPECT_EQ(realm.GuessVerdict(realm.bob), Verdict::kBadTag);
  EXPECT_EQ(realm.GuessVerdict(realm.bob), Verdict::kBadTag);
  const JobResult refused = realm.Login(realm.bob, realm.WrongPreauth(realm.bob));
  EXPECT_EQ(VerdictOf(refused), Verdict::kQuota);
  EXPECT_THAT(refused.judgement.detail, HasSubstr("principal_failures"));
  EXPECT_EQ(realm.LoginVerdict(realm.bob), Verdict::kQuota)
      << "nobody can tell a guess before it is computed";
}

// However many guesses come at once, no more than the burst are computed.
TEST(EngineQuota, GuessesOfOneBatchCountTogether) {
  Realm realm(With(QuotaKind::kPrincipalFailures, {1, 3}));
  std::vector<Job> jobs;
  for (int i = 0; i < 40; ++i) {
    jobs.push_back(LoginJob(realm.three.NextId(), realm.alice, realm.tgt,
                            realm.WrongPreauth(realm.alice)));
  }
  std::map<Verdict, int> verdicts;
  for (const JobResult& result : realm.three.RunAll(jobs)) ++verdicts[VerdictOf(result)];
  EXPECT_EQ(verdicts[Verdict::kBadTag], 3);
  EXPECT_EQ(verdicts[Verdict::kQuota], 37);
}

// A replayed or late pre-auth is no guess, and no login of the principal either.
TEST(EngineQuota, WhoeverHasNoKeyCannotSpendAPrincipalsLogins) {
  Realm realm(With(QuotaKind::kPrincipalLogins, kTwo));
  const std::string preauth = realm.Preauth(realm.alice);
  EXPECT_EQ(VerdictOf(realm.Login(realm.alice, preauth)), Verdict::kOk);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(VerdictOf(realm.Login(realm.alice, preauth)), Verdict::kReplay);
    EXPECT_EQ(realm.GuessVerdict(realm.alice), Verdict::kBadTag);
  }
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kQuota) << "the harness sees the quota";
}

TEST(EngineQuota, AForgedHeaderSpendsNobodysReissues) {
  Realm realm(With(QuotaKind::kPrincipalReissues, kTwo));
  const std::string ticket = realm.Ticket();
  std::string forged = ticket;
  forged.back() ^= 1;
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(VerdictOf(realm.three.Run(realm.Reissue(forged))), Verdict::kBadTag);
  }
  EXPECT_EQ(VerdictOf(realm.three.Run(realm.Reissue(ticket))), Verdict::kOk);
  EXPECT_EQ(VerdictOf(realm.three.Run(realm.Reissue(ticket))), Verdict::kOk);
  const JobResult refused = realm.three.Run(realm.Reissue(ticket));
  EXPECT_EQ(VerdictOf(refused), Verdict::kQuota);
  EXPECT_THAT(refused.judgement.detail,
              HasSubstr("of principal " + HandleText(realm.alice.info.principal_id)));
  EXPECT_EQ(VerdictOf(realm.three.Run(realm.OpenTicket(ticket))), Verdict::kOk);
}

TEST(EngineQuota, TheSecondHalfOfALoginIsPaidForByTheFirst) {
  Realm realm(With(QuotaKind::kPrincipalLogins, {1, 1}));
  Job open;
  open.id = realm.three.NextId();
  open.operation = Operation::kOpenPreauth;
  open.client = realm.alice.info.handle;
  open.opens = {{realm.alice.info.handle, kUsagePreauth, realm.Preauth(realm.alice)}};
  ASSERT_EQ(VerdictOf(realm.three.Run(open)), Verdict::kOk);
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kQuota);
  Job seal;
  seal.operation = Operation::kSealGranted;
  seal.client = realm.alice.info.handle;
  seal.grant = open.id;
  seal.seals.push_back({realm.tgt.info.handle, kUsageTicket, 100});
  for (const Verdict want : {Verdict::kOk, Verdict::kOk, Verdict::kRefused}) {
    seal.id = realm.three.NextId();
    EXPECT_EQ(VerdictOf(realm.three.Run(seal)), want) << "two tickets, whatever the quota";
  }
}

// The job reaches P1 late: the others propose and vote on it again and again.
TEST(EngineQuota, AJobThatIsProposedAgainIsChargedOnce) {
  Realm realm(With(QuotaKind::kPrincipalLogins, kTwo));
  const Job late =
      LoginJob(realm.three.NextId(), realm.alice, realm.tgt, realm.Preauth(realm.alice));
  EXPECT_EQ(VerdictOf(realm.three.RunStaggered(late, absl::Milliseconds(200))), Verdict::kOk);
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kQuota);
}

TEST(EngineQuota, WhatWasNeverComputedIsGivenBack) {
  Realm realm(With(QuotaKind::kPrincipalLogins, kTwo));
  for (int i = 0; i < 4; ++i) {
    Job job = LoginJob(realm.three.NextId(), realm.alice, realm.tgt, realm.Preauth(realm.alice));
    job.deadline_ms = 200;
    const PerParty<JobResult> answers = realm.three.RunAt({0, 2}, job);  // never at P1
    EXPECT_EQ(VerdictOf(answers[0]), Verdict::kDeadline);
  }
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kQuota);
}

// ---- Clocks ----

TEST(EngineClock, AServerAgainstBothPeersJudgesNoTimestamp) {
  for (const int wrong : {0, 1, 2}) {
    for (const absl::Duration off : {absl::Hours(-2), absl::Hours(2)}) {
      SCOPED_TRACE(absl::StrCat("server ", wrong, " off by ", absl::FormatDuration(off)));
      Realm realm;
      const std::string ticket = realm.Ticket();
      realm.three.clock(wrong).Set(off);
      const absl::Time limit = absl::Now() + absl::Seconds(20);
      while (!realm.three.engine(wrong).Status().clock_suspect && absl::Now() < limit) {
        absl::SleepFor(absl::Milliseconds(20));
      }
      EXPECT_THAT(realm.three.engine(wrong).Status().degraded,
                  AllOf(HasSubstr("this server's clock differs from both peers'"),
                        HasSubstr("2h"), HasSubstr("chrony")));
      const Job open = realm.OpenTicket(ticket);
      const PerParty<JobResult> opened = realm.three.Run(PerParty<Job>{open, open, open});
      for (const JobResult& result : opened) {
        EXPECT_EQ(VerdictOf(result), Verdict::kUnavailable) << result.judgement.detail;
      }
      EXPECT_THAT(opened[wrong].judgement.detail, HasSubstr("differs from both peers'"));
      EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kUnavailable);
      realm.three.clock(wrong).Set(absl::ZeroDuration());
      while (realm.LoginVerdict(realm.alice) != Verdict::kOk && absl::Now() < limit) {
      }
      EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
      EXPECT_EQ(realm.three.engine(wrong).Status().degraded, "");
    }
  }
}

TEST(EngineClock, OnePeersClockIsThatPeersTrouble) {
  Realm realm;
  realm.three.clock(1).Set(absl::Hours(1));
  const absl::Time limit = absl::Now() + absl::Seconds(20);
  while (!realm.three.engine(1).Status().clock_suspect && absl::Now() < limit) {
    absl::SleepFor(absl::Milliseconds(20));
  }
  EXPECT_TRUE(realm.three.engine(1).Status().clock_suspect);
  EXPECT_FALSE(realm.three.engine(0).Status().clock_suspect);
  EXPECT_FALSE(realm.three.engine(2).Status().clock_suspect);
  EXPECT_EQ(realm.three.engine(0).Status().degraded, "");
  EXPECT_GT(realm.three.engine(0).Status().skew_next, absl::Minutes(59));
  // What depends on no clock goes on.
  Job checksum = realm.Checksums(1);
  const JobResult made = realm.three.Run(checksum);
  EXPECT_EQ(VerdictOf(made), Verdict::kUnavailable) << "it takes a nonce";
  Job verify;
  verify.id = realm.three.NextId();
  verify.operation = Operation::kVerifyChecksum;
  verify.verify_macs = {{realm.tgt.info.handle, 17, "pac", std::string(28, 'x')}};
  EXPECT_EQ(VerdictOf(realm.three.Run(verify)), Verdict::kBadTag);
}

TEST(EngineClock, SmallDifferencesAreToldAndHarmless) {
  Realm realm;
  realm.three.clock(2).Set(absl::Seconds(30));
  const absl::Time limit = absl::Now() + absl::Seconds(20);
  while (realm.three.observer(0).PeerSkews().empty() && absl::Now() < limit) {
    absl::SleepFor(absl::Milliseconds(20));
  }
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
  const auto told = realm.three.observer(0).PeerSkews();
  ASSERT_EQ(told.size(), 1u) << "once, not with every message";
  EXPECT_EQ(told[0].first, 2);
  EXPECT_GT(told[0].second, absl::Seconds(29));
  EXPECT_FALSE(realm.three.engine(2).Status().clock_suspect);
}

// ---- Job ids after restarts ----

// A KDC that was broken into keeps its session id over a restart of the servers, and sends the old
// ids again.
TEST(EngineJobIds, AfterARestartOfAllNothingIsLeftThatAnOldIdCouldUse) {
  Realm realm;
  const Job login =
      LoginJob(realm.three.NextId(), realm.alice, realm.tgt, realm.Preauth(realm.alice));
  const JobResult first = realm.three.Run(login);
  ASSERT_EQ(VerdictOf(first), Verdict::kOk);
  for (int p = 0; p < kParties; ++p) realm.three.Stop(p);
  realm.three.StartAll();
  ASSERT_TRUE(realm.three.WaitConnected());
  const TagRequest tag{login.id, 0, std::string(100, 'c')};
  for (const TagResult& result : realm.three.Tags({tag, tag, tag})) {
    EXPECT_EQ(result.judgement.verdict, Verdict::kRefused) << "pending seals died";
  }
  EXPECT_EQ(VerdictOf(realm.three.Run(login)), Verdict::kReplay)
      << "the id is new to the servers, the pre-auth is not";
  Job granted;
  granted.id = realm.three.NextId();
  granted.operation = Operation::kSealGranted;
  granted.client = realm.alice.info.handle;
  granted.grant = login.id;
  granted.seals.push_back({realm.tgt.info.handle, kUsageTicket, 100});
  EXPECT_EQ(VerdictOf(realm.three.Run(granted)), Verdict::kRefused) << "grants died";
  const JobResult again = realm.Login(realm.alice);
  ASSERT_EQ(VerdictOf(again), Verdict::kOk);
  EXPECT_LT(GcmOf(first.seals[0]).nonce, GcmOf(again.seals[0]).nonce) << "nonces go on";
}

TEST(EngineJobIds, AfterARestartOfOneTheOthersRemember) {
  Realm realm;
  const Job login =
      LoginJob(realm.three.NextId(), realm.alice, realm.tgt, realm.Preauth(realm.alice));
  ASSERT_EQ(VerdictOf(realm.three.Run(login)), Verdict::kOk);
  realm.three.Stop(1);
  realm.three.Start(1);
  ASSERT_TRUE(realm.three.WaitConnected());
  Job again = LoginJob(login.id, realm.alice, realm.tgt, realm.Preauth(realm.alice));
  again.deadline_ms = 500;
  const PerParty<JobResult> answers = realm.three.Run(PerParty<Job>{again, again, again});
  EXPECT_EQ(VerdictOf(answers[0]), Verdict::kRefused);
  EXPECT_EQ(VerdictOf(answers[2]), Verdict::kRefused);
  EXPECT_NE(VerdictOf(answers[1]), Verdict::kOk);
  for (const JobResult& answer : answers) EXPECT_TRUE(answer.seals.empty());
}

}  // namespace
}  // namespace mpckdc
