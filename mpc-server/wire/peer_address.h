// SPDX-License-Identifier: Apache-2.0
// Whence a connection comes.
#ifndef MPC_SERVER_WIRE_PEER_ADDRESS_H_
#define MPC_SERVER_WIRE_PEER_ADDRESS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct sockaddr;

namespace mpckdc {

// An IPv6 address; one of IPv4 as ::ffff:a.b.c.d.
using PeerAddress = std::array<uint8_t, 16>;

PeerAddress PeerAddressOf(const sockaddr& address);

// What one holder has: the address itself of IPv4; of IPv6 a /48, which is a site and has 65,536 of
// its networks.
PeerAddress NetworkOf(const PeerAddress& address);

// The addresses of "host:port".
absl::StatusOr<std::vector<PeerAddress>> PeerAddressesOf(absl::string_view host_port);

}  // namespace mpckdc

#endif  // MPC_SERVER_WIRE_PEER_ADDRESS_H_
