// SPDX-License-Identifier: Apache-2.0
// Internal to wire/: joins two authenticated links to a channel.
#ifndef MPC_SERVER_WIRE_LINK_CHANNEL_H_
#define MPC_SERVER_WIRE_LINK_CHANNEL_H_

#include <memory>

#include "mpc-server/base/clock.h"
#include "mpc-server/wire/link.h"
#include "mpc-server/wire/peer_channel.h"

namespace mpckdc {

std::unique_ptr<PeerChannel> MakeLinkChannel(int party, std::unique_ptr<Link> prev,
                                             std::unique_ptr<Link> next, Clock& clock);

}  // namespace mpckdc

#endif  // MPC_SERVER_WIRE_LINK_CHANNEL_H_
