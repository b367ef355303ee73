// SPDX-License-Identifier: Apache-2.0
//
// Long work beside the rest: three engines, users with gcm keys and users with keys of enctype 18.
#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/agree/agreement.h"
#include "mpc-server/testing/cts.h"
#include "mpc-server/testing/jobs.h"

namespace mpckdc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsSubsetOf;
using ::testing::UnorderedElementsAre;

// Asks and does not wait; notes in which order the leader answers.
class Asked {
 public:
  explicit Asked(Realm* realm) : realm_(*realm) {}

  void Ask(const std::string& name, const Job& job) { Ask(name, PerParty<Job>{job, job, job}); }
  void Ask(const std::string& name, const PerParty<Job>& jobs) {
    {
      const absl::MutexLock lock(&mu_);
      open_ += kParties;
    }
    for (int p = 0; p < kParties; ++p) {
      realm_.engine(p).Submit(realm_.kdc(), jobs[p], [this, p, name](JobResult result) {
        const absl::MutexLock lock(&mu_);
        if (p == kLeader) {
          answers_.push_back(absl::StrCat(name, " ", VerdictName(result.judgement.verdict)));
        }
        --open_;
      });
    }
  }
  std::vector<std::string> Answers() {
    const absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(+[](int* open) { return *open == 0; }, &open_));
    return answers_;
  }
  size_t Count(const std::string& answer) {
    const absl::MutexLock lock(&mu_);
    return static_cast<size_t>(std::count(answers_.begin(), answers_.end(), answer));
  }
  bool Answered(const std::string& answer) { return Count(answer) > 0; }

 private:
  Realm& realm_;
  absl::Mutex mu_;
  int open_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<std::string> answers_ ABSL_GUARDED_BY(mu_);
};

class LongRingTest : public ::testing::Test {
 protected:
  LongRingTest() : stock_(realm_.AddKey("stock@EXAMPLE.COM", KeyClass::kUser, kEnctypeAes256Sha1)) {
    PrepareCircuits();
  }

  // A login of a stock client whose request has so many bytes.
  Job Long(size_t request) {
    Job job = realm_.Login(stock_);
    job.make_macs[0].data.assign(request, 'q');
    job.deadline_ms = 30'000;  // with proofs, and on a machine that has other things to do
    return job;
  }
  // The leader has begun to compute.
  void WaitUntilTaken() {
    EXPECT_TRUE(Eventually([&] { return realm_.engine(kLeader).Status().waiting == 0; }));
  }

  Realm realm_{InRounds()};
  const PlainKey stock_;
};

TEST_F(LongRingTest, AShortJobDoesNotWait) {
  Asked asked(&realm_);
  asked.Ask("long", Long(4000));
  WaitUntilTaken();
  for (int i = 0; i < 3; ++i) ASSERT_VERDICT_OK(realm_.Run(realm_.Login(realm_.alice)));
  EXPECT_FALSE(asked.Answered("long OK"));
  EXPECT_THAT(asked.Answers(), ElementsAre("long OK"));
}

// A batch of the long ring has a budget of rounds: who needs more shares it with his like.
TEST_F(LongRingTest, DeepJobsTakeTurnsWithTheOthers) {
  Asked asked(&realm_);
  asked.Ask("first", Long(200));
  WaitUntilTaken();
  asked.Ask("deep 1", Long(4000));
  asked.Ask("shallow", Long(200));
  asked.Ask("deep 2", Long(3000));
  asked.Answers();
  EXPECT_TRUE(Eventually([&] { return realm_.observer(kLeader).Batches().size() >= 3; }));
  const std::vector<BatchReport> batches = realm_.observer(kLeader).Batches();
  ASSERT_EQ(batches.size(), 3u);
  EXPECT_EQ(batches[0].jobs.size(), 1u);
  EXPECT_EQ(batches[1].jobs.size(), 1u);  // beside which the deep ones show that they are good
  EXPECT_EQ(batches[2].jobs.size(), 2u);
  EXPECT_LT(batches[1].rounds, limits::kLongBatchRounds);
  EXPECT_GT(batches[2].rounds, 3 * limits::kLongBatchRounds);
}

