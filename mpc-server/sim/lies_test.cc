// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/sim/lies.h"

#include <cstdio>
#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/share/circuit.h"
#include "mpc-server/share/deviation.h"
#include "mpc-server/testing/long_tests.h"

namespace mpckdc::sim {
namespace {

// As many runs, of which at least so many end in a way.
uint64_t Runs() { return ShortOrLong<uint64_t>(2400, 6000); }
uint64_t AtLeast(uint64_t of_6000) { return of_6000 * Runs() / 6000; }

uint64_t CountOf(const LieCounts::Row& row, LieEnd end) { return row[static_cast<size_t>(end)]; }

bool IsGarbled(const std::string& subject) { return absl::StartsWith(subject, "garbled"); }

// Garbled runs need no proof, so they are the same in either mode. Of tables E names somebody and
// nobody goes on; of the result who is told a lie names somebody, and the other garbler may go on.
void ExpectNoLieLeavesAGarbledRun(const LieCounts& counts) {
  for (const auto& [subject, row] : counts.by_subject) {
    if (!IsGarbled(subject)) continue;
    EXPECT_GT(CountOf(row, LieEnd::kNamed), AtLeast(20)) << subject;
    for (const LieEnd never : {LieEnd::kWrong, LieEnd::kMisnamed, LieEnd::kSelective}) {
      EXPECT_EQ(CountOf(row, never), 0u) << subject << ": " << LieEndName(never);
    }
  }
  const LieCounts::Row& tables = counts.by_step.at("garbled/tables");
  const LieCounts::Row& result = counts.by_step.at("garbled/result");
  EXPECT_GT(CountOf(tables, LieEnd::kNamed), AtLeast(100));
  EXPECT_EQ(CountOf(tables, LieEnd::kOneGoesOn), 0u);
  EXPECT_GT(CountOf(result, LieEnd::kOneGoesOn), AtLeast(60));
}

// Every kind is told at every computation, and with semi-honest servers wrong values leave what is
// computed in rounds: this harness sees them. With active ones none does.
TEST(Lies, EndAsTheSecuritySays) {
  const LieCounts counts = RunLies(1, Runs(), 1);
  std::printf("%s", counts.Summary().c_str());
  ExpectNoLieLeavesAGarbledRun(counts);
  if (TestedSecurity() == Security::kActive) {
    EXPECT_EQ(counts.failures, 0u);
    return;
  }
  EXPECT_GT(CountOf(counts.Sum(), LieEnd::kWrong), AtLeast(1000));
  for (const auto& [subject, row] : counts.by_subject) {
    if (IsGarbled(subject)) continue;
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
  const LieCounts counts = RunLies(1, Runs(), 1, SeeEverything);
  std::printf("%s", counts.Summary().c_str());
  EXPECT_EQ(counts.failures, 0u);
  EXPECT_GT(CountOf(counts.Sum(), LieEnd::kNamed), AtLeast(3000));
}

}  // namespace
}  // namespace mpckdc::sim
