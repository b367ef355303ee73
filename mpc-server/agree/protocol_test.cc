// SPDX-License-Identifier: Apache-2.0
//
// By which protocol three servers compute what is under keys of types 17 to 20: what they measure,
// what their administrators force, and that all three do the same.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/testing/cts.h"
#include "mpc-server/testing/jobs.h"

namespace mpckdc {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class ProtocolTest : public ::testing::Test {
 protected:
  ProtocolTest() : stock_(realm_.AddKey("stock@EXAMPLE.COM", KeyClass::kUser, kEnctypeAes256Sha1)) {
    PrepareCircuits();
  }

  void Force(int party, ProtocolSetting setting) { realm_.options(party).protocol = setting; }
  // What a login was computed by, at the three servers alike.
  CtsProtocol OfALogin() {
    EXPECT_VERDICT(realm_.Run(Login()), Verdict::kOk);
    return OfTheLastBatch();
  }
  CtsProtocol OfTheLastBatch() {
    const auto at = [&](int p) { return realm_.engine(p).Status().protocol; };
    EXPECT_TRUE(Eventually([&] { return at(0) && at(0) == at(1) && at(1) == at(2); }));
    return *at(0);
  }
  Job Login() {
    Job job = realm_.Login(stock_);
    job.deadline_ms = 30'000;
    return job;
  }

