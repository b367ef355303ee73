// SPDX-License-Identifier: Apache-2.0
// Frames over TCP without any protection, to measure what protection costs. In a library of its own
// that no production program links.
#ifndef MPC_SERVER_TESTING_PLAIN_LINK_H_
#define MPC_SERVER_TESTING_PLAIN_LINK_H_

#include <memory>
#include <vector>

#include "mpc-server/base/clock.h"
#include "mpc-server/wire/raw_link.h"
#include "mpc-server/wire/tls_channel.h"

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

// One channel per ring, as TlsPeerConnector::ConnectAll(), but nobody is authenticated: of the
// options, the certificates are left alone.
absl::StatusOr<std::vector<std::unique_ptr<PeerChannel>>> ConnectPlain(
    const TlsPeerOptions& options, absl::Time deadline, Clock& clock = SystemClock());

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_PLAIN_LINK_H_
