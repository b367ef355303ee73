// SPDX-License-Identifier: Apache-2.0
// Two triples with the same keys: which of them a job goes to, and what is lost when one fails.
#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kdc-plugin/tests/client_fixture.h"

namespace mpckdc::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class TriplesTest : public ClientTest {
 protected:
  TriplesTest() {
    for (int i = 0; i < 3; ++i) {
      const auto identity = realm_.authority.Issue("peer", absl::StrCat("q", i), "--ip 127.0.0.1");
      second_[i] = std::make_unique<FakeParty>(i, kRealm, identity, realm_.oracle);
      second_[i]->behaviour.welcome = [](v1::Welcome& w) { w.set_cluster(2); };
      second_[i]->Start();
      addresses_[i] = second_[i]->address();
    }
    for (auto* triple : {&realm_.parties, &second_}) {
      for (auto& party : *triple) {
        party->behaviour.received = [this, triple](const v1::Job&) {
          ++received_[triple == &second_ ? 1 : 0];
        };
      }
    }
  }
  // The parties outlive the client.
  ~TriplesTest() override { StopClient(); }
  void TearDown() override {
    ClientTest::TearDown();
    for (auto& party : second_) party->behaviour.UnhookAll();
  }

  void StartBoth(uint32_t timeout_ms = 2000) {
    mpc_options options = realm_.Options(timeout_ms);
    options.triples = 2;
    for (int i = 0; i < 3; ++i) options.servers[3 + i] = addresses_[i].c_str();
    StartClient(options);
    WaitUntilUp();
    const absl::Time end = absl::Now() + absl::Seconds(10);
    while (Streams(realm_.parties) < 3 || Streams(second_) < 3) {
      ASSERT_LT(absl::Now(), end);
      absl::SleepFor(absl::Milliseconds(10));
    }
    absl::SleepFor(absl::Milliseconds(50));  // the welcomes
    EXPECT_THAT(Logged(), HasSubstr("in use; 2 of 2 triples serve"));
    std::lock_guard<std::mutex> lock(log_mutex_);
    log_.clear();
  }
  void Forget() {
    for (std::atomic<int>& jobs : received_) jobs = 0;
  }
  static int Streams(const std::array<std::unique_ptr<FakeParty>, 3>& parties) {
    int up = 0;
    for (const auto& party : parties) up += party->behaviour.streams > 0;
    return up;
  }
  // Of all logins at once, how many succeeded.
  int Logins(int count) {
    Inbox inbox;
    for (int i = 0; i < count; ++i) SubmitLogin(Preauth(), &inbox);
    int good = 0;
    for (const Answer& a : inbox.Wait(static_cast<size_t>(count))) {
      good += a.verdict == MPC_OK;
      if (a.verdict != MPC_OK) ADD_FAILURE() << a.detail;
    }
    return good;
  }
  static size_t Times(const std::string& text, const std::string& word) {
    size_t times = 0;
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
      ++times;
    return times;
  }
  void Answer1(v1::Verdict verdict) {
    for (auto& party : second_) {
      party->behaviour.job = [verdict](v1::JobAnswer& a) { a.set_verdict(verdict); };
    }
  }

  std::array<std::unique_ptr<FakeParty>, 3> second_;
  std::array<std::string, 3> addresses_;
  std::array<std::atomic<int>, 2> received_{};
};

TEST_F(TriplesTest, JobsGoWhereFewestAreUnderWay) {
  StartBoth(20000);
  for (auto& party : realm_.parties) party->behaviour.delay_ms = 20;
  for (auto& party : second_) party->behaviour.delay_ms = 20;
  Forget();
  EXPECT_EQ(Logins(40), 40);
  EXPECT_EQ(received_[0] / 3, 20);
  EXPECT_EQ(received_[1] / 3, 20);
}

TEST_F(TriplesTest, OfTwoIdleOnesTheNearerServes) {
  StartBoth(20000);
  for (auto& party : realm_.parties) party->behaviour.delay_ms = 60;
  for (int i = 0; i < 3; ++i) Logins(2);  // both are known
  Forget();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Login().verdict, MPC_OK);
  EXPECT_EQ(received_[0], 0);
}

