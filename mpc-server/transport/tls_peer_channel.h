// SPDX-License-Identifier: Apache-2.0
// Internal to transport/: joins two authenticated links to a channel.
#ifndef MPC_SERVER_TRANSPORT_TLS_PEER_CHANNEL_H_
#define MPC_SERVER_TRANSPORT_TLS_PEER_CHANNEL_H_

#include <memory>

#include "mpc-server/clock/clock.h"
#include "mpc-server/transport/peer_channel.h"
#include "mpc-server/transport/tls_link.h"

namespace mpckdc {

std::unique_ptr<PeerChannel> MakeTlsPeerChannel(int party, std::unique_ptr<TlsLink> prev,
                                                std::unique_ptr<TlsLink> next, Clock& clock);

}  // namespace mpckdc

#endif  // MPC_SERVER_TRANSPORT_TLS_PEER_CHANNEL_H_
