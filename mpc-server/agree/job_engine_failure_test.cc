// SPDX-License-Identifier: Apache-2.0
//
// What a KDC may tell three servers, keys, and what happens when something fails.
#include "mpc-server/agree/job_engine.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/agree/agreement.h"
#include "mpc-server/testing/jobs.h"

namespace mpckdc {
namespace {

using ::testing::HasSubstr;

// ---- What a KDC may tell three servers ----

TEST(JobEngine, DifferentJobsAreInconsistent) {
  Realm realm;
  const Job job = realm.Login(realm.alice);
  Job other = job;
  other.seals[0].max_plaintext += 1;
  for (const JobResult& answer : realm.Run(PerParty<Job>{job, job, other})) {
    EXPECT_VERDICT(answer, Verdict::kInconsistent);
  }
}

TEST(JobEngine, AJobThatOneServerNeverGetsEndsAtItsDeadline) {
  Realm realm;
  Job job = realm.Login(realm.alice);
  job.deadline_ms = 300;
  const absl::Time begin = absl::Now();
  const PerParty<JobResult> answers = realm.RunAt({0, 1}, job);
  EXPECT_VERDICT(answers[0], Verdict::kDeadline);
  EXPECT_VERDICT(answers[1], Verdict::kDeadline);
  EXPECT_LT(absl::Now() - begin, absl::Seconds(3));
  EXPECT_VERDICT(realm.Run(realm.Login(realm.alice)), Verdict::kOk);
}

TEST(JobEngine, AJobThatArrivesLateAtOneServerStillRuns) {
  Realm realm;
  const Job job = realm.Login(realm.alice);
  EXPECT_VERDICT(realm.RunStaggered(job, absl::Milliseconds(60)), Verdict::kOk);
}

TEST(JobEngine, IdsOnlyIncrease) {
  Realm realm;
  const Job job = realm.Login(realm.alice);
  EXPECT_VERDICT(realm.Run(job), Verdict::kOk);
  EXPECT_VERDICT(realm.Run(job), Verdict::kRefused);
}

TEST(JobEngine, UnknownHandleIsNamed) {
  Realm realm;
  Job job = realm.Login(realm.alice);
  job.seals[0].handle = Handle{0xde, 0xad};
  ExpectRefused(realm.Run(job), Verdict::kUnknownHandle, "dead0000");
  // Known to two of three: nothing runs, and the session survives.
  const Handle gone = realm.bob.info.handle;
  ASSERT_TRUE(realm.store(1).Delete({&gone, 1}).ok());
  EXPECT_VERDICT(realm.Run(realm.Login(realm.bob)), Verdict::kUnknownHandle);
  EXPECT_VERDICT(realm.Run(realm.Login(realm.alice)), Verdict::kOk);
  EXPECT_EQ(realm.engine(0).Status().sessions, 1u);
}

TEST(JobEngine, ATagIsGivenOnce) {
  Realm realm;
  const JobResult result = realm.Run(realm.Login(realm.alice));
  ASSERT_VERDICT_OK(result);
  const TagRequest request{result.id, 0, Encrypt(result.seals[0], "first")};
  EXPECT_VERDICT(Combine(realm.Tags(request)), Verdict::kOk);
  const TagRequest again{result.id, 0, Encrypt(result.seals[0], "other")};
  for (const TagResult& tag : realm.Tags(again)) {
    EXPECT_VERDICT(tag, Verdict::kRefused);
    EXPECT_EQ(tag.tag_share, Tag{});
  }
  const TagRequest none{result.id, 2, Encrypt(result.seals[0], "x")};
  EXPECT_VERDICT(Combine(realm.Tags(none)), Verdict::kRefused);
  const TagRequest longer{result.id, 1, std::string(16 + 280, 'x')};
  EXPECT_VERDICT(Combine(realm.Tags(longer)), Verdict::kMalformed);
}

// ---- Keys ----

KeyInfo DrawnTgt(int32_t enctype) {
  KeyInfo info;
  info.handle.fill(static_cast<uint8_t>(-enctype));
  info.principal = "krbtgt/EXAMPLE.COM@EXAMPLE.COM";
  info.principal_id = PrincipalIdOf(info.principal);
  info.kvno = 2;
  info.enctype = enctype;
  info.key_class = KeyClass::kTgs;
  info.gate = Gate::kNone;
  return info;
}

TEST(JobEngine, DrawnKeyWorks) {
  Realm realm;
  for (const int32_t enctype : {kEnctypeAes128Gcm, kEnctypeAes256Gcm}) {
    const KeyInfo info = DrawnTgt(enctype);
    const TransactionId txn = info.handle;
    ASSERT_TRUE(realm.Draw(txn, info).ok());
    EXPECT_TRUE(realm.Draw(txn, info).ok());  // again: already staged
    PerParty<KeyRecord> records;
    for (int p = 0; p < kParties; ++p) {
      ASSERT_TRUE(realm.store(p).Commit(txn, absl::Now()).ok());
      records[p] = *realm.store(p).Get(info.handle);
    }
    const absl::StatusOr<PlainKey> drawn = JoinKey(records);
    ASSERT_TRUE(drawn.ok()) << drawn.status();
    const JobResult result = realm.Run(
        LoginJob(realm.NextId(), realm.alice, *drawn, realm.Preauth(realm.alice)));
    ASSERT_VERDICT_OK(result);
    EXPECT_EQ(OracleOpen(*drawn, kUsageTicket, realm.FinishSeal(result, 0, "ticket")), "ticket");
  }
}

TEST(JobEngine, VerifyKeysSeesOneWrongByte) {
  Realm realm;
  const std::vector<Handle> handles = {realm.alice.info.handle, realm.bob.info.handle,
                                       realm.tgt.info.handle, Handle{1, 2, 3}};
  auto verified = realm.Verify(handles);
  ASSERT_TRUE(verified.ok()) << verified.status();
  EXPECT_TRUE((*verified)[0].consistent) << (*verified)[0].detail;
  EXPECT_TRUE((*verified)[1].consistent);
  EXPECT_TRUE((*verified)[2].consistent);
  EXPECT_FALSE((*verified)[3].consistent);

  ShareStore& store = realm.store(1);
  KeyRecord bob = *store.Get(realm.bob.info.handle), tgt = *store.Get(realm.tgt.info.handle);
  bob.usages[1].round_keys[7].a[3] ^= 0x10;
  tgt.base[1].x[0] ^= 1;
  ASSERT_EQ(*store.Delete({bob.info.handle, tgt.info.handle}), 2u);
  ASSERT_TRUE(store.Stage(TransactionId{1}, {bob, tgt}, absl::Now()).ok());
  ASSERT_TRUE(store.Commit(TransactionId{1}, absl::Now()).ok());
  verified = realm.Verify(handles);
  ASSERT_TRUE(verified.ok());
  EXPECT_TRUE((*verified)[0].consistent);
  EXPECT_FALSE((*verified)[1].consistent);
  EXPECT_FALSE((*verified)[2].consistent);
}

// ---- Failures ----

TEST(JobEngine, PendingSealsOutliveTheConnection) {
  Realm realm;
  const JobResult result = realm.Run(realm.Login(realm.alice));
  ASSERT_VERDICT_OK(result);
  realm.hub().CloseCurrent();
  EXPECT_EQ(OracleOpen(realm.tgt, kUsageTicket, realm.FinishSeal(result, 0, "t")), "t");
}

TEST(JobEngine, NoncesOnlyGrowAcrossRestarts) {
  Realm realm;
  Nonce last{};
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 3; ++i) {
      const JobResult result = realm.Run(realm.Login(realm.alice));
      ASSERT_VERDICT_OK(result);
      for (const SealResult& seal : result.seals) {
        const Nonce& nonce = GcmOf(seal).nonce;
        EXPECT_LT(last, nonce);
        last = nonce;
      }
    }
    // One server loses what it knew since the beginning: the others' marks still hold.
    realm.StopAll();
    if (round == 1) {
      const absl::Status forgotten = realm.store(0).engine().Write(
          "forget the mark", [](KvTxn& txn) {
            return txn.Delete(record_format::kMeta, record_format::kNameMark);
          });
      ASSERT_TRUE(forgotten.ok()) << forgotten;
    }
    realm.StartAll();
    ASSERT_TRUE(realm.WaitConnected());
  }
}