TEST_F(TriplesTest, WhatFollowsGoesToTheTripleThatHasTheGrant) {
  StartBoth();
  for (int i = 0; i < 6; ++i) {
    Inbox inbox;
    SubmitLogin(Preauth(), &inbox);
    SubmitLogin(Preauth(), &inbox);  // at the other one
    for (const Answer& login : inbox.Wait(2)) {
      ASSERT_EQ(login.verdict, MPC_OK);
      EXPECT_EQ(Tag(login.id, 0, std::string(20, 'c')).verdict, MPC_OK);
      const mpc_seal seal = {U8(tgs_), 2, 100, kEnctypeAes256Gcm, {nullptr, 0}};
      const mpc_job job = {MPC_SEAL_GRANTED, U8(user_), login.id, nullptr, &seal, 1,
                           nullptr,          nullptr,   0,        0, {}, {}, 0};
      const Answer granted = Run(job);
      EXPECT_EQ(granted.verdict, MPC_OK) << granted.detail;
      EXPECT_EQ(granted.id % 2, login.id % 2);
    }
  }
}

TEST_F(TriplesTest, NoLoginIsLostWithAServer) {
  StartBoth(5000);
  std::atomic<bool> done{false};
  std::atomic<int> good{0}, bad{0};
  std::vector<std::thread> users;
  for (int t = 0; t < 4; ++t) {
    users.emplace_back([&] {
      while (!done) ++(Login().verdict == MPC_OK ? good : bad);
    });
  }
  for (int round = 0; round < 3; ++round) {
    absl::SleepFor(absl::Milliseconds(300));
    realm_.parties[round]->Stop();
    absl::SleepFor(absl::Milliseconds(300));
    realm_.parties[round]->Start();
    absl::SleepFor(absl::Milliseconds(2500));  // back, after whatever backoff
  }
  done = true;
  for (std::thread& user : users) user.join();
  EXPECT_EQ(bad, 0);
  EXPECT_GT(good, 100);
  EXPECT_EQ(Times(Logged(), "taken out"), 3u) << Logged();
  EXPECT_EQ(Times(Logged(), "in use"), 3u) << Logged();
  EXPECT_THAT(Logged(), HasSubstr("1 of 2 triples serve"));
}

TEST_F(TriplesTest, OneThatCannotComputeIsTakenOutAndTriedAgain) {
  StartBoth();
  Answer1(v1::VERDICT_UNAVAILABLE);
  Forget();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Logins(2), 2);
  const int tried = received_[1] / 3;
  EXPECT_GE(tried, 1);
  EXPECT_LT(tried, 12) << "it is tried now and then, by one job";
  EXPECT_EQ(Times(Logged(), "taken out"), 1u) << Logged();
  Answer1(v1::VERDICT_OK);
  const absl::Time end = absl::Now() + absl::Seconds(15);
  while (Times(Logged(), "in use") == 0 && absl::Now() < end) {
    EXPECT_EQ(Login().verdict, MPC_OK);
    absl::SleepFor(absl::Milliseconds(20));
  }
  EXPECT_EQ(Times(Logged(), "in use"), 1u);
}

TEST_F(TriplesTest, OneWhoseServersContradictEachOtherIsTakenOut) {
  StartBoth();
  second_[1]->behaviour.job = [](v1::JobAnswer& a) {
    if (a.seals_size() > 0) Alter(*a.mutable_seals(0), 0);
  };
  Forget();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Logins(2), 2);
  EXPECT_GT(received_[1], 0) << "none asked it: nothing was tested";
  EXPECT_THAT(Logged(), HasSubstr("altered its answer"));
  EXPECT_EQ(Times(Logged(), "taken out"), 1u) << Logged();
}

// A machine that hangs: nothing ends the connection.
TEST_F(TriplesTest, ASilentServerCostsLessThanTheTimeOfAJob) {
  StartBoth(3000);
  second_[1]->behaviour.silent = true;
  Forget();
  const absl::Time start = absl::Now();
  EXPECT_EQ(Logins(6), 6);
  EXPECT_LT(absl::Now() - start, absl::Milliseconds(2000));
  EXPECT_GT(received_[1], 0) << "none asked it: nothing was tested";
  const absl::Time next = absl::Now();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Login().verdict, MPC_OK);
  EXPECT_LT(absl::Now() - next, absl::Milliseconds(2000));
}

