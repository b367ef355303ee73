// SPDX-License-Identifier: Apache-2.0
//
// What leaves three servers of one computed job, of both families of keys: it joins if all three
// were told the same job, and is noise otherwise, which the KDC sees.
#include "mpc-server/judge/output.h"

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/job/operation_table.h"
#include "mpc-server/testing/cts.h"
#include "mpc-server/testing/nothing.h"
#include "mpc-server/testing/realm.h"
#include "mpc-server/testing/three_parties.h"

namespace mpckdc {
namespace {

constexpr uint32_t kBatch = 5;
constexpr size_t kTextBytes = 40;

// One server's shares, in the order of the job's parts.
std::vector<std::string> SharesOf(const JobResult& result) {
  std::vector<std::string> shares;
  const auto add = [&shares](const auto& parts) {
    for (const auto& part : parts) {
      std::visit([&](const auto& family) { shares.push_back(family.share); }, part);
    }
  };
  add(result.opens);
  add(result.seals);
  add(result.make_macs);
  return shares;
}

class OutputTest : public ::testing::TestWithParam<int32_t> {
 protected:
  OutputTest()
      : key_(MakePlainKey(random_, "alice@EXAMPLE.COM", KeyClass::kUser, GetParam())),
        records_(ShareKey(key_, random_)) {
    job_.opens = {{key_.info.handle, kUsagePreauth, SealPreauth(key_, absl::Now(), random_)}};
    job_.seals = {{key_.info.handle, kUsageAsReply, kTextBytes}};
    job_.make_macs = {{key_.info.handle, kUsageAsReqChecksum, "an AS-REQ"},
                      {key_.info.handle, kUsageAsReqChecksum, "another"}};
  }

  // What server p answers, for each of the digests of its job and numbers of the batch.
  struct Ask {
    Digest digest{};
    uint32_t batch = kBatch;
  };
  void Compute(const PerParty<std::vector<Ask>>& asks) {
    const auto statuses = RunThreeParties(
        {}, 7, [&](int party, Rings& rings) { return ComputeAt(party, rings, asks[party]); });
    for (const absl::Status& s : statuses) ASSERT_TRUE(s.ok()) << s;
  }
  // What the KDC makes of the three servers' n-th answers.
  JobResult Joined(size_t n) const { return Joined({n, n, n}); }
  JobResult Joined(const PerParty<size_t>& which) const {
    PerParty<JobResult> answers;
    for (int p = 0; p < kParties; ++p) {
      answers[p] = answers_[p][which[p]];
      answers[p].judgement = Ok();
    }
    return Combine(answers);
  }

  PerParty<std::vector<JobResult>> answers_;  // by ask

 private:
  absl::Status ComputeAt(int party, Rings& rings, const std::vector<Ask>& asks) {
    ReceivedJob received;
    received.job = job_;
    SeededRandomForTest text_random(4);
    const std::string text(kTextBytes, 't');
    received.job.seals[0].text = SplitText(AsBytes(text), text_random)[party];
    const auto use = [&](uint32_t usage) {
      return UseOf(records_[party], *records_[party].FindUsage(usage));
    };
    std::vector<JobWork> work(1);
    work[0].received = &received;
    work[0].AddOpen(use(kUsagePreauth), received.job.opens[0]);
    work[0].AddSeal(use(kUsageAsReply), received.job.seals[0], Nonce{1}, "");
    uint8_t number = 1;
    for (const MakeMacPart& mac : received.job.make_macs) {
      work[0].AddMakeMac(use(kUsageAsReqChecksum), mac, Nonce{++number});
    }
    AesBatch blocks(kBatchCut);
    PowersCache powers;
    CtsCircuits circuits(party);
    rings.BeginBatch(kBatch);
    BatchWork batch(rings, blocks, powers, circuits, work);
    Nothing first;
    for (const auto& step : std::vector<std::function<absl::Status()>>{
             [&] { return batch.ComputeBlocks(first); }, [&] { return batch.CheckTags(); },
             [&] { return batch.OpenTimestamps(); }}) {
      const absl::Status s = step();
      if (!s.ok()) return s;
    }
    for (const Ask& ask : asks) {
      received.digest = ask.digest;
      OutputMasks masks(rings.first().output_keys());
      answers_[party].push_back(OutputOf(masks, ask.batch, batch, work[0]));
    }
    return absl::OkStatus();
  }

  SeededRandomForTest random_{3};
  const PlainKey key_;
  const PerParty<KeyRecord> records_;
  Job job_;
};

TEST_P(OutputTest, JoinsOnlyIfAllThreeWereToldTheSameInTheSameBatch) {
  const Digest job{1}, other{2};
  const std::vector<OutputTest::Ask> asks = {{job}, {other}, {job, kBatch + 1}};
  Compute({asks, asks, asks});
  ASSERT_TRUE(Joined(0).judgement.ok());
  const std::vector<std::string> right = SharesOf(Joined(0));
  ASSERT_EQ(right.size(), 4u);
  EXPECT_EQ(SharesOf(Joined(1)), right) << "another job of the same parts";
  EXPECT_EQ(SharesOf(Joined(2)), right) << "another batch of the same number at all three";
  for (size_t different = 1; different <= 2; ++different) {
    for (int p = 0; p < kParties; ++p) {
      PerParty<size_t> which{};
      which[p] = different;
      const JobResult noise = Joined(which);
      EXPECT_FALSE(noise.judgement.ok());
      for (size_t part = 0; part < right.size(); ++part) {
        EXPECT_NE(SharesOf(noise)[part], right[part]) << "server " << p << ", part " << part;
      }
    }
  }
}

// Two outputs under one mask would tell the KDC the XOR of two shares of a server's.
TEST_P(OutputTest, EveryOutputHasAMaskOfItsOwn) {
  const std::vector<OutputTest::Ask> asks = {{Digest{1}}, {Digest{2}}, {Digest{1}, kBatch + 1}};
  Compute({asks, asks, asks});
  for (int p = 0; p < kParties; ++p) {
    std::set<std::string> masks;  // differences of two, which are as different
    for (const size_t other : {1, 2}) {
      const std::vector<std::string> one = SharesOf(answers_[p][0]);
      const std::vector<std::string> another = SharesOf(answers_[p][other]);
      for (size_t part = 0; part < one.size(); ++part) {
        masks.insert(XorText(one[part].substr(0, 12), another[part].substr(0, 12)));
      }
    }
    EXPECT_EQ(masks.size(), 8u) << "server " << p;
    EXPECT_FALSE(masks.contains(std::string(12, '\0')));
  }
}

INSTANTIATE_TEST_SUITE_P(Enctypes, OutputTest,
                         ::testing::Values(kEnctypeAes256Gcm, kEnctypeAes256Sha1,
                                           kEnctypeAes256Sha384));

}  // namespace
}  // namespace mpckdc
