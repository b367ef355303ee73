// SPDX-License-Identifier: Apache-2.0
//
// A client's way to the KDC: one socket per login in flight, as in life.
//
// Why not one socket for all and sendmmsg: the KDC's errors name neither nonce nor, in a TGS
// exchange, the client, so that only the port says whose answer an error is. Measured here over
// loopback, a datagram sent and received costs 1.24 us with send and recv, 1.22 us with 32 in one
// sendmmsg and recvmmsg: the cost is in the network stack, not in entering the kernel.
#ifndef INTEGRATION_TESTS_STORM_CLIENT_SOCKET_H_
#define INTEGRATION_TESTS_STORM_CLIENT_SOCKET_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "integration-tests/storm/crypto.h"
#include "integration-tests/storm/target.h"

namespace mpckdc::storm {

class ClientSocket {
 public:
  enum class Event {
    kNothing,
    kReply,
    kRefused,  // nobody listens, or the connection ended early
  };

  ClientSocket(const Address* kdc, bool tcp, int epoll, uint64_t tag)
      : kdc_(kdc), tcp_(tcp), epoll_(epoll), tag_(tag) {}
  ClientSocket(ClientSocket&& other) noexcept;
  ClientSocket& operator=(ClientSocket&&) = delete;
  ~ClientSocket() { Close(); }

  // Sends a request, for the first time or again. TCP: over a new connection, as the KDC closes
  // each after its answer. An error is one of this machine (descriptors, memory), not of the KDC.
  absl::Status Send(Bytes request);
  // epoll says that something happened. A reply is written to `buffer`; `waited` is how long it lay
  // in the kernel until now (UDP).
  Event OnReady(uint32_t events, absl::Span<uint8_t> buffer, Bytes& reply,
                absl::Duration& waited);
  // The next exchange has a new port. The old one is returned, -1 if there is none: as long as it
  // is open, nobody gets its number and with it an answer that is late.
  int Retire();

 private:
  absl::Status Open();
  void Close();
  Event ReceiveDatagram(absl::Span<uint8_t> buffer, Bytes& reply, absl::Duration& waited);
  Event ContinueStream(absl::Span<uint8_t> buffer, Bytes& reply);

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

#endif  // INTEGRATION_TESTS_STORM_CLIENT_SOCKET_H_