// Slow is not silent: what computes for long is waited for, and asked once.
TEST_F(TriplesTest, ASlowJobIsNotSentAgain) {
  StartBoth(3000);
  for (auto* triple : {&realm_.parties, &second_}) {
    for (auto& party : *triple) party->behaviour.delay_ms = 500;
  }
  Forget();
  std::vector<std::thread> users;
  std::atomic<int> good{0};
  for (int t = 0; t < 4; ++t) {
    users.emplace_back([&, t] {
      absl::SleepFor(absl::Milliseconds(120) * t);
      good += Login().verdict == MPC_OK;
    });
  }
  for (std::thread& user : users) user.join();
  EXPECT_EQ(good, 4);
  EXPECT_EQ(received_[0] + received_[1], 12);
}

TEST_F(TriplesTest, WhatIsSaidOfTheMessageIsNotAskedTwice) {
  StartBoth();
  for (const v1::Verdict verdict : {v1::VERDICT_BAD_TAG, v1::VERDICT_REPLAY, v1::VERDICT_REFUSED,
                                    v1::VERDICT_QUOTA, v1::VERDICT_CLOCK_SKEW}) {
    Answer1(verdict);
    realm_.Answer(verdict);
    Forget();
    EXPECT_NE(Login().verdict, MPC_OK);
    absl::SleepFor(absl::Milliseconds(20));
    EXPECT_LE(received_[0] + received_[1], 3) << v1::Verdict_Name(verdict);
  }
  EXPECT_THAT(Logged(), Not(HasSubstr("taken out")));
}

// Its grant is at the triple that failed. The caller begins again.
TEST_F(TriplesTest, AGrantIsLostWithItsTriple) {
  StartBoth(1000);
  const Answer login = Login();
  ASSERT_EQ(login.verdict, MPC_OK);
  auto& parties = login.id % 2 == 0 ? realm_.parties : second_;
  parties[0]->Stop();
  const mpc_seal seal = {U8(tgs_), 2, 100, kEnctypeAes256Gcm, {nullptr, 0}};
  const mpc_job job = {MPC_SEAL_GRANTED, U8(user_), login.id, nullptr, &seal, 1,
                       nullptr,          nullptr,   0,        0, {}, {}, 0};
  const Answer granted = Run(job);
  EXPECT_EQ(granted.verdict, MPC_UNAVAILABLE);
  EXPECT_TRUE(granted.outage);
  EXPECT_EQ(Login().verdict, MPC_OK);
}

// A database's standby is promoted: for a moment no server can compute. What comes meanwhile waits,
// and hardly any of it is asked for nothing.
TEST_F(TriplesTest, WhileNoTripleServesJobsWait) {
  StartBoth(5000);
  Answer1(v1::VERDICT_UNAVAILABLE);
  EXPECT_EQ(Logins(4), 4);
  realm_.Answer(v1::VERDICT_UNAVAILABLE);
  Forget();
  Inbox inbox;
  for (int i = 0; i < 60; ++i) {
    SubmitLogin(Preauth(), &inbox);
    absl::SleepFor(absl::Milliseconds(20));
  }
  EXPECT_LT((received_[0] + received_[1]) / 3, 25) << "one at a time, now and then";
  realm_.Answer(nullptr);
  for (auto& party : second_) party->behaviour.job = nullptr;
  const absl::Time back = absl::Now();
  for (const Answer& a : inbox.Wait(60)) EXPECT_EQ(a.verdict, MPC_OK) << a.detail;
  EXPECT_LT(absl::Now() - back, absl::Milliseconds(1500));
  EXPECT_EQ(Times(Logged(), "no triple serves; requests wait"), 1u) << Logged();
  EXPECT_EQ(Logins(10), 10);
}

