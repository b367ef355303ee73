// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/wire/socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc {
namespace {

// A link that waits for the other rings is silent: whether its peer lives, the kernel asks.
constexpr int kAliveIdle = 5, kAlivePause = 2, kAliveProbes = 3;  // seconds, seconds, number

struct FreeAddresses {
  void operator()(addrinfo* a) const { freeaddrinfo(a); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

absl::Status SystemError(absl::string_view what, int error) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(error)));
}

absl::StatusOr<Addresses> Resolve(absl::string_view host_port, bool passive) {
  std::string host, port;
  RETURN_IF_ERROR(SplitHostPort(host_port, &host, &port));
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = passive ? AI_PASSIVE : 0;
  addrinfo* found = nullptr;
  const int rc = getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &hints, &found);
  if (rc != 0) return absl::UnavailableError(absl::StrCat(host_port, ": ", gai_strerror(rc)));
  return Addresses(found);
}

void Tune(const Fd& fd, const SocketTuning& tuning) {
  const int on = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(fd.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  setsockopt(fd.get(), IPPROTO_TCP, TCP_KEEPIDLE, &kAliveIdle, sizeof(kAliveIdle));
  setsockopt(fd.get(), IPPROTO_TCP, TCP_KEEPINTVL, &kAlivePause, sizeof(kAlivePause));
  setsockopt(fd.get(), IPPROTO_TCP, TCP_KEEPCNT, &kAliveProbes, sizeof(kAliveProbes));
  if (tuning.buffer_bytes > 0) {
    const int size = tuning.buffer_bytes;
    setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
  }
  if (!tuning.congestion.empty()) {
    setsockopt(fd.get(), IPPROTO_TCP, TCP_CONGESTION, tuning.congestion.data(),
               static_cast<socklen_t>(tuning.congestion.size()));
  }
}

Fd NewSocket(const addrinfo& a) {
  return Fd(socket(a.ai_family, a.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, a.ai_protocol));
}

int BioFd(BIO* bio) { return static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio))); }

int BioWrite(BIO* bio, const char* data, size_t size, size_t* written) {
  BIO_clear_retry_flags(bio);
  const ssize_t n = send(BioFd(bio), data, size, MSG_NOSIGNAL);
  if (n > 0) {
    *written = static_cast<size_t>(n);
    return 1;
  }
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return 0;
}

int BioRead(BIO* bio, char* data, size_t size, size_t* read) {
  BIO_clear_retry_flags(bio);
  const ssize_t n = recv(BioFd(bio), data, size, 0);
  if (n > 0) {
    *read = static_cast<size_t>(n);
    return 1;
  }
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  return 0;
}

long BioControl(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

BIO_METHOD* SocketMethod() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "peer socket");
    BIO_meth_set_write_ex(m, BioWrite);
    BIO_meth_set_read_ex(m, BioRead);
    BIO_meth_set_ctrl(m, BioControl);
    return m;
  }();
  return method;
}

}  // namespace

Fd::~Fd() {
  if (fd_ >= 0) close(fd_);
}

absl::Status SplitHostPort(absl::string_view text, std::string* host, std::string* port) {
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos || colon + 1 == text.size()) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is not host:port"));
  }
  absl::string_view h = text.substr(0, colon);
  if (h.size() >= 2 && h.front() == '[' && h.back() == ']') h = h.substr(1, h.size() - 2);
  *host = std::string(h);
  *port = std::string(text.substr(colon + 1));
  return absl::OkStatus();
}

absl::StatusOr<Fd> ListenOn(absl::string_view host_port, const SocketTuning& tuning) {
  ASSIGN_OR_RETURN(Addresses addresses, Resolve(host_port, true));
  int error = EADDRNOTAVAIL;
  for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
    Fd fd = NewSocket(*a);
    if (!fd.valid()) continue;
    const int on = 1;
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    Tune(fd, tuning);
    if (bind(fd.get(), a->ai_addr, a->ai_addrlen) == 0 && listen(fd.get(), SOMAXCONN) == 0)
      return fd;
    error = errno;
  }
  return SystemError(absl::StrCat("listening on ", host_port), error);
}

int LocalPort(const Fd& fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<sockaddr_in6*>(&address)->sin6_port);
  }
  return ntohs(reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

absl::StatusOr<Fd> StartConnect(absl::string_view host_port, const SocketTuning& tuning) {
  ASSIGN_OR_RETURN(Addresses addresses, Resolve(host_port, false));
  int error = EADDRNOTAVAIL;
  for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
    Fd fd = NewSocket(*a);
    if (!fd.valid()) continue;
    Tune(fd, tuning);
    if (connect(fd.get(), a->ai_addr, a->ai_addrlen) == 0 || errno == EINPROGRESS) return fd;
    error = errno;
  }
  return SystemError(absl::StrCat("connecting to ", host_port), error);
}

Fd AcceptOne(const Fd& listener, const SocketTuning& tuning, PeerAddress* from) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  auto* const out = reinterpret_cast<sockaddr*>(&address);
  Fd fd(accept4(listener.get(), out, &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!fd.valid()) return fd;
  Tune(fd, tuning);
  if (from != nullptr) *from = PeerAddressOf(*out);
  return fd;
}

// ---- peer_address.h ----

PeerAddress PeerAddressOf(const sockaddr& address) {
  PeerAddress out = {};
  if (address.sa_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    std::memcpy(out.data(), &v6.sin6_addr, out.size());
  } else if (address.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    out[10] = out[11] = 0xFF;
    std::memcpy(out.data() + 12, &v4.sin_addr, 4);
  }
  return out;
}

PeerAddress NetworkOf(const PeerAddress& address) {
  const PeerAddress v4_prefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  if (std::equal(address.begin(), address.begin() + 12, v4_prefix.begin())) return address;
  PeerAddress network = address;
  std::fill(network.begin() + 6, network.end(), uint8_t{0});
  return network;
}

absl::StatusOr<std::vector<PeerAddress>> PeerAddressesOf(absl::string_view host_port) {
  ASSIGN_OR_RETURN(Addresses addresses, Resolve(host_port, false));
  std::vector<PeerAddress> out;
  for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
    out.push_back(PeerAddressOf(*a->ai_addr));
  }
  return out;
}

BIO* NewSocketBio(int fd) {
  BIO* bio = BIO_new(SocketMethod());
  if (bio == nullptr) return nullptr;
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(fd)));
  BIO_set_init(bio, 1);
  return bio;
}

}  // namespace mpckdc