// ATTACK. The same on engines: a server whose mark is an hour beyond the others' at each of its starts.
TEST(JobEngine, AServerPutsTheNoncesAnHourAheadAndNoMore) {
  Realm realm;
  for (int start = 0; start < 4; ++start) {
    realm.Stop(2);
    const uint32_t own = SplitNonce(*realm.store(2).ReadNonceMark()).seconds;
    const uint32_t now = static_cast<uint32_t>(absl::ToUnixSeconds(absl::Now()));
    const NonceFields lie{std::max(own, now) + 3590, realm.store(2).cluster(), 0};
    ASSERT_TRUE(realm.store(2).ReserveNonceMark(JoinNonce(lie)).ok());
    realm.Start(2);
    ASSERT_TRUE(realm.WaitConnected());
    (void)realm.Run(realm.Login(realm.alice));
  }
  for (const int honest : {0, 1}) {
    EXPECT_LE(SplitNonce(*realm.store(honest).ReadNonceMark()).seconds,
              absl::ToUnixSeconds(absl::Now()) + 3600 + 16);
  }
}

TEST(JobEngine, AFullDiskStopsSealingAndNothingElse) {
  Realm realm;
  const std::string ticket = realm.Tgt("t");
  realm.store(1).FailWrites(absl::ResourceExhaustedError("disk full"));
  // The mark in store covers some seconds: force a new one.
  for (int p = 0; p < kParties; ++p) realm.clock(p).Set(absl::Seconds(60));
  const JobResult refused = realm.Run(realm.Login(realm.guest, ""));
  EXPECT_VERDICT(refused, Verdict::kUnavailable);
  EXPECT_THAT(realm.engine(1).Status().degraded, HasSubstr("disk full"));
  EXPECT_VERDICT(realm.Run(realm.OpenTicket(ticket)), Verdict::kOk);
  realm.store(1).FailWrites(absl::OkStatus());
  EXPECT_VERDICT(realm.Run(realm.Login(realm.guest, "")), Verdict::kOk);
  EXPECT_EQ(realm.engine(1).Status().degraded, "");
}

