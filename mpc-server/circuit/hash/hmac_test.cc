// SPDX-License-Identifier: Apache-2.0
// HMAC and its states on shares against RFC 2202, RFC 4231, OpenSSL and the plain functions.
#include "mpc-server/circuit/hash/hmac.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "mpc-server/circuit/bitslice/word_portable.h"
#include "mpc-server/circuit/hash/bit_template.h"
#include "mpc-server/circuit/hash/hash_programs.h"
#include "mpc-server/circuit/hash/hmac_states.h"
#include "mpc-server/key/hash_plain.h"
#include "mpc-server/testing/three_parties.h"

namespace mpckdc {
namespace {

using Bytes = std::vector<uint8_t>;
constexpr HashKind kHashes[] = {HashKind::kSha1, HashKind::kSha256, HashKind::kSha384};

Bytes Hex(absl::string_view hex) {
  const std::string s = absl::HexStringToBytes(hex);
  return {s.begin(), s.end()};
}
Bytes RandomBytes(size_t size, RandomSource& random) {
  Bytes bytes(size);
  random.Fill(absl::MakeSpan(bytes));
  return bytes;
}

Bytes OpenSslHmac(HashKind hash, const Bytes& key, const Bytes& message) {
  const EVP_MD* md = hash == HashKind::kSha1     ? EVP_sha1()
                     : hash == HashKind::kSha256 ? EVP_sha256()
                                                 : EVP_sha384();
  Bytes out(HashDigestBytes(hash));
  HMAC(md, key.data(), static_cast<int>(key.size()), message.data(), message.size(), out.data(),
       nullptr);
  return out;
}

// The states after key ^ ipad and key ^ opad, each padded to whole blocks of 16 bytes.
Bytes StatesOf(HashKind hash, const Bytes& key) {
  Bytes states;
  for (uint8_t pad : {0x36, 0x5c}) {
    Bytes block(HashBlockBytes(hash), pad);
    for (size_t i = 0; i < key.size(); ++i) block[i] ^= key[i];
    const auto iv = HashInitialState(hash);
    Bytes state(iv.begin(), iv.end());
    CompressPlain(hash, absl::MakeSpan(state), block.data());
    state.resize(16 * HashStateBlocks(hash));
    states.insert(states.end(), state.begin(), state.end());
  }
  return states;
}

using Shares = std::array<std::vector<SharedBlock>, kParties>;
Shares Split(Bytes bytes, RandomSource& random) {
  bytes.resize((bytes.size() + 15) / 16 * 16);
  Shares shares;
  for (size_t at = 0; at < bytes.size(); at += 16) {
    Block block;
    std::memcpy(block.data(), &bytes[at], 16);
    const auto split = SplitForTest(block, random);
    for (int p = 0; p < kParties; ++p) shares[p].push_back(split[p]);
  }
  for (auto& s : shares) s.resize(std::max<size_t>(s.size(), 1));  // a place to point at
  return shares;
}
// Empty when the shares are not consistent.
Bytes Join(const Shares& shares, size_t first, size_t size) {
  Bytes bytes;
  for (size_t at = first; bytes.size() < size; ++at) {
    Block block;
    if (!JoinForTest({shares[0][at], shares[1][at], shares[2][at]}, &block)) return {};
    bytes.insert(bytes.end(), block.begin(), block.end());
  }
  for (size_t i = size; i < bytes.size(); ++i) {
    if (i >= 20 && size == 20 && bytes[i] != 0) return {};  // SHA-1's end is zeros
  }
  bytes.resize(size);
  return bytes;
}

struct Message {
  Bytes key, text;
  bool shared;
};

struct Batch {
  Batch(HashKind hash, std::vector<Message> all, uint64_t seed)
      : hash(hash), messages(std::move(all)) {
    SeededRandomForTest random(seed);
    for (const Message& m : messages) {
      states.push_back(Split(StatesOf(hash, m.key), random));
      texts.push_back(Split(m.text, random));
    }
  }
  std::vector<HmacLane> Lanes(int party) const {
    std::vector<HmacLane> lanes(messages.size());
    for (size_t j = 0; j < lanes.size(); ++j) {
      lanes[j].states = states[j][party].data();
      if (messages[j].shared) {
        lanes[j].shared_message = texts[j][party].data();
        lanes[j].bytes = messages[j].text.size();
      } else {
        lanes[j].public_message = messages[j].text;
      }
    }
    return lanes;
  }
  std::vector<HmacShape> Shapes() const {
    std::vector<HmacShape> shapes;
    for (const Message& m : messages) shapes.push_back({m.text.size(), m.shared});
    return shapes;
  }

