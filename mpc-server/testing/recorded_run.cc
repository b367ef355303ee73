// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/recorded_run.h"

#include <utility>

#include "gtest/gtest.h"
#include "mpc-server/testing/three_parties.h"

namespace mpckdc {
namespace {

// Runs a circuit in a frame: flips a bit in it, and takes what is recorded away before each round
// in which there is more than `part` bytes of it.
class Framed : public Circuit {
 public:
  Framed(PartyContext& party, std::unique_ptr<Circuit> inner, const BitFlip& flip, size_t part,
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
  const BitFlip flip_;
  const size_t part_;
  Recording& out_;
  size_t round_ = 0;
};

}  // namespace

RecordedRun RunRecorded(const MakeCircuit& make, const RecordOptions& options) {
  RecordedRun outcome;
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

}  // namespace mpckdc