TEST(JobEngine, ALeaderWithAWrongClockSealsNothing) {
  Realm realm;
  realm.clock(0).Set(absl::Hours(2));
  const JobResult result = realm.Run(realm.Login(realm.guest, ""));
  EXPECT_VERDICT(result, Verdict::kUnavailable);
  EXPECT_THAT(realm.engine(0).Status().degraded, HasSubstr("differs from both peers'"));
  realm.clock(0).Set(absl::ZeroDuration());
  EXPECT_VERDICT(realm.Run(realm.Login(realm.guest, "")), Verdict::kOk);
}

// After a deviation that some of the servers saw.
void ReadmitEverywhere(Realm& realm) {
  ASSERT_TRUE(Eventually([&] {
    return realm.engine(0).Status().quarantine || realm.engine(1).Status().quarantine ||
           realm.engine(2).Status().quarantine;
  }));
  absl::SleepFor(absl::Milliseconds(100));  // whoever else saw it
  for (int p = 0; p < kParties; ++p) ASSERT_TRUE(realm.engine(p).Readmit().ok());
  ASSERT_TRUE(realm.WaitConnected());
}

TEST(JobEngine, ALeaderThatTellsTwoStoriesEndsTheSession) {
  Realm realm;
  std::atomic<int> altered{0};
  realm.hub().SetInterceptor([&](MemoryRing::Intercepted& m) {
    // The leader tells P2 another first nonce than P1.
    if (m.type == FrameType::kAgreement && m.from == 0 && m.to == 2 && m.payload.size() > 36 &&
        altered.exchange(1) == 0) {
      m.payload[27] ^= 1;
    }
  });
  realm.hub().CloseCurrent();
  absl::SleepFor(absl::Milliseconds(100));
  ASSERT_TRUE(realm.WaitConnected());
  const JobResult result = realm.Run(realm.Login(realm.alice));
  EXPECT_EQ(altered, 1);
  EXPECT_VERDICT(result, Verdict::kUnavailable);  // quarantine_test.cc: who is accused
  ReadmitEverywhere(realm);
  EXPECT_VERDICT(realm.Run(realm.Login(realm.alice)), Verdict::kOk);
  EXPECT_GE(realm.engine(0).Status().sessions, 3u);
}

