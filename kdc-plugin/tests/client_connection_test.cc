// SPDX-License-Identifier: Apache-2.0
// Servers that are down, silent, slow, lost in mid-flight, or not those that they should be.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kdc-plugin/client/job_client.h"
#include "kdc-plugin/tests/client_fixture.h"

namespace mpckdc::test {
namespace {

using ::testing::HasSubstr;

TEST_F(ClientTest, ServerDownAtStartThenUp) {
  realm_.parties[1]->Stop();
  StartClient(1000);
  const Answer a = Login();
  EXPECT_EQ(a.verdict, MPC_UNAVAILABLE);
  EXPECT_THAT(a.detail, HasSubstr(realm_.addresses[1]));
  EXPECT_THAT(Logged(), HasSubstr(realm_.addresses[1]));
  realm_.parties[1]->Start();
  WaitUntilUp();
}

TEST_F(ClientTest, FirstLoginAfterARestartDoesNotWaitForTheBackoff) {
  realm_.parties[1]->Stop();
  StartClient(5000);
  const absl::Time down = absl::Now();
  while (absl::Now() < down + absl::Seconds(2)) {  // by then attempts are seconds apart
    const Answer a = Login();
    EXPECT_EQ(a.verdict, MPC_UNAVAILABLE) << "an outage is told, not waited for";
    absl::SleepFor(absl::Milliseconds(200));
  }
  EXPECT_LT(absl::Now() - down, absl::Seconds(4));
  realm_.parties[1]->Start();
  EXPECT_EQ(Login().verdict, MPC_OK) << Logged();
}

TEST_F(ClientTest, WhatIsLostWithAConnectionIsSentOnceMore) {
  StartClient(5000);
  ASSERT_EQ(Login().verdict, MPC_OK);
  realm_.parties[2]->behaviour.close_after_jobs = 1;
  const absl::Time start = absl::Now();
  const Answer a = Login();
  EXPECT_EQ(a.verdict, MPC_OK) << a.detail;
  EXPECT_LT(absl::Now() - start, absl::Seconds(1)) << "must not wait for the deadline";
  EXPECT_EQ(realm_.parties[0]->behaviour.streams, 1);
  EXPECT_EQ(realm_.parties[2]->behaviour.streams, 2);
}

// With a grant it is not: the caller may have to begin again.
TEST_F(ClientTest, ServerLostInMidFlightFailsOnlyItsJobsAndComesBack) {
  StartClient(5000);
  const Answer login = Login();
  ASSERT_EQ(login.verdict, MPC_OK);
  realm_.parties[2]->behaviour.close_after_jobs = 1;
  const mpc_seal seal = {U8(tgs_), 2, 100, kEnctypeAes256Gcm, {nullptr, 0}};
  const mpc_job job = {MPC_SEAL_GRANTED, U8(user_), login.id, nullptr, &seal, 1,
                       nullptr,          nullptr,   0,        0, {}, {}, 0};
  const absl::Time start = absl::Now();
  const Answer a = Run(job);
  EXPECT_EQ(a.verdict, MPC_UNAVAILABLE);
  EXPECT_TRUE(a.outage);
  EXPECT_LT(absl::Now() - start, absl::Seconds(3)) << "must not wait for the deadline";
  EXPECT_THAT(a.detail, HasSubstr(realm_.addresses[2]));
  WaitUntilUp();
  EXPECT_EQ(realm_.parties[0]->behaviour.streams, 1);
  EXPECT_EQ(realm_.parties[2]->behaviour.streams, 2);
}

TEST_F(ClientTest, DeadlinePassesWhenAServerIsSilent) {
  StartClient(300);
  WaitUntilUp();
  realm_.parties[0]->behaviour.silent = true;
  const absl::Time start = absl::Now();
  const Answer a = Login();
  EXPECT_EQ(a.verdict, MPC_UNAVAILABLE);
  EXPECT_THAT(a.detail, HasSubstr("no answer within 300ms from " + realm_.addresses[0]));
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(290));
  EXPECT_LT(absl::Now() - start, absl::Seconds(2));
  realm_.parties[0]->behaviour.silent = false;
  WaitUntilUp();  // the silent connection was given up
  EXPECT_EQ(realm_.parties[0]->behaviour.streams, 2);
}

// One server answers, but not what it was asked, so that its connection is not given up. What the
// timer ends must leave locked memory then, not when the timer next has work.
TEST_F(ClientTest, JobsThatExpireLeaveNothingBehind) {
  StartClient(3000);
  WaitUntilUp();
  realm_.parties[2]->behaviour.job = [](v1::JobAnswer& a) { a.set_id(a.id() + 1'000'000); };
  const size_t before = GetSecretArenaStats().bytes_in_use;
  Inbox inbox;
  for (int i = 0; i < 100; ++i) SubmitLogin(Preauth(), &inbox);
  EXPECT_EQ(inbox.Wait(100)[99].verdict, MPC_UNAVAILABLE);
  absl::SleepFor(absl::Milliseconds(500));
  EXPECT_LE(GetSecretArenaStats().bytes_in_use, before + 4096);
}

// The others give up a little before us, so no job ever waits for the silent one's answer.
TEST_F(ClientTest, SilentConnectionIsGivenUpThoughTheOthersAnswer) {
  StartClient(500);
  WaitUntilUp();
  realm_.parties[0]->behaviour.silent = true;
  for (int other : {1, 2}) {
    realm_.parties[other]->behaviour.job = [](v1::JobAnswer& a) {
      a.set_verdict(v1::VERDICT_DEADLINE);
    };
  }
  const absl::Time end = absl::Now() + absl::Seconds(20);
  while (realm_.parties[0]->behaviour.streams < 2 && absl::Now() < end) {
    const Answer a = Login();
    EXPECT_EQ(a.verdict, MPC_UNAVAILABLE);
    absl::SleepFor(absl::Milliseconds(20));
  }
  EXPECT_GE(realm_.parties[0]->behaviour.streams, 2);
  EXPECT_EQ(realm_.parties[1]->behaviour.streams, 1) << "it answers, so it keeps its connection";
}

// ---- A renewed certificate ----

// A login all the time, as long as it lives.
class Logins {
 public:
  explicit Logins(std::function<Answer()> login)
      : thread_([this, login = std::move(login)] {
          while (!stop_) {
            const Answer a = login();
            ++done_;
            if (a.verdict != MPC_OK) failed_ += absl::StrCat(a.detail, "\n");
            absl::SleepFor(absl::Milliseconds(1));
          }
        }) {}
  // What failed of them.
  std::string Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    return failed_;
  }
  ~Logins() { Stop(); }
  int done() const { return done_; }

