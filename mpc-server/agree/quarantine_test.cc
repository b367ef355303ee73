// SPDX-License-Identifier: Apache-2.0
//
// A server that deviates from the protocol: who sees it, whom it accuses, and that the realm then
// stands still until an administrator says otherwise. And what never counts as a deviation.
#include "mpc-server/agree/quarantine.h"

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/agree/agreement.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/testing/jobs.h"

namespace mpckdc {
namespace {

using ::testing::HasSubstr;

std::optional<DeviationReport> SeenBy(Realm& realm, int party) {
  return realm.engine(party).Status().quarantine;
}
bool AnySees(Realm& realm) { return SeenBy(realm, 0) || SeenBy(realm, 1) || SeenBy(realm, 2); }

// Applies to the connections that are made from now on.
void Intercept(Realm& realm, MemoryRing::Interceptor interceptor) {
  const uint64_t before = realm.engine(0).Status().sessions;
  realm.hub().SetInterceptor(std::move(interceptor));
  realm.hub().CloseCurrent();
  ASSERT_TRUE(Eventually([&] { return realm.engine(0).Status().sessions > before; }));
  ASSERT_TRUE(realm.WaitConnected());
}

// ---- Lies ----

struct Lie {
  const char* what;
  int liar;
  // Whether the frame is one to alter; alters it.
  std::function<bool(MemoryRing::Intercepted&)> tell;
  bool to_all = false;  // again and again; otherwise once
};

bool IsProposal(const MemoryRing::Intercepted& m) {
  return m.type == FrameType::kAgreement && m.from == 0 && m.payload.size() > 36 &&
         m.payload[0] == 1;
}
bool IsVote(const MemoryRing::Intercepted& m) {
  return m.type == FrameType::kAgreement && m.from != 0 && m.payload.size() > 73 &&
         m.payload[0] == 2;
}

const Lie kLies[] = {
    {"the leader tells another first nonce to one", 0,
     [](auto& m) { return IsProposal(m) && m.to == 2 && ((m.payload[27] ^= 1), true); }},
    {"the leader proposes a nonce that was used", 0,
     [](auto& m) {
       if (!IsProposal(m)) return false;
       std::fill(m.payload.begin() + 16, m.payload.begin() + 20, 0);
       return true;
     },
     true},
    {"the leader leaves a number out", 0,
     [](auto& m) { return IsProposal(m) && ((m.payload[7] += 2), true); }, true},
    {"a follower's vote says another thing to one", 1,
     [](auto& m) {
       if (!IsVote(m) || m.from != 1 || m.to != 0) return false;
       m.payload[73] ^= CodeOf(Verdict::kOk) ^ CodeOf(Verdict::kRefused);
       return true;
     }},
    {"a follower says that it was told another proposal", 2,
     [](auto& m) { return IsVote(m) && m.from == 2 && ((m.payload[7] ^= 1), true); }, true},
    {"an opened value is another to one", 1,
     [](auto& m) {
       return m.type == FrameType::kRound && m.step == "tag check" && m.from == 1 && m.to == 0 &&
              !m.payload.empty() && ((m.payload[0] ^= 1), true);
     }},
    {"an opened time stamp is another to one", 2,
     [](auto& m) {
       return m.type == FrameType::kRound && m.step == "pre-auth timestamp" && m.from == 2 &&
              m.to == 1 && !m.payload.empty() && ((m.payload[0] ^= 1), true);
     }},
};

class LieTest : public ::testing::TestWithParam<size_t> {};

// In truth the liar's program is as it should be and its messages are altered on the way, so what
// it says itself counts for nothing here. It may be the first to see that the three disagree, and
// end the session before the others have compared: then it stopped, as any server may, and they
// accuse nobody until it lies again.
TEST_P(LieTest, IsSeenAndNoHonestServerIsAccusedAlone) {
  const Lie& lie = kLies[GetParam()];
  SCOPED_TRACE(lie.what);
  Realm realm;
  ASSERT_VERDICT_OK(realm.Run(realm.Login(realm.alice)));
  std::atomic<int> told{0};
  std::atomic<bool> lying{false};
  Intercept(realm, [&](MemoryRing::Intercepted& m) {
    if (!lying || (!lie.to_all && told > 0)) return;
    if (lie.tell(m)) ++told;
  });
  const int first = NextParty(lie.liar), second = PrevParty(lie.liar);
  const auto seen_by_one = [&] { return SeenBy(realm, first) || SeenBy(realm, second); };
  for (int tries = 0; tries < 10 && !seen_by_one(); ++tries) {
    if (SeenBy(realm, lie.liar)) {
      ASSERT_TRUE(realm.engine(lie.liar).Readmit().ok());
    }
    ASSERT_TRUE(realm.WaitConnected());
    told = 0;
    lying = true;
    const JobResult result = realm.Run(realm.Login(realm.alice));
    lying = false;
    ASSERT_GT(told, 0);
    EXPECT_FALSE(result.judgement.ok());
    Eventually(seen_by_one, absl::Seconds(2));
  }
  ASSERT_TRUE(seen_by_one());
  for (const int honest : {first, second}) {
    const std::optional<DeviationReport> seen = SeenBy(realm, honest);
    if (!seen.has_value()) continue;
    EXPECT_TRUE(seen->suspects.Has(lie.liar)) << seen->text;
    EXPECT_FALSE(seen->suspects.Has(honest)) << seen->text;
    EXPECT_NE(seen->session, (std::array<uint8_t, 16>{})) << seen->text;
    EXPECT_GT(seen->batch, 0u);
  }
  // Without a cure nothing more is answered.
  EXPECT_VERDICT(realm.Run(realm.Login(realm.bob)), Verdict::kUnavailable);
}
INSTANTIATE_TEST_SUITE_P(All, LieTest, ::testing::Range(size_t{0}, std::size(kLies)));

// ---- Quarantine ----

class QuarantineTest : public ::testing::Test {
 protected:
  // From now on P1 can lie to P0 in an opening, which P0 alone sees.
  void TemptP1() {
    Intercept(realm_, [this](MemoryRing::Intercepted& m) {
      if (lying_ && m.type == FrameType::kRound && m.step == "tag check" && m.from == 1 &&
          m.to == 0 && !m.payload.empty()) {
        m.payload[0] ^= 1;
      }
    });
  }
  void LieToP0() {
    if (!tempted_) TemptP1();
    lying_ = true;
    EXPECT_VERDICT(realm_.Run(realm_.Login(realm_.alice)), Verdict::kUnavailable);
    lying_ = false;
    ASSERT_TRUE(Eventually([&] { return SeenBy(realm_, 0).has_value(); }));
  }

