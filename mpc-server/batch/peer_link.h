// SPDX-License-Identifier: Apache-2.0
//
// Where an engine gets its connections to the two other servers. The engine asks for a channel,
// opens a protocol session on it, and drops both at the first failure; then it asks again.
#ifndef MPC_SERVER_BATCH_PEER_LINK_H_
#define MPC_SERVER_BATCH_PEER_LINK_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpc-server/transport/peer_channel.h"

namespace mpckdc {

class PeerLink {
 public:
  virtual ~PeerLink() = default;

  // Waits until both neighbours are connected; a fresh channel each time. The channel before it was
  // destroyed by then. Errors are temporary (DeadlineExceeded, Unavailable) unless Cancelled.
  virtual absl::StatusOr<std::unique_ptr<PeerChannel>> Connect(absl::Time deadline) = 0;

  // From any thread: Connect and every wait of the channel that it made return Cancelled from now
  // on.
  virtual void Shutdown() = 0;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_BATCH_PEER_LINK_H_