  HashKind hash;
  std::vector<Message> messages;
  std::vector<Shares> states, texts;
};

// Runs the batch, compares the cost with the declared one; the digests, joined.
std::vector<Bytes> RunBatch(const Batch& batch, Adder adder, const std::array<Isa, kParties>& isas,
                            const MemoryRing::Interceptor& interceptor = nullptr) {
  Shares out;
  MemoryRing ring;
  if (interceptor) ring.SetInterceptor(interceptor);
  Cost cost;
  const auto make = [&](PartyContext& party) {
    auto hmac = std::make_unique<Hmac>(batch.hash, isas[party.party()]);
    hmac->Reset(batch.Lanes(party.party()), adder);
    return hmac;
  };
  const auto keep = [&](int p, const Hmac& hmac) {
    for (size_t j = 0; j < batch.messages.size(); ++j) {
      out[p].insert(out[p].end(), hmac.digest(j).begin(), hmac.digest(j).end());
    }
  };
  EXPECT_EQ(RunCircuit(ring, make, keep, &cost), absl::OkStatus());
  EXPECT_EQ(cost, CostOfHmac(batch.hash, adder, batch.Shapes()));
  std::vector<Bytes> digests;
  for (size_t j = 0; j < batch.messages.size(); ++j) {
    digests.push_back(Join(out, j * HashStateBlocks(batch.hash), HashDigestBytes(batch.hash)));
  }
  return digests;
}

void CheckBatch(const Batch& batch, Adder adder, const std::array<Isa, kParties>& isas) {
  const std::vector<Bytes> digests = RunBatch(batch, adder, isas);
  for (size_t j = 0; j < digests.size(); ++j) {
    const Message& m = batch.messages[j];
    ASSERT_EQ(digests[j], OpenSslHmac(batch.hash, m.key, m.text))
        << "lane " << j << " bytes " << m.text.size() << " shared " << m.shared;
  }
}

Batch MixedBatch(HashKind hash, size_t lanes, size_t longest, uint64_t seed) {
  SeededRandomForTest random(seed);
  std::vector<Message> messages;
  for (size_t j = 0; j < lanes; ++j) {
    const size_t size = lanes == 1 ? longest : (j * 37 + j / 7) % (longest + 1);
    messages.push_back({RandomBytes(16 + j % 17, random), RandomBytes(size, random), j % 3 != 1});
  }
  return Batch(hash, std::move(messages), seed);
}

class HmacOnSharesTest : public testing::TestWithParam<Isa> {
 protected:
  std::array<Isa, kParties> All() const { return {GetParam(), GetParam(), GetParam()}; }
};

TEST_P(HmacOnSharesTest, MixedBatchesEqualOpenSsl) {
  for (HashKind hash : kHashes) {
    for (size_t lanes : {1u, 7u, 8u, 70u}) {
      CheckBatch(MixedBatch(hash, lanes, 200, lanes), Adder::kPrefix, All());
    }
    CheckBatch(MixedBatch(hash, 5, 150, 3), Adder::kRipple, All());
    CheckBatch(MixedBatch(hash, 9, 150, 4), Adder::kFewestRounds, All());
  }
}

// More than a group, with a group that is cut.
TEST_P(HmacOnSharesTest, ManyLanes) {
  CheckBatch(MixedBatch(HashKind::kSha1, 1100, 100, 1), Adder::kPrefix, All());
  CheckBatch(MixedBatch(HashKind::kSha256, 513, 70, 2), Adder::kPrefix, All());
}

// The wire format does not depend on the instruction set.
TEST_P(HmacOnSharesTest, PartiesMayDiffer) {
  CheckBatch(MixedBatch(HashKind::kSha1, 600, 70, 5), Adder::kPrefix,
             {GetParam(), Isa::kPortable, SupportedIsas().back()});
}

TEST_P(HmacOnSharesTest, LengthsAroundTheEndOfABlock) {
  for (HashKind hash : kHashes) {
    const size_t block = HashBlockBytes(hash);
    SeededRandomForTest random(8);
    std::vector<Message> messages;
    for (size_t size : {size_t{0}, size_t{1}, block - 17, block - 16, block - 9, block - 8,
                        block - 1, block, block + 1, 2 * block}) {
      for (bool shared : {false, true}) {
        messages.push_back({RandomBytes(32, random), RandomBytes(size, random), shared});
      }
    }
    CheckBatch(Batch(hash, messages, 9), Adder::kPrefix, All());
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, HmacOnSharesTest, testing::ValuesIn(SupportedIsas()),
                         [](const auto& i) { return std::string(IsaName(i.param)); });

struct Vector {
  HashKind hash;
  const char *key, *text, *digest;
};
// RFC 2202 section 3, cases 1 and 4; RFC 4231, cases 1 and 4.
constexpr char kKey4[] = "0102030405060708090a0b0c0d0e0f10111213141516171819";
constexpr Vector kVectors[] = {
    {HashKind::kSha1, "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "4869205468657265",
     "b617318655057264e28bc0b6fb378c8ef146be00"},
    {HashKind::kSha1, kKey4, nullptr, "4c9007f4026250c6bc8414f9bf50c86c2d7235da"},
    {HashKind::kSha256, "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "4869205468657265",
     "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
    {HashKind::kSha256, kKey4, nullptr,
     "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
    {HashKind::kSha384, "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "4869205468657265",
     "afd03944d84895626b0825f4ab46907f15f9dadbe4101ec682aa034c7cebc59c"
     "faea9ea9076ede7f4af152e8b2fa9cb6"},
    {HashKind::kSha384, kKey4, nullptr,
     "3e8a69b7783c25851933ab6290af6ca77a9981480850009cc5577c6e1f573b4e"
     "6801dd23c4a7d679ccf8a386c674cffb"},
};

TEST(HmacVectorTest, Rfc2202AndRfc4231) {
  for (const Vector& v : kVectors) {
    const Bytes text = v.text == nullptr ? Bytes(50, 0xcd) : Hex(v.text);
    const Batch batch(v.hash, {{Hex(v.key), text, false}, {Hex(v.key), text, true}}, 1);
    for (Adder adder : kAdders) {
      const Isa isa = BestIsa();
      for (const Bytes& digest : RunBatch(batch, adder, {isa, isa, isa})) {
        EXPECT_EQ(digest, Hex(v.digest));
      }
    }
  }
}

// The recorded programs on plain bits, one lane, against CompressPlain().
using PlainRunner = BitRunner<WordPortable, 1, 8>;

void PutRows(absl::Span<const uint8_t> bytes, size_t first_row, Bytes& rows) {
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    rows[(first_row + bit) * 64] = bytes[bit / 8] >> bit % 8 & 1;
  }
}

Bytes RunPlain(HashKind hash, MessageKind kind, Adder adder, const Bytes& state,
               const Bytes& block) {
  const BitProgram& program = HashProgram(hash, kind, adder);
  Bytes input((StateRows(hash) + 8 * HashBlockBytes(hash)) * 64), publics(80 * 64 * 64);
  Bytes slots(program.slots * 8), message(8 * 2048), output(StateRows(hash) * 64);
  PutRows(state, 0, input);
  PutRows(block, StateRows(hash), input);
  Bytes schedule(640);
  PublicSchedule(hash, block.data(), schedule.data());
  PutRows(schedule, 0, publics);
  const BitRows rows = {slots.data(), {input.data(), nullptr}, publics.data(),
                        {output.data(), nullptr}, message.data(), 8};
  for (const BitStage& stage : program.stages) {
    PlainRunner::Store(program.args.data() + stage.stores_at, stage.stores, message.data(), nullptr,
                       rows);
    std::fill(message.begin(), message.end(), uint8_t{0});
    PlainRunner::Run(program.sections.data() + stage.first_section, stage.sections,
                     program.args.data(), rows);
  }
  Bytes out(HashStateBytes(hash));
  for (size_t bit = 0; bit < 8 * out.size(); ++bit) {
    out[bit / 8] |= static_cast<uint8_t>((output[bit * 64] & 1) << bit % 8);
  }
  return out;
}

TEST(HashProgramTest, OnPlainBitsEqualsThePlainFunction) {
  SeededRandomForTest random(4);
  for (HashKind hash : kHashes) {
    for (MessageKind kind : {MessageKind::kPublic, MessageKind::kShared}) {
      for (Adder adder : kAdders) {
        for (int i = 0; i < 10; ++i) {
          const Bytes state = RandomBytes(HashStateBytes(hash), random);
          const Bytes block = RandomBytes(HashBlockBytes(hash), random);
          Bytes want = state;
          CompressPlain(hash, absl::MakeSpan(want), block.data());
          ASSERT_EQ(RunPlain(hash, kind, adder, state, block), want);
        }
      }
    }
  }
}

// Bits of one lane and rounds of one compression, as doc/protocol.md has them.
TEST(HashProgramTest, Declared) {
  struct Declared {
    HashKind hash;
    MessageKind message;
    Adder adder;
    size_t bits, rounds;
  };
  constexpr Declared kDeclared[] = {
      {HashKind::kSha1, MessageKind::kPublic, Adder::kRipple, 8795, 2165},
      {HashKind::kSha1, MessageKind::kShared, Adder::kRipple, 11215, 2165},
      {HashKind::kSha1, MessageKind::kPublic, Adder::kPrefix, 15090, 486},
      {HashKind::kSha1, MessageKind::kShared, Adder::kPrefix, 17567, 487},
      {HashKind::kSha1, MessageKind::kPublic, Adder::kFewestRounds, 23189, 426},
      {HashKind::kSha1, MessageKind::kShared, Adder::kFewestRounds, 26492, 427},
      {HashKind::kSha256, MessageKind::kPublic, Adder::kRipple, 16184, 1607},
      {HashKind::kSha256, MessageKind::kShared, Adder::kRipple, 22573, 1607},
      {HashKind::kSha256, MessageKind::kPublic, Adder::kPrefix, 28173, 461},
      {HashKind::kSha256, MessageKind::kShared, Adder::kPrefix, 38122, 461},
      {HashKind::kSha384, MessageKind::kPublic, Adder::kRipple, 40904, 3303},
      {HashKind::kSha384, MessageKind::kShared, Adder::kRipple, 57947, 3303},
      {HashKind::kSha384, MessageKind::kPublic, Adder::kPrefix, 76949, 655},
      {HashKind::kSha384, MessageKind::kShared, Adder::kPrefix, 105858, 655},
      // Two additions save nothing in SHA-2.
      {HashKind::kSha256, MessageKind::kShared, Adder::kFewestRounds, 38122, 461},
  };
  for (const Declared& d : kDeclared) {
    const BitProgram& program = HashProgram(d.hash, d.message, d.adder);
    EXPECT_EQ(program.opened, d.bits);
    EXPECT_EQ(program.rounds(), d.rounds);
  }
}

TEST(HmacStatesTest, EqualThePlainStates) {
  SeededRandomForTest random(6);
  for (HashKind hash : kHashes) {
    for (size_t count : {1u, 33u}) {
      std::vector<Bytes> keys;
      std::vector<Shares> shares;
      for (size_t j = 0; j < count; ++j) {
        keys.push_back(RandomBytes(j == 0 ? HashBlockBytes(hash) : 16 + j % 17, random));
        shares.push_back(Split(keys[j], random));
      }
      Shares out;
      MemoryRing ring;
      const auto make = [&](PartyContext& party) {
        std::vector<HmacKey> in;
        for (size_t j = 0; j < count; ++j) {
          in.push_back({shares[j][party.party()].data(), keys[j].size()});
        }
        auto states = std::make_unique<HmacStates>(hash);
        states->Reset(in, Adder::kPrefix);
        return states;
      };
      EXPECT_EQ(RunCircuit(ring, make, [&](int p, const HmacStates& states) {
        for (size_t j = 0; j < count; ++j) {
          out[p].insert(out[p].end(), states.states(j).begin(), states.states(j).end());
        }
      }), absl::OkStatus());
      const size_t blocks = 2 * HashStateBlocks(hash);
      for (size_t j = 0; j < count; ++j) {
        EXPECT_EQ(Join(out, j * blocks, 16 * blocks), StatesOf(hash, keys[j])) << j;
      }
    }
  }
}

// The tests must be able to see: a bit of a message between servers, and one of the text.
TEST(NegativeTest, OneFlippedBitIsSeen) {
  const Isa isa = BestIsa();
  for (HashKind hash : kHashes) {
    Batch batch = MixedBatch(hash, 3, 60, 1);
    const Message& m = batch.messages[2];
    const Bytes right = OpenSslHmac(hash, m.key, m.text);
    EXPECT_EQ(RunBatch(batch, Adder::kPrefix, {isa, isa, isa})[2], right);
    const auto flip = [](MemoryRing::Intercepted& i) {
      if (i.from == 1 && i.round == 300) {
        for (uint8_t& b : i.payload) b ^= 2;  // the second shared lane
      }
    };
    EXPECT_NE(RunBatch(batch, Adder::kPrefix, {isa, isa, isa}, flip)[2], right);
    for (int p = 0; p < kParties; ++p) batch.texts[2][p][0].a[3] ^= 0x10;  // a public difference
    EXPECT_NE(RunBatch(batch, Adder::kPrefix, {isa, isa, isa})[2], right);
  }
}

}  // namespace
}  // namespace mpckdc
