// SPDX-License-Identifier: Apache-2.0
//
// The production PeerLink: mutual TLS to both neighbours.
#ifndef MPC_SERVER_WIRE_TLS_PEER_LINK_H_
#define MPC_SERVER_WIRE_TLS_PEER_LINK_H_

#include <memory>

#include "mpc-server/wire/peer_link.h"
#include "mpc-server/wire/tls_channel.h"

namespace mpckdc {

class TlsPeerLink : public PeerLink {
 public:
  // Not owned; must outlive this.
  explicit TlsPeerLink(TlsPeerConnector* connector) : connector_(connector) {}

  absl::StatusOr<PeerChannels> Connect(absl::Time deadline) override {
    return connector_->ConnectAll(deadline);
  }
  absl::Status StillGood() override { return connector_->StillGood(); }
  void Shutdown() override { connector_->Shutdown(); }

 private:
  TlsPeerConnector* const connector_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_WIRE_TLS_PEER_LINK_H_