TEST_F(TriplesTest, WhileAllServersRestartJobsWait) {
  StartBoth(5000);
  for (auto* triple : {&realm_.parties, &second_}) (*triple)[1]->Stop();
  absl::SleepFor(absl::Milliseconds(100));
  Inbox inbox;
  for (int i = 0; i < 20; ++i) SubmitLogin(Preauth(), &inbox);
  absl::SleepFor(absl::Seconds(1));
  second_[1]->Start();
  for (const Answer& a : inbox.Wait(20)) EXPECT_EQ(a.verdict, MPC_OK) << a.detail;
}

TEST_F(TriplesTest, AnOutageThatIsNotYoungIsToldAtOnce) {
  StartBoth(20000);
  for (auto* triple : {&realm_.parties, &second_}) (*triple)[1]->Stop();
  const absl::Time start = absl::Now();
  Inbox inbox;
  for (int i = 0; i < 5; ++i) SubmitLogin(Preauth(), &inbox);
  for (const Answer& a : inbox.Wait(5)) {
    EXPECT_EQ(a.verdict, MPC_UNAVAILABLE);
    EXPECT_TRUE(a.outage);
  }
  const absl::Time told = absl::Now();
  EXPECT_GT(told - start, absl::Milliseconds(2500));
  EXPECT_LT(told - start, absl::Milliseconds(5000));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Login().verdict, MPC_UNAVAILABLE);
  EXPECT_LT(absl::Now() - told, absl::Milliseconds(1500));
}

// Less than its own time, for somebody waits for the answer.
TEST_F(TriplesTest, AJobWaitsNoLongerThanItMay) {
  StartBoth(1000);
  for (auto* triple : {&realm_.parties, &second_}) (*triple)[1]->Stop();
  const absl::Time start = absl::Now();
  EXPECT_EQ(Login().verdict, MPC_UNAVAILABLE);
  EXPECT_LT(absl::Now() - start, absl::Milliseconds(1500));
}

TEST_F(TriplesTest, WhatWaitsFailsWhenTheClientStops) {
  StartBoth(20000);
  for (auto* triple : {&realm_.parties, &second_}) (*triple)[1]->Stop();
  Inbox inbox;
  for (int i = 0; i < 5; ++i) SubmitLogin(Preauth(), &inbox);
  absl::SleepFor(absl::Milliseconds(300));
  StopClient();
  for (const Answer& a : inbox.Wait(5)) EXPECT_EQ(a.verdict, MPC_UNAVAILABLE);
}

TEST_F(TriplesTest, OneTripleAloneIsWaitedForToo) {
  StartClient(5000);
  WaitUntilUp();
  realm_.parties[2]->Stop();
  absl::SleepFor(absl::Milliseconds(100));  // seen; the fake servers count what only two were sent
  Inbox inbox;
  for (int i = 0; i < 20; ++i) SubmitLogin(Preauth(), &inbox);
  absl::SleepFor(absl::Seconds(1));
  realm_.parties[2]->Start();
  for (const Answer& a : inbox.Wait(20)) EXPECT_EQ(a.verdict, MPC_OK) << a.detail;
}

// One key that no triple can compute with, since its record is damaged, or has not come yet to a
// party that is being replaced. Anybody may ask for it in datagrams; the others' jobs are not held
// for it.
class DamagedKeyTest : public TriplesTest {
 protected:
  DamagedKeyTest() {
    carol_ = realm_.AddKey("carol@EXAMPLE.COM", std::string(32, 'c'), v1::KEY_CLASS_USER);
    for (auto* triple : {&realm_.parties, &second_}) {
      for (auto& party : *triple) {
        auto damaged = std::make_shared<std::set<uint64_t>>();
        auto mutex = std::make_shared<std::mutex>();
        party->behaviour.received = [=, this](const v1::Job& job) {
          std::lock_guard<std::mutex> lock(*mutex);
          if (job.client() == carol_) damaged->insert(job.id());
        };
        party->behaviour.job = [=](v1::JobAnswer& a) {
          std::lock_guard<std::mutex> lock(*mutex);
          if (!damaged->contains(a.id())) return;
          const uint64_t id = a.id();
          a.Clear();
          a.set_id(id);
          a.set_verdict(v1::VERDICT_UNAVAILABLE);
        };
      }
    }
  }
  ~DamagedKeyTest() override {
    asking_ = false;
    if (stranger_.joinable()) stranger_.join();
    StopClient();
  }

