// SPDX-License-Identifier: Apache-2.0
// Powers of H, checks, openings, usage keys and a whole GCM message on shares, three parties.
#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/circuit/checks.h"
#include "mpc-server/circuit/derive/usage_key.h"
#include "mpc-server/circuit/gcm/gf128.h"
#include "mpc-server/circuit/gcm/ghash.h"
#include "mpc-server/testing/certificates.h"
#include "mpc-server/testing/gcm_plain.h"
#include "mpc-server/testing/three_parties.h"
#include "mpc-server/testing/usage_key_oracle.h"

namespace mpckdc {
namespace {

using testing::HasSubstr;
using Shares = std::array<std::vector<SharedBlock>, kParties>;

void Add(Shares& to, const Block& value, RandomSource& random) {
  const auto s = SplitForTest(value, random);
  for (int p = 0; p < kParties; ++p) to[p].push_back(s[p]);
}
Block Join(const Shares& s, size_t i) {
  Block v{};
  EXPECT_TRUE(JoinForTest({s[0][i], s[1][i], s[2][i]}, &v)) << i;
  return v;
}
Block RandomBlock(RandomSource& random) {
  Block b{};
  random.Fill(absl::MakeSpan(b));
  return b;
}
void ExpectOk(const std::array<absl::Status, kParties>& statuses) {
  for (const absl::Status& s : statuses) EXPECT_TRUE(s.ok()) << s;
}

class FacadeTest : public testing::TestWithParam<Isa> {};

TEST_P(FacadeTest, PowersOfSeveralKeys) {
  SeededRandomForTest random(1);
  Shares h, out;
  const std::vector<uint32_t> counts = {1, 2, 3, 4, 5, 8, 9, 18, 33, 0, 120};
  std::vector<Block> values;
  for (size_t i = 0; i < counts.size(); ++i) {
    values.push_back(RandomBlock(random));
    Add(h, values[i], random);
  }
  MemoryRing ring;
  Cost cost;
  const auto make = [&](PartyContext& party) {
    auto powers = std::make_unique<GhashPowers>(GetParam());
    std::vector<GhashPowersRequest> requests;
    for (size_t i = 0; i < counts.size(); ++i) requests.push_back({h[party.party()][i], counts[i]});
    powers->Reset(requests);
    return powers;
  };
  const auto keep = [&](int p, const GhashPowers& powers) {
    for (size_t i = 0; i < counts.size(); ++i) {
      for (const SharedBlock& b : powers.powers(i)) out[p].push_back(b);
    }
  };
  EXPECT_EQ(RunCircuit(ring, make, keep, &cost), absl::OkStatus());
  EXPECT_EQ(cost.rounds, 6u);  // 120 < 2^7
  size_t at = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    Block want = GfOne();
    for (uint32_t k = 0; k < counts[i]; ++k) {
      want = GfMultiply(want, values[i]);
      ASSERT_EQ(Join(out, at++), want) << "key " << i << " power " << k + 1;
    }
  }
}

TEST_P(FacadeTest, ZeroCheckSeesEveryNonZeroBlock) {
  SeededRandomForTest random(2);
  Shares t;
  Block one_bit{};
  one_bit[15] = 1;
  for (const Block& b : {Block{}, one_bit, Block{}, Block{}, Block{}, one_bit, one_bit, one_bit}) {
    Add(t, b, random);
  }
  MemoryRing ring;
  ExpectOk(RunThreeParties(ring, 1, [&](PartyContext& party) {
    const absl::Span<const SharedBlock> all = t[party.party()];
    party.BeginBatch(1);
    ZeroCheck check(party, "test", GetParam());
    check.Reset({all.subspan(0, 1), all.subspan(1, 1), all.subspan(2, 3), all.subspan(4, 2),
                 all.subspan(6, 2)});
    Cost counted;
    absl::Status s = RunTogether(party, {&check}, &counted);
    EXPECT_EQ(counted, check.DeclaredCost());
    EXPECT_EQ(counted, (Cost{2, 160, 80}));
    EXPECT_THAT(check.zero(), testing::ElementsAre(1, 0, 1, 0, 0));
    return s;
  }));
}

TEST_P(FacadeTest, UsageKeysEqualThePlainDerivation) {
  for (AesBits bits : {AesBits::k128, AesBits::k256}) {
    SeededRandomForTest random(3);
    const std::vector<uint32_t> usages = {1, 2, 3, 17, 56};
    std::vector<SecretBytes> bases;
    Shares base, out;
    for (size_t i = 0; i < usages.size(); ++i) {
      bases.emplace_back(16 * AesKeyBlocks(bits));
      random.Fill(absl::MakeSpan(bases[i]));
      for (size_t b = 0; b < AesKeyBlocks(bits); ++b) {
        Block block{};
        std::memcpy(block.data(), bases[i].data() + 16 * b, 16);
        Add(base, block, random);
      }
    }
    MemoryRing ring;
    Cost cost;
    const auto make = [&](PartyContext& party) {
      auto derive = std::make_unique<UsageKeys>(
          *FindEnctype(bits == AesBits::k128 ? kEnctypeAes128Gcm : kEnctypeAes256Gcm),
          Adder::kPrefix, GetParam());
      std::vector<UsageKeyRequest> requests;
      for (size_t i = 0; i < usages.size(); ++i) {
        requests.push_back({&base[party.party()][i * AesKeyBlocks(bits)], usages[i]});
      }
      derive->Reset(requests);
      return derive;
    };
    const auto keep = [&](int p, const UsageKeys& keys) {
      for (const UsageKeyShare& k : keys.results()) {
        out[p].insert(out[p].end(), k.round_keys.begin(), k.round_keys.end());
        out[p].push_back(k.h);
      }
    };
    EXPECT_EQ(RunCircuit(ring, make, keep, &cost), absl::OkStatus());
    EXPECT_EQ(cost.rounds, bits == AesBits::k128 ? 160u : 272u);
    size_t at = 0;
    for (size_t i = 0; i < usages.size(); ++i) {
      const SecretBytes key = PlainUsageKey(bases[i], usages[i]);
      for (const Block& k : PlainKeySchedule(key)) ASSERT_EQ(Join(out, at++), k);
      ASSERT_EQ(Join(out, at++), PlainTagKey(key));
    }
  }
}

// A message sealed on shares: keystream blocks, powers and the tag's mask in one batch, the output
// shares re-randomised, as the servers do. Equal to OpenSSL's seal; and it opens on shares.
TEST_P(FacadeTest, SealsAndChecksAGcmMessage) {
  SeededRandomForTest random(4);
  SecretBytes key(32);
  random.Fill(absl::MakeSpan(key));
  const std::vector<uint8_t> header(33, 7), plaintext(150, 0x5A);
  const GcmNonce nonce = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const std::vector<uint8_t> want = PlainSeal(key, nonce, header, plaintext);
  const size_t body = 13 + header.size(), body_size = 16 + plaintext.size();
  const absl::Span<const uint8_t> aad = absl::MakeConstSpan(want).subspan(12, 1 + header.size());
  const absl::Span<const uint8_t> ciphertext = absl::MakeConstSpan(want).subspan(body, body_size);

  Shares round_keys, h;
  for (const Block& k : PlainKeySchedule(key)) Add(round_keys, k, random);
  Add(h, PlainTagKey(key), random);
  std::array<std::vector<uint8_t>, kParties> output;  // keystream | tag, output shares
  std::array<int, kParties> good{}, bad{};
  MemoryRing ring;
  ExpectOk(RunThreeParties(ring, 1, [&](PartyContext& party) {
    const int p = party.party();
    const std::vector<Block> blocks = GhashBlocks(aad, ciphertext);
    std::vector<AesLane> lanes;
    for (uint32_t counter = 1; counter <= 1 + (body_size + 15) / 16; ++counter) {
      AesLane lane = {round_keys[p].data(), nullptr, Block{}};
      std::copy(nonce.begin(), nonce.end(), lane.public_input.begin());
      lane.public_input[15] = static_cast<uint8_t>(counter);
      lanes.push_back(lane);
    }
    AesEncrypt aes(AesBits::k256, GetParam());
    GhashPowers powers(GetParam());
    aes.Reset(lanes);
    powers.Reset({GhashPowersRequest{h[p][0], static_cast<uint32_t>(blocks.size())}});
    party.BeginBatch(1);
    absl::Status s = RunTogether(party, {&aes, &powers});
    if (!s.ok()) return s;
    std::vector<uint8_t>& out = output[p];
    for (size_t i = 1; i < lanes.size(); ++i) {
      out.insert(out.end(), aes.output(i).a.begin(), aes.output(i).a.end());
    }
    const SharedBlock tag = aes.output(0) ^ GhashLinear(blocks, powers.powers(0), GetParam());
    out.insert(out.end(), tag.a.begin(), tag.a.end());

    // Check the message's own tag and a wrong one, and the 16 zero bytes, on shares.
    Block received{}, first{};
    std::copy(want.end() - 16, want.end(), received.begin());
    std::copy(ciphertext.begin(), ciphertext.begin() + 16, first.begin());
    const SharedBlock tag_difference = AddPublic(tag, received);
    const SharedBlock zeros = AddPublic(aes.output(1), first);
    received[0] ^= 1;
    const std::vector<SharedBlock> right = {tag_difference, zeros},
                                   wrong = {AddPublic(tag, received), zeros};
    ZeroCheck check(party, "tag", GetParam());
    check.Reset({absl::MakeConstSpan(right), absl::MakeConstSpan(wrong)});
    s = RunTogether(party, {&check});
    good[p] = check.zero()[0];
    bad[p] = check.zero()[1];
    return s;
  }));
  EXPECT_THAT(good, testing::Each(1));
  EXPECT_THAT(bad, testing::Each(0));
  std::vector<uint8_t> sum(output[0].size());
  for (const auto& o : output) {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] ^= o[i];
  }
  std::vector<uint8_t> sealed(want.begin(), want.begin() + body);
  for (size_t i = 0; i < body_size; ++i) {
    sealed.push_back(sum[i] ^ (i < 16 ? 0 : plaintext[i - 16]));
  }
  sealed.insert(sealed.end(), sum.end() - 16, sum.end());
  EXPECT_EQ(sealed, want);
}

