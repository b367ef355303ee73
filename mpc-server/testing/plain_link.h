// SPDX-License-Identifier: Apache-2.0
// Frames over TCP without any protection, to measure what protection costs. In a library of its own
// that no production program links.
#ifndef MPC_SERVER_TESTING_PLAIN_LINK_H_
#define MPC_SERVER_TESTING_PLAIN_LINK_H_

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "mpc-server/base/clock.h"
#include "mpc-server/wire/raw_link.h"

namespace mpckdc {

class PlainLink : public RawLink {
 public:
  explicit PlainLink(Fd fd) : RawLink(std::move(fd), 0) {}
  Progress Flush() override;

 private:
  bool Sending() const override { return done_ > 0; }
  absl::Status OpenHeader(const uint8_t*) override { return absl::OkStatus(); }
  void OpenPiece(absl::Span<uint8_t>) override {}
  absl::Status OpenTrailer(const uint8_t*) override { return absl::OkStatus(); }
  void Took(size_t size);

  size_t done_ = 0;  // bytes of the first frame queued, its header included
};

struct PlainPeerOptions {
  int party = 0;
  std::string listen;                // as in TlsPeerOptions
  std::array<std::string, 3> peers;
  int rings = 1;
  int socket_buffer_bytes;
  std::string tcp_congestion;

  PlainPeerOptions();  // socket options as TlsPeerOptions has them
};

// One channel per ring, as TlsPeerConnector::ConnectAll(), but nobody is authenticated.
absl::StatusOr<std::vector<std::unique_ptr<PeerChannel>>> ConnectPlain(
    const PlainPeerOptions& options, absl::Time deadline, Clock& clock = SystemClock());

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_PLAIN_LINK_H_