// A stranger's garbage before a long request is found bad in the batch of the others.
TEST_F(LongRingTest, ABadPreauthHasNoDeepBatch) {
  Asked asked(&realm_);
  asked.Ask("first", Long(200));
  WaitUntilTaken();
  Job garbage = realm_.Login(stock_, realm_.AlteredPreauth(stock_));
  garbage.make_macs[0].data.assign(4000, 'q');
  asked.Ask("garbage", garbage);
  asked.Ask("shallow", Long(200));
  EXPECT_THAT(asked.Answers(), UnorderedElementsAre("first OK", "garbage BAD_TAG", "shallow OK"));
  EXPECT_TRUE(Eventually([&] { return realm_.observer(kLeader).Batches().size() >= 2; }));
  const std::vector<BatchReport> batches = realm_.observer(kLeader).Batches();
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_EQ(batches[1].jobs.size(), 2u);
  EXPECT_LT(batches[1].rounds, limits::kLongBatchRounds);
}

// Its quota is taken once, its pre-auth used once and its grant there once, though two batches saw
// it.
TEST_F(LongRingTest, AJobThatProvedItselfFirstIsAnsweredOnce) {
  Asked asked(&realm_);
  const Job job = Long(4000);
  asked.Ask("deep", job);
  EXPECT_THAT(asked.Answers(), ElementsAre("deep OK"));
  // The observer hears of a batch after its answers.
  ASSERT_TRUE(Eventually([&] { return !realm_.observer(kLeader).Batches().empty(); }));
  EXPECT_EQ(realm_.observer(kLeader).Batches().size(), 1u);
  EXPECT_GT(realm_.observer(kLeader).Batches()[0].rounds, limits::kLongBatchRounds);
  Job again = job;
  again.id = realm_.Login(stock_).id;
  EXPECT_VERDICT(realm_.Run(again), Verdict::kOk) << "what is left of its grant";
  again.id = realm_.Login(stock_).id;
  EXPECT_VERDICT(realm_.Run(again), Verdict::kReplay);
}