  Realm realm_;
  bool tempted_ = false;
  std::atomic<bool> lying_{false};
};

TEST_F(QuarantineTest, WhatAPeerSaysQuarantinesNobodyElse) {
  LieToP0();
  EXPECT_EQ(SeenBy(realm_, 0)->suspects, Suspects::Neighbours(0));
  EXPECT_THAT(SeenBy(realm_, 0)->text, HasSubstr("tag check"));
  // The two others are told why, so that their logs say it; they believe nothing of it.
  for (const int p : {1, 2}) {
    EXPECT_TRUE(Eventually([&] {
      return realm_.engine(p).Status().peers_detail.find("P0: quarantined since") !=
             std::string::npos;
    })) << realm_.engine(p).Status().peers_detail;
    EXPECT_FALSE(SeenBy(realm_, p).has_value());
  }
}

TEST_F(QuarantineTest, EveryCallIsAnsweredWithTheReason) {
  const JobResult before = realm_.Run(realm_.Login(realm_.guest, ""));
  ASSERT_VERDICT_OK(before);
  LieToP0();
  const absl::Time begin = absl::Now();
  const PerParty<JobResult> answers = realm_.RunAt({0}, realm_.Login(realm_.bob));
  ExpectRefused(answers[0], Verdict::kUnavailable, "quarantined");
  EXPECT_LT(absl::Now() - begin, absl::Milliseconds(500)) << "at once";
  const TagRequest tag{before.id, 0, Encrypt(before.seals[0], "t")};
  EXPECT_VERDICT(realm_.engine(0).FinishTag(realm_.kdc(), tag), Verdict::kUnavailable);
  absl::Status drawn;
  KeyInfo info = realm_.tgt.info;
  info.handle = Handle{9, 9};
  realm_.engine(0).DrawKey(TransactionId{7}, info, [&](const absl::Status& s) { drawn = s; });
  EXPECT_THAT(drawn.message(), HasSubstr("quarantined"));
}

TEST_F(QuarantineTest, OutlivesARestartAndEndsWhenAnAdministratorSaysSo) {
  LieToP0();
  const std::optional<DeviationReport> seen = SeenBy(realm_, 0);
  realm_.StopAll();
  realm_.StartAll();
  EXPECT_EQ(SeenBy(realm_, 0), seen);
  EXPECT_FALSE(realm_.WaitConnected(absl::Seconds(2)));

  auto ended = realm_.engine(0).Readmit();
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(*ended, seen);
  EXPECT_EQ(SeenBy(realm_, 0), std::nullopt);
  ASSERT_TRUE(realm_.WaitConnected());
  EXPECT_VERDICT(realm_.Run(realm_.Login(realm_.alice)), Verdict::kOk);
  ended = realm_.engine(0).Readmit();
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(*ended, std::nullopt) << "nothing to end";
  realm_.StopAll();
  realm_.StartAll();
  EXPECT_TRUE(realm_.WaitConnected()) << "it is gone for good";
}

TEST_F(QuarantineTest, AFullDiskDoesNotForgetIt) {
  TemptP1();
  tempted_ = true;
  ASSERT_VERDICT_OK(realm_.Run(realm_.Login(realm_.alice)));  // reserves nonces for a while
  realm_.store(0).FailWrites(absl::ResourceExhaustedError("disk full"));
  LieToP0();
  EXPECT_FALSE(realm_.engine(0).Readmit().ok()) << "nor end it without a trace";
  EXPECT_TRUE(SeenBy(realm_, 0).has_value());
  realm_.store(0).FailWrites(absl::OkStatus());
  EXPECT_TRUE(Eventually([&] {
    const auto item = realm_.store(0).ReadItem("quarantine");
    return item.ok() && !item->empty();
  })) << "written when there is room";
}

// It has seen the coin, so it knows that it will be caught. Nothing of the batch has left.
TEST(Quarantine, ALiarThatHangsUpBeforeTheProofIsNotNamed) {
  Realm realm;
  std::atomic<int> told{0}, hung_up{0};
  Intercept(realm, [&](MemoryRing::Intercepted& m) {
    if (m.from != 1 || m.type != FrameType::kRound) return;
    if (told == 0 && m.to == 2 && m.round == 2) {  // of the products of the login
      m.payload[0] ^= 1;
      ++told;
    } else if (told == 1 && hung_up == 0 && m.step == "proof/weights") {
      ++hung_up;
      realm.hub().CloseCurrent();
    }
  });
  EXPECT_VERDICT(realm.Run(realm.Login(realm.alice)), Verdict::kUnavailable);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(hung_up, 1);
  EXPECT_FALSE(AnySees(realm));
  ASSERT_TRUE(realm.WaitConnected());
  EXPECT_VERDICT(realm.Run(realm.Login(realm.alice)), Verdict::kOk);
}

// A liar may let a batch of thousands of rounds, beside which it was caught, take as long as it
// likes.
TEST(Quarantine, IsEnteredBesideALongBatch) {
  Realm realm(InRounds());
  const PlainKey stock = realm.AddKey("stock@EXAMPLE.COM", KeyClass::kUser, kEnctypeAes256Sha1);
  PrepareCircuits();
  std::atomic<bool> slow{true}, lying{false};
  std::atomic<int> long_rounds{0};
  Intercept(realm, [&](MemoryRing::Intercepted& m) {
    if (m.from != 2) return;
    if (m.step.rfind("hmac/", 0) == 0) {
      ++long_rounds;
      if (slow) absl::SleepFor(absl::Milliseconds(20));
    }
    if (lying && m.type == FrameType::kAgreement && m.payload[0] == 2) m.payload[7] ^= 1;
  });
  const Job job = realm.Login(stock);
  std::thread kdc([&] { realm.Run(job); });
  ASSERT_TRUE(Eventually([&] { return long_rounds > 0; }));
  lying = true;
  EXPECT_TRUE(Eventually([&] { return SeenBy(realm, 0) && SeenBy(realm, 1); }, absl::Seconds(5)));
  const int rounds = long_rounds;
  EXPECT_TRUE(Eventually([&] { return long_rounds > rounds; })) << "while it goes on";
  slow = lying = false;
  kdc.join();
}

TEST(Quarantine, ADamagedRecordKeepsTheServerFromStarting) {
  MemoryShareStore store({"R", 0, 1});
  SharedStatus status;
  EngineObserver observer;
  ASSERT_TRUE(store.WriteItem("quarantine", AsBytes("junk")).ok());
  EXPECT_TRUE(absl::IsDataLoss(Quarantine(&store, &status, &observer).Load()));
}

TEST(Quarantine, ReportsAreReadBackAndCutOnesAreNot) {
  const DeviationReport report{
      Suspects::Neighbours(1), "what", {1, 2}, 77, absl::FromUnixMicros(1'800'000'000'000'000)};
  const std::string bytes = EncodeReport(report);
  const auto read = DecodeReport(AsBytes(bytes));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, report);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeReport(AsBytes(bytes.substr(0, size))).ok()) << size;
  }
}

// ---- What accuses nobody ----

TEST(NoDeviation, CutsAtAnyMoment) {
  Realm realm;
  for (int cut = 0; cut < 20; ++cut) {
    std::vector<Job> jobs;
    for (int i = 0; i < 4; ++i) jobs.push_back(realm.Login(realm.alice));
    std::thread cutter([&] {
      absl::SleepFor(absl::Microseconds(400 * cut));
      realm.hub().CloseCurrent();
    });
    realm.RunAll(jobs);
    cutter.join();
    ASSERT_FALSE(AnySees(realm));
  }
  ASSERT_TRUE(realm.WaitConnected());
  EXPECT_VERDICT(realm.Run(realm.Login(realm.alice)), Verdict::kOk);
}

TEST(NoDeviation, RestartsInTheMiddle) {
  Realm realm;
  for (int round = 0; round < 6; ++round) {
    std::vector<Job> jobs;
    for (int i = 0; i < 10; ++i) jobs.push_back(realm.Login(realm.alice));
    for (Job& job : jobs) job.deadline_ms = 1000;
    std::thread killer([&] {
      absl::SleepFor(absl::Milliseconds(1 + 2 * round));
      realm.Stop(round % 3);
    });
    realm.RunAll(jobs);
    killer.join();
    realm.Start(round % 3);
    ASSERT_TRUE(realm.WaitConnected());
    ASSERT_FALSE(AnySees(realm));
  }
}

TEST(NoDeviation, WhateverAKdcTells) {
  Realm realm;
  const Job good = realm.Login(realm.alice);
  std::vector<PerParty<Job>> stories;
  for (int party = 0; party < kParties; ++party) {
    for (const auto& change : std::vector<std::function<void(Job&)>>{
             [](Job& j) { j.seals[0].max_plaintext += 1; },
             [](Job& j) { j.opens[0].message.back() ^= 1; },
             [](Job& j) { j.opens[0].message.resize(3); }, [](Job& j) { j.client = Handle{1}; },
             [](Job& j) { j.operation = Operation::kSealGranted; }, [](Job& j) { j.seals.clear(); },
             [](Job& j) { j.make_macs[0].data += "x"; },
             [&](Job& j) { j.seals[0].handle = realm.bob.info.handle; },
             [](Job& j) { j.deadline_ms = 1; }}) {
      PerParty<Job> story = {good, good, good};
      for (Job& job : story) job.deadline_ms = 300;
      change(story[party]);
      stories.push_back(story);
    }
  }
  for (PerParty<Job>& story : stories) {
    const JobId id = realm.NextId();
    for (Job& job : story) job.id = id;
    realm.Run(story);
    ASSERT_FALSE(AnySees(realm));
  }
  EXPECT_EQ(realm.engine(0).Status().sessions, 1u) << "nor does it end a session";
}

class NoDeviationTest : public ::testing::TestWithParam<ProtocolSetting> {};
INSTANTIATE_TEST_SUITE_P(Protocols, NoDeviationTest, ::testing::ValuesIn(kForcedProtocols));

TEST_P(NoDeviationTest, SharesOfATextThatDoNotFit) {
  Realm realm(kEnctypeAes128Sha1, Forced(GetParam()));
  const JobResult login = realm.Run(realm.Login(realm.alice));
  ASSERT_VERDICT_OK(login);
  Job reply = realm.NewJob(Operation::kSealGranted);
  reply.client = realm.alice.info.handle;
  reply.grant = login.id;
  reply.seals.push_back({realm.alice.info.handle, kUsageAsReply, 40});
  PerParty<Job> jobs = WithTexts(reply, std::string(40, 't'), realm.random());
  jobs[1].seals[0].text = jobs[2].seals[0].text;
  realm.Run(jobs);
  EXPECT_FALSE(AnySees(realm));
}

// The leader looked at a job when it could not read one of its keys, and proposes it again when it
// can: by then a server has the job that did not before.
TEST_P(NoDeviationTest, AKeyThatCouldNotBeReadForAWhile) {
  Realm realm(kEnctypeAes256Sha1, Forced(GetParam()));
  PrepareCircuits();
  const PlainKey second = realm.AddKey("alice@EXAMPLE.COM", KeyClass::kUser, kEnctypeAes128Sha1);
  Job job = realm.Login(realm.alice);
  job.make_macs[0].handle = second.info.handle;
  job.make_macs[0].data.assign(2000, 'q');
  job.deadline_ms = 30'000;
  std::atomic<int> answers{0};
  const auto submit = [&](int party) {
    realm.engine(party).Submit(realm.kdc(), job, [&](JobResult result) {
      EXPECT_VERDICT(result, Verdict::kOk);
      ++answers;
    });
  };
  MemoryEngine& store = realm.store(kLeader).engine();
  const MemoryEngine::State good = store.Snapshot();
  MemoryEngine::State rotten = good;
  auto records = std::make_shared<MemoryEngine::Table>(*rotten[record_format::kRecords]);
  records->rbegin()->second.back() ^= 1;  // the key that came last
  rotten[record_format::kRecords] = std::move(records);
  store.Restore(rotten);
  ASSERT_FALSE(realm.store(kLeader).Get(second.info.handle).ok());
  submit(0);
  submit(2);
  absl::SleepFor(absl::Milliseconds(100));
  MemoryEngine::State mended = store.Snapshot();
  mended[record_format::kRecords] = good[record_format::kRecords];
  store.Restore(mended);
  absl::SleepFor(absl::Milliseconds(100));  // until no proposal from before is under way
  submit(1);
  EXPECT_TRUE(Eventually([&] { return answers == kParties || AnySees(realm); }, absl::Seconds(60)));
  EXPECT_FALSE(AnySees(realm)) << SeenBy(realm, 0)->text;
  EXPECT_TRUE(Eventually([&] { return answers == kParties; }));
}

TEST(NoDeviation, ClocksThatAreWrong) {
  Realm realm;
  for (const absl::Duration off : {absl::Hours(2), -absl::Hours(2), absl::Hours(24 * 400)}) {
    for (int party = 0; party < kParties; ++party) {
      realm.clock(party).Set(off);
      realm.Run(realm.Login(realm.guest, ""));
      realm.clock(party).Set(absl::ZeroDuration());
      realm.Run(realm.Login(realm.guest, ""));
      ASSERT_FALSE(AnySees(realm)) << party << " " << off;
    }
  }
}

TEST(NoDeviation, AStoreThatWasPutBack) {
  Realm realm;
  for (int party = 0; party < kParties; ++party) {
    const MemoryEngine::State old = realm.store(party).engine().Snapshot();
    ASSERT_VERDICT_OK(realm.Run(realm.Login(realm.guest, "")));
    for (int p = 0; p < kParties; ++p) realm.clock(p).Set(absl::Minutes(2 * (party + 1)));
    realm.Run(realm.Login(realm.guest, ""));
    realm.Stop(party);
    realm.store(party).engine().Restore(old);
    realm.Start(party);
    ASSERT_TRUE(realm.WaitConnected());
    EXPECT_VERDICT(realm.Run(realm.Login(realm.guest, "")), Verdict::kOk);
    ASSERT_FALSE(AnySees(realm)) << party;
  }
}

}  // namespace
}  // namespace mpckdc
