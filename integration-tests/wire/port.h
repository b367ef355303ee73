// SPDX-License-Identifier: Apache-2.0
//
// One end of the wire: the TUN device of a network namespace, and what its packets look like.
//
// The device hands over whole TCP segments of up to 64 KB, as it would to a network card that cuts
// them itself, with 10 bytes that say how to cut (struct virtio_net_hdr). The relay gives them to
// the other device as they are: a packet costs two system calls, however many frames it stands for.
//
//     byte 0    1         2         4         6             8             10        26    30
//     +-------+----------+---------+---------+-------------+-------------+----- ~ -+------+-----
//     | flags | gso type | headers | payload | csum start  | csum offset | IPv4 ...| dest | ...
//     +-------+----------+---------+---------+-------------+-------------+----- ~ -+------+-----
//               0: one     their     of each
//               frame      bytes     frame
#ifndef INTEGRATION_TESTS_WIRE_PORT_H_
#define INTEGRATION_TESTS_WIRE_PORT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace mpckdc::wire {

// What Ethernet adds to an IP packet: header 14 bytes, checksum 4, preamble 8 and gap 12.
inline constexpr size_t kEthernetBytes = 38;

struct Port {
  std::string netns;
  uint32_t address = 0;  // as it stands in a packet
  int fd = -1;
};

// "NETNS=ADDRESS", the namespace by the name that `ip netns` knows.
absl::StatusOr<Port> ParsePort(absl::string_view text);

// Attaches to a device that `ip tuntap add mode tun` has made in port.netns, without blocking and
// with offload. The process's own namespace is the same afterwards.
absl::Status Attach(absl::string_view device, Port& port);

// The destination of a packet from a device; 0 if it is not IPv4.
uint32_t Destination(absl::Span<const uint8_t> packet);

// What the packet occupies on an Ethernet cable after it has been cut.
size_t WireBytes(absl::Span<const uint8_t> packet);

}  // namespace mpckdc::wire

#endif  // INTEGRATION_TESTS_WIRE_PORT_H_
