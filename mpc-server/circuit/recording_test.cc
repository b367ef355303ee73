// SPDX-License-Identifier: Apache-2.0
// What circuits record of their messages (share/proof_log.h): all of it, and true; and false as
// soon as a bit is not what follows from the shares.
#include "mpc-server/share/proof_log.h"

#include <map>

#include "gtest/gtest.h"
#include "mpc-server/circuit/aes/aes_batch.h"
#include "mpc-server/circuit/aes/cbc_cts.h"
#include "mpc-server/circuit/aes/key_schedule.h"
#include "mpc-server/circuit/checks.h"
#include "mpc-server/circuit/derive/usage_key.h"
#include "mpc-server/circuit/gcm/ghash.h"
#include "mpc-server/circuit/hash/hash_programs.h"
#include "mpc-server/circuit/hash/hmac.h"
#include "mpc-server/circuit/hash/hmac_states.h"
#include "mpc-server/key/enctype.h"
#include "mpc-server/testing/proof_oracle.h"
#include "mpc-server/testing/three_parties.h"

namespace mpckdc {
namespace {

using Shares = std::array<SecretVector<SharedBlock>, kParties>;
Shares RandomShares(size_t blocks, uint64_t seed) {
  SeededRandomForTest random(seed);
  Shares all;
  for (size_t i = 0; i < blocks; ++i) {
    Block value;
    random.Fill(absl::MakeSpan(value));
    const auto split = SplitForTest(value, random);
    for (int p = 0; p < kParties; ++p) all[p].push_back(split[p]);
  }
  return all;
}

// --- circuits, each with inputs of its own -------------------------------------------------------

// A circuit set up at one party.
using Make = std::function<std::unique_ptr<Circuit>(PartyContext& party)>;

struct Aes {
  AesDirection direction;
  AesBits bits;
  Sbox sbox;
  size_t lanes;
  Isa isa = BestIsa();
};
Make MakeAes(const Aes& c) {
  const auto keys = std::make_shared<Shares>(RandomShares(AesRoundKeys(c.bits), 1));
  const auto inputs = std::make_shared<Shares>(RandomShares(c.lanes, 2));
  return [=](PartyContext& party) -> std::unique_ptr<Circuit> {
    std::vector<AesLane> lanes;
    for (size_t j = 0; j < c.lanes; ++j) {
      lanes.push_back({(*keys)[party.party()].data(), &(*inputs)[party.party()][j], {}});
      if (j % 3 == 0) lanes[j].shared_input = nullptr;  // a public block of zeros
    }
    std::unique_ptr<AesCipher> aes;
    if (c.direction == AesDirection::kEncrypt) {
      aes = std::make_unique<AesEncrypt>(c.bits, c.isa);
    } else {
      aes = std::make_unique<AesDecrypt>(c.bits, c.isa);
    }
    aes->Reset(lanes, c.sbox);
    return aes;
  };
}

Make MakeKeySchedule(AesBits bits, size_t lanes, Isa isa) {
  const auto keys = std::make_shared<Shares>(RandomShares(lanes * AesKeyBlocks(bits), 3));
  return [=](PartyContext& party) {
    auto schedule = std::make_unique<KeySchedule>(bits, isa);
    schedule->Reset((*keys)[party.party()]);
    return schedule;
  };
}

Make MakePowers(const std::vector<uint32_t>& counts, Isa isa) {
  const auto h = std::make_shared<Shares>(RandomShares(counts.size(), 4));
  return [=](PartyContext& party) {
    auto powers = std::make_unique<GhashPowers>(isa);
    std::vector<GhashPowersRequest> requests;
    for (size_t i = 0; i < counts.size(); ++i) {
      requests.push_back({(*h)[party.party()][i], counts[i]});
    }
    powers->Reset(requests);
    return powers;
  };
}

Make MakeZeroCheck(Isa isa) {
  const auto t = std::make_shared<Shares>(RandomShares(6, 5));
  return [=](PartyContext& party) {
    auto check = std::make_unique<ZeroCheck>(party, "test", isa);
    const auto all = absl::MakeConstSpan((*t)[party.party()]);
    check->Reset({all.subspan(0, 1), all.subspan(1, 3), all.subspan(4, 2)});
    return check;
  };
}

struct Mac {
  HashKind hash;
  Adder adder;
  size_t lanes;
  Isa isa = BestIsa();
};
// Lanes of different lengths, every other one public.
Make MakeHmac(const Mac& c) {
  const auto states =
      std::make_shared<Shares>(RandomShares(c.lanes * 2 * HashStateBlocks(c.hash), 6));
  const auto texts = std::make_shared<Shares>(RandomShares(4, 7));
  const auto plain = std::make_shared<std::vector<uint8_t>>(90, 0x35);
  return [=](PartyContext& party) {
    std::vector<HmacLane> lanes(c.lanes);
    for (size_t j = 0; j < c.lanes; ++j) {
      lanes[j].states = &(*states)[party.party()][j * 2 * HashStateBlocks(c.hash)];
      if (j % 2 == 0) {
        lanes[j].public_message = absl::MakeConstSpan(*plain).first(j % 8 == 0 ? 90 : 30);
      } else {
        lanes[j].shared_message = (*texts)[party.party()].data();
        lanes[j].bytes = 40;
      }
    }
    auto hmac = std::make_unique<Hmac>(c.hash, c.isa);
    hmac->Reset(lanes, c.adder);
    return hmac;
  };
}

Make MakeHmacStates(const Mac& c) {
  const auto keys = std::make_shared<Shares>(RandomShares(c.lanes, 8));
  return [=](PartyContext& party) {
    std::vector<HmacKey> all;
    for (size_t j = 0; j < c.lanes; ++j) all.push_back({&(*keys)[party.party()][j], 16});
    auto states = std::make_unique<HmacStates>(c.hash, c.isa);
    states->Reset(all, c.adder);
    return states;
  };
}

template <class Cts>
Make MakeCts(AesBits bits, Sbox sbox) {
  const auto keys = std::make_shared<Shares>(RandomShares(AesRoundKeys(bits), 9));
  const auto text = std::make_shared<Shares>(RandomShares(4, 10));
  return [=](PartyContext& party) {
    static const std::vector<uint8_t> kMessage(64, 0x77);
    const SharedBlock* round_keys = (*keys)[party.party()].data();
    auto cts = std::make_unique<Cts>(bits);
    if constexpr (std::is_same_v<Cts, CtsEncrypt>) {
      const SharedBlock* blocks = (*text)[party.party()].data();
      cts->Reset({CtsEncryptLane{round_keys, blocks, 50}, CtsEncryptLane{round_keys, blocks, 16},
                  CtsEncryptLane{round_keys, blocks, 32}},
                 sbox);
    } else {
      const auto message = absl::MakeConstSpan(kMessage);
      cts->Reset({CtsDecryptLane{round_keys, message.first(50)},
                  CtsDecryptLane{round_keys, message.first(64)}},
                 sbox);
    }
    return cts;
  };
}

Make MakeUsageKeys(const Enctype& enctype) {
  const auto bases = std::make_shared<Shares>(RandomShares(4, 11));
  return [=, &enctype](PartyContext& party) {
    auto keys = std::make_unique<UsageKeys>(enctype);
    const SharedBlock* base = (*bases)[party.party()].data();
    keys->Reset(
        {UsageKeyRequest{base, 3}, UsageKeyRequest{base, 56}, UsageKeyRequest{base + 2, 2}});
    return keys;
  };
}

// --- running them --------------------------------------------------------------------------------

// A bit of one party's message of one round is turned over, as the party itself has it from then
// on: it deviates and is consistent with itself.
struct Flip {
  int party = -1;
  size_t round = 0, byte = 0;
  int bit = 0;
};

// Runs a circuit in a frame: flips a bit in it, and takes what is recorded away before each round
// in which there is more than `part` bytes of it.
class Framed : public Circuit {
 public:
  Framed(PartyContext& party, std::unique_ptr<Circuit> inner, const Flip& flip, size_t part,
         Recording& out)
      : party_(party), inner_(std::move(inner)), flip_(flip), part_(part), out_(out) {}

