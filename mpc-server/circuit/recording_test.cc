// SPDX-License-Identifier: Apache-2.0
// What circuits record of their messages (share/proof_log.h): all of it, and true; and false as
// soon as a bit is not what follows from the shares.
#include <map>

#include "gtest/gtest.h"
#include "mpc-server/circuit/aes/aes_batch.h"
#include "mpc-server/circuit/hash/hash_programs.h"
#include "mpc-server/testing/recorded_run.h"
#include "mpc-server/testing/sample_circuits.h"
#include "mpc-server/testing/three_parties.h"

namespace mpckdc {
namespace {

// All that was sent is recorded, but for what is opened to the servers; and it is true.
void ExpectAllRecorded(const RecordedRun& outcome, const std::string& what) {
  EXPECT_NE(outcome.recorded_bytes, 0u) << what;
  // What is opened goes to both neighbours in equal parts.
  EXPECT_EQ(outcome.recorded_bytes, outcome.counted.bytes_to_next - outcome.counted.bytes_to_prev)
      << what;
  const OracleResult result = AskOracle(outcome.parties);
  EXPECT_EQ(result.malformed, "") << what;
  EXPECT_EQ(result.other_wires, 0u) << what;
  EXPECT_EQ(result.false_bits.size(), 0u) << what;
}
void ExpectAllRecorded(const MakeCircuit& make, const std::string& what) {
  ExpectAllRecorded(RunRecorded(make, {}), what);
}

// --- everything is recorded, and true ------------------------------------------------------------

TEST(RecordingTest, Aes) {
  for (const AesDirection direction : {AesDirection::kEncrypt, AesDirection::kDecrypt}) {
    for (const AesBits bits : {AesBits::k128, AesBits::k256}) {
      for (const Sbox sbox : {Sbox::kThroughput, Sbox::kLatency}) {
        for (const Isa isa : SupportedIsas()) {
          for (const size_t lanes : {1, 64, 65, 509, 512, 530}) {
            const AesSample c = {direction, bits, sbox, lanes, isa};
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
      const MacSample c = {HashKind::kSha1, Adder::kPrefix, lanes, isa};
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
  EXPECT_EQ(most, kMaxGadgetProducts);
}

TEST(RecordingTest, CipherTextStealing) {
  for (const Sbox sbox : {Sbox::kThroughput, Sbox::kLatency}) {
    ExpectAllRecorded(MakeCtsEncrypt(AesBits::k128, sbox), "encrypt");
    ExpectAllRecorded(MakeCtsDecrypt(AesBits::k256, sbox), "decrypt");
  }
}

TEST(RecordingTest, UsageKeysOfEveryEnctype) {
  for (const Enctype& enctype : kEnctypes) {
    ExpectAllRecorded(MakeUsageKeys(enctype), std::string(enctype.name));
  }
}

// rho_{i-1} and rho_i take the places of the two streams.
TEST(RecordingTest, ExchangedRandomness) {
  RecordOptions options;
  options.randomness = Randomness::kExchanged;
  for (const MakeCircuit& make :
       {MakeAes({AesDirection::kEncrypt, AesBits::k128, Sbox::kThroughput, 70}),
        MakeHmacStates({HashKind::kSha1, Adder::kPrefix, 3}), MakePowers({9}, BestIsa()),
        MakeZeroCheck(BestIsa())}) {
    RecordedRun outcome = RunRecorded(make, options);
    // The exchange itself is as long as all that circuits send, openings too.
    outcome.counted.bytes_to_next /= 2;
    ExpectAllRecorded(outcome, "exchanged");
  }
}

// What is closed is taken away every few rounds; what is open stays and is complete in the end.
TEST(RecordingTest, InParts) {
  for (const MakeCircuit& make :
       {MakeAes({AesDirection::kDecrypt, AesBits::k256, Sbox::kLatency, 600}),
        MakeKeySchedule(AesBits::k128, 5, BestIsa()),
        MakeHmac({HashKind::kSha1, Adder::kPrefix, 5}),
        MakeHmac({HashKind::kSha256, Adder::kRipple, 2})}) {
    for (const size_t part : {size_t{0}, size_t{100} << 10}) {
      RecordOptions options;
      options.part = part;
      ExpectAllRecorded(RunRecorded(make, options), "in parts");
    }
  }
}

// Chunks that are under way at the same time write one log; its later sections are far.
void RunChunks(Sbox sbox) {
  constexpr size_t kLanes = 1600;
  const SampleShares keys = RandomShares(AesRoundKeys(AesBits::k128), 1);
  std::array<Recording, 3> parties;
  const auto statuses = RunThreeParties(RingsForTest(), 1, [&](int p, Rings& rings) {
    ProofLog log;
    rings.first().SetLog(&log);
    rings.BeginBatch(1);
    const std::vector<AesLane> lanes(kLanes, AesLane{keys[p].data(), nullptr, {}});
    AesBatch batch({512, 3, 1 << 20});
    Cost cost;
    const absl::Status s = batch.Run(rings, lanes, {}, sbox, {}, &cost);
    EXPECT_EQ(log.message_bytes(), cost.bytes_to_next);
    EXPECT_FALSE(log.sections().front().far);
    EXPECT_TRUE(log.sections().back().far);
    parties[p].Add(log);
    return s;
  });
  for (const absl::Status& s : statuses) EXPECT_TRUE(s.ok()) << s;
  const OracleResult result = AskOracle(parties);
  EXPECT_EQ(parties[0].sections().size(), 20u);
  EXPECT_EQ(result.malformed, "");
  EXPECT_EQ(result.other_wires + result.false_bits.size(), 0u);
}
TEST(RecordingTest, OverlappedChunks) {
  RunChunks(Sbox::kThroughput);
  RunChunks(Sbox::kLatency);
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
  for (const MakeCircuit& make :
       {MakeAes({AesDirection::kEncrypt, AesBits::k128, Sbox::kThroughput, 530}),
        MakeHmac({HashKind::kSha1, Adder::kPrefix, 3}), MakePowers({9}, BestIsa()),
        MakeKeySchedule(AesBits::k256, 70, BestIsa())}) {
    std::map<std::pair<int, int>, std::string> sent[2];
    for (const bool log : {false, true}) {
      RecordOptions options;
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

size_t Lane(const BitFlip& flip, size_t row_bytes) { return flip.byte % row_bytes * 8 + flip.bit; }

// One bit in each stage of the first, the second and the last round. Where a bit is sent as it is,
// one bit is false; behind the linear layer one bit of the message is some of one column.
TEST(FlipTest, EveryStageOfAes) {
  constexpr size_t kLanes = 70, kRow = 9;
  for (const AesDirection direction : {AesDirection::kEncrypt, AesDirection::kDecrypt}) {
    for (const Sbox sbox : {Sbox::kThroughput, Sbox::kLatency}) {
      const MakeCircuit make = MakeAes({direction, AesBits::k128, sbox, kLanes});
      const size_t stages = SboxStages(sbox);
      for (const size_t round : {size_t{0}, size_t{1}, size_t{9}}) {
        size_t first_bit = 0;
        for (size_t s = 0; s < stages; ++s) {
          const size_t per_byte = SlicesPerByte(StageAt(sbox, s));
          const BitFlip flip = {static_cast<int>((round + s) % 3), round * stages + s,
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
            // 64 lanes in one section and 6 in another.
            EXPECT_EQ(f.section, round / 2 * 2 + Lane(flip, kRow) / kFewProofLanes);
            EXPECT_EQ(f.lane, Lane(flip, kRow) % kFewProofLanes);
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
  const MakeCircuit make = MakeKeySchedule(AesBits::k256, kLanes, BestIsa());
  for (const size_t word : {0, 7, 8, 12}) {
    const BitFlip flip = {2, 4 * word + 2, 4 * 3 * kRow, 1};  // the inverse's first bit of byte 3
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
    const MakeCircuit make = MakeHmacStates({HashKind::kSha1, adder, kLanes / 2});
    const BitProgram& program = HashProgram(HashKind::kSha1, MessageKind::kShared, adder);
    for (size_t i = 0; i < 12; ++i) {
      const size_t round = program.rounds() * i / 12;
      const size_t row = program.stages[round].opened * (i % 3) / 3;
      const BitFlip flip = {static_cast<int>(i % 3), round, row * kRow + i % 8, 4};
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
    for (const MakeCircuit& make : {MakeZeroCheck(BestIsa()), MakePowers({4, 9, 4}, BestIsa())}) {
      const BitFlip flip = {1, 0, 16 * item + 3, 7};
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
  const MakeCircuit make = MakeAes({AesDirection::kEncrypt, AesBits::k128, Sbox::kThroughput, 70});
  for (const uint16_t round : {0, 5, 10, 39}) {
    RecordOptions options;
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
  const MakeCircuit make = MakeAes({AesDirection::kEncrypt, AesBits::k128, Sbox::kLatency, 3});
  const OracleResult result = AskOracle(RunRecorded(make, {{0, 1, 5, 3}}).parties);
  EXPECT_EQ(result.malformed, "");
  EXPECT_EQ(result.false_bits.size() + result.other_wires, 0u);
}

}  // namespace
}  // namespace mpckdc
