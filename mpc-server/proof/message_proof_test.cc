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

constexpr ProofGadget kAllGadgets[] = {
    ProofGadget::kSbox17,    ProofGadget::kSbox22,    ProofGadget::kProducts1,
    ProofGadget::kProducts2, ProofGadget::kProducts3, ProofGadget::kProducts4,
    ProofGadget::kProducts5, ProofGadget::kProducts6, ProofGadget::kProducts7};

TEST(MessageProofTest, HonestServersAcceptEveryGadget) {
  for (const ProofGadget gadget : kAllGadgets) {
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
    logs.Add(SectionShape{ProofGadget::kProducts1, 33, 7});
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
  for (const ProofGadget gadget : kAllGadgets) {
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

}  // namespace
}  // namespace mpckdc::proof
