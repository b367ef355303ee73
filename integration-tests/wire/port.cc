// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/wire/port.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc::wire {
namespace {

// struct virtio_net_hdr; its header <linux/virtio_net.h> is not C++ (a member is called `class`).
struct Offload {
  uint8_t flags, gso_type;
  uint16_t header_bytes, payload_bytes, checksum_start, checksum_offset;
};
constexpr uint8_t kOneFrame = 0;
constexpr size_t kOffloadBytes = sizeof(Offload);
static_assert(kOffloadBytes == 10);
constexpr size_t kTcpBytes = 20;
constexpr size_t kTcpLengthOffset = 12;
constexpr size_t kDestinationOffset = kOffloadBytes + 16;
constexpr size_t kLeastBytes = kOffloadBytes + 20;

absl::Status SystemError(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

// TUNSETIFF finds the device in the namespace in which /dev/net/tun was opened.
absl::StatusOr<int> OpenTun(const std::string& netns) {
  const int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  const int there = open(absl::StrCat("/run/netns/", netns).c_str(), O_RDONLY | O_CLOEXEC);
  absl::StatusOr<int> result = -1;
  if (home < 0 || there < 0 || setns(there, CLONE_NEWNET) != 0) {
    result = SystemError(absl::StrCat("entering the network namespace ", netns));
  } else {
    result = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (*result < 0) result = SystemError("/dev/net/tun");
    if (setns(home, CLONE_NEWNET) != 0) result = SystemError("leaving a network namespace");
  }
  if (home >= 0) close(home);
  if (there >= 0) close(there);
  return result;
}

}  // namespace

absl::StatusOr<Port> ParsePort(absl::string_view text) {
  const size_t equals = text.find('=');
  Port port;
  in_addr address = {};
  if (equals == absl::string_view::npos ||
      inet_pton(AF_INET, std::string(text.substr(equals + 1)).c_str(), &address) != 1) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is not NETNS=IPV4-ADDRESS"));
  }
  port.netns = std::string(text.substr(0, equals));
  port.address = address.s_addr;
  return port;
}

absl::Status Attach(absl::string_view device, Port& port) {
  ASSIGN_OR_RETURN(port.fd, OpenTun(port.netns));
  ifreq request = {};
  request.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
  device.copy(request.ifr_name, IFNAMSIZ - 1);
  const absl::string_view where = port.netns;
  if (ioctl(port.fd, TUNSETIFF, &request) != 0) {
    return SystemError(absl::StrCat("attaching to ", device, " in ", where));
  }
  if (ioctl(port.fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4) != 0) {
    return SystemError(absl::StrCat("offload of ", device, " in ", where));
  }
  return absl::OkStatus();
}

uint32_t Destination(absl::Span<const uint8_t> packet) {
  if (packet.size() < kLeastBytes || packet[kOffloadBytes] >> 4 != 4) return 0;
  uint32_t address;
  std::memcpy(&address, &packet[kDestinationOffset], sizeof(address));
  return address;
}

size_t WireBytes(absl::Span<const uint8_t> packet) {
  Offload h;
  std::memcpy(&h, packet.data(), sizeof(h));
  const size_t bytes = packet.size() - kOffloadBytes;
  const size_t tcp = kOffloadBytes + h.checksum_start;  // the checksum begins with TCP's header
  if (h.gso_type == kOneFrame || h.payload_bytes == 0 || tcp + kTcpBytes > packet.size()) {
    return bytes + kEthernetBytes;
  }
  // header_bytes is only a hint of the kernel's; TCP says itself how long it is, in words.
  const size_t headers = h.checksum_start + 4u * (packet[tcp + kTcpLengthOffset] >> 4);
  if (headers >= bytes) return bytes + kEthernetBytes;
  const size_t frames = (bytes - headers + h.payload_bytes - 1) / h.payload_bytes;
  return bytes + (frames - 1) * headers + frames * kEthernetBytes;
}

}  // namespace mpckdc::wire
