// SPDX-License-Identifier: Apache-2.0
// Circuits under a verifier: nothing is opened before the proof, no altered message survives, and
// nothing is left on the stack.
#include <algorithm>
#include <cstring>

#include "gtest/gtest.h"
#include "mpc-server/circuit/aes/aes_circuit.h"
#include "mpc-server/circuit/checks.h"
#include "mpc-server/proof/batch_verifier.h"
#include "mpc-server/share/deviation.h"
#include "mpc-server/share/reveal.h"
#include "mpc-server/testing/three_parties.h"

namespace mpckdc::proof {
namespace {

struct Outcome {
  std::array<absl::Status, kParties> statuses;
  std::vector<std::string> steps;  // what P0 sent to P1, in order
  bool opened[kParties] = {};
  std::vector<Block> values[kParties];
};

// Alters what one party sends, which goes on with what it sent: so it is consistent with itself.
struct OwnLie {
  int party = -1;
  size_t round = 0;
  std::function<void(absl::Span<uint8_t> message)> alter;
};
class Lying : public Circuit {
 public:
  Lying(Circuit& inner, const OwnLie& lie) : inner_(inner), lie_(lie) {}
  bool Done() const override { return inner_.Done(); }
  RoundShape NextRound() const override { return inner_.NextRound(); }
  void Produce(ZeroShares& zero, RoundOut out) override {
    inner_.Produce(zero, out);
    if (round_++ == lie_.round) lie_.alter(out.to_next);
  }
  absl::Status Consume(RoundIn in) override { return inner_.Consume(in); }
  Cost DeclaredCost() const override { return inner_.DeclaredCost(); }

