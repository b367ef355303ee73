// SPDX-License-Identifier: Apache-2.0
// Proofs of synthetic logs among three parties.
#include "mpc-server/proof/message_proof.h"

#include "gtest/gtest.h"
#include "mpc-server/testing/synthetic_logs.h"
#include "mpc-server/share/deviation.h"
#include "mpc-server/testing/three_parties.h"

namespace mpckdc::proof {
namespace {

// The three's statuses; the proof is run once.
std::array<absl::Status, kParties> Prove(SyntheticLogs& logs, MemoryRing::Interceptor alter = {}) {
  MemoryRing ring;
  if (alter) ring.SetInterceptor(std::move(alter));
  return RunThreeParties(ring, 1, [&](PartyContext& party) {
    party.BeginBatch(1);
    SeededRandomForTest random(100 + static_cast<uint64_t>(party.party()));
    CoinToss coins(party.party(), party.session_id(), random);
    MessageProof proof(party, coins);
    proof.Reset(logs.logs()[party.party()], Digest{1, 2, 3}, 0);
    Cost counted;
    Circuit* const circuits[] = {&proof};
    const Cost declared = proof.DeclaredCost();
    const absl::Status s = RunTogether(party, circuits, &counted);
    if (s.ok()) {
      EXPECT_EQ(declared, counted);
    }
    return s;
  });
}

void ExpectGood(const std::array<absl::Status, kParties>& statuses) {
  for (const absl::Status& s : statuses) EXPECT_TRUE(s.ok()) << s;
}
bool Caught(const std::array<absl::Status, kParties>& statuses) {
  return std::none_of(statuses.begin(), statuses.end(),
                      [](const absl::Status& s) { return s.ok(); });
}

constexpr Gadget kAllGadgets[] = {Gadget::kSbox17,    Gadget::kSbox22,    Gadget::kProducts1,
                                  Gadget::kProducts2, Gadget::kProducts3, Gadget::kProducts4,
                                  Gadget::kProducts5, Gadget::kProducts6, Gadget::kProducts7};

TEST(MessageProofTest, HonestServersAcceptEveryGadget) {
  for (const Gadget gadget : kAllGadgets) {
    SCOPED_TRACE(static_cast<int>(gadget));
    SyntheticLogs logs(1);
    logs.Add(SectionShape{gadget, 3, 5});
    ExpectGood(Prove(logs));
    SyntheticLogs wide(2);
    wide.Add(SectionShape{gadget, 70, 32});
    ExpectGood(Prove(wide));
  }
}

TEST(MessageProofTest, HonestServersAcceptAMixture) {
  SyntheticLogs logs(3);
  for (int i = 0; i < 11; ++i) {
    logs.Add(SectionShape{kAllGadgets[i % 9], i % 2 == 0 ? 64u : 512u, 32});
    logs.Add(SectionShape{Gadget::kProducts1, 33, 7});
    logs.Add(FieldShape{{1, 3, 2}});
  }
  ExpectGood(Prove(logs));
}

TEST(MessageProofTest, FieldProductsAlone) {
  SyntheticLogs logs(4);
  logs.Add(FieldShape{{1}});
  ExpectGood(Prove(logs));
  for (int i = 0; i < 5; ++i) logs.Add(FieldShape{std::vector<size_t>(150, 1)});
  ExpectGood(Prove(logs));
}

// Any bit that one server holds otherwise than the others.
TEST(MessageProofTest, AnyBitThatDiffersIsCaught) {
  for (const Gadget gadget : kAllGadgets) {
    const size_t wires = GadgetWires(gadget), bits = GadgetBits(gadget);
    for (size_t at = 0; at < 2 * (wires + bits); ++at) {
      SyntheticLogs logs(5);
      logs.Add(SectionShape{gadget, 9, 6});
      const ProofSection& s = logs.logs()[at % 3].sections()[0];
      const size_t node = at % 6;
      const int role = at % 2 == 0 ? kProofOwn : kProofLeft;
      uint8_t* rows = at / 2 < wires ? s.Wires(role, node) + at / 2 * s.row
                                     : s.T(role, node) + (at / 2 - wires) * s.row;
      rows[at % 9 / 8] ^= static_cast<uint8_t>(1 << at % 8 % (at % 9 / 8 ? 1 : 8));
      EXPECT_TRUE(Caught(Prove(logs))) << static_cast<int>(gadget) << " " << at;
    }
  }
}

// The image in K of w in GF(16) = GF(2)[w] / (w^4 + w + 1): a root.
constexpr K kImageOfW{0xa181e7d66f5ff794};

// Three products would do for an S-box if coordinate k of an element of GF(16) had the weight
// beta * w^k. But the lanes of a word have the weights x^b, which are a basis over GF(2), and over
// GF(16) K has only 16 elements in a basis: errors of two coordinates of one element, w^k in the
// lanes of the first one and 1 in the other's, would add up to zero whatever was drawn.
TEST(MessageProofTest, ErrorsOfOneElementInManyLanesAreCaught) {
  ASSERT_EQ(kImageOfW * kImageOfW * kImageOfW * kImageOfW, kImageOfW + kOne);
  struct Bit {
    Gadget gadget;
    size_t first, bit, power;  // bit: of the element whose first one that is
  };
  std::vector<Bit> all = {{Gadget::kSbox22, 4, 5, 5}};
  for (const size_t first : {0, 5, 9, 13}) {
    for (size_t k = 1; k < 4; ++k) all.push_back({Gadget::kSbox17, first, first + k, k});
  }
  for (const size_t first : {0, 6, 10, 14, 18}) {
    for (size_t k = 1; k < 4; ++k) all.push_back({Gadget::kSbox22, first, first + k, k});
  }
  for (const Bit& of : all) {
    for (const size_t lanes : {64, 512}) {
      SyntheticLogs logs(6);
      logs.Add(SectionShape{of.gadget, lanes, 32});
      const ProofSection& s = logs.logs()[1].sections()[0];  // P0's messages, as P1 has them
      K pattern = kOne;
      for (size_t i = 0; i < of.power; ++i) pattern = pattern * kImageOfW;
      auto* const t = reinterpret_cast<uint64_t*>(s.T(kProofLeft, 3));
      t[of.first * s.row / 8] ^= pattern.v;
      t[of.bit * s.row / 8] ^= 1;
      EXPECT_TRUE(Caught(Prove(logs))) << "bit " << of.bit << " of " << lanes << " lanes";
    }
  }
}

// P2 tosses one coin with P1 and another one with P0: of each pair one is random, and they differ.
class TwoStories : public Circuit {
 public:
  TwoStories(Circuit& proof, PartyContext& party, RandomSource& random)
      : proof_(proof), to_next_(party.party(), party.session_id(), random) {}
  bool Done() const override { return proof_.Done(); }
  RoundShape NextRound() const override { return proof_.NextRound(); }
  void Produce(ZeroShares& zero, RoundOut out) override {
    step_ = proof_.NextRound().step;
    proof_.Produce(zero, out);
    if (step_ == "proof/commit") to_next_.Commit(out.to_next);
    if (IsReveal()) to_next_.Reveal(out.to_next);
  }
  absl::Status Consume(RoundIn in) override {
    if (step_ == "proof/commit") to_next_.TakeCommitments(in.from_prev, in.from_next);
    if (IsReveal()) to_next_.TakeReveals(in.from_prev, in.from_next).IgnoreError();
    return proof_.Consume(in);
  }
  Cost DeclaredCost() const override { return proof_.DeclaredCost(); }

