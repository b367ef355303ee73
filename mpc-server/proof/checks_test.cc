// SPDX-License-Identifier: Apache-2.0
// Each check of a proof, and of the runs that are proved: a lie that it catches, and that a control
// build without it does not. The liar is P0.
#include "gtest/gtest.h"
#include "mpc-server/proof/batch_verifier.h"
#include "mpc-server/proof/bits64.h"
#include "mpc-server/share/deviation.h"
#include "mpc-server/share/reveal.h"
#include "mpc-server/testing/control.h"
#include "mpc-server/testing/lockstep_proofs.h"
#include "mpc-server/testing/proof_control.h"
#include "mpc-server/testing/subfield.h"
#include "mpc-server/testing/synthetic_logs.h"
#include "mpc-server/testing/three_parties.h"

namespace mpckdc::proof {
namespace {

using Statuses = std::array<absl::Status, kParties>;

bool Accepted(const Statuses& statuses) { return statuses[1].ok() && statuses[2].ok(); }

class ChecksTest : public ::testing::Test {
 protected:
  ChecksTest() { logs_.Add(SectionShape{Gadget::kSbox17, 9, 5}); }
  ~ChecksTest() override {
    ControlForTest() = {};
    for (const std::string& check : dropped_) UpholdForTest(check);
  }

  void Drop(const std::string& check) {
    DropForTest(check);
    dropped_.push_back(check);
  }
  void Uphold(const std::string& check) { UpholdForTest(check); }

  // A bit that P0 sent to P1.
  void Lie() { logs_.logs()[1].sections()[0].T(kProofLeft, 2)[3] ^= 1; }
  // Whatever is hashed or tossed, the same is drawn: so that nothing else gives a lie away.
  void DrawAlways() {
    ControlForTest().weight = [](K) { return K{0x123456789ABCDEF1}; };
    ControlForTest().point = [](K) { return K{0x23456789ABCDEF12}; };
    ControlForTest().challenge = [](F) { return F{K{0x3456789ABCDEF123}, K{0x456789ABCDEF1234}}; };
  }
  Statuses Prove(const LockstepProofs::Alter& alter = {}) {
    LockstepProofs proofs;
    return proofs.Prove(logs_.logs(), alter);
  }

  SyntheticLogs logs_{1};
  std::vector<std::string> dropped_;
};

TEST_F(ChecksTest, TheProductIsTheClaim) {
  Lie();
  const Statuses statuses = Prove();
  EXPECT_FALSE(Accepted(statuses));
  EXPECT_TRUE(SuspectsOf(statuses[1])->Has(0));
  Drop("ProofProduct");
  EXPECT_TRUE(Accepted(Prove()));
}

// P0 gives L a hash of something else than R got; P0 tells two stories of its next coin. Each of
// two checks sees it: R compares what L saw, and with the verdict each compares all it saw. The
// second is seen before that: a prover's coins are not L's.
TEST_F(ChecksTest, WhatTheOthersSawIsTheSame) {
  DrawAlways();
  EXPECT_TRUE(Accepted(Prove()));
  for (const char* step : {"proof/levels", "proof/point"}) {
    if (step == std::string("proof/point")) Drop("ProofState");
    const auto lie = [step](LockstepRound& round) {
      if (round.step == step) round.to_prev[0][40] ^= 1;
    };
    EXPECT_FALSE(Accepted(Prove(lie)));
    Drop("ProofSeen");
    EXPECT_FALSE(Accepted(Prove(lie)));
    Drop("ProofView");
    EXPECT_TRUE(Accepted(Prove(lie)));
    Uphold("ProofSeen");
    EXPECT_FALSE(Accepted(Prove(lie)));
    Uphold("ProofView");
  }
}

// The first secret that it tosses coins with is `first`.
class ChosenSecret : public RandomSource {
 public:
  explicit ChosenSecret(uint64_t first) : first_(first) {}
  void Fill(absl::Span<uint8_t> out) override {
    if (std::exchange(fresh_, false)) {
      std::fill(out.begin(), out.end(), 0);
      std::memcpy(out.data(), &first_, sizeof(first_));
    } else {
      rest_.Fill(out);
    }
  }

 private:
  const uint64_t first_;
  bool fresh_ = true;
  SeededRandomForTest rest_{5};
};

// P0 looks for a secret with which coin 0 hides its lie, when it has those of the others. Over 16
// elements it is found soon. What it committed to before was another one.
TEST_F(ChecksTest, ACoinIsWhatWasCommittedTo) {
  const Subfield small(16);
  ControlForTest().weight = [&](K drawn) { return small.Of(drawn); };
  Lie();
  const auto prove = [&](uint64_t secret) {
    ChosenSecret chosen(secret);
    LockstepProofs proofs({}, {&chosen, nullptr, nullptr});
    return proofs.Prove(logs_.logs(), [](LockstepRound& round) {
      if (round.step != "proof/commit") return;
      round.to_next[0][0] ^= 1;
      round.to_prev[0][0] ^= 1;
    });
  };
  Drop("CoinCommitment");
  uint64_t secret = 0;
  while (!Accepted(prove(secret)) && secret < 200) ++secret;
  EXPECT_LT(secret, 200u);
  Uphold("CoinCommitment");
  const Statuses statuses = prove(secret);
  for (const int p : {1, 2}) EXPECT_EQ(SuspectsOf(statuses[p]), Suspects::One(0));
}

// ---- Runs ----

// z = u*w of 64 bits; only P0's error is no zero. Needs a log if it records.
class Product : public Circuit {
 public:
  struct Share {
    uint64_t x, a;
  };
  Product(const Share& u, const Share& w, uint64_t error, bool records)
      : u_(u), w_(w), error_(error), records_(records) {}

