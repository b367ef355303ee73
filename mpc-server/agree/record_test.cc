// SPDX-License-Identifier: Apache-2.0
//
// Nothing leaves a server that is not written down, and the three write down the same.
#include <atomic>
#include <memory>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/testing/engines.h"

namespace mpckdc {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RecordTest : public ::testing::Test {
 protected:
  RecordTest() {
    alice_ = three_.AddKey("alice@EXAMPLE.COM", KeyClass::kUser, kEnctypeAes128Gcm);
    tgt_ = three_.AddKey("krbtgt/EXAMPLE.COM@EXAMPLE.COM", KeyClass::kTgs, kEnctypeAes128Gcm,
                         Gate::kNone);
    three_.StartAll();
    EXPECT_TRUE(three_.WaitConnected());
  }
  Job Login() {
    return LoginJob(three_.NextId(), alice_, tgt_,
                    SealPreauth(alice_, absl::Now(), three_.random()));
  }
  // Housekeeping comes after the answers.
  std::vector<BatchJob> WaitUnbatched(int party) {
    for (int i = 0; i < 500 && three_.recorder(party).Unbatched().empty(); ++i) {
      absl::SleepFor(absl::Milliseconds(10));
    }
    return three_.recorder(party).Unbatched();
  }

  ThreeEngines three_;
  PlainKey alice_, tgt_;
};

TEST_F(RecordTest, TheThreeWriteDownTheSame) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(three_.Run(Login()).judgement.ok());
  const std::vector<BatchReport> first = three_.recorder(0).Batches();
  ASSERT_EQ(first.size(), 3u);
  std::set<Digest> views;
  for (int party = 1; party < 3; ++party) {
    const std::vector<BatchReport> other = three_.recorder(party).Batches();
    ASSERT_EQ(other.size(), first.size());
    for (size_t i = 0; i < first.size(); ++i) {
      views.insert(first[i].view);
      EXPECT_EQ(other[i].session, first[i].session);
      EXPECT_EQ(other[i].batch, first[i].batch);
      EXPECT_EQ(other[i].view, first[i].view);
      ASSERT_EQ(other[i].jobs.size(), 1u);
      EXPECT_EQ(other[i].jobs[0].digest, first[i].jobs[0].digest);
      EXPECT_EQ(other[i].jobs[0].principal, alice_.info.principal_id);
    }
  }
  EXPECT_EQ(views.size(), 3u) << "no two batches look alike";
}

TEST_F(RecordTest, AnotherConnectionIsAnotherSession) {
  ASSERT_TRUE(three_.Run(Login()).judgement.ok());
  three_.hub().CloseCurrent();
  while (!three_.Run(Login()).judgement.ok()) {  // a batch may still have begun on the old one
  }
  EXPECT_NE(three_.recorder(1).Batches()[0].session, three_.recorder(1).Batches().back().session);
}

TEST_F(RecordTest, TheLineComesBeforeTheAnswer) {
  for (int party = 0; party < 3; ++party) {
    std::atomic<bool> answered{false}, early{false};
    std::atomic<int> left{3};
    three_.recorder(party).SetHook([&] {
      absl::SleepFor(absl::Milliseconds(30));
      early = early || answered;
    });
    const Job job = Login();
    for (int p = 0; p < 3; ++p) {
      three_.engine(p).Submit(three_.kdc(), job, [&, p](JobResult result) {
        EXPECT_TRUE(result.judgement.ok());
        if (p == party) answered = true;
        --left;
      });
    }
    while (left > 0) absl::SleepFor(absl::Milliseconds(1));
    EXPECT_FALSE(early) << "party " << party;
    three_.recorder(party).SetHook(nullptr);
  }
}

TEST_F(RecordTest, WhatCannotBeWrittenDownIsNotAnswered) {
  ASSERT_TRUE(three_.Run(Login()).judgement.ok());
  three_.recorder(1).Fail(absl::ResourceExhaustedError("the disk is full"));
  const Job job = Login();
  const PerParty<JobResult> answers = three_.Run(PerParty<Job>{job, job, job});
  EXPECT_EQ(answers[1].judgement.verdict, Verdict::kUnavailable);
  EXPECT_THAT(answers[1].judgement.detail, HasSubstr("the disk is full"));
  EXPECT_THAT(answers[1].opens, IsEmpty());
  EXPECT_THAT(answers[1].seals, IsEmpty());
  // It admits nothing: the others compute nothing either.
  const uint64_t blocks = three_.engine(0).Status().aes_blocks;
  EXPECT_EQ(three_.Run(Login()).judgement.verdict, Verdict::kUnavailable);
  EXPECT_EQ(three_.engine(0).Status().aes_blocks, blocks);
  EXPECT_EQ(three_.engine(1).Status().unrecorded, "the disk is full");
  EXPECT_EQ(three_.engine(0).Status().unrecorded, "");

  three_.recorder(1).Fail(absl::OkStatus());
  EXPECT_TRUE(three_.Run(Login()).judgement.ok()) << "by itself";
  EXPECT_EQ(three_.engine(1).Status().unrecorded, "");
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
  three_.Stop(2);
  three_.StartWith(2, &recorder);
  ASSERT_TRUE(three_.WaitConnected());
  const Job job = Login();
  const PerParty<JobResult> answers = three_.Run(PerParty<Job>{job, job, job});
  EXPECT_TRUE(answers[0].judgement.ok()) << answers[0].judgement.detail;
  EXPECT_EQ(answers[2].judgement.verdict, Verdict::kUnavailable);
  EXPECT_THAT(answers[2].judgement.detail, HasSubstr("no room for the line"));
  EXPECT_THAT(answers[2].opens, IsEmpty());
  EXPECT_THAT(answers[2].seals, IsEmpty());
  EXPECT_FALSE(three_.engine(2).FinishTag(three_.kdc(), {job.id, 0, "x"}).judgement.ok())
      << "nothing is kept for its tags";
  three_.Stop(2);  // the recorder goes
}

TEST_F(RecordTest, AJobThatOnlySomeGotIsWrittenDownThere) {
  const Job job = Login();
  const PerParty<JobResult> answers = three_.RunAt({0, 1}, job);
  EXPECT_EQ(answers[0].judgement.verdict, Verdict::kDeadline);
  for (int party : {0, 1}) {
    const std::vector<BatchJob> lines = WaitUnbatched(party);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].id, job.id);
    EXPECT_EQ(lines[0].principal, alice_.info.principal_id);
    EXPECT_EQ(lines[0].digest, JobDigest(three_.kdc(), job));
    EXPECT_EQ(lines[0].judgement.verdict, Verdict::kDeadline);
  }
  EXPECT_THAT(three_.recorder(2).Unbatched(), IsEmpty());
}

TEST_F(RecordTest, AJobRefusedOnSightIsWrittenDown) {
  Job job = Login();
  job.operation = Operation::kUnspecified;
  EXPECT_FALSE(three_.Run(job).judgement.ok());
  for (int party = 0; party < 3; ++party) {
    const std::vector<BatchJob> lines = WaitUnbatched(party);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].id, job.id);
  }
}

}  // namespace
}  // namespace mpckdc
