// SPDX-License-Identifier: Apache-2.0
//
// Which addresses may be put under load. Loopback always. A private address in a network namespace
// of a test: one without hardware, which no default route leaves. Anything else only by somebody
// who says that the KDC is his.
//
// (Whether the namespace is another than process 1's would be the plainer question, but sandboxes
// forbid it to root even.)
//
// A client's way to the KDC: one socket per login in flight, as in life.
//
// Why not one socket for all and sendmmsg: the KDC's errors name neither nonce nor, in a TGS
// exchange, the client, so that only the port says whose answer an error is. Measured here over
// loopback, a datagram sent and received costs 1.24 us with send and recv, 1.22 us with 32 in one
// sendmmsg and recvmmsg: the cost is in the network stack, not in entering the kernel.
#ifndef INTEGRATION_TESTS_STORM_TARGET_H_
#define INTEGRATION_TESTS_STORM_TARGET_H_

#include <netinet/in.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "integration-tests/storm/kerberos.h"

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

class ClientSocket {
 public:
  enum class What {
    kNothing,
    kReply,
    kRefused,  // nobody listens, or the connection ended early
  };
  struct Event {
    What what = What::kNothing;
    Bytes reply = {};
    absl::Duration waited = {};  // how long the reply lay in the kernel until now (UDP)
  };

  ClientSocket(const Address* kdc, bool tcp, int epoll, uint64_t tag)
      : kdc_(kdc), tcp_(tcp), epoll_(epoll), tag_(tag) {}
  ClientSocket(const ClientSocket&) = delete;
  ClientSocket& operator=(const ClientSocket&) = delete;
  ~ClientSocket() { Close(); }

  // Sends a request, for the first time or again. TCP: over a new connection, as the KDC closes
  // each after its answer. An error is one of this machine (descriptors, memory), not of the KDC.
  absl::Status Send(Bytes request);
  // epoll says that something happened. A reply is written to `buffer`.
  Event OnReady(uint32_t events, absl::Span<uint8_t> buffer);
  // The next exchange has a new port. The old one is returned, -1 if there is none: as long as it
  // is open, nobody gets its number and with it an answer that is late.
  int Retire();

 private:
  absl::Status Open();
  void Close();
  int Watch(int operation, uint32_t events);
  Event ReceiveDatagram(absl::Span<uint8_t> buffer);
  Event ContinueStream(absl::Span<uint8_t> buffer);

  const Address* kdc_;
  const bool tcp_;
  const int epoll_;
  const uint64_t tag_;
  int fd_ = -1;
  // TCP: length (4) | message, in both directions.
  std::vector<uint8_t> outgoing_;
  size_t written_ = 0;
  std::vector<uint8_t> incoming_;
};

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_TARGET_H_
