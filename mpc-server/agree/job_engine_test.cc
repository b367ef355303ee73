// SPDX-License-Identifier: Apache-2.0
//
// Three engines in one process against the plain oracle: logins, gates, grants, tickets.
#include "mpc-server/agree/job_engine.h"

#include <cstdio>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/testing/jobs.h"

namespace mpckdc {
namespace {

using ::testing::HasSubstr;

// ---- A whole login ----

class LoginTest : public ::testing::TestWithParam<int32_t> {};

TEST_P(LoginTest, AgreesWithTheOracle) {
  Realm realm(GetParam());
  const absl::Time when = absl::Now();
  const Job job = LoginJob(realm.three.NextId(), realm.alice, realm.tgt,
                           SealPreauth(realm.alice, when, realm.three.random()));
  const JobResult result = realm.three.Run(job);
  ASSERT_VERDICT_OK(result);

  // The KDC reads the pre-auth.
  const auto message = ParseMessage(job.opens[0].message);
  const std::string plain = XorText(GcmOf(result.opens[0]).share,
                                    std::string(message->ciphertext.substr(kZeroBytes)));
  EXPECT_EQ(plain, EncodePreauthTimestamp(when));

  const std::string ticket(150, 'T'), reply(270, 'R');
  const std::string ticket_message = realm.three.FinishSeal(result, 0, ticket);
  const std::string reply_message = realm.three.FinishSeal(result, 1, reply);
  EXPECT_EQ(OracleOpen(realm.tgt, kUsageTicket, ticket_message), ticket);
  EXPECT_EQ(OracleOpen(realm.alice, kUsageAsReply, reply_message), reply);
  EXPECT_TRUE(OracleMacGood(realm.alice, kUsageAsReqChecksum, job.make_macs[0].data,
                            result.make_macs[0]));

  const auto header = DecodeTgtHeader(GcmOf(result.seals[0]).header);
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->principal, realm.alice.info.principal_id);
  EXPECT_EQ(header->origin_job, job.id);
  EXPECT_NEAR(header->origin_time, absl::ToUnixSeconds(when), 2);
  EXPECT_TRUE(GcmOf(result.seals[1]).header.empty());

  std::set<Nonce> nonces = {GcmOf(result.seals[0]).nonce, GcmOf(result.seals[1]).nonce,
                            GcmOf(result.make_macs[0]).nonce};
  EXPECT_EQ(nonces.size(), 3u);
  for (const Nonce& nonce : nonces) EXPECT_EQ(SplitNonce(nonce).cluster, 7);

