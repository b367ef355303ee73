// SPDX-License-Identifier: Apache-2.0
//
// Nothing leaves a server that is not written down, and the three write down the same.
#include <atomic>
#include <memory>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/testing/jobs.h"

namespace mpckdc {
namespace {

using ::testing::IsEmpty;

class RecordTest : public ::testing::Test {
 protected:
  Job Login() { return realm_.Login(realm_.alice); }
  // Housekeeping comes after the answers.
  std::vector<BatchJob> WaitUnbatched(int party) {
    Eventually([&] { return !realm_.recorder(party).Unbatched().empty(); });
    return realm_.recorder(party).Unbatched();
  }

  Realm realm_;
};

TEST_F(RecordTest, TheThreeWriteDownTheSame) {
  for (int i = 0; i < 3; ++i) ASSERT_VERDICT_OK(realm_.Run(Login()));
  const std::vector<BatchReport> first = realm_.recorder(0).Batches();
  ASSERT_EQ(first.size(), 3u);
  std::set<Digest> views;
  for (int party = 1; party < 3; ++party) {
    const std::vector<BatchReport> other = realm_.recorder(party).Batches();
    ASSERT_EQ(other.size(), first.size());
    for (size_t i = 0; i < first.size(); ++i) {
      views.insert(first[i].view);
      EXPECT_EQ(other[i].session, first[i].session);
      EXPECT_EQ(other[i].batch, first[i].batch);
      EXPECT_EQ(other[i].view, first[i].view);
      EXPECT_EQ(other[i].time, first[i].time);
      ASSERT_EQ(other[i].jobs.size(), 1u);
      EXPECT_EQ(other[i].jobs[0].digest, first[i].jobs[0].digest);
      EXPECT_EQ(other[i].jobs[0].principal, realm_.alice.info.principal_id);
    }
  }
  EXPECT_EQ(views.size(), 3u) << "no two batches look alike";
}

// One REISSUE_TICKET of alice's is the ticket for kadmin that somebody looks for later.
TEST_F(RecordTest, TheLineNamesTheKeysUsed) {
  const auto keys_of = [&](int party) {
    return realm_.recorder(party).Batches().back().jobs[0].keys;
  };
  const auto expect = [](const KeyUsed& key, PartKind part, uint32_t usage, const PlainKey& whose) {
    EXPECT_EQ(key.part, part);
    EXPECT_EQ(key.usage, usage);
    EXPECT_EQ(key.handle, whose.info.handle);
    EXPECT_EQ(key.principal, whose.info.principal_id);
  };
  const std::string tgt = realm_.Tgt("tgt");
  for (int party = 0; party < 3; ++party) {
    ASSERT_TRUE(Eventually([&] { return realm_.recorder(party).Batches().size() == 1; }));
    const std::vector<KeyUsed> keys = keys_of(party);
    ASSERT_EQ(keys.size(), 4u);
    expect(keys[0], PartKind::kOpen, kUsagePreauth, realm_.alice);
    expect(keys[1], PartKind::kSeal, kUsageTicket, realm_.tgt);
    expect(keys[2], PartKind::kSeal, kUsageAsReply, realm_.alice);
    expect(keys[3], PartKind::kMakeMac, kUsageAsReqChecksum, realm_.alice);
  }
  ASSERT_VERDICT_OK(realm_.Run(realm_.Reissue(tgt, realm_.kadmin)));
  for (int party = 0; party < 3; ++party) {
    ASSERT_TRUE(Eventually([&] { return realm_.recorder(party).Batches().size() == 2; }));
    const std::vector<KeyUsed> keys = keys_of(party);
    ASSERT_EQ(keys.size(), 2u);
    expect(keys[0], PartKind::kOpen, kUsageTicket, realm_.tgt);
    expect(keys[1], PartKind::kSeal, kUsageTicket, realm_.kadmin);
  }
  // A handle of nobody's has no principal; a job refused on sight has its keys, too.
  Job unknown = realm_.MakeChecksums({{Handle{0x77}, 17, "d"}});
  EXPECT_VERDICT(realm_.Run(unknown), Verdict::kUnknownHandle);
  EXPECT_EQ(keys_of(0)[0].principal, PrincipalId{});
  Job refused = realm_.MakeChecksums({{realm_.kadmin.info.handle, 99, "d"}});
  EXPECT_VERDICT(realm_.Run(refused), Verdict::kRefused);
  const std::vector<BatchJob> unbatched = WaitUnbatched(1);
  ASSERT_EQ(unbatched.size(), 1u);
  expect(unbatched[0].keys.at(0), PartKind::kMakeMac, 99, realm_.kadmin);
}

// The recorder may count the others of a flood instead of writing each down.
TEST_F(RecordTest, WhatWasComputedIsMarked) {
  EngineOptions options;
  options.quotas[QuotaKind::kPrincipalFailures] = {1, 1};
  Realm realm(options);
  const std::string preauth = realm.Preauth(realm.alice);
  realm.Run(realm.Login(realm.alice, preauth));                                     // OK
  realm.kdc().name = "another";
  realm.Run(realm.Login(realm.alice, preauth));                                     // REPLAY
  realm.kdc().name = "kdc1";
  realm.Run(realm.Login(realm.alice, realm.Preauth(realm.alice, absl::Hours(1))));  // CLOCK_SKEW
  realm.Run(realm.Login(realm.alice, realm.AlteredPreauth(realm.alice)));           // BAD_TAG
  realm.Run(realm.Login(realm.alice));                                              // QUOTA
  Job unknown = realm.Login(realm.bob);
  unknown.seals[0].handle = Handle{7};
  realm.Run(unknown);  // UNKNOWN_HANDLE
  for (int party = 0; party < 3; ++party) {
    ASSERT_TRUE(Eventually([&] { return realm.recorder(party).Batches().size() == 6; }));
    for (const BatchReport& report : realm.recorder(party).Batches()) {
      const BatchJob& job = report.jobs.at(0);
      const Verdict verdict = job.judgement.verdict;
      EXPECT_EQ(job.computed, verdict == Verdict::kOk || verdict == Verdict::kClockSkew ||
                                  verdict == Verdict::kBadTag)
          << verdict;
    }
  }
}

TEST_F(RecordTest, AnotherConnectionIsAnotherSession) {
  ASSERT_VERDICT_OK(realm_.Run(Login()));
  realm_.hub().CloseCurrent();
  while (!realm_.Run(Login()).judgement.ok()) {  // a batch may still have begun on the old one
  }
  EXPECT_NE(realm_.recorder(1).Batches()[0].session, realm_.recorder(1).Batches().back().session);
}

TEST_F(RecordTest, TheLineComesBeforeTheAnswer) {
  for (int party = 0; party < 3; ++party) {
    std::atomic<bool> answered{false}, early{false};
    std::atomic<int> left{3};
    realm_.recorder(party).SetHook([&] {
      absl::SleepFor(absl::Milliseconds(30));
      early = early || answered;
    });
    const Job job = Login();
    for (int p = 0; p < 3; ++p) {
      realm_.engine(p).Submit(realm_.kdc(), job, [&, p](JobResult result) {
        EXPECT_TRUE(result.judgement.ok());
        if (p == party) answered = true;
        --left;
      });
    }
    while (left > 0) absl::SleepFor(absl::Milliseconds(1));
    EXPECT_FALSE(early) << "party " << party;
    realm_.recorder(party).SetHook(nullptr);
  }
}

TEST_F(RecordTest, WhatCannotBeWrittenDownIsNotAnswered) {
  ASSERT_VERDICT_OK(realm_.Run(Login()));
  realm_.recorder(1).Fail(absl::ResourceExhaustedError("the disk is full"));
  const Job job = Login();
  const PerParty<JobResult> answers = realm_.RunEach(job);
  ExpectRefused(answers[1], Verdict::kUnavailable, "the disk is full");
  // It admits nothing: the others compute nothing either.
  const uint64_t blocks = realm_.engine(0).Status().aes_blocks;
  EXPECT_VERDICT(realm_.Run(Login()), Verdict::kUnavailable);
  EXPECT_EQ(realm_.engine(0).Status().aes_blocks, blocks);
  EXPECT_EQ(realm_.engine(1).Status().unrecorded, "the disk is full");
  EXPECT_EQ(realm_.engine(0).Status().unrecorded, "");

  realm_.recorder(1).Fail(absl::OkStatus());
  EXPECT_VERDICT(realm_.Run(Login()), Verdict::kOk) << "by itself";
  EXPECT_EQ(realm_.engine(1).Status().unrecorded, "");
}

TEST_F(RecordTest, AWriteThatFailsInTheBatchHoldsTheAnswerBack) {
  // Ready until it has to write.
  class FailsOnce : public JobRecorder {
   public:
    absl::Status Ready() override { return absl::OkStatus(); }
    absl::Status Record(const BatchReport&) override {
      return absl::ResourceExhaustedError("no room for the line");
    }
    void RecordUnbatched(absl::Span<const BatchJob>, uint64_t) override {}
  };
  FailsOnce recorder;
  realm_.Stop(2);
  realm_.StartWith(2, &recorder);
  ASSERT_TRUE(realm_.WaitConnected());
  const Job job = Login();
  const PerParty<JobResult> answers = realm_.RunEach(job);
  EXPECT_VERDICT(answers[0], Verdict::kOk);
  ExpectRefused(answers[2], Verdict::kUnavailable, "no room for the line");
  EXPECT_FALSE(realm_.engine(2).FinishTag(realm_.kdc(), {job.id, 0, "x"}).judgement.ok())
      << "nothing is kept for its tags";
  realm_.Stop(2);  // the recorder goes
}

TEST_F(RecordTest, AJobThatOnlySomeGotIsWrittenDownThere) {
  const Job job = Login();
  const PerParty<JobResult> answers = realm_.RunAt({0, 1}, job);
  EXPECT_VERDICT(answers[0], Verdict::kDeadline);
  for (int party : {0, 1}) {
    const std::vector<BatchJob> lines = WaitUnbatched(party);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].id, job.id);
    EXPECT_EQ(lines[0].principal, realm_.alice.info.principal_id);
    EXPECT_EQ(lines[0].digest, JobDigest(realm_.kdc(), job));
    EXPECT_EQ(lines[0].judgement.verdict, Verdict::kDeadline);
  }
  EXPECT_THAT(realm_.recorder(2).Unbatched(), IsEmpty());
}

TEST_F(RecordTest, AJobRefusedOnSightIsWrittenDown) {
  Job job = Login();
  job.operation = Operation::kUnspecified;
  EXPECT_FALSE(realm_.Run(job).judgement.ok());
  for (int party = 0; party < 3; ++party) {
    const std::vector<BatchJob> lines = WaitUnbatched(party);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].id, job.id);
  }
}

}  // namespace
}  // namespace mpckdc
