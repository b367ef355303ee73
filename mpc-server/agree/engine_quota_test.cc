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

namespace mpckdc {

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Rate kTwo = {1, 2};  // two, and one a minute: longer than a test takes

EngineOptions With(QuotaKind kind, const Rate& rate) {
  EngineOptions options;
  options.quotas[kind] = rate;
  return options;
}

struct QuotaRealm : Realm {
  using Realm::Realm;

  Verdict LoginVerdict(const PlainKey& key) { return Run(Login(key)).judgement.verdict; }
  JobResult Guess(const PlainKey& key) { return Run(Login(key, AlteredPreauth(key))); }
  Verdict ChecksumsVerdict(size_t count) {
    const std::vector<MakeMacPart> macs(count, {tgt.info.handle, kUsagePacChecksum, "pac"});
    return Run(MakeChecksums(macs)).judgement.verdict;
  }
  uint64_t Refused(int party, QuotaKind kind) {
    return engine(party).Status().quota_refused[static_cast<size_t>(kind)];
  }
};

// Of whatever a user's key is, and by either protocol.
class KeyQuotaTest : public ::testing::TestWithParam<KeyAndProtocol> {
 protected:
  static EngineOptions Of(const EngineOptions& options) {
    return Forced(GetParam().protocol, options);
  }
};

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

// A realm with which keys are shared writes into its headers whom it likes.
TEST(EngineQuota, AnotherRealmsHeadersSpendNobodysReissuesOfOurs) {
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
TEST(EngineQuota, AUserOfAnotherRealmKeepsOutNobodyElse) {
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

// A ticket of 17 to 20 says of nobody whose it is. What is made of one counts together, however long
// the line, and nobody else's does.
TEST(EngineQuota, ATicketWithoutHeaderHasABucketForAllThatIsMadeOfIt) {
  QuotaRealm realm(With(QuotaKind::kPrincipalReissues, kTwo));
  const PlainKey cross =
      realm.AddKey("krbtgt/EXAMPLE.COM@STOCK", KeyClass::kTgs, kEnctypeAes256Sha1, Gate::kNone);
  const auto from_there = [&](char confounder) {
    Job job = realm.Reissue(CtsSeal(*FindEnctype(kEnctypeAes256Sha1), cross.base, kUsageTicket,
                                    std::string(16, confounder), std::string(180, 'S')));
    job.opens[0].handle = cross.info.handle;
    return job;
  };
  const JobResult made = realm.Run(from_there('m'));
  ASSERT_VERDICT_OK(made);
  const std::string tgt = realm.FinishSeal(made, 0, "a TGT of ours");
  EXPECT_VERDICT(realm.Run(realm.Reissue(tgt)), Verdict::kOk);
  EXPECT_VERDICT(realm.Run(realm.Reissue(tgt)), Verdict::kQuota);
  EXPECT_VERDICT(realm.Run(from_there('m')), Verdict::kQuota);
  EXPECT_VERDICT(realm.Run(from_there('b')), Verdict::kOk);
}

// ATTACK. A user of another realm may go from us to a third realm and come back, without end: each
// time the third realm's honest servers, and ours, say in the header whose the ticket is. Who gets
// another number by each round has a full bucket each time, and keeps out all who come from there.
TEST(EngineQuota, WhoGoesAroundBetweenRealmsIsOneUser) {
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
TEST(EngineQuota, ATicketForAnotherRealmIsNoParent) {
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

// ATTACK. Of a key of 17 to 20 each ticket has a bucket of its own, and a user fetches as many as he
// likes at his own KDC. So one user takes all that the users of that realm have together, and keeps
// them out of renewing, forwarding and going on to a third realm.
// Known, and not mended yet (doc/jobs.md, "Quotas"): run it with --gtest_also_run_disabled_tests.
TEST(EngineQuota, DISABLED_AUserWithManyTicketsWithoutHeaderKeepsOutNobodyElse) {
  QuotaRealm realm(With(QuotaKind::kPrincipalReissues, {1, 1}));
  const PlainKey cross =
      realm.AddKey("krbtgt/EXAMPLE.COM@STOCK", KeyClass::kTgs, kEnctypeAes256Sha1, Gate::kNone);
  const auto from_there = [&](char user, int ticket) {
    std::string confounder(16, user);
    confounder[1] = static_cast<char>(ticket);
    Job job = realm.Reissue(CtsSeal(*FindEnctype(kEnctypeAes256Sha1), cross.base, kUsageTicket,
                                    confounder, std::string(180, user)));
    job.opens[0].handle = cross.info.handle;
    return realm.Run(job);
  };
  size_t his = 0;
  for (int i = 0; i < 100; ++i) his += from_there('m', i).judgement.ok();
  EXPECT_VERDICT(from_there('b', 0), Verdict::kOk) << "after " << his << " of one user's";
}

// ATTACK. Under which handle a pre-auth was accepted the replay entries say. A copy has another one,
// so each name that a key gets is another login by a message whose login is over: for a KDC, a
// ticket in a name whose user has not logged in.
// Known, and not mended yet: run it with --gtest_also_run_disabled_tests.
TEST_P(KeyQuotaTest, DISABLED_APreauthIsSpentForTheCopiesOfItsKey) {
  QuotaRealm realm(GetParam().enctype, Of({}));
  const std::string preauth = realm.Preauth(realm.alice);
  EXPECT_VERDICT(realm.Run(realm.Login(realm.alice, preauth)), Verdict::kOk);
  PlainKey copy = realm.alice;
  copy.info.handle = Handle{77};
  copy.info.principal = "alice.smith@EXAMPLE.COM";
  copy.info.principal_id = PrincipalIdOf(copy.info.principal);
  const RenamedKey key{
      {realm.alice.info.handle, realm.alice.info.principal}, copy.info.handle, 4, "salt"};
  for (int p = 0; p < kParties; ++p) {
    const TransactionId txn{78};
    ASSERT_TRUE(
        realm.store(p).StageRenamed(txn, {key}, copy.info.principal, 1, absl::Now()).ok());
    ASSERT_TRUE(realm.store(p).Commit(txn, absl::Now()).ok());
  }
  realm.kdc().name = "another";
  EXPECT_VERDICT(realm.Run(realm.Login(realm.alice, preauth)), Verdict::kReplay) << "the control";
  EXPECT_VERDICT(realm.Run(realm.Login(copy, preauth)), Verdict::kReplay);
}

// Names for a key (RenameKeys) add no guesses: those at a copy are the first owner's.
TEST_P(KeyQuotaTest, GuessesAtARenamedKeyAreItsFirstOwners) {
  QuotaRealm realm(GetParam().enctype, Of(With(QuotaKind::kPrincipalFailures, kTwo)));
  PlainKey copy = realm.alice;
  copy.info.handle = Handle{77};
  copy.info.principal = "alice.smith@EXAMPLE.COM";
  copy.info.principal_id = PrincipalIdOf(copy.info.principal);
  const RenamedKey key{
      {realm.alice.info.handle, realm.alice.info.principal}, copy.info.handle, 4, "salt"};
  for (int p = 0; p < kParties; ++p) {
    const TransactionId txn{78};
    ASSERT_TRUE(
        realm.store(p).StageRenamed(txn, {key}, copy.info.principal, 1, absl::Now()).ok());
    ASSERT_TRUE(realm.store(p).Commit(txn, absl::Now()).ok());
  }
  EXPECT_EQ(realm.LoginVerdict(copy), Verdict::kOk);
  EXPECT_VERDICT(realm.Guess(realm.alice), Verdict::kBadTag);
  EXPECT_VERDICT(realm.Guess(copy), Verdict::kBadTag);
  EXPECT_VERDICT(realm.Guess(copy), Verdict::kQuota);
  EXPECT_VERDICT(realm.Guess(realm.alice), Verdict::kQuota);
  EXPECT_VERDICT(realm.Guess(realm.bob), Verdict::kBadTag);
}

// ATTACK. A job names its client by a handle, and opens under any of that name's keys. So guesses at
// a copy of alice's key must not be those of another key that has the same name, or each name that
// her key gets would be a quota of its own.
TEST_P(KeyQuotaTest, GuessesAtACopyAreItsFirstOwnersWhicheverKeyTheClientIs) {
  QuotaRealm realm(GetParam().enctype, Of(With(QuotaKind::kPrincipalFailures, kTwo)));
  int guesses = 0;
  for (uint8_t name = 1; name <= 4; ++name) {
    const std::string principal = absl::StrCat("alice", name, "@EXAMPLE.COM");
    const PlainKey own = realm.AddKey(principal, KeyClass::kUser, GetParam().enctype);
    PlainKey copy = realm.alice;
    copy.info = own.info;
    copy.info.handle = Handle{77, name};
    const RenamedKey key{
        {realm.alice.info.handle, realm.alice.info.principal}, copy.info.handle, 4, "salt"};
    for (int p = 0; p < kParties; ++p) {
      const TransactionId txn{78, name};
      ASSERT_TRUE(realm.store(p).StageRenamed(txn, {key}, principal, 1, absl::Now()).ok());
      ASSERT_TRUE(realm.store(p).Commit(txn, absl::Now()).ok());
    }
    Job good = realm.Login(copy);
    good.client = own.info.handle;
    EXPECT_VERDICT(realm.Run(good), name == 1 ? Verdict::kOk : Verdict::kQuota)
        << "it is alice's key that is opened";
    for (int i = 0; i < 2; ++i) {
      Job guess = realm.Login(copy, realm.AlteredPreauth(copy));
      guess.client = own.info.handle;
      guesses += realm.Run(guess).judgement.verdict == Verdict::kBadTag;
    }
  }
  EXPECT_EQ(guesses, 2) << "guesses at alice's key, of two";
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
