// SPDX-License-Identifier: Apache-2.0
//
// Which addresses may be put under load. Loopback always. A private address in a network namespace
// of a test: one without hardware, which no default route leaves. Anything else only by somebody
// who says that the KDC is his.
//
// (Whether the namespace is another than process 1's would be the plainer question, but sandboxes
// forbid it to root even.)
#ifndef INTEGRATION_TESTS_STORM_TARGET_H_
#define INTEGRATION_TESTS_STORM_TARGET_H_

#include <netinet/in.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mpckdc::storm {

struct Address {
  union {
    sockaddr any;
    sockaddr_in in;
    sockaddr_in6 in6 = {};
  } ip;
  std::string text;

  bool is4() const { return ip.any.sa_family == AF_INET; }
  uint32_t number4() const { return ntohl(ip.in.sin_addr.s_addr); }
};

// "127.0.0.1:88", "[::1]:88". Numbers only: a name could mean another host at the next look.
absl::StatusOr<Address> ParseAddress(absl::string_view text);

// What this process sees of its network.
struct NetworkView {
  bool only_virtual = false;   // every interface is loopback, veth, tun, dummy or bridge
  bool has_way_out = true;     // a default route
};
NetworkView LookAtNetwork();

// OK, or why not and what to do.
absl::Status MayLoad(const Address& address, const NetworkView& network, bool i_own_this_kdc);

// Whether a routing table of the kernel (/proc/net/route, /proc/net/ipv6_route) has a default route
// that is not merely the "unreachable" one.
bool HasDefaultRoute4(absl::string_view table);
bool HasDefaultRoute6(absl::string_view table);

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_TARGET_H_
