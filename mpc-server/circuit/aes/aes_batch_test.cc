// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/aes/aes_batch.h"

#include <atomic>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/share/reveal.h"
#include "mpc-server/testing/three_parties.h"
#include "mpc-server/testing/usage_key_oracle.h"

namespace mpckdc {
namespace {

using testing::HasSubstr;

// Blocks to encrypt and what must come out, each lane with one of a few keys.
struct Lanes {
  Lanes(AesBits bits, size_t count, uint64_t seed) {
    SeededRandomForTest random(seed);
    for (int k = 0; k < 3; ++k) {
      std::vector<uint8_t> key(16 * AesKeyBlocks(bits));
      random.Fill(absl::MakeSpan(key));
      keys.push_back(key);
      for (const Block& round_key : PlainKeySchedule(key)) {
        const auto shares = SplitForTest(round_key, random);
        for (int p = 0; p < kParties; ++p) shared[p].push_back(shares[p]);
      }
    }
    for (size_t j = 0; j < count; ++j) {
      Block in{};
      random.Fill(absl::MakeSpan(in));
      inputs.push_back(in);
      expected.push_back(PlainAes(keys[j % 3], in));
    }
    rounds = AesRoundKeys(bits);
  }
  std::vector<AesLane> Of(int party) const {
    std::vector<AesLane> lanes;
    for (size_t j = 0; j < inputs.size(); ++j) {
      lanes.push_back({&shared[party][j % 3 * rounds], nullptr, inputs[j]});
    }
    return lanes;
  }

  std::vector<std::vector<uint8_t>> keys;
  std::array<std::vector<SharedBlock>, kParties> shared;
  std::vector<Block> inputs, expected;
  size_t rounds;
};

std::vector<Block> Join(const std::array<std::vector<SharedBlock>, kParties>& outputs) {
  std::vector<Block> joined(outputs[0].size());
  for (size_t j = 0; j < joined.size(); ++j) {
    EXPECT_TRUE(JoinForTest({outputs[0][j], outputs[1][j], outputs[2][j]}, &joined[j])) << j;
  }
  return joined;
}

struct Case {
  size_t rings, lanes128, lanes256;
  Randomness randomness = Randomness::kKeyed;
};

class AesBatchTest : public testing::TestWithParam<Case> {};

constexpr AesCut kCut = {512, 3, 600};

TEST_P(AesBatchTest, AllBlocksAreRight) {
  const Case& c = GetParam();
  const Lanes l128(AesBits::k128, c.lanes128, 1), l256(AesBits::k256, c.lanes256, 2);
  std::array<std::vector<SharedBlock>, kParties> out128, out256, opened;
  std::array<Cost, kParties> costs;
  std::array<Block, kParties> revealed{};
  SeededRandomForTest random(3);
  const Block secret = {1, 2, 3};
  const auto shares = SplitForTest(secret, random);
  RingsForTest rings;
  rings.count = c.rings;
  rings.randomness = c.randomness;
  const auto statuses = RunThreeParties(rings, 4, [&](int p, Rings& all) -> absl::Status {
    AesBatch batch(kCut);
    const std::vector<AesLane> lanes128 = l128.Of(p), lanes256 = l256.Of(p);
    OpenToServers open(p, "test");
    Circuit* const others[] = {&open};
    for (uint32_t number = 1; number <= 2; ++number) {  // the second uses what the first left
      all.BeginBatch(number);
      open.Reset({&shares[p], 1});
      costs[p] = {};
      const absl::Status s =
          batch.Run(all, lanes128, lanes256, Sbox::kThroughput, others, &costs[p]);
      if (!s.ok()) return s;
    }
    revealed[p] = open.values()[0];
    out128[p].assign(batch.outputs128().begin(), batch.outputs128().end());
    out256[p].assign(batch.outputs256().begin(), batch.outputs256().end());
    return absl::OkStatus();
  });
  for (int p = 0; p < kParties; ++p) {
    EXPECT_TRUE(statuses[p].ok()) << statuses[p];
    EXPECT_EQ(revealed[p], secret);
  }
  EXPECT_EQ(Join(out128), l128.expected);
  EXPECT_EQ(Join(out256), l256.expected);
  const Cost declared = Together(Together(CostOfAes(AesBits::k128, c.lanes128),
                                          CostOfAes(AesBits::k256, c.lanes256)),
                                 Cost{1, 16, 16});
  const uint64_t times = c.randomness == Randomness::kExchanged ? 2 : 1;
  EXPECT_EQ(costs[0].bytes_to_next, declared.bytes_to_next * times);
  EXPECT_EQ(costs[0].bytes_to_prev, declared.bytes_to_prev);
  if (c.lanes128 + c.lanes256 <= 512) {  // one chunk
    EXPECT_EQ(costs[0].rounds, declared.rounds + times - 1);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, AesBatchTest,
    testing::Values(Case{1, 1, 0}, Case{1, 512, 0}, Case{1, 513, 0}, Case{1, 4000, 3},
                    Case{2, 7, 5}, Case{2, 1200, 0}, Case{2, 3001, 1700}, Case{3, 2000, 2000},
                    Case{1, 0, 0}, Case{1, 7, 0, Randomness::kExchanged},
                    Case{2, 2999, 700, Randomness::kExchanged}));

// A neighbour that lies on one ring ends the sessions of all.
TEST(AesBatchFailureTest, AnErrorOnOneRingEndsAll) {
  const Lanes lanes(AesBits::k128, 2000, 1);
  RingsForTest rings;
  rings.count = 2;
  std::atomic<int> seen = 0;
  rings.interceptor = [&seen](MemoryRing::Intercepted& m) {
    if (m.type != FrameType::kRound || m.from != 0 || m.round != 7) return;
    if (++seen == 1) m.header[2] ^= 1;  // of one ring only: another round's number
  };
  const auto statuses = RunThreeParties(rings, 4, [&](int p, Rings& all) -> absl::Status {
    AesBatch batch(kCut);
    all.BeginBatch(1);
    const std::vector<AesLane> mine = lanes.Of(p);
    const absl::Status s = batch.Run(all, mine, {}, Sbox::kThroughput);
    EXPECT_FALSE(all.first().status().ok());
    return s;
  }, absl::Seconds(2));
  for (const absl::Status& s : statuses) EXPECT_FALSE(s.ok());
  EXPECT_THAT(statuses[1].ToString(), HasSubstr("frame header"));
}

// The masks of a message are gone when the pool is: nothing is used twice.
TEST(ZeroPoolDeathTest, GivesNothingTwice) {
  ZeroPool pool;
  const absl::Span<uint8_t> made = pool.Refill(3);
  made[0] = 1, made[1] = 2, made[2] = 3;
  uint8_t out[2];
  pool.Take(absl::MakeSpan(out));
  EXPECT_EQ(out[1], 2);
  EXPECT_DEATH(pool.Take(absl::MakeSpan(out)), "zero shares: 2 bytes wanted");
}

}  // namespace
}  // namespace mpckdc