  bool Done() const override { return inner_->Done(); }
  RoundShape NextRound() const override { return inner_->NextRound(); }
  void Produce(ZeroShares& zero, RoundOut out) override {
    ProofLog* log = party_.log();
    if (log != nullptr && log->bytes() > part_) {
      out_.Add(*log);
      log->Clear();
    }
    inner_->Produce(zero, out);
    if (flip_.party == party_.party() && flip_.round == round_) {
      out.to_next[flip_.byte] ^= static_cast<uint8_t>(1 << flip_.bit);
    }
    ++round_;
  }
  absl::Status Consume(RoundIn in) override { return inner_->Consume(in); }
  Cost DeclaredCost() const override { return inner_->DeclaredCost(); }

 private:
  PartyContext& party_;
  const std::unique_ptr<Circuit> inner_;
  const Flip flip_;
  const size_t part_;
  Recording& out_;
  size_t round_ = 0;
};

struct Options {
  Flip flip;
  size_t part = SIZE_MAX;
  bool log = true;
  Randomness randomness = Randomness::kKeyed;
  MemoryRing::Interceptor interceptor = nullptr;
};
struct Outcome {
  std::array<Recording, 3> parties;
  Cost counted;
  uint64_t recorded_bytes = 0;
};
Outcome RunRecorded(const Make& make, const Options& options) {
  Outcome outcome;
  RingsForTest rings;
  rings.randomness = options.randomness;
  rings.interceptor = options.interceptor;
  const auto statuses = RunThreeParties(rings, 1, [&](int p, Rings& all) {
    PartyContext& party = all.first();
    ProofLog log;
    if (options.log) party.SetLog(&log);
    party.BeginBatch(1);
    Framed framed(party, make(party), options.flip, options.part, outcome.parties[p]);
    Cost counted;
    const Cost declared = framed.DeclaredCost();
    const absl::Status s = RunTogether(party, {&framed}, &counted);
    outcome.parties[p].Add(log);
    if (options.randomness == Randomness::kKeyed) {
      EXPECT_EQ(counted, declared);
    }
    if (p == 0) outcome.counted = counted;
    if (p == 0) outcome.recorded_bytes = log.message_bytes();
    log.Clear();
    EXPECT_EQ(log.bytes(), 0u) << "a section was left open";
    party.SetLog(nullptr);
    return s;
  });
  // A check that was tampered with may open to different values.
  for (const absl::Status& s : statuses) EXPECT_TRUE(s.ok() || options.flip.party >= 0) << s;
  return outcome;
}

// All that was sent is recorded, but for what is opened to the servers; and it is true.
void ExpectAllRecorded(const Outcome& outcome, const std::string& what) {
  EXPECT_NE(outcome.recorded_bytes, 0u) << what;
  // What is opened goes to both neighbours in equal parts.
  EXPECT_EQ(outcome.recorded_bytes, outcome.counted.bytes_to_next - outcome.counted.bytes_to_prev)
      << what;
  const OracleResult result = AskOracle(outcome.parties);
  EXPECT_EQ(result.malformed, "") << what;
  EXPECT_EQ(result.other_wires, 0u) << what;
  EXPECT_EQ(result.false_bits.size(), 0u) << what;
}
void ExpectAllRecorded(const Make& make, const std::string& what) {
  ExpectAllRecorded(RunRecorded(make, {}), what);
}

// --- everything is recorded, and true ------------------------------------------------------------

TEST(RecordingTest, Aes) {
  for (const AesDirection direction : {AesDirection::kEncrypt, AesDirection::kDecrypt}) {
    for (const AesBits bits : {AesBits::k128, AesBits::k256}) {
      for (const Sbox sbox : {Sbox::kThroughput, Sbox::kLatency}) {
        for (const Isa isa : SupportedIsas()) {
          for (const size_t lanes : {1, 64, 65, 509, 512, 530}) {
            const Aes c = {direction, bits, sbox, lanes, isa};
            ExpectAllRecorded(MakeAes(c), std::to_string(lanes) + " lanes");
          }
        }
      }
    }
  }
}

TEST(RecordingTest, KeySchedule) {
  for (const AesBits bits : {AesBits::k128, AesBits::k256}) {
    for (const Isa isa : SupportedIsas()) {
      for (const size_t lanes : {3, 64, 70, 512, 515}) {
        ExpectAllRecorded(MakeKeySchedule(bits, lanes, isa), std::to_string(lanes) + " keys");
      }
    }
  }
}

TEST(RecordingTest, FieldProducts) {
  for (const Isa isa : SupportedIsas()) {
    ExpectAllRecorded(MakePowers({1, 2, 3, 5, 18, 0, 33}, isa), "powers");
    ExpectAllRecorded(MakeZeroCheck(isa), "zero check");
  }
}

TEST(RecordingTest, Hashes) {
  for (const Isa isa : SupportedIsas()) {
    for (const size_t lanes : {1, 63, 64, 150, 513}) {
      const Mac c = {HashKind::kSha1, Adder::kPrefix, lanes, isa};
      ExpectAllRecorded(MakeHmacStates(c), "states " + std::to_string(lanes));
    }
    ExpectAllRecorded(MakeHmac({HashKind::kSha1, Adder::kPrefix, 9, isa}), "sha1");
  }
  for (const HashKind hash : {HashKind::kSha1, HashKind::kSha256, HashKind::kSha384}) {
    for (const Adder adder : {Adder::kRipple, Adder::kPrefix, Adder::kFewestRounds}) {
      ExpectAllRecorded(MakeHmac({hash, adder, 2}), "hmac");
    }
  }
}

// What a section can say is as much as a program opens at once.
TEST(RecordingTest, NoProgramOpensMoreProductsThanAGadgetHas) {
  size_t most = 0;
  for (const HashKind hash : {HashKind::kSha1, HashKind::kSha256, HashKind::kSha384}) {
    for (const Adder adder : {Adder::kRipple, Adder::kPrefix, Adder::kFewestRounds}) {
      for (const MessageKind kind : {MessageKind::kPublic, MessageKind::kShared}) {
        for (const BitSection& s : HashProgram(hash, kind, adder).sections) {
          if (s.op != BitOp::kProducts) continue;
          EXPECT_GE(s.products, 1);
          most = std::max<size_t>(most, s.products);
        }
      }
    }
  }
  EXPECT_EQ(most, kMaxProofProducts);
}

TEST(RecordingTest, CipherTextStealing) {
  for (const Sbox sbox : {Sbox::kThroughput, Sbox::kLatency}) {
    ExpectAllRecorded(MakeCts<CtsEncrypt>(AesBits::k128, sbox), "encrypt");
    ExpectAllRecorded(MakeCts<CtsDecrypt>(AesBits::k256, sbox), "decrypt");
  }
}

TEST(RecordingTest, UsageKeysOfEveryEnctype) {
  for (const Enctype& enctype : kEnctypes) {
    ExpectAllRecorded(MakeUsageKeys(enctype), std::string(enctype.name));
  }
}

// rho_{i-1} and rho_i take the places of the two streams.
TEST(RecordingTest, ExchangedRandomness) {
  Options options;
  options.randomness = Randomness::kExchanged;
  for (const Make& make : {MakeAes({AesDirection::kEncrypt, AesBits::k128, Sbox::kThroughput, 70}),
                           MakeHmacStates({HashKind::kSha1, Adder::kPrefix, 3}),
                           MakePowers({9}, BestIsa()), MakeZeroCheck(BestIsa())}) {
    Outcome outcome = RunRecorded(make, options);
    // The exchange itself is as long as all that circuits send, openings too.
    outcome.counted.bytes_to_next /= 2;
    ExpectAllRecorded(outcome, "exchanged");
  }
}

// What is closed is taken away every few rounds; what is open stays and is complete in the end.
TEST(RecordingTest, InParts) {
  for (const Make& make : {MakeAes({AesDirection::kDecrypt, AesBits::k256, Sbox::kLatency, 600}),
                           MakeKeySchedule(AesBits::k128, 5, BestIsa()),
                           MakeHmac({HashKind::kSha1, Adder::kPrefix, 5}),
                           MakeHmac({HashKind::kSha256, Adder::kRipple, 2})}) {
    for (const size_t part : {size_t{0}, size_t{100} << 10}) {
      Options options;
      options.part = part;
      ExpectAllRecorded(RunRecorded(make, options), "in parts");
    }
  }
}

// Chunks that are under way at the same time write one log.
TEST(RecordingTest, OverlappedChunks) {
  constexpr size_t kLanes = 1600;
  const Shares keys = RandomShares(AesRoundKeys(AesBits::k128), 1);
  std::array<Recording, 3> parties;
  const auto statuses = RunThreeParties(RingsForTest(), 1, [&](int p, Rings& rings) {
    ProofLog log;
    rings.first().SetLog(&log);
    rings.BeginBatch(1);
    const std::vector<AesLane> lanes(kLanes, AesLane{keys[p].data(), nullptr, {}});
    AesBatch batch({512, 3, 1 << 20});
    Cost cost;
    const absl::Status s = batch.Run(rings, lanes, {}, Sbox::kThroughput, {}, &cost);
    EXPECT_EQ(log.message_bytes(), cost.bytes_to_next);
    parties[p].Add(log);
    return s;
  });
  for (const absl::Status& s : statuses) EXPECT_TRUE(s.ok()) << s;
  const OracleResult result = AskOracle(parties);
  EXPECT_EQ(parties[0].sections().size(), 20u);
  EXPECT_EQ(result.malformed, "");
  EXPECT_EQ(result.other_wires + result.false_bits.size(), 0u);
}

// Sends a block and says nothing of it.
class Forgetful : public Circuit {
 public:
  bool Done() const override { return done_; }
  RoundShape NextRound() const override { return {sizeof(Block), 0, "forgetful"}; }
  void Produce(ZeroShares& zero, RoundOut out) override { zero.Fill(out.to_next); }
  absl::Status Consume(RoundIn) override {
    done_ = true;
    return absl::OkStatus();
  }
  Cost DeclaredCost() const override { return {1, sizeof(Block), 0}; }

