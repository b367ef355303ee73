// SPDX-License-Identifier: Apache-2.0
// A connection on its way to being a peer link: TCP, the TLS handshake, the certificate, and a
// greeting inside TLS that says which ring the connection is for.
//
//   connecting side ->  ring (1 byte) | rings (1)
//   accepting side  ->  0x06 accepted or 0x15 refused (1) | its rings (1)
//
// Internal to wire/.
#ifndef MPC_SERVER_WIRE_TLS_ATTEMPT_H_
#define MPC_SERVER_WIRE_TLS_ATTEMPT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpc-server/wire/tls_channel.h"
#include "mpc-server/wire/tls_link.h"

namespace mpckdc {

class Attempt {
 public:
  // An outgoing one for `ring`, or an incoming one, whose ring the peer names.
  static Attempt Outgoing(std::unique_ptr<TlsLink> link, int ring, absl::Time give_up);
  static Attempt Incoming(std::unique_ptr<TlsLink> link, absl::Time give_up);

  // Goes on as far as it can. OK with ready(), OK and not ready, or an error that ends it: the
  // connection failed, the certificate is not the one of `party` or is denied, it took too long.
  absl::Status Step(const TlsPeerOptions& options, int party, absl::Time now);
  bool ready() const { return state_ == State::kReady; }
  int ring() const { return ring_; }
  int fd() const { return link_->fd(); }
  // poll() events that the next step waits for; of a ready one, the peer's hang-up.
  short Events() const;
  // The peer's certificate, of a ready one.
  const CertificateFingerprint& fingerprint() const { return fingerprint_; }
  std::unique_ptr<TlsLink> TakeLink() && { return std::move(link_); }

 private:
  enum class State { kConnecting, kHandshake, kGreeting, kAnswer, kReady };
  Attempt(std::unique_ptr<TlsLink> link, bool outgoing, int ring, absl::Time give_up)
      : outgoing_(outgoing),
        ring_(ring),
        state_(outgoing ? State::kConnecting : State::kHandshake),
        link_(std::move(link)),
        give_up_(give_up) {}

  // True: the state after the present one is reached.
  Progress Advance(const TlsPeerOptions& options, int party);
  Progress Connected();
  Progress Handshake(const TlsPeerOptions& options, int party);
  Progress Greeting(const TlsPeerOptions& options);
  Progress Answer(const TlsPeerOptions& options);

  bool outgoing_;
  int ring_;
  State state_;
  std::unique_ptr<TlsLink> link_;
  absl::Time give_up_;
  CertificateFingerprint fingerprint_{};
  uint8_t greeting_[2] = {}, answer_[2] = {};
};

}  // namespace mpckdc

#endif  // MPC_SERVER_WIRE_TLS_ATTEMPT_H_
