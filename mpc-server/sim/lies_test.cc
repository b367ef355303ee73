// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/sim/lies.h"

#include <cstdio>

#include "gtest/gtest.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/share/circuit.h"
#include "mpc-server/share/deviation.h"

namespace mpckdc::sim {
namespace {

uint64_t CountOf(const LieCounts::Row& row, LieEnd end) { return row[static_cast<size_t>(end)]; }

// Every kind is told at every computation, and with semi-honest servers wrong values leave: this
// harness sees them. With active ones none does.
TEST(Lies, EndAsTheSecuritySays) {
  const LieCounts counts = RunLies(1, 6000, 1);
  std::printf("%s", counts.Summary().c_str());
  if (TestedSecurity() == Security::kActive) {
    EXPECT_EQ(counts.failures, 0u);
    return;
  }
  EXPECT_GT(CountOf(counts.Sum(), LieEnd::kWrong), 1000u);
  for (const auto& [subject, row] : counts.by_subject) {
    EXPECT_GT(CountOf(row, LieEnd::kWrong), 0u) << subject;
  }
}

TEST(Lies, ARunIsAFunctionOfItsNumber) {
  Lies lies, others;
  others.Run(999);
  for (uint64_t number = 1; number <= 50; ++number) {
    const LieRun a = lies.Run(number), b = others.Run(number);
    EXPECT_EQ(a.end, b.end) << number;
    EXPECT_EQ(a.detail, b.detail) << number;
    EXPECT_EQ(a.step, b.step) << number;
  }
}

// ---- A proof that sees everything ----

// Two rounds, after which each knows that the two others have sent all that came before.
class Barrier : public Circuit {
 public:
  bool Done() const override { return round_ == 2; }
  RoundShape NextRound() const override { return {1, 0, "proof"}; }
  void Produce(ZeroShares&, RoundOut out) override { out.to_next[0] = 0; }
  absl::Status Consume(RoundIn) override {
    ++round_;
    return absl::OkStatus();
  }
  Cost DeclaredCost() const override { return {2, 2, 0}; }

 private:
  int round_ = 0;
};

absl::Status SeeEverything(PartyContext& party, const LieRun& run, const Liar& liar) {
  Barrier barrier;
  RETURN_IF_ERROR(RunTogether(party, {&barrier}));
  const bool seen = liar.struck() > 0 && !IsHonest(run.kind) && party.party() != run.liar;
  return seen ? Deviation(Suspects::One(run.liar), "it lied") : absl::OkStatus();
}

// With it no lie is a failure: so none of those that are, is one by the harness's fault.
TEST(Lies, AProofThatSeesEverythingLeavesNoFailure) {
  if (TestedSecurity() == Security::kActive) GTEST_SKIP() << "it has a proof of its own";
  const LieCounts counts = RunLies(1, 6000, 1, SeeEverything);
  std::printf("%s", counts.Summary().c_str());
  EXPECT_EQ(counts.failures, 0u);
  EXPECT_GT(CountOf(counts.Sum(), LieEnd::kNamed), 3000u);
}

}  // namespace
}  // namespace mpckdc::sim
