// SPDX-License-Identifier: Apache-2.0
//
// A client's connections to the three servers: messages in order, delays, and directions in which
// nothing arrives.
#ifndef MPC_SERVER_SIM_CLIENT_LINK_H_
#define MPC_SERVER_SIM_CLIENT_LINK_H_

#include <algorithm>
#include <array>

#include "mpc-server/share/replicated_share.h"
#include "mpc-server/sim/machine.h"

namespace mpckdc::sim {

class ClientLinks {
 public:
  ClientLinks(const Scheduler* scheduler, Dice* dice) : scheduler_(scheduler), dice_(dice) {}

  // When a message sent now arrives. Streams keep the order of their messages.
  absl::Time ToServer(int p) { return InOrder(&busy_[p][0]); }
  absl::Time FromServer(int p) { return InOrder(&busy_[p][1]); }

  bool BlockedTo(int p) const { return blocked_[p][0]; }
  bool BlockedFrom(int p) const { return blocked_[p][1]; }
  void Block(int p, bool to_server) { blocked_[p][to_server ? 0 : 1] = true; }
  void Heal() { blocked_ = {}; }

 private:
  absl::Time InOrder(absl::Time* busy) {
    const absl::Duration delay =
        dice_->Chance(0.05) ? dice_->Between(absl::Milliseconds(1), absl::Milliseconds(80))
                            : dice_->Between(absl::Microseconds(100), absl::Milliseconds(3));
    *busy = std::max(*busy, scheduler_->now() + delay);
    return *busy;
  }

  const Scheduler* const scheduler_;
  Dice* const dice_;
  std::array<std::array<absl::Time, 2>, kParties> busy_{};
  std::array<std::array<bool, 2>, kParties> blocked_{};
};

}  // namespace mpckdc::sim

#endif  // MPC_SERVER_SIM_CLIENT_LINK_H_
