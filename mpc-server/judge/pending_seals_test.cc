// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/judge/pending_seals.h"

#include "gtest/gtest.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/key/message_format.h"

namespace mpckdc {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
const KdcIdentity kKdc{"kdc1", {1}};

Block RandomKey(RandomSource& random) {
  Block key;
  random.Fill(absl::MakeSpan(key));
  return key;
}

PendingJob Seals(size_t count, uint32_t max_plaintext) {
  auto batch = std::make_shared<SealBatch>(SealBatch{TagMaskKeys(Block{1}, Block{2}), {}});
  batch->masks_a.resize(count);
  const auto powers = std::make_shared<const SecretVector<SharedBlock>>(
      3 + (kZeroBytes + max_plaintext) / 16);
  PendingJob job;
  for (uint32_t i = 0; i < count; ++i) {
    job.seals.push_back({"", {}, max_plaintext, i, {powers, *powers}});
  }
  job.batch = std::move(batch);
  return job;
}

TEST(TagMask, ThreePartiesMasksCancelForOneHashOnly) {
  SeededRandomForTest random(3);
  const std::array<Block, 3> k = {RandomKey(random), RandomKey(random), RandomKey(random)};
  const std::array<TagMaskKeys, 3> parties = {TagMaskKeys(k[0], k[1]), TagMaskKeys(k[1], k[2]),
                                              TagMaskKeys(k[2], k[0])};
  const auto sum = [&](const Digest& a, const Digest& b, const Digest& c) {
    return XorBlocks(XorBlocks(parties[0].Mask(a), parties[1].Mask(b)), parties[2].Mask(c));
  };
  EXPECT_EQ(sum(Digest{1}, Digest{1}, Digest{1}), Block{});
  EXPECT_NE(sum(Digest{1}, Digest{1}, Digest{2}), Block{});
  EXPECT_NE(sum(Digest{1}, Digest{2}, Digest{3}), Block{});
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

}  // namespace
}  // namespace mpckdc
