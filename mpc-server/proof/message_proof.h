// SPDX-License-Identifier: Apache-2.0
// The proof that every bit that this server sent was right, and the check of the two others'
// proofs: six rounds, whatever the number of bits (doc/protocol.md, "Active security").
//
// Each of the three is prover P of its own messages, L of the next one's and R of the previous
// one's. What each knows of a sent bit is drawn in share/proof_log.h.
//
//     commit     -> both   to the first coin, once in a session
//     weights    -> both   secrets of coin 0, which draws a weight for each bit
//     sums       -> R      shares of G at 211 points of {0,1,inf}^5; L's are from a stream
//     point      -> both   secrets of coin 1, which draws r in K^5; claim c = G(r)
//     levels     -> R      shares of the sums of all later levels, whose challenges are hashes, in
//                          GF(2^128), of what R gets;   -> L   the state that the challenges start
//                          from, and hashes of that, level by level
//     end        L -> R    L's shares of u, of v and of the last claim; what it knows of the levels
//     verdict    -> both   whether u*v is the claim; a hash of what all three saw alike
//
// L's shares at the end follow from what R has only if L and the prover have the same coins: R may
// have told them different ones, so L says nothing before the prover has named the same state.
// A server goes on only if its own check and both verdicts are good. Until then nothing that rests
// on the messages has left: no opening, no output.
#ifndef MPC_SERVER_PROOF_MESSAGE_PROOF_H_
#define MPC_SERVER_PROOF_MESSAGE_PROOF_H_

#include <array>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "mpc-server/base/isa.h"
#include "mpc-server/proof/challenges.h"
#include "mpc-server/proof/checker.h"
#include "mpc-server/proof/coin_toss.h"
#include "mpc-server/proof/prover.h"
#include "mpc-server/proof/statement.h"
#include "mpc-server/share/circuit.h"
#include "mpc-server/share/proof_log.h"
#include "mpc-server/share/session.h"

namespace mpckdc::proof {

class MessageProof : public Circuit {
 public:
  // `party` and `coins` must outlive this.
  MessageProof(PartyContext& party, CoinToss& coins, Isa isa = BestIsa());

  // Of everything that is closed in the log, which stays as it is until Done(). `context`: a hash
  // of what the three agreed on before, compared in the end. `number`: of the batch's proofs.
  void Reset(const ProofLog& log, const Digest& context, uint32_t number);

  // A Deviation once this server's own check has failed: the two others may end the session before
  // it hears both verdicts.
  absl::Status Finding() const;

  bool Done() const override { return step_ == Step::kDone; }
  RoundShape NextRound() const override;
  void Produce(ZeroShares& zero, RoundOut out) override;
  absl::Status Consume(RoundIn in) override;
  Cost DeclaredCost() const override;

 private:
  enum class Step { kCommit, kWeights, kSums, kPoint, kLevels, kEnd, kVerdict, kDone };
  struct End {  // of message L -> R
    F u, v, claim;
    Digest seen;
  };

  RoundShape ShapeOf(Step step) const;
  // The next places of the streams that this server shares with its neighbours.
  void Stream(absl::Span<uint8_t> own, absl::Span<uint8_t> next);
  ChallengeChain ChainOf(int prover) const;

  void ProduceSums(absl::Span<uint8_t> out);
  void ProduceLevels(RoundOut out);
  void DrawMasks();
  void ProduceLevel(const uint8_t* sums, size_t size, RoundOut& out);
  void ProduceVerdict(RoundOut out) const;

  void DrawWeights(const Coin& coin);
  void DrawPoint(const Coin& coin);
  absl::Status ConsumeLevels(RoundIn in);
  void ConsumeEnd(absl::Span<const uint8_t> from_next);
  absl::Status ConsumeVerdicts(RoundIn in);
  Digest WhatAllSaw() const;

  PartyContext& party_;
  CoinToss& coins_;
  Level1 level1_;
  Step step_ = Step::kDone;
  bool commits_ = false;  // in this proof
  Digest context_{};
  uint32_t number_ = 0, stream_position_ = 0;
  std::optional<Statement> statement_;
  SecretVector<K> sums_;  // the first ones, of this server's own proof
  Prover prover_;
  Checker as_left_, as_right_;           // L of the next one's, R of the previous one's
  std::optional<ChallengeChain> chain_;  // of this server's own proof
  struct Masks {
    F u, v;     // of L or of R
    Salt salt;  // of R
  };
  struct AllMasks {
    Masks left_own, left_next, right_own, right_next;
  };
  Secret<AllMasks> masks_;
  std::array<Digest, kParties> seen_{};  // by prover: the end of each chain
  bool good_ = false;
};

}  // namespace mpckdc::proof

#endif  // MPC_SERVER_PROOF_MESSAGE_PROOF_H_
