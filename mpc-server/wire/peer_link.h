// SPDX-License-Identifier: Apache-2.0
//
// Where an engine gets its connections to the two other servers. The engine asks for channels, one
// for each of its rings, opens a protocol session on each, and drops all at the first failure; then
// it asks again.
#ifndef MPC_SERVER_WIRE_PEER_LINK_H_
#define MPC_SERVER_WIRE_PEER_LINK_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpc-server/wire/peer_channel.h"

namespace mpckdc {

using PeerChannels = std::vector<std::unique_ptr<PeerChannel>>;  // by ring

class PeerLink {
 public:
  virtual ~PeerLink() = default;

  // Waits until both neighbours are connected on every ring; fresh channels each time. Those before
  // were destroyed by then. Errors are temporary (DeadlineExceeded, Unavailable) unless Cancelled.
  virtual absl::StatusOr<PeerChannels> Connect(absl::Time deadline) = 0;

  // Whether the neighbours of the channels made last may still be neighbours; an error ends the
  // session. By the thread of Connect().
  virtual absl::Status StillGood() { return absl::OkStatus(); }

  // From any thread: Connect and every wait of the channels that it made return Cancelled from now
  // on.
  virtual void Shutdown() = 0;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_WIRE_PEER_LINK_H_
