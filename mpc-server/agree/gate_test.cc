// SPDX-License-Identifier: Apache-2.0
//
// What three engines answer to pre-authentications and to what follows them: gates, replays,
// clocks, grants. Judged alike whatever a user's key is and whichever protocol computed.
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "mpc-server/testing/cts.h"
#include "mpc-server/testing/jobs.h"

namespace mpckdc {
namespace {

class GateTest : public ::testing::TestWithParam<KeyAndProtocol> {
 protected:
  GateTest() : realm_(GetParam().enctype, Forced(GetParam().protocol)) {}
  void TearDown() override { ExpectComputedBy(realm_, GetParam().protocol); }

  Realm realm_;
};

// ---- The gate ----

TEST_P(GateTest, WrongPasswordGivesBadTagAndNothingElse) {
  const std::string preauth = realm_.Preauth(WrongPassword(realm_.alice));
  EXPECT_VERDICT(realm_.Run(realm_.Login(realm_.alice, preauth)), Verdict::kBadTag);
}

TEST_P(GateTest, ReplayedPreauthIsRefusedAcrossBatchesAndRestarts) {
  const std::string preauth = realm_.Preauth(realm_.alice);
  const auto login = [&] { return realm_.Run(realm_.Login(realm_.alice, preauth)); };
  EXPECT_VERDICT(login(), Verdict::kOk);
  realm_.kdc().name = "another";
  ExpectRefused(login(), Verdict::kReplay, "from another KDC");
  realm_.RestartAll();
  ExpectRefused(login(), Verdict::kReplay, "from another KDC");
}

// Its answer was lost, with its KDC's process or the servers': what the same KDC sends again, in
// another session, is worth what is left of the grant, and that is one more.
TEST_P(GateTest, APreauthWhoseAnswerWasLostIsJudgedAgainOnce) {
  for (const bool restarted : {false, true}) {
    const std::string preauth = realm_.Preauth(realm_.alice);
    const auto login = [&] { return realm_.Run(realm_.Login(realm_.alice, preauth)); };
    ASSERT_VERDICT_OK(login());
    if (restarted) realm_.RestartAll();
    realm_.kdc().session[0] ^= 1;
    const JobResult again = login();
    ASSERT_VERDICT_OK(again);
    EXPECT_EQ(OracleOpen(realm_.tgt, kUsageTicket, realm_.FinishSeal(again, 0, "ticket")),
              "ticket");
    ExpectRefused(realm_.Run(realm_.Granted(again.id)), Verdict::kRefused, "used up");
    ExpectRefused(login(), Verdict::kReplay, "used up");
    if (restarted) realm_.RestartAll();
    ExpectRefused(login(), Verdict::kReplay, "used up");
  }
}

// The three may remember differently: one had written it down when another one's process ended.
TEST_P(GateTest, APreauthThatOneServerDidNotRecordIsJudgedAgain) {
  ASSERT_VERDICT_OK(realm_.Run(realm_.Login(realm_.alice)));
  const std::string preauth = realm_.Preauth(realm_.alice);
  realm_.store(2).FailWrites(absl::ResourceExhaustedError("disk full"));
  const PerParty<JobResult> answers = realm_.RunEach(realm_.Login(realm_.alice, preauth));
  EXPECT_VERDICT(answers[0], Verdict::kOk);
  EXPECT_VERDICT(answers[2], Verdict::kUnavailable);
  realm_.store(2).FailWrites(absl::OkStatus());
  EXPECT_VERDICT(realm_.Run(realm_.Login(realm_.alice, preauth)), Verdict::kOk);
  // Server 2 would pay for one more; nothing leaves the others.
  EXPECT_VERDICT(realm_.Run(realm_.Login(realm_.alice, preauth)), Verdict::kReplay);
}

TEST_P(GateTest, AnOpenedPreauthGivesTheRestOfItsGrantAgain) {
  const std::string preauth = realm_.Preauth(realm_.alice);
  const auto open = [&] { return realm_.Run(realm_.OpenPreauth(realm_.alice, preauth)); };
  const JobResult first = open();
  ASSERT_VERDICT_OK(first);
  ASSERT_VERDICT_OK(realm_.Run(realm_.Granted(first.id)));
  realm_.RestartAll();
  const JobResult second = open(), third = open();
  ASSERT_VERDICT_OK(second);
  ASSERT_VERDICT_OK(third);
  ExpectRefused(realm_.Run(realm_.Granted(second.id, realm_.alice,
                                          {realm_.kadmin.info.handle, kUsageTicket, 100})),
                Verdict::kRefused, "a ticket under another key");
  EXPECT_VERDICT(realm_.Run(realm_.Granted(second.id)), Verdict::kOk);
  ExpectRefused(realm_.Run(realm_.Granted(second.id)), Verdict::kRefused, "used up");
  ExpectRefused(realm_.Run(realm_.Granted(third.id)), Verdict::kRefused, "used up");
}

TEST_P(GateTest, AfterItsGrantsMinuteAPreauthIsAReplay) {
  const std::string preauth = realm_.Preauth(realm_.alice);
  const auto open = [&] { return realm_.Run(realm_.OpenPreauth(realm_.alice, preauth)); };
  ASSERT_VERDICT_OK(open());
  const auto set_clocks = [&](absl::Duration ahead) {
    for (int party = 0; party < kParties; ++party) realm_.clock(party).Set(ahead);
  };
  set_clocks(limits::kGrantLife - absl::Seconds(20));
  ASSERT_VERDICT_OK(open());
  set_clocks(limits::kGrantLife);
  ExpectRefused(open(), Verdict::kReplay, "accepted before");
}

TEST_P(GateTest, RepeatsWithinOneBatch) {
  const std::string preauth = realm_.Preauth(realm_.alice);
  std::vector<Job> jobs;
  for (int i = 0; i < 5; ++i) jobs.push_back(realm_.Login(realm_.alice, preauth));
  EXPECT_EQ(CountGood(realm_.RunAll(jobs)), 2);
}

TEST_P(GateTest, TimestampOutsideTheWindow) {
  for (const int minutes : {-6, 6, 4}) {
    const std::string preauth = realm_.Preauth(realm_.alice, absl::Minutes(minutes));
    EXPECT_VERDICT(realm_.Run(realm_.Login(realm_.alice, preauth)),
                   minutes == 4 ? Verdict::kOk : Verdict::kClockSkew);
  }
}

// One server's clock is enough to refuse: each judges for itself.
TEST_P(GateTest, EachServerJudgesByItsOwnClock) {
  realm_.clock(2).Set(absl::Minutes(4));
  const Job job = realm_.Login(realm_.alice, realm_.Preauth(realm_.alice, absl::Minutes(-3)));
  const PerParty<JobResult> answers = realm_.RunEach(job);
  EXPECT_VERDICT(answers[0], Verdict::kOk);
  EXPECT_VERDICT(answers[1], Verdict::kOk);
  EXPECT_VERDICT(answers[2], Verdict::kClockSkew);
}

TEST_P(GateTest, GatesOfOtherKinds) {
  const auto login = [&](const PlainKey& key) { return realm_.Run(realm_.Login(key, "")); };
  EXPECT_VERDICT(login(realm_.alice), Verdict::kRefused);
  EXPECT_VERDICT(login(realm_.guest), Verdict::kOk);
  EXPECT_VERDICT(login(realm_.otp), Verdict::kOk);
  // One server whose policy differs withholds its share.
  const Handle handle = realm_.guest.info.handle;
  ASSERT_TRUE(realm_.store(1).SetGate(realm_.guest.info.principal, {&handle, 1}, Gate::kTimestamp).ok());
  EXPECT_VERDICT(login(realm_.guest), Verdict::kRefused);
}

TEST_P(GateTest, GoodPreauthThatIsNoTimestamp) {
  const std::string text = "not a timestamp";
  const Enctype& enctype = *FindEnctype(realm_.alice.info.enctype);
  const std::string message =
      enctype.is_gcm() ? PlainSealText(realm_.alice, kUsagePreauth, GcmNonce{2}, "", text)
                       : CtsSeal(enctype, realm_.alice.base, kUsagePreauth,
                                 std::string(kConfounderBytes, 'c'), text);
  ExpectRefused(realm_.Run(realm_.Login(realm_.alice, message)), Verdict::kRefused, "no timestamp");
}

// ---- Grants ----

TEST_P(GateTest, GrantsHaveABudget) {
  const JobResult login = realm_.Run(realm_.Login(realm_.alice));
  ASSERT_VERDICT_OK(login);
  const JobResult first = realm_.Run(realm_.Granted(login.id));
  ASSERT_VERDICT_OK(first);
  // The header is that of the job whose pre-auth was verified.
  EXPECT_EQ(GcmOf(first.seals[0]).header, GcmOf(login.seals[0]).header);
  EXPECT_EQ(OracleOpen(realm_.tgt, kUsageTicket, realm_.FinishSeal(first, 0, "longer")), "longer");
  ExpectRefused(realm_.Run(realm_.Granted(login.id)), Verdict::kRefused, "used up");
}

// Otherwise a KDC makes a ticket for kadmin out of everybody's ordinary login.
TEST_P(GateTest, OneLoginIsForOneService) {
  const JobResult login = realm_.Run(realm_.Login(realm_.alice));
  ASSERT_VERDICT_OK(login);
  ExpectRefused(realm_.Run(realm_.Granted(login.id, realm_.alice,
                                          {realm_.kadmin.info.handle, kUsageTicket, 100})),
                Verdict::kRefused, "a ticket under another key");
  EXPECT_VERDICT(realm_.Run(realm_.Granted(login.id)), Verdict::kOk);
}

TEST_P(GateTest, GrantBudgetHoldsWithinOneBatch) {
  const JobResult login = realm_.Run(realm_.Login(realm_.alice));
  ASSERT_VERDICT_OK(login);
  std::vector<Job> jobs;
  for (int i = 0; i < 5; ++i) jobs.push_back(realm_.Granted(login.id));
  EXPECT_EQ(CountGood(realm_.RunAll(jobs)), 1);
}

TEST_P(GateTest, GrantsComeFromVerifiedPreauthOnlyAndAreOnesOwn) {
  EXPECT_VERDICT(realm_.Run(realm_.Granted(12345)), Verdict::kRefused);

  Job open = realm_.OpenPreauth(realm_.alice, realm_.Preauth(WrongPassword(realm_.alice)));
  EXPECT_VERDICT(realm_.Run(open), Verdict::kBadTag);
  EXPECT_VERDICT(realm_.Run(realm_.Granted(open.id)), Verdict::kRefused);

  open = realm_.OpenPreauth(realm_.alice, realm_.Preauth(realm_.alice));
  EXPECT_VERDICT(realm_.Run(open), Verdict::kOk);
  Job bobs = realm_.Granted(open.id);
  bobs.client = realm_.bob.info.handle;
  EXPECT_VERDICT(realm_.Run(bobs), Verdict::kRefused);
  const Job other_session = realm_.Granted(open.id);
  realm_.kdc().session[0] ^= 1;
  EXPECT_VERDICT(realm_.Run(other_session), Verdict::kRefused);
  realm_.kdc().session[0] ^= 1;
  EXPECT_VERDICT(realm_.Run(realm_.Granted(open.id)), Verdict::kOk);
}

// ---- Failures ----

TEST_P(GateTest, APartyKilledInMidBatch) {
  ASSERT_VERDICT_OK(realm_.Run(realm_.Login(realm_.alice)));
  for (int round = 0; round < 3; ++round) {
    std::vector<Job> jobs;
    for (int i = 0; i < 8; ++i) jobs.push_back(realm_.Login(realm_.alice));
    for (Job& job : jobs) job.deadline_ms = 1500;
    std::thread killer([&] {
      absl::SleepFor(absl::Milliseconds(3 + 5 * round));
      realm_.hub().CloseCurrent();
      realm_.Stop(round);
    });
    const std::vector<JobResult> results = realm_.RunAll(jobs);
    killer.join();
    for (const JobResult& result : results) {
      const Verdict v = result.judgement.verdict;
      EXPECT_TRUE(v == Verdict::kOk || v == Verdict::kUnavailable || v == Verdict::kDeadline)
          << VerdictName(v) << " " << result.judgement.detail;
    }
    realm_.Start(round);
    ASSERT_TRUE(realm_.WaitConnected());
    EXPECT_VERDICT(realm_.Run(realm_.Login(realm_.alice)), Verdict::kOk);
  }
}

TEST_P(GateTest, APreauthThatCannotBeRecordedOpensNothing) {
  ASSERT_VERDICT_OK(realm_.Run(realm_.Login(realm_.alice)));
  realm_.store(2).FailWrites(absl::ResourceExhaustedError("disk full"));
  const Job job = realm_.OpenPreauth(realm_.alice, realm_.Preauth(realm_.alice));
  EXPECT_VERDICT(realm_.Run(job), Verdict::kUnavailable);
}

INSTANTIATE_TEST_SUITE_P(Keys, GateTest, ::testing::ValuesIn(kGcmAndStock), NameOf);

}  // namespace
}  // namespace mpckdc