  const BatchReport report = realm.three.observer(0).FirstBatch();
  // 4 for the pre-auth, 13 for the ticket, 20 for the reply, 1 for the checksum.
  EXPECT_EQ(report.aes_blocks, 38u);
  EXPECT_EQ(report.rounds, 42u + 2 + 1);  // krbtgt's lanes have 256 bits; few blocks
  std::printf("login: %zu AES blocks, %zu rounds, %zu bytes, computed in %s\n",
              static_cast<size_t>(report.aes_blocks), static_cast<size_t>(report.rounds),
              static_cast<size_t>(report.bytes), absl::FormatDuration(report.computed).c_str());
}

INSTANTIATE_TEST_SUITE_P(Enctypes, LoginTest,
                         ::testing::Values(kEnctypeAes128Gcm, kEnctypeAes256Gcm));

// A batch that is long enough is shared among the rings, and cut into parts on each.
TEST(JobEngine, RingsShareALongBatch) {
  EngineOptions options;
  options.mode = BatchMode::kFixed;
  options.batch_window = absl::Seconds(1);  // all logins come into one batch
  Realm realm(kEnctypeAes128Gcm, options, 1, /*rings=*/2);
  std::vector<Job> jobs;
  for (int i = 0; i < 300; ++i) jobs.push_back(realm.Login(i % 2 ? realm.alice : realm.bob));
  const std::vector<JobResult> results = realm.three.RunAll(jobs);
  for (size_t i = 0; i < results.size(); ++i) {
    ASSERT_VERDICT_OK(results[i]);
    const PlainKey& user = i % 2 ? realm.alice : realm.bob;
    ASSERT_EQ(OracleOpen(user, kUsageAsReply, realm.three.FinishSeal(results[i], 1, "reply")),
              "reply");
  }
  const std::vector<BatchReport> batches = realm.three.observer(0).Batches();
  ASSERT_FALSE(batches.empty());
  EXPECT_GE(batches[0].aes_blocks, 2 * limits::kRingBlocks);
  for (int p = 0; p < kParties; ++p) realm.three.Stop(p);
  EXPECT_GT(realm.three.hub().FramesOn(1), 3 * 40);  // the second ring took its share
}

// Each circuit that an engine runs takes at most as many zero shares as it declares: one that took
// more would end the process.
TEST(JobEngine, EverythingRunsOnExchangedZeroShares) {
  EngineOptions options;
  options.randomness = Randomness::kExchanged;
  for (const int32_t enctype : {kEnctypeAes128Gcm, kEnctypeAes256Gcm}) {
    Realm realm(enctype, options, 1, /*rings=*/2);
    const JobResult login = realm.three.Run(realm.Login(realm.alice));
    ASSERT_VERDICT_OK(login);
    const std::string ticket = realm.three.FinishSeal(login, 0, "ticket");
    EXPECT_EQ(OracleOpen(realm.tgt, kUsageTicket, ticket), "ticket");
    EXPECT_VERDICT(realm.three.Run(OpenTicket(realm, ticket)), Verdict::kOk);
    Job wrong = realm.Login(realm.alice);
    wrong.opens[0].message.back() ^= 1;
    EXPECT_VERDICT(realm.three.Run(wrong), Verdict::kBadTag);
    KeyInfo drawn = realm.tgt.info;
    drawn.handle[0] ^= 1;
    EXPECT_TRUE(realm.three.Draw({7}, drawn).ok());
    const auto good = realm.three.Verify({realm.alice.info.handle, realm.tgt.info.handle});
    ASSERT_TRUE(good.ok()) << good.status();
    for (const VerifyResult& result : *good) EXPECT_TRUE(result.consistent) << result.detail;
  }
}

TEST(JobEngine, ManyLoginsShareBatches) {
  Realm realm;
  constexpr int kLogins = 40;
  std::vector<Job> jobs;
  for (int i = 0; i < kLogins; ++i) jobs.push_back(realm.Login(i % 2 ? realm.alice : realm.bob));
  const std::vector<JobResult> results = realm.three.RunAll(jobs);
  std::set<Nonce> nonces;
  for (size_t i = 0; i < results.size(); ++i) {
    ASSERT_VERDICT_OK(results[i]);
    for (const SealResult& seal : results[i].seals) {
      EXPECT_TRUE(nonces.insert(GcmOf(seal).nonce).second);
    }
    const PlainKey& user = i % 2 ? realm.alice : realm.bob;
    EXPECT_EQ(OracleOpen(user, kUsageAsReply, realm.three.FinishSeal(results[i], 1, "reply")),
              "reply");
  }
  EXPECT_LT(realm.three.observer(0).Batches().size(), static_cast<size_t>(kLogins));
}

// Every operation of the table, both classes of ticket keys.
TEST(JobEngine, ServiceTicketsHaveNoHeader) {
  Realm realm;
  const JobResult result = realm.three.Run(
      LoginJob(realm.three.NextId(), realm.alice, realm.kadmin, realm.Preauth(realm.alice)));
  ASSERT_VERDICT_OK(result);
  EXPECT_TRUE(GcmOf(result.seals[0]).header.empty());
  const std::string ticket = realm.three.FinishSeal(result, 0, "kadmin ticket");
  EXPECT_EQ(OracleOpen(realm.kadmin, kUsageTicket, ticket), "kadmin ticket");
  Job open = OpenTicket(realm, ticket);
  open.opens[0].handle = realm.kadmin.info.handle;
  EXPECT_VERDICT(realm.three.Run(open), Verdict::kOk);
}

TEST(JobEngine, ChecksumsAreMadeAndVerified) {
  Realm realm;
  Job make;
  make.id = realm.three.NextId();
  make.operation = Operation::kMakeChecksum;
  make.make_macs = {{realm.tgt.info.handle, 17, std::string(1000, 'p')},
                    {realm.kadmin.info.handle, 17, "other"}};
  const JobResult made = realm.three.Run(make);
  ASSERT_VERDICT_OK(made);
  EXPECT_TRUE(OracleMacGood(realm.tgt, 17, make.make_macs[0].data, made.make_macs[0]));
  EXPECT_TRUE(OracleMacGood(realm.kadmin, 17, "other", made.make_macs[1]));

  Job verify;
  verify.operation = Operation::kVerifyChecksum;
  const auto& [nonce, tag] = GcmOf(made.make_macs[0]);
  const std::string checksum = std::string(nonce.begin(), nonce.end()) + tag;
  verify.verify_macs = {{realm.tgt.info.handle, 17, make.make_macs[0].data, checksum}};
  verify.id = realm.three.NextId();
  EXPECT_VERDICT(realm.three.Run(verify), Verdict::kOk);
  verify.verify_macs[0].data[500] ^= 1;
  verify.id = realm.three.NextId();
  EXPECT_VERDICT(realm.three.Run(verify), Verdict::kBadTag);
}

// ---- The gate ----

TEST(JobEngine, WrongPasswordGivesBadTagAndNothingElse) {
  Realm realm;
  PlainKey wrong = realm.alice;
  wrong.base[0] ^= 1;
  const JobResult result = realm.three.Run(
      LoginJob(realm.three.NextId(), realm.alice, realm.tgt, realm.Preauth(wrong)));
  EXPECT_VERDICT(result, Verdict::kBadTag);
  ExpectNoOutput(result);
}

TEST(JobEngine, WrongZeroBlockGivesBadTag) {
  Realm realm;
  // A good GCM message whose first 16 bytes are not zero: what a key-committing attack needs.
  GcmNonce nonce{1};
  const std::string bad = PlainSealRaw(realm.alice, kUsagePreauth, nonce,
                                       std::string(16, '\1') + EncodePreauthTimestamp(absl::Now()));
  const JobResult result =
      realm.three.Run(LoginJob(realm.three.NextId(), realm.alice, realm.tgt, bad));
  EXPECT_VERDICT(result, Verdict::kBadTag);
}

TEST(JobEngine, ReplayedPreauthIsRefusedAcrossBatchesAndRestarts) {
  Realm realm;
  const std::string preauth = realm.Preauth(realm.alice);
  const auto login = [&] {
    return realm.three.Run(LoginJob(realm.three.NextId(), realm.alice, realm.tgt, preauth));
  };
  EXPECT_VERDICT(login(), Verdict::kOk);
  JobResult again = login();
  EXPECT_VERDICT(again, Verdict::kReplay);
  ExpectNoOutput(again);
  for (int p = 0; p < kParties; ++p) realm.three.Stop(p);
  realm.three.StartAll();
  ASSERT_TRUE(realm.three.WaitConnected());
  EXPECT_VERDICT(login(), Verdict::kReplay);
}

TEST(JobEngine, ReplayWithinOneBatch) {
  Realm realm;
  const std::string preauth = realm.Preauth(realm.alice);
  std::vector<Job> jobs;
  for (int i = 0; i < 4; ++i) {
    jobs.push_back(LoginJob(realm.three.NextId(), realm.alice, realm.tgt, preauth));
  }
  int good = 0;
  for (const JobResult& result : realm.three.RunAll(jobs)) good += result.judgement.ok();
  EXPECT_EQ(good, 1);
}

TEST(JobEngine, TimestampOutsideTheWindow) {
  Realm realm;
  for (const int minutes : {-6, 6}) {
    const JobResult result = realm.three.Run(
        LoginJob(realm.three.NextId(), realm.alice, realm.tgt,
                 realm.Preauth(realm.alice, absl::Minutes(minutes))));
    EXPECT_VERDICT(result, Verdict::kClockSkew);
    ExpectNoOutput(result);
  }
  const JobResult near = realm.three.Run(LoginJob(
      realm.three.NextId(), realm.alice, realm.tgt, realm.Preauth(realm.alice, absl::Minutes(4))));
  EXPECT_VERDICT(near, Verdict::kOk);
}

// One server's clock is enough to refuse: each judges for itself.
TEST(JobEngine, EachServerJudgesByItsOwnClock) {
  Realm realm;
  realm.three.clock(2).Set(absl::Minutes(4));
  const Job job = LoginJob(realm.three.NextId(), realm.alice, realm.tgt,
                           realm.Preauth(realm.alice, absl::Minutes(-3)));
  const PerParty<JobResult> answers = realm.three.Run(PerParty<Job>{job, job, job});
  EXPECT_VERDICT(answers[0], Verdict::kOk);
  EXPECT_VERDICT(answers[1], Verdict::kOk);
  EXPECT_VERDICT(answers[2], Verdict::kClockSkew);
  ExpectNoOutput(answers[2]);
}

// And they are dropped when all three clocks say that their time is over.
TEST(JobEngine, ReplayEntriesEndWithTheirTime) {
  Realm realm;
  ASSERT_VERDICT_OK(realm.three.Run(realm.Login(realm.alice)));
  const auto kept = [&realm] {
    size_t entries = 0;
    for (int party = 0; party < kParties; ++party) {
      EXPECT_TRUE(realm.three.store(party)
                      .LoadReplayEntries([&entries](const ReplayEntry&) { ++entries; })
                      .ok());
    }
    return entries;
  };
  EXPECT_EQ(kept(), 3u);
  for (int party = 0; party < kParties; ++party) realm.three.clock(party).Set(absl::Hours(1));
  for (int i = 0; i < 1000 && kept() > 0; ++i) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_EQ(kept(), 0u);
}

// One after the other, so that at no time two clocks are wrong.
TEST(JobEngine, ClocksThatWereAheadForgetNoReplay) {
  Realm realm;
  const std::string preauth = realm.Preauth(realm.alice);
  const auto login = [&] {
    return realm.three.Run(LoginJob(realm.three.NextId(), realm.alice, realm.tgt, preauth));
  };
  ASSERT_VERDICT_OK(login());
  for (int party = 0; party < kParties; ++party) {
    realm.three.clock(party).Set(absl::Hours(3));
    absl::SleepFor(absl::Milliseconds(1500));  // longer than a heartbeat: housekeeping was there
    realm.three.clock(party).Set(absl::ZeroDuration());
    absl::SleepFor(absl::Milliseconds(1500));
  }
  ASSERT_TRUE(realm.three.WaitConnected());
  EXPECT_VERDICT(login(), Verdict::kReplay);
}

TEST(JobEngine, GatesOfOtherKinds) {
  Realm realm;
  const auto login = [&](const PlainKey& key) {
    return realm.three.Run(LoginJob(realm.three.NextId(), key, realm.tgt, ""));
  };
  EXPECT_VERDICT(login(realm.alice), Verdict::kRefused);
  EXPECT_VERDICT(login(realm.guest), Verdict::kOk);
  EXPECT_VERDICT(login(realm.otp), Verdict::kOk);
  // One server whose policy differs withholds its share.
  const Handle handle = realm.guest.info.handle;
  ASSERT_TRUE(realm.three.store(1).SetGate({&handle, 1}, Gate::kTimestamp).ok());
  EXPECT_VERDICT(login(realm.guest), Verdict::kRefused);
}

TEST(JobEngine, GoodPreauthThatIsNoTimestamp) {
  Realm realm;
  GcmNonce nonce{2};
  const std::string message =
      PlainSealText(realm.alice, kUsagePreauth, nonce, "", "not a timestamp");
  const JobResult result =
      realm.three.Run(LoginJob(realm.three.NextId(), realm.alice, realm.tgt, message));
  EXPECT_VERDICT(result, Verdict::kRefused);
  EXPECT_THAT(result.judgement.detail, HasSubstr("no timestamp"));
}

// ---- Grants ----

TEST(JobEngine, GrantsHaveABudget) {
  Realm realm;
  const JobResult login = realm.three.Run(realm.Login(realm.alice));
  ASSERT_VERDICT_OK(login);
  const JobResult first = realm.three.Run(Granted(realm, login.id));
  ASSERT_VERDICT_OK(first);
  // The header is that of the job whose pre-auth was verified.
  EXPECT_EQ(GcmOf(first.seals[0]).header, GcmOf(login.seals[0]).header);
  EXPECT_EQ(OracleOpen(realm.tgt, kUsageTicket, realm.three.FinishSeal(first, 0, "longer")),
            "longer");
  const JobResult second = realm.three.Run(Granted(realm, login.id));
  EXPECT_VERDICT(second, Verdict::kRefused);
  EXPECT_THAT(second.judgement.detail, HasSubstr("used up"));
}

TEST(JobEngine, GrantBudgetHoldsWithinOneBatch) {
  Realm realm;
  const JobResult login = realm.three.Run(realm.Login(realm.alice));
  ASSERT_VERDICT_OK(login);
  std::vector<Job> jobs;
  for (int i = 0; i < 5; ++i) jobs.push_back(Granted(realm, login.id));
  int good = 0;
  for (const JobResult& result : realm.three.RunAll(jobs)) good += result.judgement.ok();
  EXPECT_EQ(good, 1);
}

TEST(JobEngine, GrantsComeFromVerifiedPreauthOnlyAndAreOnesOwn) {
  Realm realm;
  EXPECT_VERDICT(realm.three.Run(Granted(realm, 12345)), Verdict::kRefused);

  PlainKey wrong = realm.alice;
  wrong.base[0] ^= 1;
  Job open;
  open.id = realm.three.NextId();
  open.operation = Operation::kOpenPreauth;
  open.client = realm.alice.info.handle;
  open.opens = {{realm.alice.info.handle, kUsagePreauth, realm.Preauth(wrong)}};
  EXPECT_VERDICT(realm.three.Run(open), Verdict::kBadTag);
  EXPECT_VERDICT(realm.three.Run(Granted(realm, open.id)), Verdict::kRefused);

  open.id = realm.three.NextId();
  open.opens[0].message = realm.Preauth(realm.alice);
  EXPECT_VERDICT(realm.three.Run(open), Verdict::kOk);
  Job bobs = Granted(realm, open.id);
  bobs.client = realm.bob.info.handle;
  EXPECT_VERDICT(realm.three.Run(bobs), Verdict::kRefused);
  const Job other_session = Granted(realm, open.id);
  realm.three.kdc().session[0] ^= 1;
  EXPECT_VERDICT(realm.three.Run(other_session), Verdict::kRefused);
  realm.three.kdc().session[0] ^= 1;
  EXPECT_VERDICT(realm.three.Run(Granted(realm, open.id)), Verdict::kOk);
}

// ---- Tickets ----

TEST(JobEngine, OpenTicket) {
  Realm realm;
  const std::string ticket = realm.Tgt("enc-part of a tgt");
  const JobResult opened = realm.three.Run(OpenTicket(realm, ticket));
  ASSERT_VERDICT_OK(opened);
  const auto message = ParseMessage(ticket);
  EXPECT_EQ(XorText(GcmOf(opened.opens[0]).share,
                    std::string(message->ciphertext.substr(kZeroBytes))),
            "enc-part of a tgt");
  std::string altered = ticket;
  altered[20] ^= 1;  // in the header: the principal
  EXPECT_VERDICT(realm.three.Run(OpenTicket(realm, altered)), Verdict::kBadTag);
  altered = ticket;
  altered.back() ^= 1;
  EXPECT_VERDICT(realm.three.Run(OpenTicket(realm, altered)), Verdict::kBadTag);
}

Job Reissue(Realm& realm, const std::string& parent, const Handle& under) {
  Job job;
  job.id = realm.three.NextId();
  job.operation = Operation::kReissueTicket;
  job.opens.push_back({realm.tgt.info.handle, kUsageTicket, parent});
  job.seals.push_back({under, kUsageTicket, 120});
  return job;
}

TEST(JobEngine, ReissueInheritsTheHeader) {
  Realm realm;
  const std::string parent = realm.Tgt("parent");
  const JobResult result = realm.three.Run(Reissue(realm, parent, realm.tgt.info.handle));
  ASSERT_VERDICT_OK(result);
  EXPECT_EQ(GcmOf(result.seals[0]).header, std::string(ParseMessage(parent)->header));
  const std::string child = realm.three.FinishSeal(result, 0, "child");
  EXPECT_EQ(OracleOpen(realm.tgt, kUsageTicket, child), "child");
  EXPECT_VERDICT(realm.three.Run(Reissue(realm, child, realm.tgt.info.handle)), Verdict::kOk);
  const JobResult service = realm.three.Run(Reissue(realm, parent, realm.kadmin.info.handle));
  ASSERT_VERDICT_OK(service);
  EXPECT_TRUE(GcmOf(service.seals[0]).header.empty());

  std::string bad = parent;
  bad[40] ^= 1;
  const JobResult refused = realm.three.Run(Reissue(realm, bad, realm.tgt.info.handle));
  EXPECT_VERDICT(refused, Verdict::kBadTag);
  ExpectNoOutput(refused);
}

TEST(JobEngine, OriginTooOld) {
  Realm realm;
  const absl::Duration life = limits::kDefaultMaxRenewableLife;
  const auto ticket = [&](absl::Duration age) {
    return realm.ForgeWithKey(
        NewTgtHeader(realm.alice.info.principal_id, 1, absl::Now() - age, life), "old");
  };
  EXPECT_VERDICT(realm.three.Run(OpenTicket(realm, ticket(life - absl::Hours(1)))), Verdict::kOk);
  const std::string old = ticket(life + absl::Hours(1));
  EXPECT_VERDICT(realm.three.Run(OpenTicket(realm, old)), Verdict::kRefused);
  const JobResult reissue = realm.three.Run(Reissue(realm, old, realm.tgt.info.handle));
  EXPECT_VERDICT(reissue, Verdict::kRefused);
  ExpectNoOutput(reissue);
}

// Without a header the time in the nonce is the ticket's age.
TEST(JobEngine, ServiceTicketTooOld) {
  Realm realm;
  const auto open = [&](absl::Duration age) {
    const Nonce nonce = JoinNonce(
        {static_cast<uint32_t>(absl::ToUnixSeconds(absl::Now() - age)), 7, 42});
    Job job = OpenTicket(realm, PlainSealText(realm.kadmin, kUsageTicket, nonce, "", "old"));
    job.opens[0].handle = realm.kadmin.info.handle;
    return realm.three.Run(job);
  };
  const absl::Duration life = limits::kDefaultMaxRenewableLife;
  EXPECT_VERDICT(open(-absl::Seconds(16)), Verdict::kOk);
  EXPECT_VERDICT(open(life - absl::Hours(1)), Verdict::kOk);
  const JobResult old = open(life + absl::Hours(1));
  EXPECT_VERDICT(old, Verdict::kRefused);
  ExpectNoOutput(old);
}

}  // namespace
}  // namespace mpckdc
