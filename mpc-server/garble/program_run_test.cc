// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/program_run.h"

#include <openssl/evp.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "mpc-server/garble/aes_rounds.h"
#include "mpc-server/garble/check_program.h"
#include "mpc-server/garble/gf128_tape.h"
#include "mpc-server/garble/hash_tape.h"
#include "mpc-server/key/hash_plain.h"
#include "mpc-server/key/hash_template.h"
#include "mpc-server/testing/garbled_parties.h"
#include "mpc-server/testing/garbling.h"

namespace mpckdc::garble {
namespace {

std::vector<uint8_t> RandomBytes(std::mt19937_64& random, size_t count) {
  std::vector<uint8_t> bytes(count);
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
  return bytes;
}

// ---- AES ----

struct FreeCtx {
  void operator()(EVP_CIPHER_CTX* c) const { EVP_CIPHER_CTX_free(c); }
};

std::vector<uint8_t> Aes(const std::vector<uint8_t>& key, const uint8_t* block, bool encrypt) {
  const std::unique_ptr<EVP_CIPHER_CTX, FreeCtx> ctx(EVP_CIPHER_CTX_new());
  std::vector<uint8_t> out(32);
  int written = 0;
  EXPECT_EQ(EVP_CipherInit_ex(ctx.get(), key.size() == 16 ? EVP_aes_128_ecb() : EVP_aes_256_ecb(),
                              nullptr, key.data(), nullptr, encrypt),
            1);
  EXPECT_EQ(EVP_CIPHER_CTX_set_padding(ctx.get(), 0), 1);
  EXPECT_EQ(EVP_CipherUpdate(ctx.get(), out.data(), &written, block, 16), 1);
  out.resize(static_cast<size_t>(written));
  return out;
}

uint8_t Times(uint8_t a, uint8_t b) {
  uint8_t r = 0;
  for (int i = 0; i < 8; ++i) {
    if ((b >> i & 1) != 0) r ^= a;
    a = static_cast<uint8_t>(a << 1 ^ ((a & 0x80) != 0 ? 0x1B : 0));
  }
  return r;
}
// FIPS 197, 5.1.1, as it is written there.
uint8_t Substitute(uint8_t x) {
  uint8_t inverse = 0;
  for (int y = 1; y < 256; ++y) {
    if (Times(x, static_cast<uint8_t>(y)) == 1) inverse = static_cast<uint8_t>(y);
  }
  uint8_t s = 0x63;
  for (int k = 0; k < 5; ++k) s ^= static_cast<uint8_t>(inverse << k | inverse >> (8 - k));
  return s;
}
// FIPS 197, 5.2.
std::vector<uint8_t> ExpandKey(const std::vector<uint8_t>& key) {
  const size_t nk = key.size() / 4;
  std::vector<uint8_t> w = key;
  uint8_t rcon = 1;
  for (size_t i = nk; i < 4 * (nk + 7); ++i) {
    uint8_t t[4];
    std::copy_n(w.end() - 4, 4, t);
    if (i % nk == 0) std::rotate(t, t + 1, t + 4);
    if (i % nk == 0 || (nk == 8 && i % 8 == 4)) {
      for (uint8_t& b : t) b = Substitute(b);
    }
    if (i % nk == 0) {
      t[0] ^= rcon;
      rcon = Times(rcon, 2);
    }
    for (size_t k = 0; k < 4; ++k) w.push_back(w[4 * (i - nk) + k] ^ t[k]);
  }
  return w;
}

Garbling::Wires Xor(Garbling::Wires a, const Garbling::Wires& b) {
  for (size_t i = 0; i < a.zero.size(); ++i) {
    a.zero[i] = a.zero[i] ^ b.zero[i];
    a.held[i] = a.held[i] ^ b.held[i];
  }
  return a;
}
Garbling::Wires Join(const Garbling::Wires& a, const Garbling::Wires& b) {
  Garbling::Wires w = a;
  w.zero.insert(w.zero.end(), b.zero.begin(), b.zero.end());
  w.held.insert(w.held.end(), b.held.begin(), b.held.end());
  return w;
}

// A block of each lane under a key of its own.
std::vector<uint8_t> GarbledAes(Garbling& garbling, const std::vector<std::vector<uint8_t>>& keys,
                                const std::vector<uint8_t>& blocks, bool encrypt) {
  const size_t lanes = garbling.lanes(), rounds = keys[0].size() / 4 + 6;
  std::vector<std::vector<uint8_t>> expanded;
  for (const auto& key : keys) expanded.push_back(ExpandKey(key));
  const auto planes = [&](const std::vector<uint8_t>& all) {
    return garbling.Permute(garbling.Input(ToRows(all, lanes)), kPlanesOfBytes);
  };
  const auto round_key = [&](size_t i) {
    std::vector<uint8_t> all;
    for (const auto& w : expanded) {
      const auto at = w.begin() + static_cast<ptrdiff_t>(16 * (encrypt ? i : rounds - i));
      all.insert(all.end(), at, at + 16);
    }
    return planes(all);
  };
  Garbling::Wires state = Xor(planes(blocks), round_key(0));
  for (size_t i = 1; i <= rounds; ++i) {
    if (!encrypt) state = garbling.Permute(state, kShiftRowsBack);
    state = garbling.Run(SboxTape(encrypt), state, {}, kSboxCopies);
    if (encrypt) state = garbling.Permute(state, kShiftRows);
    state = i == rounds ? Xor(state, round_key(i))
                        : garbling.Run(MixTape(encrypt), Join(state, round_key(i)), {}, kMixCopies);
  }
  return ToBytes(garbling.Value(garbling.Permute(state, kBytesOfPlanes)), lanes);
}

class ProgramRunTest : public testing::TestWithParam<Isa> {};

TEST_P(ProgramRunTest, AesIsThatOfOpenssl) {
  std::mt19937_64 random(1);
  for (const size_t key_bytes : {16, 32}) {
    for (const bool encrypt : {true, false}) {
      for (const size_t lanes : {1, 3, 4, 16}) {
        std::vector<std::vector<uint8_t>> keys;
        for (size_t i = 0; i < lanes; ++i) keys.push_back(RandomBytes(random, key_bytes));
        const std::vector<uint8_t> blocks = RandomBytes(random, 16 * lanes);
        Garbling garbling(lanes, GetParam(), random());
        const std::vector<uint8_t> out = GarbledAes(garbling, keys, blocks, encrypt);
        for (size_t lane = 0; lane < lanes; ++lane) {
          const std::vector<uint8_t> mine(out.begin() + static_cast<ptrdiff_t>(16 * lane),
                                          out.begin() + static_cast<ptrdiff_t>(16 * lane + 16));
          EXPECT_EQ(mine, Aes(keys[lane], &blocks[16 * lane], encrypt))
              << key_bytes << " bytes of key, " << lanes << " lanes";
        }
        EXPECT_EQ(garbling.gates(), key_bytes == 16 ? 5120u : 7168u);
        EXPECT_EQ(garbling.tables.rows.size(), kAndRows * garbling.gates() * lanes);
        EXPECT_TRUE(garbling.tables.AllRead());
      }
    }
  }
}

// ---- Hashes ----

// The state is shared; so is the block, or its words plus the constants are public.
TEST_P(ProgramRunTest, CompressionsAreThoseOfTheHash) {
  constexpr size_t kLanes = 2;
  std::mt19937_64 random(2);
  for (const HashKind hash : {HashKind::kSha1, HashKind::kSha256, HashKind::kSha384}) {
    for (const MessageKind kind : {MessageKind::kPublic, MessageKind::kShared}) {
      const size_t state_bytes = StateRows(hash) / 8, block_bytes = HashBlockBytes(hash);
      const std::vector<uint8_t> states = RandomBytes(random, kLanes * state_bytes);
      const std::vector<uint8_t> blocks = RandomBytes(random, kLanes * block_bytes);
      Garbling garbling(kLanes, GetParam(), random());
      Garbling::Wires in = garbling.Input(ToRows(states, kLanes));
      std::vector<uint8_t> publics;
      if (kind == MessageKind::kShared) {
        in = Join(in, garbling.Input(ToRows(blocks, kLanes)));
      } else {
        const size_t each = HashSteps(hash) * HashWordBits(hash) / 8;
        publics.resize(kLanes * each);
        for (size_t lane = 0; lane < kLanes; ++lane) {
          PublicSchedule(hash, &blocks[lane * block_bytes], &publics[lane * each]);
        }
        publics = ToRows(publics, kLanes);
      }
      const Tape& tape = HashTape(hash, kind);
      const std::vector<uint8_t> out =
          ToBytes(garbling.Value(garbling.Run(tape, in, publics)), kLanes);
      for (size_t lane = 0; lane < kLanes; ++lane) {
        const auto first = states.begin() + static_cast<ptrdiff_t>(lane * state_bytes);
        std::vector<uint8_t> state(first, first + static_cast<ptrdiff_t>(HashStateBytes(hash)));
        CompressPlain(hash, absl::MakeSpan(state), &blocks[lane * block_bytes]);
        for (size_t i = 0; i < state.size(); ++i) {
          ASSERT_EQ(out[lane * state_bytes + i], state[i]) << "lane " << lane << ", byte " << i;
        }
      }
      EXPECT_EQ(garbling.gates(), tape.gates());
    }
  }
}

// ---- Two garblers ----

class KeptRows : public RowSink {
 public:
  Label* Take(size_t labels) override {
    pieces_.emplace_back(labels);
    return pieces_.back().data();
  }
  std::vector<Label> All() const {
    std::vector<Label> all;
    for (const auto& piece : pieces_) all.insert(all.end(), piece.begin(), piece.end());
    return all;
  }

