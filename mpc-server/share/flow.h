// SPDX-License-Identifier: Apache-2.0
// Circuits of which some can begin only when others have ended, as one circuit. What can run, runs
// side by side: each round merges the rounds of all circuits that have begun.
//
//     Restart();
//     Start(decrypt, [this] { mac.Reset(text of decrypt); Start(mac); });
//     Start(other);
//
// What is computed locally between two circuits is done in `then`. Which circuits follow depends on
// public sizes only, so a flow is the same at the three parties. A class that derives from it says
// what starts when, and declares the whole's cost.
#ifndef MPC_SERVER_SHARE_FLOW_H_
#define MPC_SERVER_SHARE_FLOW_H_

#include <functional>
#include <vector>

#include "mpc-server/share/circuit.h"

namespace mpckdc {

class Flow : public Circuit {
 public:
  bool Done() const override { return running_.empty(); }
  RoundShape NextRound() const override;
  void Produce(ZeroShares& zero, RoundOut out) override;
  absl::Status Consume(RoundIn in) override;

 protected:
  // Forgets what was under way: a flow may be set up anew after an error in the midst of it.
  void Restart() { running_.clear(); }
  // `then` is called once, when the circuit is done, and may Start() others; at once, if it is done
  // already. The circuit is the caller's and stays until the flow is done; one that has ended may
  // be set up and started again.
  void Start(Circuit& circuit, std::function<void()> then = nullptr);

 private:
  struct Running {
    Circuit* circuit;
    std::function<void()> then;
    RoundShape shape{};  // of the round under way
  };

  std::vector<Running> running_;
  std::vector<Running> ended_;  // kept: no allocation in steady state
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SHARE_FLOW_H_
