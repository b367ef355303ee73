// SPDX-License-Identifier: Apache-2.0
// Proofs among three parties on one thread, message by message: what a run does is a function of
// its seeds, and a test sees and alters what is under way.
#ifndef MPC_SERVER_TESTING_LOCKSTEP_PROOFS_H_
#define MPC_SERVER_TESTING_LOCKSTEP_PROOFS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mpc-server/proof/message_proof.h"
#include "mpc-server/testing/memory_channel.h"

namespace mpckdc::proof {

// Of a run: k_0, k_1, k_2, of which P_i knows k_i and k_{i+1}; and what each tosses its coins with.
struct LockstepSeeds {
  std::array<uint64_t, kParties> keys = {1, 2, 3};
  std::array<uint64_t, kParties> coins = {11, 12, 13};
};

struct LockstepRound {
  std::string step;
  std::array<std::vector<uint8_t>, kParties> to_next, to_prev;  // by sender
};

class LockstepProofs {
 public:
  using Alter = std::function<void(LockstepRound&)>;
  // May stand in for a party's randomness.
  using Randoms = std::array<RandomSource*, kParties>;

  explicit LockstepProofs(const LockstepSeeds& seeds = {}, const Randoms& randoms = {})
      : twin_random_(seeds.coins[0]) {
    for (int p = 0; p < kParties; ++p) {
      SessionOptions options;
      options.party = p;
      PairwiseSeeds pair;
      pair.own = Secret<Seed>(SeedOf(seeds.keys[p]));
      pair.next = Secret<Seed>(SeedOf(seeds.keys[NextParty(p)]));
      Party& party = parties_[p];
      party.context = std::make_unique<PartyContext>(options, ring_.channel(p), SystemClock(), 1,
                                                     std::move(pair));
      party.context->BeginBatch(1);
      party.random = std::make_unique<SeededRandomForTest>(seeds.coins[p]);
      party.coins = std::make_unique<CoinToss>(p, party.context->session_id(),
                                               randoms[p] != nullptr ? *randoms[p] : *party.random);
      party.proof = std::make_unique<MessageProof>(*party.context, *party.coins);
    }
    twin_ = std::make_unique<CoinToss>(0, parties_[0].context->session_id(), twin_random_);
  }

  // One proof by each of what is closed in its log; the next one has another number. Ends when one
  // of them finds something.
  std::array<absl::Status, kParties> Prove(const std::array<ProofLog, kParties>& logs,
                                           const Alter& alter = {}) {
    std::array<absl::Status, kParties> statuses;
    for (int p = 0; p < kParties; ++p) parties_[p].proof->Reset(logs[p], Digest{1}, number_);
    ++number_;
    coins_.clear();
    while (!parties_[0].proof->Done()) {
      LockstepRound round = Produce();
      if (alter) alter(round);
      Toss(round);
      bool good = true;
      for (int p = 0; p < kParties; ++p) {
        statuses[p] =
            parties_[p].proof->Consume({round.to_next[PrevParty(p)], round.to_prev[NextParty(p)]});
        good = good && statuses[p].ok();
      }
      if (!good) break;
    }
    return statuses;
  }

  // Those of the proof under way that are out, as P0 has them.
  const std::vector<Coin>& coins() const { return coins_; }

 private:
  struct Party {
    std::unique_ptr<PartyContext> context;
    std::unique_ptr<RandomSource> random;
    std::unique_ptr<CoinToss> coins;
    std::unique_ptr<MessageProof> proof;
  };

  static Seed SeedOf(uint64_t number) {
    Seed seed;
    SeededRandomForTest(number).Fill(absl::MakeSpan(seed));
    return seed;
  }

  LockstepRound Produce() {
    LockstepRound round;
    for (int p = 0; p < kParties; ++p) {
      MessageProof& proof = *parties_[p].proof;
      const RoundShape shape = proof.NextRound();
      round.step = shape.step;
      round.to_next[p].resize(shape.to_next);
      round.to_prev[p].resize(shape.to_prev);
      ZeroShares unused(parties_[p].context->streams(), 1, 0);
      proof.Produce(unused, {absl::MakeSpan(round.to_next[p]), absl::MakeSpan(round.to_prev[p])});
    }
    return round;
  }

  // P0's twin tosses along, with P0's randomness.
  void Toss(const LockstepRound& round) {
    if (round.step == "proof/commit") twin_->TakeCommitments(round.to_next[2], round.to_prev[1]);
    if (round.step != "proof/weights" && round.step != "proof/point") return;
    std::array<uint8_t, CoinToss::kRevealBytes> own;
    twin_->Reveal(absl::MakeSpan(own));
    const auto coin = twin_->TakeReveals(round.to_next[2], round.to_prev[1]);
    if (coin.ok()) coins_.push_back(*coin);
  }

  MemoryRing ring_;  // carries nothing
  std::array<Party, kParties> parties_;
  SeededRandomForTest twin_random_;
  std::unique_ptr<CoinToss> twin_;
  std::vector<Coin> coins_;
  uint32_t number_ = 0;
};

}  // namespace mpckdc::proof

#endif  // MPC_SERVER_TESTING_LOCKSTEP_PROOFS_H_