 private:
  bool done_ = false;
};

TEST(RecordingTest, ACircuitThatForgetsToRecordFails) {
  for (const Randomness randomness : {Randomness::kKeyed, Randomness::kExchanged}) {
    for (const bool log : {false, true}) {
      RingsForTest rings;
      rings.randomness = randomness;
      const auto statuses = RunThreeParties(rings, 1, [&](int, Rings& all) {
        ProofLog recorded;
        if (log) all.first().SetLog(&recorded);
        all.BeginBatch(1);
        Forgetful circuit;
        const absl::Status s = RunTogether(all.first(), {&circuit});
        all.first().SetLog(nullptr);
        return s;
      });
      for (const absl::Status& s : statuses) {
        EXPECT_EQ(s.ok(), !log) << s;
        if (log) {
          EXPECT_EQ(s.message(), "circuits sent 16 bytes to be proved and recorded 0");
        }
      }
    }
  }
}

// The messages are the same with and without a log, so a server that proves nothing computes the
// same.
TEST(RecordingTest, ChangesNoMessage) {
  for (const Make& make :
       {MakeAes({AesDirection::kEncrypt, AesBits::k128, Sbox::kThroughput, 530}),
        MakeHmac({HashKind::kSha1, Adder::kPrefix, 3}), MakePowers({9}, BestIsa()),
        MakeKeySchedule(AesBits::k256, 70, BestIsa())}) {
    std::map<std::pair<int, int>, std::string> sent[2];
    for (const bool log : {false, true}) {
      Options options;
      options.log = log;
      options.interceptor = [&](MemoryRing::Intercepted& m) {
        sent[log][{m.from, m.to}].append(m.payload.begin(), m.payload.end());
      };
      RunRecorded(make, options);
    }
    EXPECT_FALSE(sent[0].empty());
    EXPECT_TRUE(sent[0] == sent[1]);
  }
}

// --- and what is not true shows ------------------------------------------------------------------

size_t Lane(const Flip& flip, size_t row_bytes) { return flip.byte % row_bytes * 8 + flip.bit; }

// One bit in each stage of the first, the second and the last round. Where a bit is sent as it is,
// one bit is false; behind the linear layer one bit of the message is some of one column.
TEST(FlipTest, EveryStageOfAes) {
  constexpr size_t kLanes = 70, kRow = 9;
  for (const AesDirection direction : {AesDirection::kEncrypt, AesDirection::kDecrypt}) {
    for (const Sbox sbox : {Sbox::kThroughput, Sbox::kLatency}) {
      const Make make = MakeAes({direction, AesBits::k128, sbox, kLanes});
      const size_t stages = SboxStages(sbox);
      for (const size_t round : {size_t{0}, size_t{1}, size_t{9}}) {
        size_t first_bit = 0;
        for (size_t s = 0; s < stages; ++s) {
          const size_t per_byte = SlicesPerByte(StageAt(sbox, s));
          const Flip flip = {static_cast<int>((round + s) % 3), round * stages + s,
                             (7 * per_byte + s % per_byte) * kRow + 8 - s, 5};
          const OracleResult result = AskOracle(RunRecorded(make, {flip}).parties);
          EXPECT_EQ(result.malformed, "");
          EXPECT_EQ(result.other_wires, 0u);
          ASSERT_GE(result.false_bits.size(), 1u) << "round " << round << " stage " << s;
          if (s + 1 < stages) {
            EXPECT_EQ(result.false_bits.size(), 1u);
            EXPECT_EQ(result.false_bits[0].node % 16, 7u);
          }
          for (const FalseBit& f : result.false_bits) {
            EXPECT_EQ(f.prover, flip.party);
            EXPECT_EQ(f.section, round / 2);
            EXPECT_EQ(f.lane, Lane(flip, kRow));
            EXPECT_EQ(f.node / 16, round % 2);
            EXPECT_GE(f.bit, first_bit);
            EXPECT_LT(f.bit, first_bit + per_byte);
          }
          first_bit += per_byte;
        }
      }
    }
  }
}

TEST(FlipTest, KeySchedule) {
  constexpr size_t kLanes = 3, kRow = 1;
  const Make make = MakeKeySchedule(AesBits::k256, kLanes, BestIsa());
  for (const size_t word : {0, 7, 8, 12}) {
    const Flip flip = {2, 4 * word + 2, 4 * 3 * kRow, 1};  // the inverse's first bit of byte 3
    const OracleResult result = AskOracle(RunRecorded(make, {flip}).parties);
    ASSERT_EQ(result.false_bits.size(), 1u) << word;
    const FalseBit& f = result.false_bits[0];
    EXPECT_EQ(f.prover, 2);
    EXPECT_EQ(f.section, word / 8);
    EXPECT_EQ(f.node, word % 8 * 4 + 3);
    EXPECT_EQ(f.bit, 5u);
    EXPECT_EQ(f.lane, 1u);
  }
}

// Any bit of a hash's messages: that one is false and no other.
TEST(FlipTest, Hashes) {
  constexpr size_t kLanes = 70, kRow = 9;
  for (const Adder adder : {Adder::kRipple, Adder::kPrefix}) {
    const Make make = MakeHmacStates({HashKind::kSha1, adder, kLanes / 2});
    const BitProgram& program = HashProgram(HashKind::kSha1, MessageKind::kShared, adder);
    for (size_t i = 0; i < 12; ++i) {
      const size_t round = program.rounds() * i / 12;
      const size_t row = program.stages[round].opened * (i % 3) / 3;
      const Flip flip = {static_cast<int>(i % 3), round, row * kRow + i % 8, 4};
      const OracleResult result = AskOracle(RunRecorded(make, {flip}).parties);
      EXPECT_EQ(result.other_wires, 0u);
      ASSERT_EQ(result.false_bits.size(), 1u) << "round " << round << " row " << row;
      EXPECT_EQ(result.false_bits[0].prover, flip.party);
      EXPECT_EQ(result.false_bits[0].lane, Lane(flip, kRow));
    }
  }
}

TEST(FlipTest, FieldProducts) {
  for (const size_t item : {0, 2}) {
    for (const Make& make : {MakeZeroCheck(BestIsa()), MakePowers({4, 9, 4}, BestIsa())}) {
      const Flip flip = {1, 0, 16 * item + 3, 7};
      const OracleResult result = AskOracle(RunRecorded(make, {flip}).parties);
      ASSERT_EQ(result.false_bits.size(), 1u);
      EXPECT_EQ(result.false_bits[0].prover, 1);
      EXPECT_TRUE(result.false_bits[0].field);
      EXPECT_EQ(result.false_bits[0].node, item);
    }
  }
}

// A lie that only the receiver sees: what it holds is not what the sender proves.
TEST(FlipTest, SeenByTheReceiverAlone) {
  const Make make = MakeAes({AesDirection::kEncrypt, AesBits::k128, Sbox::kThroughput, 70});
  for (const uint16_t round : {0, 5, 10, 39}) {
    Options options;
    options.interceptor = [round](MemoryRing::Intercepted& m) {
      if (m.from == 1 && m.to == 2 && m.round == round && m.type == FrameType::kRound) {
        m.payload[3] ^= 1;
      }
    };
    const OracleResult result = AskOracle(RunRecorded(make, options).parties);
    EXPECT_NE(result.false_bits.size(), 0u) << round;
    // The last message is nobody's wire any more.
    EXPECT_EQ(result.other_wires == 0, round == 39);
  }
}

// Lanes that are not there carry no statement.
TEST(FlipTest, NobodysLanesDoNotMatter) {
  const Make make = MakeAes({AesDirection::kEncrypt, AesBits::k128, Sbox::kLatency, 3});
  const OracleResult result = AskOracle(RunRecorded(make, {{0, 1, 5, 3}}).parties);
  EXPECT_EQ(result.malformed, "");
  EXPECT_EQ(result.false_bits.size() + result.other_wires, 0u);
}

}  // namespace
}  // namespace mpckdc