// What cannot end before its KDC stops waiting is not begun, as soon as the time of a round is
// known.
TEST_F(LongRingTest, ADeepJobThatCannotEndInTimeIsNotBegun) {
  const PlainKey service =
      realm_.AddKey("HTTP/www@EXAMPLE.COM", KeyClass::kService, kEnctypeAes256Sha1);
  const auto garbage = [&](int milliseconds) {
    Job job = realm_.OpenTicket(std::string(2000, 'g'), service);
    job.deadline_ms = milliseconds;
    return job;
  };
  ASSERT_VERDICT_OK(realm_.Run(Long(200)));
  EXPECT_VERDICT(realm_.Run(garbage(10)), Verdict::kDeadline);
  EXPECT_EQ(realm_.recorder(kLeader).Batches().size(), 1u);
  EXPECT_VERDICT(realm_.Run(garbage(30'000)), Verdict::kBadTag);
}

// A stranger's garbage for one user, while the ring is busy: what the quotas refuse is refused at
// once, and what waits for its turn has paid once, and gets back what it need not have paid.
TEST_F(LongRingTest, AQueueFullOfGarbageIsAnsweredWhileTheRingIsBusy) {
  EngineOptions options = InRounds();
  options.quotas[QuotaKind::kPrincipalFailures] = {1, 4};
  Realm realm(kEnctypeAes256Sha1, options);
  Asked asked(&realm);
  const auto ask = [&](const std::string& name, const PlainKey& user, size_t request, bool good) {
    Job job = realm.Login(user, good ? realm.Preauth(user) : realm.AlteredPreauth(user));
    job.make_macs[0].data.assign(request, 'q');
    job.deadline_ms = name == "short of time" ? 100 : 30'000;
    asked.Ask(name, job);
  };
  ask("bob's", realm.bob, 4000, true);
  EXPECT_TRUE(Eventually([&] { return realm.engine(kLeader).Status().waiting == 0; }));
  for (int i = 0; i < 2; ++i) ask("short of time", realm.alice, 100, false);
  for (int i = 0; i < 300; ++i) ask("garbage", realm.alice, 100, false);
  EXPECT_TRUE(Eventually([&] { return asked.Count("garbage QUOTA") == 298; }));
  EXPECT_TRUE(Eventually([&] { return asked.Count("short of time DEADLINE") == 2; }));
  for (int p = 0; p < kParties; ++p) {
    EXPECT_TRUE(Eventually([&] { return realm.engine(p).Status().waiting == 2; }));
  }
  ask("more", realm.alice, 100, false);  // for what the two got back
  ask("more", realm.alice, 100, false);
  ask("more", realm.alice, 100, false);
  EXPECT_TRUE(Eventually([&] { return asked.Count("more QUOTA") == 1; }));
  EXPECT_FALSE(asked.Answered("bob's OK")) << "or this test shows nothing";
  asked.Answers();
  EXPECT_EQ(asked.Count("bob's OK"), 1u);
  EXPECT_EQ(asked.Count("garbage BAD_TAG"), 2u);
  EXPECT_EQ(asked.Count("more BAD_TAG"), 2u);
}

// What a batch under way will take from a grant is taken for the others too.
TEST_F(LongRingTest, ABudgetHoldsAcrossBothRings) {
  const PlainKey gcm = realm_.AddKey("stock@EXAMPLE.COM", KeyClass::kUser, kEnctypeAes256Gcm);
  const JobResult login = realm_.Run(realm_.Login(stock_));
  ASSERT_VERDICT_OK(login);
  const std::string text(2000, 'R');
  const auto reply = [&](const PlainKey& key) {
    Job job = realm_.Granted(login.id, key, {key.info.handle, kUsageAsReply, 2000});
    job.deadline_ms = 30'000;  // the leader may begin with one of the two, and then pauses
    return job;
  };
  Asked asked(&realm_);
  asked.Ask("long 1", WithTexts(reply(stock_), text, realm_.random()));
  asked.Ask("long 2", WithTexts(reply(stock_), text, realm_.random()));
  WaitUntilTaken();
  EXPECT_VERDICT(realm_.Run(reply(gcm)), Verdict::kRefused);
  asked.Answers();
  EXPECT_TRUE(asked.Answered("long 1 OK"));
}

TEST_F(LongRingTest, KeysAreDrawnAndVerifiedBesideLogins) {
  KeyInfo info = stock_.info;
  info.principal = "drawn@EXAMPLE.COM";
  info.principal_id = PrincipalIdOf(info.principal);
  realm_.random().Fill(absl::MakeSpan(info.handle));
  std::thread drawing([&] { EXPECT_TRUE(realm_.Draw(TransactionId{1}, info).ok()); });
  for (int i = 0; i < 20; ++i) EXPECT_VERDICT(realm_.Run(realm_.Login(realm_.alice)), Verdict::kOk);
  drawing.join();
}

// The session ends in the middle of a long batch: it is answered, and the next session works.
TEST_F(LongRingTest, ASessionThatEndsAnswersWhatTheLongRingComputed) {
  Asked asked(&realm_);
  asked.Ask("long", Long(4000));
  WaitUntilTaken();
  realm_.hub().CloseCurrent();
  EXPECT_THAT(asked.Answers(), IsSubsetOf({"long OK", "long UNAVAILABLE"}));
  EXPECT_TRUE(realm_.WaitConnected());
  EXPECT_VERDICT(realm_.Run(Long(100)), Verdict::kOk);
}

TEST_F(LongRingTest, StoppingInTheMiddleAnswers) {
  Asked asked(&realm_);
  asked.Ask("long", Long(4000));
  WaitUntilTaken();
  realm_.StopAll();
  EXPECT_EQ(asked.Answers().size(), 1u);
}

}  // namespace
}  // namespace mpckdc
