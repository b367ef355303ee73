// SPDX-License-Identifier: Apache-2.0
// AES and its key schedule, on plain bits and on shares, against FIPS 197, OpenSSL and the expansion
// of enrolment.
#include "mpc-server/circuit/aes/aes_circuit.h"

#include <cstring>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "mpc-server/circuit/aes/key_schedule.h"
#include "mpc-server/testing/aes_program.h"
#include "mpc-server/testing/three_parties.h"
#include "mpc-server/testing/usage_key_oracle.h"

namespace mpckdc {
namespace {

std::vector<uint8_t> Hex(absl::string_view hex) {
  const std::string s = absl::HexStringToBytes(hex);
  return {s.begin(), s.end()};
}
Block HexBlock(absl::string_view hex) {
  Block b{};
  const auto v = Hex(hex);
  std::copy(v.begin(), v.end(), b.begin());
  return b;
}

Block OpenSslAes(absl::Span<const uint8_t> key, const Block& in,
                 AesDirection direction = AesDirection::kEncrypt) {
  return PlainAes(key, in, direction == AesDirection::kEncrypt);
}

TEST(PlainAesTest, Fips197) {
  const Block plain = HexBlock("00112233445566778899aabbccddeeff");
  const std::string key = "000102030405060708090a0b0c0d0e0f";
  const std::string more = "101112131415161718191a1b1c1d1e1f";
  for (const auto& [hex, cipher] : {std::pair(key, "69c4e0d86a7b0430d8cdb78070b4c55a"),
                                    std::pair(key + more, "8ea2b7ca516745bfeafc49904b496089")}) {
    EXPECT_EQ(PlainAes(Hex(hex), plain), HexBlock(cipher));
    EXPECT_EQ(PlainAes(Hex(hex), HexBlock(cipher), /*encrypt=*/false), plain);
  }
  EXPECT_EQ(PlainKeySchedule(Hex("2b7e151628aed2a6abf7158809cf4f3c")).back(),
            HexBlock("d014f9a8c9ee2589e13f0cc8b6630ca6"));
  // FIPS 197, A.3: the last four words of the AES-256 expansion.
  EXPECT_EQ(PlainKeySchedule(
                Hex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4"))
                .back(),
            HexBlock("fe4890d1e6188d0b046df344706c631e"));
}

// 17 bits and 4 rounds per S-box; 160 S-boxes in an AES-128 block, 224 in an AES-256 block.
TEST(CostTest, Declared) {
  EXPECT_EQ(CostOfAes(AesBits::k128, 512), (Cost{40, 512 * 340, 0}));
  EXPECT_EQ(CostOfAes(AesBits::k256, 512), (Cost{56, 512 * 476, 0}));
  EXPECT_EQ(CostOfAes(AesBits::k128, 8), (Cost{40, 8 * 340, 0}));
  EXPECT_EQ(CostOfAes(AesBits::k128, 1), (Cost{40, 2720, 0}));  // whole bytes per slice
  EXPECT_EQ(CostOfKeySchedule(AesBits::k128, 8), (Cost{40, 8 * 85, 0}));
  EXPECT_EQ(CostOfKeySchedule(AesBits::k256, 8), (Cost{52, 8 * 221 / 2, 0}));
  EXPECT_EQ(CostOfAes(AesBits::k128, 0), (Cost{}));
  // 22 bits and 3 rounds.
  EXPECT_EQ(CostOfAes(AesBits::k128, 512, Sbox::kLatency), (Cost{30, 512 * 440, 0}));
  EXPECT_EQ(CostOfAes(AesBits::k256, 512, Sbox::kLatency), (Cost{42, 512 * 616, 0}));
}

// The stages are templates over a bit type: with plain words they are the oracle of the same code
// on shares.
TEST(AesProgramTest, OnPlainBitsEqualsOpenSsl) {
  constexpr size_t kLanes = 64, kBlockPlane = kBlockRows * kRowBytes;
  const auto put = [](uint8_t* rows, size_t lane, absl::Span<const uint8_t> bytes) {
    for (size_t i = 0; i < 8 * bytes.size(); ++i) {
      const int bit = (bytes[i / 8] >> (i % 8)) & 1;
      rows[i * kRowBytes + lane / 8] |= static_cast<uint8_t>(bit << (lane % 8));
    }
  };
  const auto get = [](const uint8_t* rows, size_t lane) {
    Block block{};
    for (size_t i = 0; i < kBlockRows; ++i) {
      const int bit = (rows[i * kRowBytes + lane / 8] >> (lane % 8)) & 1;
      block[i / 8] |= static_cast<uint8_t>(bit << (i % 8));
    }
    return block;
  };
  SeededRandomForTest random(11);
  for (AesBits bits : {AesBits::k128, AesBits::k256}) {
    for (Sbox sbox : {Sbox::kThroughput, Sbox::kLatency}) {
      AesProgram program(bits, sbox);
      std::vector<uint8_t> words(AesRoundKeys(bits) * kBlockPlane), input(kBlockPlane);
      std::vector<std::vector<uint8_t>> keys(kLanes, std::vector<uint8_t>(16 * AesKeyBlocks(bits)));
      std::vector<Block> blocks(kLanes);
      for (size_t j = 0; j < kLanes; ++j) {
        random.Fill(absl::MakeSpan(keys[j]));
        random.Fill(absl::MakeSpan(blocks[j]));
        put(words.data(), j, keys[j]);
        put(input.data(), j, blocks[j]);
      }
      program.ExpandKey(words.data());
      for (size_t j = 0; j < kLanes; ++j) {
        const std::vector<Block> want = PlainKeySchedule(keys[j]);
        ASSERT_EQ(want.size(), AesRoundKeys(bits));
        for (size_t k = 0; k < want.size(); ++k) {
          ASSERT_EQ(get(&words[k * kBlockPlane], j), want[k]) << "lane " << j << " round key " << k;
        }
      }
      for (AesDirection direction : {AesDirection::kEncrypt, AesDirection::kDecrypt}) {
        std::vector<uint8_t> rows = input;
        program.Run(direction, words.data(), rows.data());
        for (size_t j = 0; j < kLanes; ++j) {
          ASSERT_EQ(get(rows.data(), j), OpenSslAes(keys[j], blocks[j], direction)) << j;
        }
      }
    }
  }
}

using Shares = std::array<std::vector<SharedBlock>, kParties>;

// Shares of one batch: keys and inputs, public and shared by turns.
struct Batch {
  Batch(AesBits bits, size_t lanes, uint64_t seed) : bits(bits) {
    SeededRandomForTest random(seed);
    for (size_t j = 0; j < lanes; ++j) {
      std::vector<uint8_t> key(AesKeyBlocks(bits) * 16);
      random.Fill(absl::MakeSpan(key));
      keys.push_back(key);
      for (size_t b = 0; b < AesKeyBlocks(bits); ++b) {
        Block block;
        std::memcpy(block.data(), key.data() + 16 * b, 16);
        Append(base, SplitForTest(block, random));
      }
      for (const Block& k : PlainKeySchedule(key)) Append(round_keys, SplitForTest(k, random));
      Block in;
      random.Fill(absl::MakeSpan(in));
      inputs.push_back(in);
      Append(shared_inputs, SplitForTest(in, random));
    }
  }
  static void Append(Shares& to, const std::array<SharedBlock, kParties>& shares) {
    for (int p = 0; p < kParties; ++p) to[p].push_back(shares[p]);
  }
  std::vector<AesLane> Lanes(int party) const {
    std::vector<AesLane> lanes(inputs.size());
    for (size_t j = 0; j < lanes.size(); ++j) {
      lanes[j].round_keys = &round_keys[party][j * AesRoundKeys(bits)];
      if (j % 3 == 1) {
        lanes[j].shared_input = &shared_inputs[party][j];
      } else {
        lanes[j].public_input = inputs[j];
      }
    }
    return lanes;
  }

  AesBits bits;
  std::vector<std::vector<uint8_t>> keys;
  std::vector<Block> inputs;
  Shares base, round_keys, shared_inputs;
};

class AesOnSharesTest : public testing::TestWithParam<Isa> {};

// One batch of `direction`, of which party p has the lanes lanes_of(p), over `ring`; the shares of
// what comes out.
template <class LanesOf>
Shares RunAes(AesDirection direction, AesBits bits, Sbox sbox, LanesOf lanes_of, MemoryRing& ring,
              const std::array<Isa, kParties>& isas = {BestIsa(), BestIsa(), BestIsa()},
              Cost* cost = nullptr) {
  Shares out;
  const auto make = [&](PartyContext& party) -> std::unique_ptr<AesCipher> {
    const Isa isa = isas[party.party()];
    std::unique_ptr<AesCipher> aes;
    if (direction == AesDirection::kEncrypt) aes = std::make_unique<AesEncrypt>(bits, isa);
    if (direction == AesDirection::kDecrypt) aes = std::make_unique<AesDecrypt>(bits, isa);
    aes->Reset(lanes_of(party.party()), sbox);
    return aes;
  };
  const auto keep = [&](int p, const AesCipher& aes) {
    out[p].assign(aes.outputs().begin(), aes.outputs().end());
  };
  EXPECT_EQ(RunCircuit(ring, make, keep, cost), absl::OkStatus());
  return out;
}

void CheckBatch(AesDirection direction, AesBits bits, Sbox sbox, size_t lanes,
                const std::array<Isa, kParties>& isas) {
  const Batch batch(bits, lanes, lanes);
  MemoryRing ring;
  Cost counted;
  const Shares out = RunAes(direction, bits, sbox, [&](int p) { return batch.Lanes(p); }, ring,
                            isas, &counted);
  const bool fast = sbox == Sbox::kLatency;
  EXPECT_EQ(counted.rounds, (fast ? 3 : 4) * AesRounds(bits));
  EXPECT_EQ(counted.bytes_to_next, (lanes + 7) / 8 * AesRounds(bits) * 16 * (fast ? 22 : 17));
  for (size_t j = 0; j < lanes; ++j) {
    Block value;
    ASSERT_TRUE(JoinForTest({out[0][j], out[1][j], out[2][j]}, &value)) << j;
    ASSERT_EQ(value, OpenSslAes(batch.keys[j], batch.inputs[j], direction)) << "lane " << j;
  }
}

TEST_P(AesOnSharesTest, OddBatchesEqualOpenSsl) {
  const std::array<Isa, kParties> isas = {GetParam(), GetParam(), GetParam()};
  for (AesDirection direction : {AesDirection::kEncrypt, AesDirection::kDecrypt}) {
    for (Sbox sbox : {Sbox::kThroughput, Sbox::kLatency}) {
      for (size_t lanes : {1u, 33u, 513u, 1100u}) {
        CheckBatch(direction, AesBits::k128, sbox, lanes, isas);
      }
      for (size_t lanes : {7u, 600u}) CheckBatch(direction, AesBits::k256, sbox, lanes, isas);
    }
  }
}

// The wire format does not depend on the instruction set.
TEST_P(AesOnSharesTest, PartiesMayDiffer) {
  const std::array<Isa, kParties> isas = {GetParam(), Isa::kPortable, SupportedIsas().back()};
  for (AesDirection direction : {AesDirection::kEncrypt, AesDirection::kDecrypt}) {
    for (Sbox sbox : {Sbox::kThroughput, Sbox::kLatency}) {
      CheckBatch(direction, AesBits::k128, sbox, 700, isas);
    }
  }
}

// All round keys of all keys.
Shares RunSchedule(AesBits bits, const Shares& base, Isa isa) {
  Shares out;
  MemoryRing ring;
  const auto make = [&](PartyContext& party) {
    auto schedule = std::make_unique<KeySchedule>(bits, isa);
    schedule->Reset(base[party.party()]);
    return schedule;
  };
  EXPECT_EQ(RunCircuit(ring, make, [&](int p, const KeySchedule& schedule) {
    for (size_t j = 0; j < base[p].size() / AesKeyBlocks(bits); ++j) {
      for (const SharedBlock& k : schedule.round_keys(j)) out[p].push_back(k);
    }
  }), absl::OkStatus());
  return out;
}

TEST_P(AesOnSharesTest, KeyScheduleEqualsOracle) {
  for (AesBits bits : {AesBits::k128, AesBits::k256}) {
    for (size_t keys : {1u, 65u, 515u}) {
      const Batch batch(bits, keys, keys);
      const Shares out = RunSchedule(bits, batch.base, GetParam());
      for (size_t j = 0; j < keys; ++j) {
        const auto want = PlainKeySchedule(batch.keys[j]);
        for (size_t r = 0; r < want.size(); ++r) {
          const size_t at = j * want.size() + r;
          Block value;
          ASSERT_TRUE(JoinForTest({out[0][at], out[1][at], out[2][at]}, &value));
          ASSERT_EQ(value, want[r]) << "key " << j << " round " << r;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, AesOnSharesTest, testing::ValuesIn(SupportedIsas()),
                         [](const auto& i) { return std::string(IsaName(i.param)); });

// Every S-box input, forward, on shares: one round of AES with chosen inputs would hide the S-box
// behind MixColumns, so the key schedule's SubWord is used: w4 = w0 ^ SubWord(RotWord(w3)) ^ rcon.
TEST(SboxTest, All256InputsOnShares) {
  std::vector<std::vector<uint8_t>> keys;
  SeededRandomForTest random(9);
  Shares base;
  for (int v = 0; v < 256; ++v) {
    Block key{};
    for (int i = 12; i < 16; ++i) key[i] = static_cast<uint8_t>(v);
    Batch::Append(base, SplitForTest(key, random));
    keys.emplace_back(key.begin(), key.end());
  }
  const Shares out = RunSchedule(AesBits::k128, base, BestIsa());
  bool seen[256] = {};
  for (size_t v = 0; v < 256; ++v) {
    Block w4;
    const size_t at = v * AesRoundKeys(AesBits::k128) + 1;
    ASSERT_TRUE(JoinForTest({out[0][at], out[1][at], out[2][at]}, &w4));
    EXPECT_EQ(w4, PlainKeySchedule(keys[v])[1]);
    EXPECT_FALSE(seen[w4[1]]);
    seen[w4[1]] = true;
    if (v == 0x00) {
      EXPECT_EQ(w4[1], 0x63);  // FIPS 197
    }
    if (v == 0x53) {
      EXPECT_EQ(w4[1], 0xED);
    }
  }
}

// Every S-box input passes through the S-box of either direction and variant: with 256 lanes of one
// public block each and all-equal bytes, round 1 sees every value in every position.
class SboxInputsTest : public testing::TestWithParam<std::tuple<AesDirection, Sbox>> {};

TEST_P(SboxInputsTest, All256) {
  const auto [direction, sbox] = GetParam();
  SeededRandomForTest random(10);
  const std::vector<uint8_t> key(16, 0);
  Shares keys;
  for (const Block& k : PlainKeySchedule(key)) Batch::Append(keys, SplitForTest(k, random));
  MemoryRing ring;
  const auto lanes_of = [&](int p) {
    std::vector<AesLane> lanes(256);
    for (size_t v = 0; v < 256; ++v) {
      lanes[v].round_keys = keys[p].data();
      lanes[v].public_input.fill(static_cast<uint8_t>(v));
    }
    return lanes;
  };
  const Shares out = RunAes(direction, AesBits::k128, sbox, lanes_of, ring);
  for (size_t v = 0; v < 256; ++v) {
    Block value, input;
    input.fill(static_cast<uint8_t>(v));
    ASSERT_TRUE(JoinForTest({out[0][v], out[1][v], out[2][v]}, &value));
    EXPECT_EQ(value, OpenSslAes(key, input, direction)) << v;
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, SboxInputsTest,
                         testing::Combine(testing::Values(AesDirection::kEncrypt,
                                                          AesDirection::kDecrypt),
                                          testing::Values(Sbox::kThroughput, Sbox::kLatency)));

TEST(RunTogetherTest, CircuitsOfDifferentLengthShareMessages) {
  const Batch a(AesBits::k128, 40, 1), b(AesBits::k256, 9, 2);
  Shares out;
  MemoryRing ring;
  const auto statuses = RunThreeParties(ring, 5, [&](PartyContext& party) {
    const int p = party.party();
    AesEncrypt first(AesBits::k128), second(AesBits::k256);
    first.Reset(a.Lanes(p));
    second.Reset(b.Lanes(p));
    party.BeginBatch(3);
    Cost counted;
    const uint64_t before = party.channel().Counters().frames_sent;
    absl::Status s = RunTogether(party, {&first, &second}, &counted);
    EXPECT_EQ(counted, Together(first.DeclaredCost(), second.DeclaredCost()));
    EXPECT_EQ(party.channel().Counters().frames_sent - before, 56u);
    out[p].assign(first.outputs().begin(), first.outputs().end());
    out[p].insert(out[p].end(), second.outputs().begin(), second.outputs().end());
    return s;
  });
  for (const absl::Status& s : statuses) ASSERT_TRUE(s.ok()) << s;
  for (size_t j = 0; j < 49; ++j) {
    Block value;
    ASSERT_TRUE(JoinForTest({out[0][j], out[1][j], out[2][j]}, &value));
    EXPECT_EQ(value, j < 40 ? OpenSslAes(a.keys[j], a.inputs[j])
                            : OpenSslAes(b.keys[j - 40], b.inputs[j - 40]));
  }
}

// The test must be able to see a wrong message: one flipped bit gives a wrong ciphertext.
void CheckFlippedBit(AesDirection direction) {
  const Batch batch(AesBits::k128, 5, 1);
  MemoryRing ring;
  ring.SetInterceptor([](MemoryRing::Intercepted& m) {
    if (m.from == 1 && m.step == "aes/product" && m.round == 35) m.payload[3] ^= 1;
  });
  const Shares out = RunAes(direction, AesBits::k128, Sbox::kThroughput,
                            [&](int p) { return batch.Lanes(p); }, ring);
  Block value;
  const bool consistent = JoinForTest({out[0][0], out[1][0], out[2][0]}, &value);
  EXPECT_FALSE(consistent && value == OpenSslAes(batch.keys[0], batch.inputs[0], direction));
}
TEST(NegativeTest, OneFlippedBitIsSeen) {
  CheckFlippedBit(AesDirection::kEncrypt);
  CheckFlippedBit(AesDirection::kDecrypt);
}

}  // namespace
}  // namespace mpckdc