 private:
  std::atomic<bool> stop_ = false;
  std::atomic<int> done_ = 0;
  std::string failed_;
  std::thread thread_;
};

class RenewalTest : public ClientTest {
 protected:
  void SetUp() override {
    StartClient(5000);
    WaitUntilUp();
  }
  bool WaitForStreams(int count) {
    const auto all = [&] {
      for (const auto& party : realm_.parties) {
        if (party->behaviour.streams < count) return false;
      }
      return true;
    };
    const absl::Time end = absl::Now() + absl::Seconds(20);
    while (!all() && absl::Now() < end) absl::SleepFor(absl::Milliseconds(50));
    return all();
  }
};

TEST_F(RenewalTest, IsUsedWithoutLosingALogin) {
  for (auto& party : realm_.parties) party->behaviour.delay_ms = 20;  // some are always under way
  Logins logins([this] { return Login(); });
  realm_.authority.Issue("kdc", "kdc1", "--renew");
  EXPECT_TRUE(WaitForStreams(2)) << Logged();
  const int before = logins.done();
  while (logins.done() < before + 10) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_EQ(logins.Stop(), "");
  EXPECT_THAT(Logged(), HasSubstr("connects anew with the renewed certificate"));
  for (const auto& party : realm_.parties) EXPECT_EQ(party->behaviour.streams, 2);
}

// Half of a renewal, and a certificate that the servers would not take: the connection stays, and a
// good one afterwards is used.
TEST_F(RenewalTest, AWrongOneChangesNothing) {
  const std::string key = realm_.kdc.key_file;
  Logins logins([this] { return Login(); });
  enroll::TestAuthority others;
  const enroll::AdminIdentity other = others.Issue("kdc", "kdc1");
  std::filesystem::copy_file(other.key_file, key,
                             std::filesystem::copy_options::overwrite_existing);
  ExpectToLog("the private key is not the certificate's");
  std::filesystem::copy_file(other.certificate_file, realm_.kdc.certificate_file,
                             std::filesystem::copy_options::overwrite_existing);
  ExpectToLog("the server makes no connection with it");
  for (const auto& party : realm_.parties) EXPECT_EQ(party->behaviour.streams, 1);
  realm_.authority.Issue("kdc", "kdc1", "--renew");
  EXPECT_TRUE(WaitForStreams(2)) << Logged();
  EXPECT_EQ(logins.Stop(), "");
}

