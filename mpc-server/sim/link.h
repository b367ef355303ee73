// SPDX-License-Identifier: Apache-2.0
//
// The simulated PeerLink: one process's way to its two neighbours. As in TlsPeerConnector each
// party connects to its next and accepts its prev, each pair by itself, and drops both when one
// does not come in time. A handshake needs both directions, both processes inside Connect(), and
// both certificates valid by the other side's clock; a running connection outlives its
// certificates.
#ifndef MPC_SERVER_SIM_LINK_H_
#define MPC_SERVER_SIM_LINK_H_

#include <memory>

#include "mpc-server/sim/network.h"

namespace mpckdc::sim {

class SimLink : public PeerLink {
 public:
  SimLink(Network* network, int party, SimClock* clock, const SimExecutor* executor)
      : network_(network), party_(party), clock_(clock), executor_(executor) {}
  ~SimLink() override;

  absl::StatusOr<PeerChannels> Connect(absl::Time deadline) override;
  void Shutdown() override;
  // The process was killed.
  void Die();

 private:
  bool Takes() const;  // handshakes: it is inside Connect() and runs
  void TryNext();
  void Established(const Connections& connections, bool outgoing);
  void Drop();
  bool Usable(const Connections& connections) const;

  Network* const network_;
  const int party_;
  SimClock* const clock_;
  const SimExecutor* const executor_;
  Connections outgoing_, incoming_;  // empty, or one for each ring
  std::shared_ptr<bool> dead_ = std::make_shared<bool>(false);
  Fiber* fiber_ = nullptr;
  bool connecting_ = false, handshake_ = false, down_ = false;
};

// The channel over two such connections.
std::unique_ptr<PeerChannel> MakeSimChannel(Network* network, int party, SimClock* clock,
                                            std::shared_ptr<Connection> prev,
                                            std::shared_ptr<Connection> next,
                                            std::shared_ptr<bool> dead);

}  // namespace mpckdc::sim

#endif  // MPC_SERVER_SIM_LINK_H_
