// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/metrics_port.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/clock.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/service/metrics_request.h"

namespace mpckdc {
namespace {

// Then those who were accepted have their turn: fewer than have a place, so that whoever asks as he
// comes is heard before others take it.
constexpr int kAcceptsPerStep = static_cast<int>(limits::kMaxCallersPerAddress / 2);
constexpr int kPauseMs = 100;  // for what changes by time alone
// However many ask: what a page costs is paid four times a second.
constexpr absl::Duration kPageLife = absl::Milliseconds(250);

// Also when the clock was set back since.
bool IsOver(absl::Time end, absl::Time now) {
  return end <= now || end > now + limits::kHandshakeTimeout;
}

std::shared_ptr<const std::string> Response(absl::string_view status, absl::string_view body) {
  return std::make_shared<const std::string>(absl::StrCat(
      "HTTP/1.1 ", status, "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n",
      "Content-Length: ", body.size(), "\r\nConnection: close\r\n\r\n", body));
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsPort>> MetricsPort::Open(
    const std::string& listen, std::function<std::string()> render) {
  ASSIGN_OR_RETURN(Fd listener, ListenOn(listen, {}));
  return std::unique_ptr<MetricsPort>(new MetricsPort(std::move(listener), std::move(render)));
}

MetricsPort::MetricsPort(Fd listener, std::function<std::string()> render)
    : listener_(std::move(listener)),
      wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      render_(std::move(render)),
      visitors_(&SystemClock(), 0),
      thread_([this] { Run(); }) {}

MetricsPort::~MetricsPort() {
  stopping_ = true;
  const uint64_t one = 1;
  static_cast<void>(!write(wake_.get(), &one, sizeof(one)));
  thread_.join();
}

void MetricsPort::Run() {
  while (!stopping_) {
    AcceptAll();
    visitors_.Step([this](Visitor& visitor) { return Step(visitor); });
    Wait();
  }
}

void MetricsPort::AcceptAll() {
  const absl::Time give_up = SystemClock().Now() + limits::kHandshakeTimeout;
  for (int i = 0; i < kAcceptsPerStep; ++i) {
    PeerAddress from;
    Fd fd = AcceptOne(listener_, {}, &from);
    accept_failed_ = !fd.valid() && errno != EAGAIN;  // out of descriptors, for example
    if (!fd.valid()) return;
    visitors_.Add({std::move(fd), give_up, "", nullptr}, from, /*expected=*/false);
  }
}

// True: it is answered, or closed.
bool MetricsPort::Step(Visitor& visitor) {
  if (IsOver(visitor.give_up, SystemClock().Now())) return true;
  if (visitor.answer == nullptr && Hear(visitor)) return true;
  while (visitor.answer != nullptr && visitor.sent < visitor.answer->size()) {
    const ssize_t sent = send(visitor.fd.get(), visitor.answer->data() + visitor.sent,
                              visitor.answer->size() - visitor.sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) return errno != EAGAIN && errno != EINTR;
    visitor.sent += static_cast<size_t>(sent);
  }
  return visitor.answer != nullptr;
}

// Reads what has come of the request. True: nothing more will come.
bool MetricsPort::Hear(Visitor& visitor) {
  std::array<char, kMaxMetricsRequest> bytes;
  const ssize_t got = recv(visitor.fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got < 0) return errno != EAGAIN && errno != EINTR;
  if (got == 0) return true;
  visitor.request.append(bytes.data(), static_cast<size_t>(got));
  visitor.answer = Answer(ReadMetricsRequest(visitor.request));
  return false;
}

// Null: more is to come.
std::shared_ptr<const std::string> MetricsPort::Answer(MetricsQuestion question) {
  switch (question) {
    case MetricsQuestion::kUnfinished:
      return nullptr;
    case MetricsQuestion::kTooLong:
      return Response("431 Request Header Fields Too Large", "");
    case MetricsQuestion::kNotGet:
      return Response("405 Method Not Allowed", "");
    case MetricsQuestion::kOtherPath:
      return Response("404 Not Found", "see /metrics\n");
    case MetricsQuestion::kPage:
      return Page();
  }
  return nullptr;
}

std::shared_ptr<const std::string> MetricsPort::Page() {
  const absl::Time now = SystemClock().Now();
  if (page_ == nullptr || now < rendered_ || now >= rendered_ + kPageLife) {
    page_ = Response("200 OK", render_());
    rendered_ = now;
  }
  return page_;
}

void MetricsPort::Wait() {
  std::vector<pollfd> fds = {{wake_.get(), POLLIN, 0}};
  if (!accept_failed_) fds.push_back({listener_.get(), POLLIN, 0});
  visitors_.ForEach([&](const Visitor& visitor) {
    const short events = visitor.answer == nullptr ? POLLIN : POLLOUT;
    fds.push_back({visitor.fd.get(), events, 0});
  });
  poll(fds.data(), fds.size(), kPauseMs);
}

}  // namespace mpckdc
