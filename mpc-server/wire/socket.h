// SPDX-License-Identifier: Apache-2.0
// Sockets: non-blocking, never SIGPIPE.
#ifndef MPC_SERVER_WIRE_SOCKET_H_
#define MPC_SERVER_WIRE_SOCKET_H_

#include <openssl/bio.h>

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mpc-server/wire/peer_address.h"

namespace mpckdc {

// Owns a file descriptor.
class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd();
  int get() const { return fd_; }
  int Release() && { return std::exchange(fd_, -1); }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_;
};

struct SocketTuning {
  int buffer_bytes = 0;          // 0 leaves the system's choice
  std::string congestion;        // empty leaves the system's choice
};

// "host:port" or "[address]:port".
absl::Status SplitHostPort(absl::string_view text, std::string* host, std::string* port);

absl::StatusOr<Fd> ListenOn(absl::string_view host_port, const SocketTuning& tuning);
int LocalPort(const Fd& fd);
// Starts connecting; completion shows as writability.
absl::StatusOr<Fd> StartConnect(absl::string_view host_port, const SocketTuning& tuning);
// An invalid Fd when nobody is waiting (errno is EAGAIN) or it failed. `from` may be null.
Fd AcceptOne(const Fd& listener, const SocketTuning& tuning, PeerAddress* from = nullptr);

// An OpenSSL BIO over a non-blocking socket that sends with MSG_NOSIGNAL (OpenSSL's own would raise
// SIGPIPE in a process that did not ignore it). Does not own the descriptor.
BIO* NewSocketBio(int fd);

}  // namespace mpckdc

#endif  // MPC_SERVER_WIRE_SOCKET_H_