  // A stranger's garbage, some hundred times a second.
  void AskForCarol() {
    stranger_ = std::thread([this] {
      while (asking_) {
        const std::string garbage = Preauth();
        const mpc_open open = {U8(carol_), 1, Bytes(garbage), kEnctypeAes256Gcm};
        const mpc_job job = {MPC_OPEN_PREAUTH, U8(carol_), 0, &open, nullptr, 0,
                             nullptr,          nullptr,    0, 0, {}, {}, 0};
        mpc_client_submit(client_, &job, Inbox::Done, &garbage_);
        absl::SleepFor(absl::Milliseconds(3));
      }
    });
  }
  absl::Duration SlowestLogin() {
    absl::Duration slowest = absl::ZeroDuration();
    const absl::Time end = absl::Now() + absl::Seconds(5);
    while (absl::Now() < end) {
      const absl::Time start = absl::Now();
      const Answer a = Login();
      EXPECT_EQ(a.verdict, MPC_OK) << a.detail;
      slowest = std::max(slowest, absl::Now() - start);
      absl::SleepFor(absl::Milliseconds(100));
    }
    return slowest;
  }

  std::string carol_;
  Inbox garbage_;
  std::atomic<bool> asking_{true};
  std::thread stranger_;
};

TEST_F(DamagedKeyTest, OfTwoTriplesHoldsNobodyUp) {
  StartBoth(20000);
  AskForCarol();
  EXPECT_LT(SlowestLogin(), absl::Milliseconds(500));
}

TEST_F(DamagedKeyTest, OfOneTripleHoldsNobodyUp) {
  StartClient(20000);
  WaitUntilUp();
  AskForCarol();
  EXPECT_LT(SlowestLogin(), absl::Milliseconds(500));
}

// A machine that was broken into, or whose memory of pre-auths is not the two others': its word
// alone is no answer, and there is another triple.
TEST_F(TriplesTest, OneMachineThatContradictsTheTwoOthersIsNotAskedForever) {
  StartBoth();
  for (const v1::Verdict alone :
       {v1::VERDICT_REPLAY, v1::VERDICT_CLOCK_SKEW, v1::VERDICT_BAD_TAG, v1::VERDICT_REFUSED}) {
    for (auto& party : realm_.parties) party->behaviour.delay_ms = 30;  // the other is nearer
    second_[1]->behaviour.job = [=](v1::JobAnswer& a) {
      const uint64_t id = a.id();
      a.Clear();
      a.set_id(id);
      a.set_verdict(alone);
    };
    int failed = 0;
    for (int i = 0; i < 10; ++i) failed += Login().verdict != MPC_OK;
    EXPECT_LE(failed, 2) << v1::Verdict_Name(alone);
  }
}

// Nor is what is no answer: of another size, a verdict that there is not, a text beside an OK.
struct Lie {
  const char* name;
  void (*tell)(v1::JobAnswer&);
};
class NoAnswerTest : public TriplesTest, public ::testing::WithParamInterface<Lie> {};

TEST_P(NoAnswerTest, OfOneMachineIsNotAskedForForever) {
  StartBoth();
  for (auto& party : realm_.parties) party->behaviour.delay_ms = 30;  // the other is nearer
  second_[1]->behaviour.job = GetParam().tell;
  Forget();
  int failed = 0;
  for (int i = 0; i < 10; ++i) failed += Login().verdict != MPC_OK;
  EXPECT_LE(failed, 2);
  EXPECT_GT(received_[1], 0) << "none asked it: nothing was tested";
}

INSTANTIATE_TEST_SUITE_P(
    Lies, NoAnswerTest,
    ::testing::Values(
        Lie{"AnotherSize", [](v1::JobAnswer& a) { a.clear_seals(); }},
        Lie{"NoKeys", [](v1::JobAnswer& a) { a.clear_keys(); }},
        Lie{"AText", [](v1::JobAnswer& a) { a.set_detail("all is well"); }},
        Lie{"AnotherVerdict", [](v1::JobAnswer& a) { a.set_verdict(static_cast<v1::Verdict>(77)); }},
        Lie{"NoVerdict", [](v1::JobAnswer& a) { a.clear_verdict(); }},
        Lie{"NoTime", [](v1::JobAnswer& a) { a.set_verdict(v1::VERDICT_DEADLINE); }},
        Lie{"NoSuchKey", [](v1::JobAnswer& a) { a.set_verdict(v1::VERDICT_UNKNOWN_HANDLE); }}),
    [](const auto& info) { return std::string(info.param.name); });

