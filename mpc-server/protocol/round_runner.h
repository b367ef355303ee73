// SPDX-License-Identifier: Apache-2.0
// The message buffers of a session's rounds. Internal to protocol/.
#ifndef MPC_SERVER_PROTOCOL_ROUND_RUNNER_H_
#define MPC_SERVER_PROTOCOL_ROUND_RUNNER_H_

#include <vector>

#include "mpc-server/protocol/circuit.h"

namespace mpckdc {

// Two sets of buffers take turns, so that a round's messages stay readable while the next round's
// are produced. They grow and never shrink: no allocation in steady state.
class RoundRunner {
 public:
  explicit RoundRunner(PartyContext& party) : party_(party) {}

  absl::Status Run(absl::Span<Circuit* const> circuits, Cost* counted);

 private:
  struct Messages {
    SecretBytes to_next, from_prev, to_prev, from_next;
  };
  struct Part {
    Circuit* circuit;
    RoundShape shape;
    size_t next_at, prev_at;  // offsets in the merged messages
  };

  // Lays out the coming round; returns the merged shape.
  RoundShape Plan(absl::Span<Circuit* const> circuits);
  absl::Status RunRound(const RoundShape& merged, Messages& m);

  PartyContext& party_;
  Messages messages_[2];
  int turn_ = 0;
  std::vector<Part> parts_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_PROTOCOL_ROUND_RUNNER_H_
