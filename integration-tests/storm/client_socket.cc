// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/client_socket.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "integration-tests/storm/limits.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc::storm {
namespace {

constexpr size_t kLengthBytes = 4;

absl::Status OwnError(absl::string_view what) {
  const bool descriptors = errno == EMFILE;
  return absl::ResourceExhaustedError(
      absl::StrCat(what, ": ", strerror(errno),
                   descriptors ? "; raise ulimit -n or lower --in-flight" : ""));
}

// From the kernel's time stamp of a datagram, by the wall clock; zero if that was set meanwhile.
absl::Duration SinceArrival(const msghdr& message) {
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_TIMESTAMPNS) return absl::ZeroDuration();
  timespec arrived = {}, now = {};
  memcpy(&arrived, CMSG_DATA(header), sizeof arrived);
  clock_gettime(CLOCK_REALTIME, &now);
  const absl::Duration waited = absl::TimeFromTimespec(now) - absl::TimeFromTimespec(arrived);
  return std::clamp(waited, absl::ZeroDuration(), absl::Seconds(1));
}

}  // namespace

ClientSocket::ClientSocket(ClientSocket&& other) noexcept
    : kdc_(other.kdc_), tcp_(other.tcp_), epoll_(other.epoll_), tag_(other.tag_),
      fd_(std::exchange(other.fd_, -1)) {}

void ClientSocket::Close() {
  if (fd_ >= 0) close(fd_);  // leaves the epoll set by itself
  fd_ = -1;
}

int ClientSocket::Retire() {
  if (fd_ >= 0) epoll_ctl(epoll_, EPOLL_CTL_DEL, fd_, nullptr);
  return std::exchange(fd_, -1);
}

absl::Status ClientSocket::Open() {
  const int kind = (tcp_ ? SOCK_STREAM : SOCK_DGRAM) | SOCK_NONBLOCK | SOCK_CLOEXEC;
  fd_ = socket(kdc_->ip.any.sa_family, kind, 0);
  if (fd_ < 0) return OwnError("socket");
  const socklen_t length = kdc_->is4() ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if (connect(fd_, &kdc_->ip.any, length) != 0 && errno != EINPROGRESS && errno != ECONNREFUSED) {
    const absl::Status s = OwnError(absl::StrCat("connect to ", kdc_->text));
    Close();
    return s;
  }
  const int on = 1;
  if (!tcp_) setsockopt(fd_, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
  epoll_event event = {};
  event.events = tcp_ ? EPOLLIN | EPOLLOUT : EPOLLIN;
  event.data.u64 = tag_;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd_, &event) != 0) return OwnError("epoll_ctl");
  return absl::OkStatus();
}

absl::Status ClientSocket::Send(Bytes request) {
  if (tcp_) Close();
  if (fd_ < 0) {
    RETURN_IF_ERROR(Open());
  }
  if (tcp_) {
    outgoing_.clear();
    AppendUint(outgoing_, request.size(), kLengthBytes);
    AppendBytes(outgoing_, request);
    incoming_.clear();
    written_ = 0;
    return absl::OkStatus();  // goes when epoll says that the connection stands
  }
  // The first attempt may only fetch the error of an earlier datagram (ECONNREFUSED). What the
  // kernel cannot take now counts as lost on the way.
  if (send(fd_, request.data(), request.size(), MSG_NOSIGNAL) < 0 && errno == ECONNREFUSED) {
    send(fd_, request.data(), request.size(), MSG_NOSIGNAL);
  }
  return absl::OkStatus();
}

ClientSocket::Event ClientSocket::OnReady(uint32_t events, absl::Span<uint8_t> buffer,
                                          Bytes& reply, absl::Duration& waited) {
  waited = absl::ZeroDuration();
  if (fd_ < 0 || events == 0) return Event::kNothing;  // closed by an event before, in one round
  return tcp_ ? ContinueStream(buffer, reply) : ReceiveDatagram(buffer, reply, waited);
}

ClientSocket::Event ClientSocket::ReceiveDatagram(absl::Span<uint8_t> buffer, Bytes& reply,
                                                  absl::Duration& waited) {
  iovec into = {buffer.data(), buffer.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(timespec))];
  msghdr message = {};
  message.msg_iov = &into;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = recvmsg(fd_, &message, 0);
  if (got >= 0) waited = SinceArrival(message);
  if (got < 0) return errno == ECONNREFUSED ? Event::kRefused : Event::kNothing;
  reply = buffer.subspan(0, static_cast<size_t>(got));
  return Event::kReply;
}

ClientSocket::Event ClientSocket::ContinueStream(absl::Span<uint8_t> buffer, Bytes& reply) {
  const auto refused = [this] {
    Close();
    return Event::kRefused;
  };
  if (written_ < outgoing_.size()) {
    const ssize_t sent =
        send(fd_, outgoing_.data() + written_, outgoing_.size() - written_, MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN ? Event::kNothing : refused();
    written_ += static_cast<size_t>(sent);
    if (written_ < outgoing_.size()) return Event::kNothing;
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u64 = tag_;
    epoll_ctl(epoll_, EPOLL_CTL_MOD, fd_, &event);
  }
  const ssize_t got = recv(fd_, buffer.data(), buffer.size(), 0);
  if (got < 0) return errno == EAGAIN ? Event::kNothing : refused();
  if (got == 0) return refused();
  AppendBytes(incoming_, buffer.subspan(0, static_cast<size_t>(got)));
  ByteReader message(incoming_);
  const size_t length = message.Uint(kLengthBytes);
  if (length > buffer.size()) return refused();
  if (!message.ok() || message.left() < length) return Event::kNothing;
  memcpy(buffer.data(), message.Bytes(length).data(), length);
  reply = buffer.subspan(0, length);
  Close();
  return Event::kReply;
}

}  // namespace mpckdc::storm
