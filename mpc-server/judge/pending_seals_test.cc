// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/judge/pending_seals.h"

#include "gtest/gtest.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/key/message_format.h"

namespace mpckdc {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
const KdcIdentity kKdc{"kdc1", {1}};

PendingJob Seals(size_t count, uint32_t max_plaintext, int party = 0) {
  auto batch = std::make_shared<SealBatch>(SealBatch{OutputKeys(party, PairwiseSeeds{}), {}});
  batch->masks.resize(count);
  const auto powers = std::make_shared<const SecretVector<SharedBlock>>(
      3 + (kZeroBytes + max_plaintext) / 16);
  PendingJob job;
  for (uint32_t i = 0; i < count; ++i) {
    job.seals.push_back({"", {}, max_plaintext, i, {powers, *powers}});
  }
  job.batch = std::move(batch);
  return job;
}

// Of shares of zero, so that the masks alone are seen.
TEST(PendingSeals, MasksCancelForOneRequestOnly) {
  for (const bool two_stories : {false, true}) {
    OutputJoiner joiner;
    Tag sum{};
    for (int p = 0; p < 3; ++p) {
      PendingSeals pending;
      pending.Add(kKdc, 1, Seals(1, 32, p), kNow + absl::Seconds(30));
      const std::string ciphertext(48, two_stories && p == 1 ? 'd' : 'c');
      const TagResult result = pending.Finish(kKdc, {1, 0, ciphertext}, kNow);
      ASSERT_TRUE(result.judgement.ok());
      EXPECT_NE(result.tag_share, Tag{});
      OutputJoiner::Answer(joiner, p, result.keys)
          .Add(OutputNumber(OutputField::kTag, 0), AsText(result.tag_share), absl::MakeSpan(sum));
    }
    EXPECT_EQ(sum == Tag{}, !two_stories);
    EXPECT_EQ(joiner.Contradictions().empty(), !two_stories);
  }
}

TEST(PendingSeals, OneAnswerEachEvenWhenTheRequestWasMalformed) {
  PendingSeals pending;
  pending.Add(kKdc, 1, Seals(2, 32), kNow + absl::Seconds(30));
  const std::string good(48, 'c');
  EXPECT_EQ(pending.Finish(kKdc, {1, 0, good}, kNow).judgement.verdict, Verdict::kOk);
  EXPECT_EQ(pending.Finish(kKdc, {1, 0, good}, kNow).judgement.verdict, Verdict::kRefused);
  EXPECT_EQ(pending.Finish(kKdc, {1, 1, good + "c"}, kNow).judgement.verdict, Verdict::kMalformed);
  EXPECT_EQ(pending.Finish(kKdc, {1, 1, good}, kNow).judgement.verdict, Verdict::kRefused);
  EXPECT_EQ(pending.Finish(kKdc, {1, 2, good}, kNow).judgement.verdict, Verdict::kRefused);
}

TEST(PendingSeals, BelongToTheirSessionAndExpire) {
  PendingSeals pending;
  pending.Add(kKdc, 1, Seals(1, 32), kNow + absl::Seconds(30));
  const TagRequest request{1, 0, std::string(16, 'c')};
  const KdcIdentity other{"kdc2", {1}};
  EXPECT_FALSE(pending.Finish(other, request, kNow).judgement.ok());
  EXPECT_FALSE(pending.Finish(kKdc, request, kNow + absl::Seconds(30)).judgement.ok());
  EXPECT_TRUE(pending.Finish(kKdc, request, kNow + absl::Seconds(29)).judgement.ok());
  pending.Prune(kNow + absl::Seconds(30));
  EXPECT_EQ(pending.size(), 0u);
}

// What the powers of H of a batch take goes with the last of its jobs, or when there is too much.
TEST(PendingSeals, MemoryOfABatchIsCountedOnceAndBounded) {
  PendingSeals pending;
  const auto add = [&](const std::shared_ptr<const SealBatch>& batch, JobId id) {
    PendingJob job = Seals(1, 32);
    job.batch = batch;
    pending.Add(kKdc, id, std::move(job), kNow + absl::Seconds(30));
  };
  const auto new_batch = [](size_t bytes) {
    auto batch = std::make_shared<SealBatch>(SealBatch{OutputKeys(0, PairwiseSeeds{}), {}, bytes});
    batch->masks.resize(1);
    return batch;
  };
  constexpr size_t kThird = limits::kMaxPendingSealBytes / 3;
  JobId id = 0;
  for (int i = 0; i < 3; ++i) {
    const auto batch = new_batch(kThird);
    for (int job = 0; job < 10; ++job) add(batch, ++id);
  }
  EXPECT_EQ(pending.bytes(), 3 * kThird);
  EXPECT_EQ(pending.size(), 30u);
  add(new_batch(kThird), ++id);
  EXPECT_EQ(pending.bytes(), 3 * kThird);
  EXPECT_EQ(pending.size(), 21u) << "the first batch went";
  EXPECT_FALSE(pending.Finish(kKdc, {10, 0, std::string(16, 'c')}, kNow).judgement.ok());
  for (JobId job = 11; job <= 20; ++job) {
    EXPECT_TRUE(pending.Finish(kKdc, {job, 0, std::string(16, 'c')}, kNow).judgement.ok());
  }
  EXPECT_EQ(pending.bytes(), 2 * kThird) << "the second has all its tags";
  add(new_batch(2 * limits::kMaxPendingSealBytes), ++id);
  EXPECT_EQ(pending.size(), 1u) << "one too large alone stays";
  pending.Prune(kNow + absl::Seconds(30));
  EXPECT_EQ(pending.bytes(), 0u);
}

}  // namespace
}  // namespace mpckdc
