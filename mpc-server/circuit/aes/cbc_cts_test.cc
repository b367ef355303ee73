// SPDX-License-Identifier: Apache-2.0
// CBC with ciphertext stealing on shares, against the RFCs' vectors and OpenSSL.
#include "mpc-server/circuit/aes/cbc_cts.h"

#include <openssl/evp.h>

#include <cstring>
#include <memory>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "mpc-server/testing/three_parties.h"
#include "mpc-server/testing/usage_key_oracle.h"

namespace mpckdc {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes Hex(absl::string_view hex) {
  const std::string s = absl::HexStringToBytes(hex);
  return {s.begin(), s.end()};
}

// OpenSSL's CBC of the text padded with zeros; then the last two blocks change places.
Bytes OpenSslCts(const Bytes& key, const Bytes& text) {
  const std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> ctx(
      EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  Bytes padded = text, out(CtsBlocks(text.size()) * 16);
  padded.resize(out.size());
  const uint8_t iv[16] = {};
  int n = 0;
  EVP_EncryptInit_ex(ctx.get(), key.size() == 16 ? EVP_aes_128_cbc() : EVP_aes_256_cbc(), nullptr,
                     key.data(), iv);
  EVP_CIPHER_CTX_set_padding(ctx.get(), 0);
  EVP_EncryptUpdate(ctx.get(), out.data(), &n, padded.data(), static_cast<int>(padded.size()));
  if (out.size() > 16) std::swap_ranges(out.end() - 32, out.end() - 16, out.end() - 16);
  out.resize(text.size());
  return out;
}

struct Case {
  Bytes key, text, message;
};

// The three parties' shares of keys and texts. Behind a text's end the shares hold noise.
struct Shares {
  Shares(AesBits bits, const std::vector<Case>& cases) {
    SeededRandomForTest random(cases.size());
    for (const Case& c : cases) {
      Append(PlainKeySchedule(c.key), random, &round_keys);
      Bytes padded = c.text;
      padded.resize(CtsBlocks(c.text.size()) * 16);
      random.Fill(absl::MakeSpan(padded).subspan(c.text.size()));
      SecretVector<Block> blocks(padded.size() / 16);
      std::memcpy(blocks.data(), padded.data(), padded.size());
      first.push_back(text[0].size());
      Append(blocks, random, &text);
    }
    keys_each = AesRoundKeys(bits);
  }
  static void Append(absl::Span<const Block> blocks, RandomSource& random,
                     std::array<SecretVector<SharedBlock>, kParties>* to) {
    for (const Block& b : blocks) {
      const auto shares = SplitForTest(b, random);
      for (int p = 0; p < kParties; ++p) (*to)[p].push_back(shares[p]);
    }
  }
  const SharedBlock* Keys(int p, size_t lane) const { return &round_keys[p][lane * keys_each]; }

  size_t keys_each;
  std::array<SecretVector<SharedBlock>, kParties> round_keys, text;
  std::vector<size_t> first;
};

// The joined bytes of one lane, and zeros behind them.
bool Joined(const std::array<std::vector<SharedBlock>, kParties>& shares, size_t bytes,
            Bytes* out) {
  out->clear();
  for (size_t b = 0; b < shares[0].size(); ++b) {
    Block value;
    if (!JoinForTest({shares[0][b], shares[1][b], shares[2][b]}, &value)) return false;
    out->insert(out->end(), value.begin(), value.end());
  }
  for (size_t i = bytes; i < out->size(); ++i) {
    if ((*out)[i] != 0) return false;
  }
  out->resize(bytes);
  return true;
}

using LaneShares = std::vector<std::array<std::vector<SharedBlock>, kParties>>;

struct Setting {
  AesBits bits;
  Isa isa;
  Sbox sbox;
};

// All cases as one circuit of three parties; the shares of what comes out.
LaneShares RunEncrypt(const Setting& s, const std::vector<Case>& cases, MemoryRing& ring) {
  const Shares shares(s.bits, cases);
  LaneShares out(cases.size());
  const auto make = [&](PartyContext& party) {
    const int p = party.party();
    std::vector<CtsEncryptLane> lanes;
    for (size_t j = 0; j < cases.size(); ++j) {
      lanes.push_back({shares.Keys(p, j), &shares.text[p][shares.first[j]], cases[j].text.size()});
    }
    auto cts = std::make_unique<CtsEncrypt>(s.bits, s.isa);
    cts->Reset(lanes, s.sbox);
    return cts;
  };
  EXPECT_EQ(RunCircuit(ring, make, [&](int p, const CtsEncrypt& cts) {
    for (size_t j = 0; j < cases.size(); ++j) {
      out[j][p].assign(cts.ciphertext(j).begin(), cts.ciphertext(j).end());
    }
  }), absl::OkStatus());
  return out;
}

LaneShares RunDecrypt(const Setting& s, const std::vector<Case>& cases, MemoryRing& ring,
                      Cost* cost = nullptr) {
  const Shares shares(s.bits, cases);
  LaneShares out(cases.size());
  const auto make = [&](PartyContext& party) {
    std::vector<CtsDecryptLane> lanes;
    for (size_t j = 0; j < cases.size(); ++j) {
      lanes.push_back({shares.Keys(party.party(), j), cases[j].message});
    }
    auto cts = std::make_unique<CtsDecrypt>(s.bits, s.isa);
    cts->Reset(lanes, s.sbox);
    return cts;
  };
  const auto keep = [&](int p, const CtsDecrypt& cts) {
    for (size_t j = 0; j < cases.size(); ++j) {
      out[j][p].assign(cts.text(j).begin(), cts.text(j).end());
    }
  };
  EXPECT_EQ(RunCircuit(ring, make, keep, cost), absl::OkStatus());
  return out;
}

void CheckCases(const Setting& setting, const std::vector<Case>& cases) {
  MemoryRing there, back;
  const LaneShares messages = RunEncrypt(setting, cases, there);
  const LaneShares texts = RunDecrypt(setting, cases, back);
  for (size_t j = 0; j < cases.size(); ++j) {
    const size_t bytes = cases[j].text.size();
    Bytes value;
    EXPECT_TRUE(Joined(messages[j], bytes, &value)) << bytes << " bytes";
    EXPECT_EQ(value, cases[j].message) << "encryption of " << bytes << " bytes";
    EXPECT_TRUE(Joined(texts[j], bytes, &value)) << bytes << " bytes";
    EXPECT_EQ(value, cases[j].text) << "decryption of " << bytes << " bytes";
  }
}

// RFC 3962, appendix B, and RFC 8009, appendix A (sample encryptions of both sizes of key: the
// confounder is the text's first block).
std::vector<Case> RfcCases(AesBits bits) {
  std::vector<Case> cases;
  if (bits == AesBits::k128) {
    const Bytes key = Hex("636869636b656e207465726979616b69");
    const Bytes text = Hex(
        "4920776f756c64206c696b65207468652047656e6572616c20476175277320436869636b656e2c20706c6561"
        "73652c20616e6420776f6e746f6e20736f75702e");
    const auto add = [&](size_t bytes, absl::string_view message) {
      cases.push_back({key, {text.begin(), text.begin() + bytes}, Hex(message)});
    };
    add(17, "c6353568f2bf8cb4d8a580362da7ff7f97");
    add(31, "fc00783e0efdb2c1d445d4c8eff7ed2297687268d6ecccc0c07b25e25ecfe5");
    add(32, "39312523a78662d5be7fcbcc98ebf5a897687268d6ecccc0c07b25e25ecfe584");
    add(47,
        "97687268d6ecccc0c07b25e25ecfe584b3fffd940c16a18c1b5549d2f838029e39312523a78662d5be7fcbcc"
        "98ebf5");
    add(48,
        "97687268d6ecccc0c07b25e25ecfe5849dad8bbb96c4cdc03bc103e1a194bbd839312523a78662d5be7fcbcc"
        "98ebf5a8");
    add(64,
        "97687268d6ecccc0c07b25e25ecfe58439312523a78662d5be7fcbcc98ebf5a84807efe836ee89a526730dbc"
        "2f7bc8409dad8bbb96c4cdc03bc103e1a194bbd8");
    const Bytes ke = Hex("9b197dd1e8c5609d6e67c3e37c62c72e");
    cases.push_back({ke, Hex("7e5895eaf2672435bad817f545a37148"),
                     Hex("ef85fb890bb8472f4dab20394dca781d")});
    cases.push_back({ke, Hex("7bca285e2fd4130fb55b1a5c83bc5b24000102030405"),
                     Hex("84d7f30754ed987bab0bf3506beb09cfb55402cef7e6")});
    return cases;
  }
  const Bytes ke = Hex("56ab22bee63d82d7bc5227f6773f8ea7a5eb1c825160c38312980c442e5c7e49");
  cases.push_back({ke, Hex("f764e9fa15c276478b2c7d0c4e5f58e4"),
                   Hex("41f53fa5bfe7026d91faf9be959195a0")});
  cases.push_back({ke, Hex("b80d3251c1f6471494256ffe712d0b9a000102030405"),
                   Hex("4ed7b37c2bcac8f74f23c1cf07e62bc7b75fb3f637b9")});
  return cases;
}

std::vector<Case> RandomCases(AesBits bits, absl::Span<const size_t> lengths, uint64_t seed) {
  SeededRandomForTest random(seed);
  std::vector<Case> cases;
  for (size_t bytes : lengths) {
    Case c{Bytes(AesKeyBlocks(bits) * 16), Bytes(bytes), {}};
    random.Fill(absl::MakeSpan(c.key));
    random.Fill(absl::MakeSpan(c.text));
    c.message = OpenSslCts(c.key, c.text);
    cases.push_back(std::move(c));
  }
  return cases;
}

TEST(OracleTest, IsTheRfcs) {
  for (AesBits bits : {AesBits::k128, AesBits::k256}) {
    for (const Case& c : RfcCases(bits)) EXPECT_EQ(OpenSslCts(c.key, c.text), c.message);
  }
}

class CbcCtsTest : public testing::TestWithParam<Isa> {};

TEST_P(CbcCtsTest, RfcVectors) {
  for (AesBits bits : {AesBits::k128, AesBits::k256}) {
    for (Sbox sbox : {Sbox::kThroughput, Sbox::kLatency}) {
      CheckCases({bits, GetParam(), sbox}, RfcCases(bits));
    }
  }
}

// One circuit of all lengths, so that every lane ends beside longer ones.
TEST_P(CbcCtsTest, EveryLengthEqualsOpenSsl) {
  std::vector<size_t> lengths;
  for (size_t bytes = 16; bytes <= 80; ++bytes) lengths.push_back(bytes);
  for (AesBits bits : {AesBits::k128, AesBits::k256}) {
    CheckCases({bits, GetParam(), Sbox::kLatency}, RandomCases(bits, lengths, 5));
  }
}

TEST_P(CbcCtsTest, ManyLanesOfMixedLengthsEqualOpenSsl) {
  std::vector<size_t> lengths;
  for (size_t j = 0; j < 530; ++j) lengths.push_back(16 + 37 * j % 60);
  CheckCases({AesBits::k128, GetParam(), Sbox::kThroughput},
             RandomCases(AesBits::k128, lengths, 6));
}

INSTANTIATE_TEST_SUITE_P(Isas, CbcCtsTest, testing::ValuesIn(SupportedIsas()),
                         [](const auto& i) { return std::string(IsaName(i.param)); });

// Whole blocks need no second AES: all that decryption reads is in the message.
TEST(CbcCtsCostTest, OnlyAStolenBlockCostsASecondAes) {
  const Setting setting = {AesBits::k256, BestIsa(), Sbox::kThroughput};
  MemoryRing whole_ring, cut_ring, one_ring;
  Cost whole, cut, one;
  RunDecrypt(setting, RandomCases(AesBits::k256, {48}, 1), whole_ring, &whole);
  RunDecrypt(setting, RandomCases(AesBits::k256, {44}, 1), cut_ring, &cut);
  RunDecrypt(setting, RandomCases(AesBits::k256, {16}, 1), one_ring, &one);
  EXPECT_EQ(whole, CostOfAes(AesBits::k256, 3));
  EXPECT_EQ(cut, CostOfAes(AesBits::k256, 2) + CostOfAes(AesBits::k256, 1));
  EXPECT_EQ(one, CostOfAes(AesBits::k256, 1));
}

TEST(CbcCtsCostTest, NothingToDoIsDone) {
  CtsEncrypt encrypt(AesBits::k128);
  CtsDecrypt decrypt(AesBits::k128);
  EXPECT_TRUE(encrypt.Done() && decrypt.Done());
  encrypt.Reset({});
  decrypt.Reset({});
  EXPECT_TRUE(encrypt.Done() && decrypt.Done());
  EXPECT_EQ(encrypt.DeclaredCost(), Cost{});
  EXPECT_EQ(decrypt.DeclaredCost(), Cost{});
}

// A circuit forgets its last lanes.
TEST(CbcCtsTest, ResetStartsAnew) {
  const std::vector<Case> first = RandomCases(AesBits::k128, {70, 16, 33}, 1);
  const std::vector<Case> second = RandomCases(AesBits::k128, {17, 40}, 2);
  const Shares a(AesBits::k128, first), b(AesBits::k128, second);
  std::array<std::vector<SharedBlock>, kParties> out;
  MemoryRing ring;
  const auto statuses = RunThreeParties(ring, 1, [&](PartyContext& party) {
    const int p = party.party();
    CtsDecrypt cts(AesBits::k128);
    party.BeginBatch(1);
    cts.Reset({{a.Keys(p, 0), first[0].message}, {a.Keys(p, 2), first[2].message}});
    absl::Status s = RunTogether(party, {&cts});
    if (!s.ok()) return s;
    cts.Reset({{b.Keys(p, 1), second[1].message}});
    s = RunTogether(party, {&cts});
    out[p].assign(cts.text(0).begin(), cts.text(0).end());
    return s;
  });
  for (const absl::Status& s : statuses) ASSERT_TRUE(s.ok()) << s;
  Bytes value;
  ASSERT_TRUE(Joined(out, 40, &value));
  EXPECT_EQ(value, second[1].text);
}

// --- the harness sees what is wrong -------------------------------------------------------------

TEST(NegativeTest, OneFlippedBitOfAMessageIsSeen) {
  const std::vector<Case> cases = RandomCases(AesBits::k128, {44}, 3);
  const Setting setting = {AesBits::k128, BestIsa(), Sbox::kThroughput};
  MemoryRing ring;
  ring.SetInterceptor([](MemoryRing::Intercepted& m) {
    if (m.from == 2 && m.round == 79) m.payload[3] ^= 1;  // the end of the second block
  });
  const LaneShares out = RunEncrypt(setting, cases, ring);
  Bytes value;
  EXPECT_FALSE(Joined(out[0], 44, &value) && value == cases[0].message);
}

// CBC passes a changed ciphertext on: another text comes out, and it is the HMAC that sees it.
TEST(NegativeTest, AnotherMessageIsAnotherText) {
  std::vector<Case> cases = RandomCases(AesBits::k256, {44}, 4);
  cases[0].message[43] ^= 1;
  MemoryRing ring;
  const LaneShares out =
      RunDecrypt({AesBits::k256, BestIsa(), Sbox::kLatency}, cases, ring);
  Bytes value;
  ASSERT_TRUE(Joined(out[0], 44, &value));
  EXPECT_NE(value, cases[0].text);
  cases[0].text.back() ^= 1;  // of Cn-1: the last byte of Pn, and all of Pn-1
  EXPECT_TRUE(std::equal(value.begin(), value.begin() + 16, cases[0].text.begin()));
  EXPECT_TRUE(std::equal(value.begin() + 32, value.end(), cases[0].text.begin() + 32));
}

}  // namespace
}  // namespace mpckdc