// A vote on the only key of a VerifyKeys is altered on its way: nobody says that the key is bad.
TEST(JobEngine, AnAlteredVoteOnAKeyEndsTheSession) {
  Realm realm;
  constexpr size_t kCode = 1 + 4 + 32 + 8 + 2 * (4 + 8) + 4;
  constexpr size_t kVoteOnOneKey = kCode + 1 + 1 + sizeof(RecordTags);
  std::atomic<int> altered{0};
  realm.hub().SetInterceptor([&](MemoryRing::Intercepted& m) {
    if (m.type == FrameType::kAgreement && m.from == 1 && m.to == 0 &&
        m.payload.size() == kVoteOnOneKey && altered.exchange(1) == 0) {
      m.payload[kCode] ^= CodeOf(Verdict::kOk) ^ CodeOf(Verdict::kUnavailable);
    }
  });
  realm.hub().CloseCurrent();
  absl::SleepFor(absl::Milliseconds(100));
  ASSERT_TRUE(realm.WaitConnected());
  const auto answers = realm.VerifyEach({realm.alice.info.handle});
  EXPECT_EQ(altered, 1);
  for (const auto& answer : answers) {
    if (answer.ok()) {
      EXPECT_TRUE((*answer)[0].consistent) << (*answer)[0].detail;
    }
  }
  // A server may note only after this what it saw then.
  auto again = realm.Verify({realm.alice.info.handle});
  for (int tries = 0; tries < 10 && !again.ok(); ++tries) {
    ReadmitEverywhere(realm);
    again = realm.Verify({realm.alice.info.handle});
  }
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE((*again)[0].consistent) << (*again)[0].detail;
}

TEST(JobEngine, FixedTicks) {
  EngineOptions options;
  options.mode = BatchMode::kFixed;
  options.batch_window = absl::Milliseconds(200);
  Realm realm(options);
  for (int i = 0; i < 3; ++i) ASSERT_VERDICT_OK(realm.Run(realm.Login(realm.alice)));
  for (const BatchReport& report : realm.recorder(0).Batches()) {
    EXPECT_LT(absl::ToUnixMillis(report.started - report.agreed) % 200, 100);
  }
}

TEST(JobEngine, StopAnswersEverything) {
  Realm realm;
  realm.Stop(1);
  const PerParty<JobResult> answers = [&] {
    std::thread stopper([&] {
      absl::SleepFor(absl::Milliseconds(50));
      realm.Stop(0);
      realm.Stop(2);
    });
    const auto a = realm.RunAt({0, 2}, realm.Login(realm.alice));
    stopper.join();
    return a;
  }();
  EXPECT_VERDICT(answers[0], Verdict::kUnavailable);
  EXPECT_VERDICT(answers[2], Verdict::kUnavailable);
}

}  // namespace
}  // namespace mpckdc