INSTANTIATE_TEST_SUITE_P(Isas, FacadeTest, testing::ValuesIn(SupportedIsas()),
                         [](const auto& i) { return std::string(IsaName(i.param)); });

TEST(DrawRandomTest, SharesAreConsistentAndFresh) {
  Shares drawn;
  MemoryRing ring;
  ExpectOk(RunThreeParties(ring, 1, [&](PartyContext& party) {
    auto& mine = drawn[party.party()];
    mine.resize(6);
    party.BeginBatch(1);
    party.DrawRandom(absl::MakeSpan(mine).first(2));
    party.DrawRandom(absl::MakeSpan(mine).subspan(2, 2));
    party.BeginBatch(2);
    party.DrawRandom(absl::MakeSpan(mine).subspan(4, 2));
    return absl::OkStatus();
  }));
  std::vector<Block> values;
  for (size_t i = 0; i < 6; ++i) values.push_back(Join(drawn, i));
  std::sort(values.begin(), values.end());
  EXPECT_EQ(std::unique(values.begin(), values.end()), values.end());
}

// One server lies in an opening: the two others notice, name their two neighbours and stop.
TEST(NegativeTest, OpeningWithALieIsDetected) {
  SeededRandomForTest random(5);
  Shares t;
  for (int i = 0; i < 3; ++i) Add(t, RandomBlock(random), random);
  MemoryRing ring;
  ring.SetInterceptor([](MemoryRing::Intercepted& m) {
    if (m.from == 1 && m.to == 2 && m.step == "a timestamp") m.payload[17] ^= 4;
  });
  const auto statuses = RunThreeParties(
      ring, 1,
      [&](PartyContext& party) {
        OpenToServers open(party.party(), "a timestamp");
        open.Reset(t[party.party()]);
        party.BeginBatch(1);
        absl::Status s = RunTogether(party, {&open});
        if (party.party() == 2) {
          EXPECT_THAT(s.ToString(), HasSubstr("what prev (P1) and next (P0) sent does not agree"));
          EXPECT_THAT(s.ToString(), HasSubstr("value 1 of 3"));
          EXPECT_TRUE(absl::IsFailedPrecondition(RunTogether(party, {&open})));
        }
        return s;
      },
      absl::Seconds(1));
  EXPECT_TRUE(absl::IsDataLoss(statuses[2]));
  EXPECT_TRUE(statuses[0].ok() && statuses[1].ok());  // what they received was right
}