// Nor does it when a connection is lost meanwhile: that of before is made again with the certificate
// of before, and a good one afterwards is used.
TEST_F(RenewalTest, AWrongOneKeepsNoLostConnectionAway) {
  StopClient();
  const std::string ca = realm_.kdc.ca_file;  // the parties' as well, and stays as it is
  realm_.kdc.ca_file += ".kdc";
  std::filesystem::copy_file(ca, realm_.kdc.ca_file);
  StartClient(1000);
  WaitUntilUp();
  enroll::TestAuthority others;
  const enroll::AdminIdentity other = others.Issue("kdc", "kdc1");
  const auto replace = [](const std::string& file, const std::string& with) {
    std::filesystem::copy_file(with, file, std::filesystem::copy_options::overwrite_existing);
  };
  const auto lose = [&](int party) {
    realm_.parties[party]->Stop();
    EXPECT_EQ(Login().verdict, MPC_UNAVAILABLE);
    realm_.parties[party]->Start();
    WaitUntilUp();
  };
  replace(realm_.kdc.key_file, other.key_file);  // the certificate is still the old one
  lose(1);
  replace(realm_.kdc.certificate_file, other.certificate_file);  // a pair that no server believes
  lose(2);
  lose(1);
  replace(realm_.kdc.ca_file, ca);  // written anew, and the same
  lose(2);
  std::filesystem::resize_file(realm_.kdc.ca_file, 100);
  lose(0);
  // An authority that was taken out is believed no more, whatever else is wrong.
  replace(realm_.kdc.ca_file, other.ca_file);
  realm_.parties[0]->Stop();
  EXPECT_EQ(Login().verdict, MPC_UNAVAILABLE);
  realm_.parties[0]->Start();
  const absl::Time end = absl::Now() + absl::Seconds(3);
  while (absl::Now() < end) {
    EXPECT_EQ(Login().verdict, MPC_UNAVAILABLE);
    absl::SleepFor(absl::Milliseconds(100));
  }
  replace(realm_.kdc.ca_file, ca);
  realm_.authority.Issue("kdc", "kdc1", "--renew");
  WaitUntilUp();
}

// Each attempt would say again that the renewed one is bad, and then that the server is away.
TEST_F(RenewalTest, AWrongOneAndALostServerFillNoLog) {
  enroll::TestAuthority others;
  std::filesystem::copy_file(others.Issue("kdc", "kdc1").key_file, realm_.kdc.key_file,
                             std::filesystem::copy_options::overwrite_existing);
  realm_.parties[1]->Stop();
  const absl::Time end = absl::Now() + absl::Seconds(3);
  while (absl::Now() < end) {
    EXPECT_EQ(Login().verdict, MPC_UNAVAILABLE);
    absl::SleepFor(absl::Milliseconds(20));
  }
  const std::string log = Logged();
  EXPECT_THAT(log, HasSubstr("the private key is not the certificate's"));
  EXPECT_LE(std::count(log.begin(), log.end(), '\n'), 12) << log;
}

// Nothing is asked of an idle connection, and it stays.
TEST_F(ClientTest, IdleConnectionIsKept) {
  StartClient(200);
  WaitUntilUp();
  absl::SleepFor(absl::Milliseconds(700));
  EXPECT_EQ(Login().verdict, MPC_OK);
  for (const auto& party : realm_.parties) EXPECT_EQ(party->behaviour.streams, 1);
}

TEST_F(ClientTest, SlowServerDoesNotMixUpAnswers) {
  StartClient(20000);
  WaitUntilUp();
  realm_.parties[1]->behaviour.delay_ms = 50;
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) {
        const std::string text = absl::StrCat("text ", t, ".", i);
        const std::string preauth = Preauth(text);
        const Answer a = Login(preauth);
        right += a.verdict == MPC_OK && Xor(preauth.substr(29, text.size()), a.open) == text;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 20);
}

