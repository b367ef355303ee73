// SPDX-License-Identifier: Apache-2.0
// Ports for servers of tests.
#ifndef MPC_SERVER_TESTING_FREE_PORT_H_
#define MPC_SERVER_TESTING_FREE_PORT_H_

#include <string>

namespace mpckdc {

// "127.0.0.1:PORT", free a moment ago. Below the range that the kernel takes ports of outgoing
// connections from, so none of them takes it before a server does; each process begins at a place
// of its own, and gives none out twice.
std::string FreeLoopbackAddress();

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_FREE_PORT_H_
