// SPDX-License-Identifier: Apache-2.0
// Circuits one after the other as one circuit, each set up from what those before it gave:
//
//   CircuitChain chain;
//   chain.Reset({{&decrypt, nullptr, decrypt.DeclaredCost()},
//                {&hmac, [&] { hmac.Reset(LanesOf(decrypt), adder); }, CostOfHmac(..)}});
//   RunTogether(party, {&chain, &other}, &cost);
//
// Several chains run side by side without waiting for each other's steps.
#ifndef MPC_SERVER_SHARE_CIRCUIT_CHAIN_H_
#define MPC_SERVER_SHARE_CIRCUIT_CHAIN_H_

#include <functional>
#include <vector>

#include "mpc-server/share/circuit.h"

namespace mpckdc {

class CircuitChain : public Circuit {
 public:
  struct Step {
    Circuit* circuit = nullptr;   // nullptr: local work only
    std::function<void()> begin;  // sets it up; nullptr: it is
    Cost cost;                    // of the circuit then, by public sizes
  };
  // The first step begins at once. The circuits stay the caller's.
  void Reset(std::vector<Step> steps);

  bool Done() const override { return at_ == steps_.size(); }
  RoundShape NextRound() const override { return steps_[at_].circuit->NextRound(); }
  void Produce(ZeroShares& zero, RoundOut out) override { steps_[at_].circuit->Produce(zero, out); }
  absl::Status Consume(RoundIn in) override;
  Cost DeclaredCost() const override;

 private:
  // Begins step at_ and passes over what has no round.
  void Begin();

  std::vector<Step> steps_;
  size_t at_ = 0;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SHARE_CIRCUIT_CHAIN_H_