 private:
  bool IsReveal() const { return step_ == "proof/weights" || step_ == "proof/point"; }

  Circuit& proof_;
  CoinToss to_next_;
  std::string step_;
};

// P0's shares at the end of P1's proof say nothing to P2 if P0 and P1 have the same coins: then
// they follow from what P2 has. With others the claim is a function of the secrets that P2 does not
// have otherwise, 128 bits of it; so P0 must not send it.
TEST(MessageProofTest, NothingIsSaidToOneWhoTellsTwoCoins) {
  SyntheticLogs logs(7);
  logs.Add(SectionShape{Gadget::kSbox17, 64, 32});
  int ends = 0, levels = 0;
  MemoryRing ring;
  ring.SetInterceptor([&](MemoryRing::Intercepted& m) {
    if (m.to != 2 || m.type != FrameType::kRound) return;
    ends += m.step == "proof/end";
    levels += m.step == "proof/levels";
  });
  const auto statuses = RunThreeParties(ring, 1, [&](PartyContext& party) {
    party.BeginBatch(1);
    SeededRandomForTest random(100 + static_cast<uint64_t>(party.party())), other(200);
    CoinToss coins(party.party(), party.session_id(), random);
    MessageProof proof(party, coins);
    proof.Reset(logs.logs()[party.party()], Digest{1, 2, 3}, 0);
    TwoStories stories(proof, party, other);
    Circuit* circuits[] = {&proof};
    if (party.party() == 2) circuits[0] = &stories;
    return RunTogether(party, circuits);
  });
  EXPECT_GT(levels, 0);  // it came so far
  EXPECT_EQ(ends, 0);
  EXPECT_TRUE(IsDeviation(statuses[0]) || IsDeviation(statuses[1]));
  for (const int honest : {0, 1}) {
    EXPECT_FALSE(statuses[honest].ok());
    if (!IsDeviation(statuses[honest])) continue;
    EXPECT_TRUE(SuspectsOf(statuses[honest])->Has(2)) << statuses[honest];
  }
}

}  // namespace
}  // namespace mpckdc::proof