 private:
  std::deque<std::vector<Label>> pieces_;
};

// Rows, then zero labels of the outputs.
std::vector<Label> Garbled(const Tape& tape, size_t lanes, Isa isa, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto draw = [&](size_t count) {
    std::vector<Label> labels(count);
    for (Label& l : labels) l = {random(), random()};
    return labels;
  };
  std::vector<Label> delta = draw(lanes), in = draw(tape.input_rows() * lanes);
  for (Label& d : delta) d.low |= 1;
  std::vector<uint8_t> publics(tape.public_rows() * lanes);
  for (uint8_t& b : publics) b = random() & 1;
  // The low half comes to its end amid the gates.
  GateCounter counter({~uint64_t{0} - tape.gates(), random()});
  KeptRows rows;
  Garbler garbler(counter, delta, rows, isa);
  const absl::Span<const Label> inputs[] = {in};
  garbler.Begin(tape, 1, inputs, publics);
  std::vector<Label> out(tape.outputs().size() * lanes), all;
  while (!garbler.Done()) garbler.RunUnit(out.data());
  all = rows.All();
  all.insert(all.end(), out.begin(), out.end());
  return all;
}

// On another CPU than the other garbler's an honest one would be accused.
TEST(TapesOfAllIsas, AreGarbledAlike) {
  uint64_t seed = 1;
  for (const size_t lanes : {1, 3, 4}) {
    const auto check = [&](const Tape& tape) {
      const std::vector<Label> portable = Garbled(tape, lanes, Isa::kPortable, ++seed);
      for (const Isa isa : SupportedIsas()) {
        if (isa == Isa::kPortable) continue;
        EXPECT_EQ(Garbled(tape, lanes, isa, seed), portable)
            << lanes << " lanes, " << tape.gates() << " gates, " << IsaName(isa);
      }
    };
    for (const HashKind hash : {HashKind::kSha1, HashKind::kSha256, HashKind::kSha384}) {
      check(HashTape(hash, MessageKind::kShared));
      check(HashTape(hash, MessageKind::kPublic));
    }
    for (const auto& [bits, gated] : {std::pair{96, 0}, {128, 136}, {192, 5}, {256, 1}}) {
      check(CheckTape(bits, gated));
    }
    check(Gf128MultiplyTape());
    check(Gf128SquareTape());
  }
}

// ---- What the harness sees ----

TEST_P(ProgramRunTest, AnAlteredRowGivesNoLabel) {
  std::mt19937_64 random(3);
  const std::vector<uint8_t> bits = ToRows(RandomBytes(random, 16), 1);
  // A label's colour chooses its row or none: of so many gates some use theirs.
  for (const bool alters : {false, true}) {
    Garbling garbling(1, GetParam(), 3);
    if (alters) {
      garbling.tables.alter = [](Label& row) { row.high ^= 1; };
    }
    const Garbling::Wires out = garbling.Run(SboxTape(true), garbling.Input(bits), {}, kSboxCopies);
    EXPECT_EQ(garbling.AreLabels(out), !alters);
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, ProgramRunTest, testing::ValuesIn(SupportedIsas()),
                         [](const auto& info) { return std::string(IsaName(info.param)); });

}  // namespace
}  // namespace mpckdc::garble