// P0 lies in the multiplication before: neither honest party accepts the opening.
TEST(NegativeTest, WrongProductShowsInTheOpening) {
  SeededRandomForTest random(6);
  Shares t;
  Add(t, Block{}, random);
  MemoryRing ring;
  ring.SetInterceptor([](MemoryRing::Intercepted& m) {
    if (m.from == 0 && m.step == "zero check/multiply") m.payload[0] ^= 1;
  });
  std::array<int, kParties> zero{};
  const auto statuses = RunThreeParties(
      ring, 1,
      [&](PartyContext& party) {
        party.BeginBatch(1);
        ZeroCheck check(party);
        check.Reset({absl::MakeConstSpan(t[party.party()])});
        absl::Status s = RunTogether(party, {&check});
        zero[party.party()] = check.zero()[0];
        return s;
      },
      absl::Seconds(1));
  for (int p : {1, 2}) {
    EXPECT_FALSE(statuses[p].ok()) << p;
    EXPECT_EQ(zero[p], 0) << p;
  }
}

// Different jobs at the three servers: the output shares combine to noise.
TEST(TlsTest, WholeProtocolOverLoopback) {
  TestCa ca;
  const auto channels = ConnectThree(TestPeerOptions(ca));
  SeededRandomForTest random(8);
  SecretBytes key(16);
  random.Fill(absl::MakeSpan(key));
  Shares round_keys, out;
  for (const Block& k : PlainKeySchedule(key)) Add(round_keys, k, random);
  const size_t kLanes = 2000;
  ExpectOk(RunOverChannels(
      {channels[0].get(), channels[1].get(), channels[2].get()}, 1,
      [&](PartyContext& party) {
        const int p = party.party();
        std::vector<AesLane> lanes(kLanes, {round_keys[p].data(), nullptr, Block{}});
        for (size_t j = 0; j < kLanes; ++j) lanes[j].public_input[j % 16] = j / 16 & 255;
        AesEncrypt aes(AesBits::k128);
        aes.Reset(lanes);
        party.BeginBatch(1);
        const ChannelCounters before = party.channel().Counters();
        absl::Status s = RunTogether(party, {&aes});
        const ChannelCounters after = party.channel().Counters();
        EXPECT_EQ(after.frames_sent - before.frames_sent, 40u);
        EXPECT_EQ(after.bytes_sent - before.bytes_sent, 340 * kLanes + 40 * kFrameHeaderSize);
        out[p].assign(aes.outputs().begin(), aes.outputs().end());
        return s;
      },
      absl::Seconds(20)));
  for (size_t j = 0; j < kLanes; j += 97) {
    Block in{};
    in[j % 16] = j / 16 & 255;
    EXPECT_EQ(Join(out, j), PlainAes(key, in));
  }
}

}  // namespace
}  // namespace mpckdc
