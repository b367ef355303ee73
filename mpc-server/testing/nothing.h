// SPDX-License-Identifier: Apache-2.0
// For tests only: what runs first in a batch besides: nothing.
#ifndef MPC_SERVER_TESTING_NOTHING_H_
#define MPC_SERVER_TESTING_NOTHING_H_

#include "absl/status/status.h"
#include "mpc-server/share/circuit.h"

namespace mpckdc {

class Nothing : public Circuit {
 public:
  bool Done() const override { return true; }
  RoundShape NextRound() const override { return {}; }
  void Produce(ZeroShares&, RoundOut) override {}
  absl::Status Consume(RoundIn) override { return absl::OkStatus(); }
  Cost DeclaredCost() const override { return {}; }
};

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_NOTHING_H_