 private:
  Circuit& inner_;
  const OwnLie& lie_;
  size_t round_ = 0;
};

// AES of some blocks under a shared key, then the outputs are opened.
Outcome EncryptAndOpen(AesBits bits, Sbox sbox, size_t lanes, bool verify,
                       const MemoryRing::Interceptor& alter = {}, const OwnLie& lie = {}) {
  Outcome run;
  SeededRandomForTest random(7);
  std::array<SecretVector<SharedBlock>, kParties> keys;
  for (size_t i = 0; i < AesRoundKeys(bits); ++i) {
    Block key;
    random.Fill(absl::MakeSpan(key));
    const auto split = SplitForTest(key, random);
    for (int p = 0; p < kParties; ++p) keys[p].push_back(split[p]);
  }
  MemoryRing ring;
  ring.SetInterceptor([&](MemoryRing::Intercepted& m) {
    if (m.from == 0 && m.to == 1) run.steps.push_back(m.step);
    if (alter) alter(m);
  });
  run.statuses = RunThreeParties(ring, 1, [&](PartyContext& party) {
    const int p = party.party();
    party.BeginBatch(1);
    SeededRandomForTest coins(10 + static_cast<uint64_t>(p));
    std::optional<BatchVerifier> verifier;
    if (verify) verifier.emplace(party, coins);
    AesEncrypt aes(bits);
    std::vector<AesLane> all;
    for (size_t j = 0; j < lanes; ++j) {
      AesLane lane{};
      lane.round_keys = keys[p].data();
      lane.public_input[0] = static_cast<uint8_t>(j);
      all.push_back(lane);
    }
    aes.Reset(all, sbox);
    Lying lying(aes, lie);
    Circuit* circuits[] = {&aes};
    if (p == lie.party) circuits[0] = &lying;
    absl::Status s = RunTogether(party, circuits);
    if (!s.ok()) return s;
    OpenToServers open(p, "open");
    open.Reset(aes.outputs());
    circuits[0] = &open;
    s = RunTogether(party, circuits);
    run.opened[p] = s.ok();
    run.values[p].assign(open.values().begin(), open.values().end());
    return s;
  });
  return run;
}

TEST(CircuitProofTest, AProofComesBeforeAnOpening) {
  const Outcome run = EncryptAndOpen(AesBits::k128, Sbox::kThroughput, 20, true);
  for (const absl::Status& s : run.statuses) EXPECT_TRUE(s.ok()) << s;
  ASSERT_GE(run.steps.size(), 7u);
  EXPECT_EQ(run.steps.back(), "open");
  EXPECT_EQ(run.steps[run.steps.size() - 2], "proof/verdict");
}

TEST(CircuitProofTest, HonestRuns) {
  for (const AesBits bits : {AesBits::k128, AesBits::k256}) {
    for (const Sbox sbox : {Sbox::kThroughput, Sbox::kLatency}) {
      for (const size_t lanes : {1, 64, 65, 512, 600}) {
        const Outcome run = EncryptAndOpen(bits, sbox, lanes, true);
        for (const absl::Status& s : run.statuses) EXPECT_TRUE(s.ok()) << s;
      }
    }
  }
}

// One bit of one message of each step, by each party. Without a verifier most of them are not even
// noticed.
TEST(CircuitProofTest, AnAlteredBitIsCaught) {
  int unnoticed = 0, altered = 0;
  for (const Sbox sbox : {Sbox::kThroughput, Sbox::kLatency}) {
    for (int round = 0; round < (sbox == Sbox::kThroughput ? 40 : 30); round += 3) {
      for (int from = 0; from < kParties; ++from) {
        const auto flip = [&](MemoryRing::Intercepted& m) {
          if (m.from != from || m.round != round || m.type != FrameType::kRound) return;
          if (m.step.rfind("aes/", 0) != 0) return;
          m.payload[static_cast<size_t>(7 * round) % m.payload.size()] ^= 1;
          ++altered;
        };
        const Outcome run = EncryptAndOpen(AesBits::k128, sbox, 8, true, flip);
        for (int p = 0; p < kParties; ++p) {
          EXPECT_FALSE(run.opened[p]);
          if (IsDeviation(run.statuses[p]) && p != from) {
            EXPECT_TRUE(SuspectsOf(run.statuses[p])->Has(from));
          }
        }
        const Outcome without = EncryptAndOpen(AesBits::k128, sbox, 8, false, flip);
        unnoticed += without.opened[0] && without.opened[1] && without.opened[2];
      }
    }
  }
  EXPECT_GT(altered, 100);
  EXPECT_GT(unnoticed, altered / 8);
}

// The image in K of w in GF(16).
constexpr uint64_t kImageOfW = 0xa181e7d66f5ff794;

// P0 alters the norm of byte 0 in the last round but one: coordinate 1 in one lane, coordinate 0 in
// those lanes whose weights add up to the same (proof/message_proof_test.cc says why). What it then
// has opened are wrong blocks, of which fault analysis makes the key.
TEST(CircuitProofTest, ALieInManyLanesOpensNothing) {
  for (const Sbox sbox : {Sbox::kThroughput, Sbox::kLatency}) {
    for (const size_t lanes : {64, 512}) {
      const size_t stages = sbox == Sbox::kThroughput ? 4 : 3;
      const OwnLie lie = {0, 8 * stages, [&](absl::Span<uint8_t> message) {
                            auto* rows = reinterpret_cast<uint64_t*>(message.data());
                            rows[0] ^= kImageOfW;
                            rows[lanes / 64] ^= 1;
                          }};
      const Outcome right = EncryptAndOpen(AesBits::k128, sbox, lanes, true);
      const Outcome run = EncryptAndOpen(AesBits::k128, sbox, lanes, true, {}, lie);
      for (const int honest : {1, 2}) {
        EXPECT_FALSE(run.opened[honest]) << "P" << honest << " of " << lanes << " lanes";
        if (!run.opened[honest]) continue;
        EXPECT_TRUE(run.values[honest] == right.values[honest])
            << "P" << honest << " has wrong blocks";
      }
    }
  }
}

// ---- The stack ----

constexpr size_t kPainted = 1 << 20;
constexpr uint8_t kPaint = 0xAB;

__attribute__((noinline)) void PaintStack() {
  uint8_t paint[kPainted];
  std::memset(paint, kPaint, sizeof(paint));
  __asm__ volatile("" : : "r"(paint) : "memory");
}

// Below the caller's frame and those of the calls that led to the proof, which hold no share.
struct LeftOnStack {
  size_t deepest = 0;  // that was written to since the painting
  size_t other = 0;    // bytes that are neither paint nor zero
};
__attribute__((noinline)) LeftOnStack LookBelow(const uint8_t* frame) {
#ifdef __SANITIZE_ADDRESS__
  constexpr size_t kCalls = 4096;  // frames have room around each variable
#else
  constexpr size_t kCalls = 2048;
#endif
  constexpr size_t kWiping = 128;  // the wiping functions' own calls, at the end of what they wipe
  LeftOnStack left;
  for (size_t depth = kPainted; depth > kCalls; --depth) {
    const uint8_t byte = *static_cast<const volatile uint8_t*>(frame - depth);
    if (byte != kPaint) left.deepest = std::max(left.deepest, depth);
    left.other += byte != kPaint && byte != 0 && depth + kWiping < left.deepest;
  }
  return left;
}

// A batch is recorded and proved; without the proof it shows what circuits leave.
LeftOnStack RecordAndProve(Isa isa, size_t lanes, bool prove) {
  LeftOnStack of_first;
  MemoryRing ring;
  const auto statuses = RunThreeParties(ring, 1, [&](PartyContext& party) {
    party.BeginBatch(1);
    SeededRandomForTest coins(10 + static_cast<uint64_t>(party.party()));
    const auto verifier = std::make_unique<BatchVerifier>(party, coins, isa);
    std::vector<SharedBlock> keys(AesRoundKeys(AesBits::k128));
    AesEncrypt aes(AesBits::k128);
    AesLane lane{};
    lane.round_keys = keys.data();
    aes.Reset(std::vector<AesLane>(lanes, lane), Sbox::kLatency);
    PaintStack();
    absl::Status s = RunTogether(party, {&aes});
    if (s.ok() && prove) s = party.Verify(nullptr);
    const auto* frame = static_cast<const uint8_t*>(__builtin_frame_address(0));
    if (party.party() == 0) of_first = LookBelow(frame);
    return s;
  });
  for (const absl::Status& s : statuses) EXPECT_TRUE(s.ok()) << s;
  return of_first;
}

// And what is wiped is deeper than a proof or a circuit goes.
TEST(CircuitProofTest, AProofLeavesNothingOnTheStack) {
  for (const Isa isa : SupportedIsas()) {
    for (const size_t lanes : {9, 600}) {
      const LeftOnStack before = RecordAndProve(isa, lanes, false);
      EXPECT_GT(before.other, 0u);
      const LeftOnStack after = RecordAndProve(isa, lanes, true);
      EXPECT_EQ(after.other, 0u) << after.deepest;
      std::printf("isa %d: circuits reach %zu bytes, the wipe %zu\n", static_cast<int>(isa),
                  before.deepest, after.deepest);
    }
  }
}

}  // namespace
}  // namespace mpckdc::proof