  Realm realm_;
  const PlainKey stock_;
};

TEST_F(ProtocolTest, ALoneLoginIsGarbledAndABurstIsNot) {
  EXPECT_EQ(OfALogin(), CtsProtocol::kGarbled);
  EXPECT_EQ(realm_.engine(1).Status().garbled_batches, 1u);
  EXPECT_EQ(realm_.engine(1).Status().replicated_batches, 0u);
  std::vector<Job> jobs(200);
  for (Job& job : jobs) job = Login();
  EXPECT_EQ(CountGood(realm_.RunAll(jobs)), 200);
  EXPECT_TRUE(Eventually([&] { return realm_.engine(1).Status().replicated_batches > 0; }));
}

// Each server's two distances; the same burst is garbled, batch after batch.
TEST_F(ProtocolTest, FarApartABurstIsGarbled) {
  realm_.hub().SetLine({absl::Milliseconds(2), 0});
  realm_.RestartAll();
  std::vector<Job> jobs(40);
  for (Job& job : jobs) job = Login();
  EXPECT_EQ(CountGood(realm_.RunAll(jobs)), 40);
  for (int p = 0; p < kParties; ++p) {
    EXPECT_TRUE(Eventually([&] { return realm_.engine(p).Status().garbled_batches >= 3; }));
    EXPECT_EQ(realm_.engine(p).Status().replicated_batches, 0u);
    EXPECT_EQ(realm_.engine(p).Status().line_prev.distance, absl::Milliseconds(2));
    EXPECT_EQ(realm_.engine(p).Status().line_next.distance, absl::Milliseconds(2));
  }
}

TEST_F(ProtocolTest, ASlowLineCarriesNoTables) {
  realm_.hub().SetLine({absl::ZeroDuration(), 1'000'000});
  realm_.RestartAll();
  // The leader hears of the line between the others in their first votes.
  EXPECT_EQ(OfALogin(), CtsProtocol::kReplicated);
}

// Nothing has measured it but the session's trial of its lines; the leader is at neither end.
TEST_F(ProtocolTest, ALineThatIsSlowWhenTheSessionBeginsCarriesNoTables) {
  constexpr size_t kFiller = 1000;
  for (int p = 0; p < kParties; ++p) realm_.options(p).line_trial_bytes = kFiller;
  realm_.hub().SetInterceptor([](MemoryRing::Intercepted& m) {
    // On a busy machine a line looks longer than it is, and a line that is long may take long.
    if (m.step == "line trial" && m.from == 2) absl::SleepFor(absl::Milliseconds(800));
  });
  realm_.RestartAll();
  EXPECT_EQ(OfALogin(), CtsProtocol::kReplicated);
  const auto rate = [&] { return realm_.engine(2).Status().line_prev.rate; };
  EXPECT_TRUE(Eventually([&] { return rate() > 0; })) << "told with the next look at the lines";
  EXPECT_LE(rate(), kFiller * 2);
  // The control: the next session finds it quick.
  realm_.hub().SetInterceptor(nullptr);
  realm_.RestartAll();
  EXPECT_EQ(OfALogin(), CtsProtocol::kGarbled);
}

// The others leave it to the servers.
TEST_F(ProtocolTest, WhatOneServerForcesAllDo) {
  for (int p = 0; p < kParties; ++p) {
    Force(p, ProtocolSetting::kReplicated);
    realm_.RestartAll();
    EXPECT_EQ(OfALogin(), CtsProtocol::kReplicated) << p;
    Force(p, ProtocolSetting::kAuto);
  }
  Force(2, ProtocolSetting::kGarbled);
  realm_.hub().SetLine({absl::ZeroDuration(), 1'000'000});
  realm_.RestartAll();
  EXPECT_EQ(OfALogin(), CtsProtocol::kGarbled);
}

// Thirty rounds of AES are nothing side by side, and most of a login's time far apart.
TEST_F(ProtocolTest, FarApartTheGcmPartsOfALoginAreGarbled) {
  EXPECT_VERDICT(realm_.Run(realm_.Login(realm_.alice)), Verdict::kOk);
  EXPECT_EQ(realm_.engine(1).Status().garbled_batches, 0u);
  realm_.hub().SetLine({absl::Milliseconds(10), 0});
  realm_.RestartAll();
  const uint64_t rounds_before = realm_.engine(1).Status().rounds;
  EXPECT_VERDICT(realm_.Run(realm_.Login(realm_.alice)), Verdict::kOk);
  EXPECT_TRUE(Eventually([&] { return realm_.engine(1).Status().garbled_batches > 0; }));
  EXPECT_LT(realm_.engine(1).Status().rounds - rounds_before, 200u);  // of them messages of tables
  // Wrong passwords, and what was altered.
  const PlainKey other = realm_.AddKey("other@EXAMPLE.COM", KeyClass::kUser, kEnctypeAes128Gcm);
  EXPECT_VERDICT(realm_.Run(realm_.Login(realm_.alice, realm_.Preauth(other))), Verdict::kBadTag);
}

// A message that is too long for tables is computed in rounds though garbling is forced.
TEST_F(ProtocolTest, ALongMessageIsComputedInRounds) {
  const PlainKey service =
      realm_.AddKey("HTTP/www@EXAMPLE.COM", KeyClass::kService, kEnctypeAes256Sha1);
  for (int p = 0; p < kParties; ++p) Force(p, ProtocolSetting::kGarbled);
  realm_.RestartAll();
  Job job = realm_.MakeChecksums({{service.info.handle, kUsagePacChecksum,
                                   std::string(limits::kGarbledMessageBytes + 1, 'd')}});
  job.deadline_ms = 30'000;
  ASSERT_VERDICT_OK(realm_.Run(job));
  EXPECT_EQ(OfTheLastBatch(), CtsProtocol::kReplicated);
}

TEST_F(ProtocolTest, ServersThatForceDifferentOnesRefuseEachOther) {
  Force(0, ProtocolSetting::kGarbled);
  Force(1, ProtocolSetting::kReplicated);
  realm_.StopAll();
  realm_.StartAll();
  const auto told = [&](int party, const std::string& text) {
    return Eventually(
        [&] { return ::testing::Value(realm_.observer(party).Lost(), Contains(HasSubstr(text))); });
  };
  EXPECT_TRUE(told(0, "[engine] protocol is garbled here and replicated at the next party"));
  EXPECT_TRUE(told(1, "[engine] protocol is replicated here and garbled at the previous party"));
  EXPECT_FALSE(realm_.WaitConnected(absl::Milliseconds(500)));
}

// Two servers share the keys of a garbling: what exchanged randomness is there to do without.
TEST(ExchangedRandomness, IsNeverGarbled) {
  EngineOptions options;
  options.randomness = Randomness::kExchanged;
  options.protocol = ProtocolSetting::kGarbled;
  Realm realm(kEnctypeAes256Sha1, options);
  PrepareCircuits();
  ASSERT_VERDICT_OK(realm.Run(realm.Login(realm.alice)));
  EXPECT_EQ(realm.engine(0).Status().protocol, CtsProtocol::kReplicated);
}

}  // namespace
}  // namespace mpckdc
