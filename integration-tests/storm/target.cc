// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/target.h"

#include <arpa/inet.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "integration-tests/storm/options.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc::storm {
namespace {

struct Prefix {
  uint32_t address;
  int bits;
};

// RFC 1918; and RFC 5737's examples, which integration-tests/fault uses in its namespaces.
constexpr Prefix kPrivate4[] = {{0x0a000000, 8},  {0xac100000, 12}, {0xc0a80000, 16},
                                {0xc0000200, 24}, {0xc6336400, 24}, {0xcb007100, 24}};

bool IsLoopback(const Address& address) {
  return address.is4() ? address.number4() >> 24 == 127
                       : IN6_IS_ADDR_LOOPBACK(&address.ip.in6.sin6_addr);
}

bool IsPrivate(const Address& address) {
  // fc00::/7 (unique local).
  if (!address.is4()) return (address.ip.in6.sin6_addr.s6_addr[0] & 0xfe) == 0xfc;
  return std::any_of(std::begin(kPrivate4), std::end(kPrivate4), [&](const Prefix& prefix) {
    return (address.number4() ^ prefix.address) >> (32 - prefix.bits) == 0;
  });
}

bool IsVirtual(int fd, const char* name) {
  ifreq request = {};
  strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  if (ioctl(fd, SIOCGIFFLAGS, &request) != 0) return false;
  if (request.ifr_flags & IFF_LOOPBACK) return true;
  ethtool_drvinfo driver = {};
  driver.cmd = ETHTOOL_GDRVINFO;
  request.ifr_data = reinterpret_cast<char*>(&driver);
  if (ioctl(fd, SIOCETHTOOL, &request) != 0) return false;
  const absl::string_view kind = driver.driver;
  return kind == "veth" || kind == "tun" || kind == "dummy" || kind == "bridge";
}

bool AllInterfacesAreVirtual() {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  struct if_nameindex* const all = if_nameindex();
  bool all_virtual = fd >= 0 && all != nullptr;
  for (struct if_nameindex* each = all; all_virtual && each->if_name != nullptr; ++each) {
    all_virtual = IsVirtual(fd, each->if_name);
  }
  if (all != nullptr) if_freenameindex(all);
  if (fd >= 0) close(fd);
  return all_virtual;
}

// nullopt when it cannot be read.
std::optional<std::string> ReadAll(const char* file) {
  std::ifstream in(file);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

constexpr size_t kLengthBytes = 4;

absl::Status OwnError(absl::string_view what) {
  const bool descriptors = errno == EMFILE;
  return Bad(what, ": ", strerror(errno),
             descriptors ? "; raise ulimit -n or lower --in-flight" : "");
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

absl::StatusOr<Address> ParseAddress(absl::string_view text) {
  const absl::Status bad =
      Bad("\"", text, "\" is no numeric address and port, as 127.0.0.1:88 or [::1]:88");
  const size_t colon = text.rfind(':');
  uint32_t port = 0;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(text.substr(colon + 1), &port) ||
      port == 0 || port > 65535) {
    return bad;
  }
  std::string host(text.substr(0, colon));
  Address address;
  address.text = std::string(text);
  sockaddr_in& in = address.ip.in;
  sockaddr_in6& in6 = address.ip.in6;
  if (inet_pton(AF_INET, host.c_str(), &in.sin_addr) == 1) {
    in.sin_family = AF_INET;
    in.sin_port = htons(static_cast<uint16_t>(port));
    return address;
  }
  if (host.size() < 2 || host.front() != '[' || host.back() != ']') return bad;
  host = host.substr(1, host.size() - 2);
  if (inet_pton(AF_INET6, host.c_str(), &in6.sin6_addr) != 1) return bad;
  in6.sin6_family = AF_INET6;
  in6.sin6_port = htons(static_cast<uint16_t>(port));
  return address;
}

// Iface Destination Gateway Flags RefCnt Use Metric Mask ...
bool HasDefaultRoute4(absl::string_view table) {
  for (const absl::string_view line : absl::StrSplit(table, '\n')) {
    const std::vector<absl::string_view> fields =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (fields.size() > 7 && fields[1] == "00000000" && fields[7] == "00000000") return true;
  }
  return false;
}

// destination prefix-length source prefix-length next-hop metric refs uses flags interface. The
// kernel lists the absence of a route too, as one on lo.
bool HasDefaultRoute6(absl::string_view table) {
  for (const absl::string_view line : absl::StrSplit(table, '\n')) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (fields.size() > 9 && fields[1] == "00" &&
        fields[0].find_first_not_of('0') == absl::string_view::npos && fields[9] != "lo") {
      return true;
    }
  }
  return false;
}

NetworkView LookAtNetwork() {
  NetworkView view;
  view.only_virtual = AllInterfacesAreVirtual();
  // A table that cannot be read may hold anything. Without IPv6 there is none of it.
  const std::optional<std::string> routes = ReadAll("/proc/self/net/route");
  const std::optional<std::string> routes6 = ReadAll("/proc/self/net/ipv6_route");
  const bool no_ipv6 = !routes6.has_value() && access("/proc/self/net/if_inet6", F_OK) != 0;
  const bool way_out6 = routes6.has_value() ? HasDefaultRoute6(*routes6) : !no_ipv6;
  view.has_way_out = !routes.has_value() || HasDefaultRoute4(*routes) || way_out6;
  return view;
}

absl::Status MayLoad(const Address& address, const NetworkView& network, bool i_own_this_kdc) {
  if (i_own_this_kdc || IsLoopback(address)) return absl::OkStatus();
  if (IsPrivate(address) && network.only_virtual && !network.has_way_out) return absl::OkStatus();
  return Bad(
      address.text,
      " is not this machine's loopback interface, nor a private address in a network namespace "
      "without hardware and without a default route. A load test against somebody's KDC is an "
      "attack. If it is yours, say --i-own-this-kdc");
}

void ClientSocket::Close() {
  if (fd_ >= 0) close(fd_);  // leaves the epoll set by itself
  fd_ = -1;
}

int ClientSocket::Watch(int operation, uint32_t events) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = tag_;
  return epoll_ctl(epoll_, operation, fd_, &event);
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
  const uint32_t events = tcp_ ? EPOLLIN | EPOLLOUT : EPOLLIN;
  return Watch(EPOLL_CTL_ADD, events) == 0 ? absl::OkStatus() : OwnError("epoll_ctl");
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

ClientSocket::Event ClientSocket::OnReady(uint32_t events, absl::Span<uint8_t> buffer) {
  if (fd_ < 0 || events == 0) return {};  // closed by an event before, in one round
  return tcp_ ? ContinueStream(buffer) : ReceiveDatagram(buffer);
}

ClientSocket::Event ClientSocket::ReceiveDatagram(absl::Span<uint8_t> buffer) {
  iovec into = {buffer.data(), buffer.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(timespec))];
  msghdr message = {};
  message.msg_iov = &into;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = recvmsg(fd_, &message, 0);
  if (got < 0) return {errno == ECONNREFUSED ? What::kRefused : What::kNothing};
  return {What::kReply, buffer.subspan(0, static_cast<size_t>(got)), SinceArrival(message)};
}

ClientSocket::Event ClientSocket::ContinueStream(absl::Span<uint8_t> buffer) {
  const auto refused = [this]() -> Event {
    Close();
    return {What::kRefused};
  };
  if (written_ < outgoing_.size()) {
    const ssize_t sent =
        send(fd_, outgoing_.data() + written_, outgoing_.size() - written_, MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN ? Event() : refused();
    written_ += static_cast<size_t>(sent);
    if (written_ < outgoing_.size()) return {};
    Watch(EPOLL_CTL_MOD, EPOLLIN);
  }
  const ssize_t got = recv(fd_, buffer.data(), buffer.size(), 0);
  if (got < 0) return errno == EAGAIN ? Event() : refused();
  if (got == 0) return refused();
  AppendBytes(incoming_, buffer.subspan(0, static_cast<size_t>(got)));
  ByteReader message(incoming_);
  const size_t length = message.Uint(kLengthBytes);
  if (length > buffer.size()) return refused();
  if (!message.ok() || message.left() < length) return {};
  memcpy(buffer.data(), message.Bytes(length).data(), length);
  Close();
  return {What::kReply, buffer.subspan(0, length)};
}

}  // namespace mpckdc::storm