  bool Done() const override { return done_; }
  RoundShape NextRound() const override { return {sizeof(uint64_t), 0, "product"}; }
  void Produce(ZeroShares& zero, RoundOut out) override {
    log_ = zero.log();
    uint8_t alpha[8];
    const ZeroHalves halves = zero.FillApart(alpha);
    r_ = (u_.x & w_.x) ^ (u_.a & w_.a) ^ Bits64::Load(alpha) ^ error_;
    Bits64::Store(out.to_next.data(), r_);
    if (!records_) return;
    section_ = log_->Open(Gadget::kProducts1, 64);
    Bits64::Store(section_.Wires(kProofOwn), u_.a);
    Bits64::Store(section_.Wires(kProofOwn) + 8, w_.a);
    Bits64::Store(section_.Wires(kProofLeft), u_.x ^ u_.a);
    Bits64::Store(section_.Wires(kProofLeft) + 8, w_.x ^ w_.a);
    Bits64::Store(section_.T(kProofOwn), Bits64::Load(halves.next));
    Bits64::Store(section_.T(kProofLeft), Bits64::Load(halves.own));
  }
  absl::Status Consume(RoundIn in) override {
    const uint64_t received = Bits64::Load(in.from_prev.data());
    z_ = {r_ ^ received, r_};
    done_ = true;
    if (!records_) return absl::OkStatus();
    Bits64::Store(section_.T(kProofLeft), Bits64::Load(section_.T(kProofLeft)) ^ received);
    log_->Close(section_, 1);
    return absl::OkStatus();
  }
  Cost DeclaredCost() const override { return {1, sizeof(uint64_t), 0}; }

  SharedBlock block() const {
    SharedBlock block;
    std::memcpy(block.x.data(), &z_.x, sizeof(z_.x));
    std::memcpy(block.a.data(), &z_.a, sizeof(z_.a));
    return block;
  }

 private:
  const Share u_, w_;
  const uint64_t error_;
  const bool records_;
  ProofLog* log_ = nullptr;
  ProofSection section_;
  uint64_t r_ = 0;
  Share z_{};
  bool done_ = false;
};

struct Outcome {
  Statuses statuses;
  bool sent = false;  // anything of the opening
  std::array<std::optional<uint64_t>, kParties> opened;
};

constexpr uint64_t kU = 0x0123456789ABCDEF, kW = 0xFF00FF00F0F0CCAA, kError = 0x10;

// The product is opened.
Outcome OpenAProduct(uint64_t error, bool records) {
  Outcome run;
  constexpr uint64_t kX[kParties] = {0x1111222233334444, 0x9999888877776666,
                                     0x1111222233334444 ^ 0x9999888877776666};
  MemoryRing ring;
  ring.SetInterceptor([&](MemoryRing::Intercepted& m) { run.sent |= m.step == "opening"; });
  run.statuses = RunThreeParties(ring, 1, [&](PartyContext& party) -> absl::Status {
    const int p = party.party();
    party.BeginBatch(1);
    SeededRandomForTest coins(10 + static_cast<uint64_t>(p));
    BatchVerifier verifier(party, coins);
    const uint64_t x = kX[p], left = kX[PrevParty(p)];
    Product product({x, left ^ kU}, {x, left ^ kW}, p == 0 ? error : 0, records);
    absl::Status s = RunTogether(party, {&product});
    if (!s.ok()) return s;
    const SharedBlock block = product.block();
    OpenToServers open(p, "opening");
    open.Reset({&block, 1});
    s = RunTogether(party, {&open});
    if (!s.ok()) return s;
    uint64_t value;
    std::memcpy(&value, open.values()[0].data(), sizeof(value));
    run.opened[p] = value;
    return party.Verify();
  });
  return run;
}

class RunChecksTest : public ChecksTest {};

TEST_F(RunChecksTest, AnHonestProductIsOpened) {
  const Outcome run = OpenAProduct(0, true);
  for (int p = 0; p < kParties; ++p) {
    EXPECT_TRUE(run.statuses[p].ok()) << run.statuses[p];
    EXPECT_EQ(run.opened[p], kU & kW);
  }
}

// Without the proof before it, an opening shows a value with an error in it, which the liar may
// have chosen to see another secret by. That it is caught later is too late.
TEST_F(RunChecksTest, WhatIsOpenedWasProvedBefore) {
  const Outcome run = OpenAProduct(kError, true);
  EXPECT_FALSE(run.sent);
  for (int p = 0; p < kParties; ++p) EXPECT_FALSE(run.statuses[p].ok());
  Drop("ProofFirst");
  const Outcome without = OpenAProduct(kError, true);
  for (int p = 0; p < kParties; ++p) {
    EXPECT_EQ(without.opened[p], (kU & kW) ^ kError);
    EXPECT_FALSE(without.statuses[p].ok());
  }
}

// What is not recorded cannot be proved.
TEST_F(RunChecksTest, WhatIsSentIsRecorded) {
  const Outcome run = OpenAProduct(kError, false);
  EXPECT_FALSE(run.sent);
  for (int p = 0; p < kParties; ++p) EXPECT_EQ(run.statuses[p].code(), absl::StatusCode::kInternal);
  Drop("Recorded");
  const Outcome without = OpenAProduct(kError, false);
  for (int p = 0; p < kParties; ++p) {
    EXPECT_EQ(without.opened[p], (kU & kW) ^ kError);
    EXPECT_TRUE(without.statuses[p].ok()) << without.statuses[p];
  }
}

}  // namespace
}  // namespace mpckdc::proof
