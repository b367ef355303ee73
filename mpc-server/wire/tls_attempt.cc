// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/wire/tls_attempt.h"

#include <poll.h>
#include <sys/socket.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/wire/record_choice.h"

namespace mpckdc {
namespace {

constexpr uint8_t kAccepted = 0x06;  // ASCII's ACK and NAK
constexpr uint8_t kRefused = 0x15;

absl::Status RingsDiffer(int theirs, int ours) {
  return absl::FailedPreconditionError(
      absl::StrCat("peer has ", theirs, theirs == 1 ? " ring" : " rings",
                   " (engine workers, and one for long work), we have ", ours,
                   ": all three servers need the same [engine] workers and the same version"));
}

}  // namespace

Attempt Attempt::Outgoing(std::unique_ptr<TlsLink> link, int ring, absl::Time give_up) {
  return Attempt(std::move(link), true, ring, give_up);
}

Attempt Attempt::Incoming(std::unique_ptr<TlsLink> link, absl::Time give_up) {
  return Attempt(std::move(link), false, 0, give_up);
}

short Attempt::Events() const {
  if (state_ == State::kConnecting) return POLLOUT;
  return ready() ? short{POLLRDHUP} : link_->Events();
}

absl::Status Attempt::Step(const TlsPeerOptions& options, int party, absl::Time now) {
  while (!ready()) {
    const Progress p = Advance(options, party);
    if (!p.ok()) return p.status();
    if (*p) {
      state_ = static_cast<State>(static_cast<int>(state_) + 1);
      continue;
    }
    if (now <= give_up_) return absl::OkStatus();
    // A server that has its session lets nobody else in: perhaps it is one of another triple.
    return absl::UnavailableError(state_ == State::kConnecting
                                      ? "connecting timed out"
                                      : "handshake timed out (is its address in [peers] that of a "
                                        "server of this triple?)");
  }
  pollfd hangup = {fd(), POLLRDHUP, 0};
  if (poll(&hangup, 1, 0) > 0) return absl::UnavailableError("connection closed");
  return CheckNotDenied(options, party, fingerprint_);
}

Progress Attempt::Advance(const TlsPeerOptions& options, int party) {
  switch (state_) {
    case State::kConnecting:
      return Connected();
    case State::kHandshake:
      return Handshake(options, party);
    case State::kGreeting:
      return Greeting(options);
    case State::kAnswer:
      return Answer(options);
    case State::kReady:
      break;
  }
  return true;
}

Progress Attempt::Connected() {
  pollfd writable = {fd(), POLLOUT | POLLRDHUP, 0};
  if (poll(&writable, 1, 0) <= 0) return false;
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(fd(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return absl::UnavailableError(std::strerror(error));
  return true;
}

Progress Attempt::Handshake(const TlsPeerOptions& options, int party) {
  Progress p = link_->Handshake();
  if (!p.ok() || !*p) return p;
  ASSIGN_OR_RETURN(fingerprint_, CheckPeerCertificate(options, party, link_->ssl()));
  RETURN_IF_ERROR(AgreedRecords(link_->ssl()).status());
  greeting_[0] = static_cast<uint8_t>(ring_);
  greeting_[1] = answer_[1] = static_cast<uint8_t>(options.rings);
  return true;
}

Progress Attempt::Greeting(const TlsPeerOptions& options) {
  if (outgoing_) return link_->SendBytes(greeting_);
  Progress p = link_->ReceiveBytes(absl::MakeSpan(greeting_));
  if (!p.ok() || !*p) return p;
  ring_ = greeting_[0];
  answer_[0] = greeting_[1] == options.rings && ring_ < options.rings ? kAccepted : kRefused;
  return true;
}

Progress Attempt::Answer(const TlsPeerOptions& options) {
  Progress p = outgoing_ ? link_->ReceiveBytes(absl::MakeSpan(answer_)) : link_->SendBytes(answer_);
  if (!p.ok() || !*p) return p;
  if (answer_[0] == kAccepted) return true;
  if (answer_[0] != kRefused) return absl::DataLossError("not a peer of this protocol");
  const int theirs = outgoing_ ? answer_[1] : greeting_[1];
  if (theirs != options.rings) return RingsDiffer(theirs, options.rings);
  return absl::DataLossError(absl::StrCat("ring ", ring_, " does not exist"));
}

}  // namespace mpckdc
