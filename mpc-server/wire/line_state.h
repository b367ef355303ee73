// SPDX-License-Identifier: Apache-2.0
// Internal to wire/: what the kernel has measured of a connection.
#ifndef MPC_SERVER_WIRE_LINE_STATE_H_
#define MPC_SERVER_WIRE_LINE_STATE_H_

#include "mpc-server/wire/peer_channel.h"

namespace mpckdc {

// Of a TCP connection; of anything else nothing is known.
LineState MeasuredLine(int fd);

}  // namespace mpckdc

#endif  // MPC_SERVER_WIRE_LINE_STATE_H_