TEST_F(ClientTest, RefusesServersThatDoNotBelongTogether) {
  struct Case {
    const char* name;
    std::function<void(v1::Welcome&)> change;
    const char* text;
  };
  for (const Case& c : std::vector<Case>{
           {"same party", [](v1::Welcome& w) { w.set_party(0); }, "says it is party 0"},
           {"no party", [](v1::Welcome& w) { w.set_party(7); }, "says it is party 7"},
           {"realm", [](v1::Welcome& w) { w.set_realm("OTHER"); }, "serves realm \"OTHER\""},
           {"cluster", [](v1::Welcome& w) { w.set_cluster(2); }, "cluster 2"},
           {"version", [](v1::Welcome& w) { w.set_version(3); }, "protocol version 3"}}) {
    // The other two first: the third is the one that does not fit.
    realm_.parties[2]->behaviour.welcome = [&](v1::Welcome& w) {
      absl::SleepFor(absl::Milliseconds(100));
      c.change(w);
    };
    StartClient(1000);
    const Answer a = Login();
    EXPECT_EQ(a.verdict, MPC_UNAVAILABLE) << c.name;
    EXPECT_THAT(Logged(), HasSubstr(c.text)) << c.name;
    StopClient();
  }
}

// ATTACK. What it says of itself ends in krb5kdc's log, where a line of its own would be believed.
TEST_F(ClientTest, AServersWelcomeWritesNoLinesOfTheLog) {
  const std::string evil = "x\nkrb5kdc: all is well\033[2J\u009b";
  const std::vector<std::function<void(v1::Welcome&)>> lies = {
      [&](v1::Welcome& w) { w.set_software(evil); },
      [&](v1::Welcome& w) { w.set_software(evil), w.set_version(99); },
      [&](v1::Welcome& w) { w.set_realm(evil); }};
  for (size_t i = 0; i < lies.size(); ++i) {
    realm_.parties[2]->behaviour.welcome = [&](v1::Welcome& w) { lies[i](w); };
    StartClient(1000);
    const Answer a = Login();
    const auto forged = ::testing::AnyOf(HasSubstr("\nkrb5kdc:"), HasSubstr("\033"),
                                         HasSubstr("\u009b"));
    EXPECT_THAT(Logged(), HasSubstr("x\\x0akrb5kdc")) << i;
    EXPECT_THAT(Logged(), ::testing::Not(forged)) << i;
    EXPECT_THAT(a.detail, ::testing::Not(forged)) << i;
    StopClient();
  }
}

// ATTACK. It lets itself be connected again and again, and says something else each time.
TEST_F(ClientTest, AServerThatSaysSomethingElseEachTimeFillsNoLog) {
  std::atomic<int> greeted = 0;
  realm_.parties[2]->behaviour.welcome = [&](v1::Welcome& w) {
    w.set_realm(absl::StrCat("OTHER", ++greeted));
  };
  StartClient(500);
  const absl::Time end = absl::Now() + absl::Seconds(60);
  while (greeted < 3 * client::kMostLines && absl::Now() < end) {
    EXPECT_EQ(Login().verdict, MPC_UNAVAILABLE);
    absl::SleepFor(absl::Milliseconds(20));
  }
  EXPECT_GE(greeted, 3 * client::kMostLines);
  StopClient();
  realm_.parties[2]->behaviour.welcome = nullptr;
  const std::string log = Logged();
  EXPECT_THAT(log, HasSubstr("OTHER1\""));
  EXPECT_LE(std::count(log.begin(), log.end(), '\n'), client::kMostLines + 4) << log;
}

// The shares were refreshed since the two others were asked.
TEST_F(ClientTest, TakesServersThatSpeakOfTwoShareEpochs) {
  realm_.parties[2]->behaviour.welcome = [](v1::Welcome& w) {
    absl::SleepFor(absl::Milliseconds(100));
    w.set_epoch(2);
  };
  StartClient(1000);
  EXPECT_EQ(Login().verdict, MPC_OK);
  StopClient();
}

TEST_F(ClientTest, RefusesAServerWithoutThePeerRole) {
  const auto identity = realm_.authority.Issue("kdc", "imposter", "--ip 127.0.0.1 --server");
  FakeParty imposter(2, kRealm, identity, realm_.oracle);
  imposter.Start();
  const std::string address = imposter.address();
  mpc_options options = realm_.Options(1000);
  options.servers[2] = address.c_str();
  StartClient(options);
  EXPECT_EQ(Login().verdict, MPC_UNAVAILABLE);
  EXPECT_EQ(imposter.behaviour.streams, 0);
  EXPECT_THAT(Logged(), HasSubstr(address));
}

TEST_F(ClientTest, RefusesToPlayTheKdcWithoutItsRole) {
  const auto admin = realm_.authority.Issue("admin", "kadmind");
  StartClient(realm_.Options(admin, 1000));
  EXPECT_EQ(Login().verdict, MPC_UNAVAILABLE);
  EXPECT_THAT(Logged(), HasSubstr("kdc"));
}

}  // namespace
}  // namespace mpckdc::test
