// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/share/circuit_chain.h"

#include <utility>

namespace mpckdc {

void CircuitChain::Reset(std::vector<Step> steps) {
  steps_ = std::move(steps);
  at_ = 0;
  Begin();
}

void CircuitChain::Begin() {
  for (; at_ < steps_.size(); ++at_) {
    const Step& step = steps_[at_];
    if (step.begin) step.begin();
    if (step.circuit != nullptr && !step.circuit->Done()) return;
  }
}

absl::Status CircuitChain::Consume(RoundIn in) {
  Circuit& circuit = *steps_[at_].circuit;
  if (absl::Status s = circuit.Consume(in); !s.ok()) return s;
  if (!circuit.Done()) return absl::OkStatus();
  ++at_;
  Begin();
  return absl::OkStatus();
}

Cost CircuitChain::DeclaredCost() const {
  Cost cost;
  for (const Step& step : steps_) cost = cost + step.cost;
  return cost;
}

}  // namespace mpckdc