// Its jobs are good, and what finishes a ticket is not.
struct TagLie {
  const char* name;
  void (*tell)(v1::TagAnswer&);
};
class WrongTagTest : public TriplesTest, public ::testing::WithParamInterface<TagLie> {};

TEST_P(WrongTagTest, OfOneMachineIsNotAskedForForever) {
  StartBoth();
  for (auto& party : realm_.parties) party->behaviour.delay_ms = 30;  // the other is nearer
  second_[1]->behaviour.tag = GetParam().tell;
  Forget();
  int failed = 0;
  for (int i = 0; i < 12; ++i) {
    const Answer login = Login();
    EXPECT_EQ(login.verdict, MPC_OK) << login.detail;
    failed += Tag(login.id, 0, std::string(20, 'c')).verdict != MPC_OK;
  }
  EXPECT_LE(failed, 4);
  EXPECT_GT(received_[1], 0) << "none asked it: nothing was tested";
}

INSTANTIATE_TEST_SUITE_P(
    Lies, WrongTagTest,
    ::testing::Values(
        TagLie{"AnotherSize", [](v1::TagAnswer& a) { a.mutable_tag_share()->push_back('x'); }},
        TagLie{"Altered", [](v1::TagAnswer& a) { (*a.mutable_tag_share())[3] ^= 1; }},
        TagLie{"AnotherVerdict", [](v1::TagAnswer& a) { a.set_verdict(v1::VERDICT_REFUSED); }},
        TagLie{"Unavailable", [](v1::TagAnswer& a) { a.set_verdict(v1::VERDICT_UNAVAILABLE); }},
        TagLie{"Malformed", [](v1::TagAnswer& a) { a.set_verdict(v1::VERDICT_MALFORMED); }},
        TagLie{"NeverComes", [](v1::TagAnswer& a) { a.set_job(a.job() + 1); }}),
    [](const auto& info) { return std::string(info.param.name); });

// It takes messages into which no job fits.
TEST_F(TriplesTest, OneMachineThatTakesNoJobsIsNotAskedForever) {
  second_[1]->behaviour.welcome = [](v1::Welcome& w) {
    w.set_cluster(2);
    w.set_max_message_bytes(1);
  };
  for (auto& party : realm_.parties) party->behaviour.delay_ms = 30;  // the other is nearer
  mpc_options options = realm_.Options(2000);
  options.triples = 2;
  for (int i = 0; i < 3; ++i) options.servers[3 + i] = addresses_[i].c_str();
  StartClient(options);
  WaitUntilUp();
  const absl::Time end = absl::Now() + absl::Seconds(10);
  while (Streams(second_) < 3 && absl::Now() < end) absl::SleepFor(absl::Milliseconds(10));
  absl::SleepFor(absl::Milliseconds(100));  // the welcomes
  int failed = 0;
  for (int i = 0; i < 10; ++i) failed += Login().verdict != MPC_OK;
  EXPECT_LE(failed, 2);
  EXPECT_THAT(Logged(), HasSubstr("takes messages of 1 bytes"));
}

TEST_F(TriplesTest, EachHasItsClusterNumber) {
  second_[2]->behaviour.welcome = [](v1::Welcome& w) { w.set_cluster(1); };
  mpc_options options = realm_.Options(1000);
  options.triples = 2;
  for (int i = 0; i < 3; ++i) options.servers[3 + i] = addresses_[i].c_str();
  StartClient(options);
  WaitUntilUp();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Logins(2), 2);
  EXPECT_EQ(received_[1], 0);
  EXPECT_THAT(Logged(), HasSubstr("belongs to cluster 1, and mpc_cluster says 2 of this triple"));
}

}  // namespace
}  // namespace mpckdc::test
