// SPDX-License-Identifier: Apache-2.0
// Making the two connections: outgoing to next, incoming from prev, both at once, since every party
// waits for both.
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "mpc-server/transport/ring.h"
#include "mpc-server/transport/tls_peer_channel.h"

namespace mpckdc {
namespace {

constexpr absl::Duration kRetryPause = absl::Milliseconds(100);
constexpr absl::Duration kHandshakeLimit = absl::Seconds(5);
constexpr size_t kMaxIncoming = 8;  // handshakes under way; more wait in the listen queue

// A connection on its way to being a peer link.
struct Attempt {
  enum class State { kConnecting, kHandshake, kAccepting, kReady };
  State state = State::kHandshake;
  std::unique_ptr<TlsLink> link;
  absl::Time give_up;
};

class Connector : public TlsPeerConnector {
 public:
  Connector(const TlsPeerOptions& options, Clock& clock)
      : options_(options),
        tuning_{options.socket_buffer_bytes, options.tcp_congestion},
        clock_(clock),
        wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

  absl::Status Open() {
    if (absl::Status s = Reload(); !s.ok()) return s;
    absl::StatusOr<Fd> fd = ListenOn(options_.listen, tuning_);
    if (!fd.ok()) return fd.status();
    listener_ = *std::move(fd);
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<PeerChannel>> Connect(absl::Time deadline) override;
  absl::Status Reload() override;
  int port() const override { return LocalPort(listener_); }
  void Shutdown() override {
    shut_down_ = true;
    const uint64_t one = 1;
    static_cast<void>(!write(wake_.get(), &one, sizeof(one)));
  }

 private:
  int Next() const { return NextParty(options_.party); }
  int Prev() const { return PrevParty(options_.party); }
  absl::StatusOr<std::unique_ptr<TlsLink>> NewLink(Fd fd, bool client);
  void StartOutgoing();
  void StepOutgoing();
  void AcceptIncoming();
  void StepIncoming();
  // Moves an attempt on: OK with state kReady, OK and not ready, or an error.
  absl::Status Step(Attempt& attempt, bool client, int party);
  void Wait(absl::Time deadline);
  absl::Status TooLate() const;

  const TlsPeerOptions options_;
  const SocketTuning tuning_;
  Clock& clock_;
  Fd listener_, wake_;
  std::atomic<bool> shut_down_ = false;
  absl::Mutex ctx_mutex_;
  SslCtx ctx_ ABSL_GUARDED_BY(ctx_mutex_);

  std::unique_ptr<Attempt> outgoing_;
  absl::Time next_try_ = absl::InfinitePast();
  std::vector<std::unique_ptr<Attempt>> incoming_;
  std::unique_ptr<Attempt> from_prev_;
  std::string outgoing_error_, incoming_error_;
};

absl::Status Connector::Reload() {
  absl::StatusOr<SslCtx> ctx = MakePeerSslCtx(options_);
  if (!ctx.ok()) return ctx.status();
  absl::MutexLock lock(&ctx_mutex_);
  ctx_ = *std::move(ctx);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<TlsLink>> Connector::NewLink(Fd fd, bool client) {
  absl::MutexLock lock(&ctx_mutex_);
  SslPtr ssl(SSL_new(ctx_.get()));
  BIO* bio = NewSocketBio(fd.get());
  if (ssl == nullptr || bio == nullptr) return absl::InternalError(TakeSslError());
  SSL_set_bio(ssl.get(), bio, bio);
  if (client) {
    SSL_set_connect_state(ssl.get());
  } else {
    SSL_set_accept_state(ssl.get());
  }
  return std::make_unique<TlsLink>(std::move(fd), std::move(ssl));
}

absl::Status Connector::Step(Attempt& attempt, bool client, int party) {
  if (attempt.state == Attempt::State::kHandshake) {
    Progress p = attempt.link->Handshake();
    if (!p.ok()) return p.status();
    if (!*p) return absl::OkStatus();
    absl::Status s = CheckPeerCertificate(options_, party, attempt.link->ssl());
    if (!s.ok()) return s;
    attempt.state = Attempt::State::kAccepting;
  }
  if (attempt.state == Attempt::State::kAccepting) {
    Progress p = client ? attempt.link->ReceiveAccepted() : attempt.link->SendAccepted();
    if (!p.ok()) return p.status();
    if (*p) attempt.state = Attempt::State::kReady;
  }
  return absl::OkStatus();
}

void Connector::StartOutgoing() {
  if (outgoing_ != nullptr || clock_.Now() < next_try_) return;
  next_try_ = clock_.Now() + kRetryPause;
  absl::StatusOr<Fd> fd = StartConnect(options_.peers[static_cast<size_t>(Next())], tuning_);
  absl::StatusOr<std::unique_ptr<TlsLink>> link =
      fd.ok() ? NewLink(*std::move(fd), true) : fd.status();
  if (!link.ok()) {
    outgoing_error_ = std::string(link.status().message());
    return;
  }
  outgoing_ = std::make_unique<Attempt>();
  outgoing_->state = Attempt::State::kConnecting;
  outgoing_->link = *std::move(link);
  outgoing_->give_up = clock_.Now() + kHandshakeLimit;
}

void Connector::StepOutgoing() {
  StartOutgoing();
  if (outgoing_ == nullptr) return;
  absl::Status s;
  pollfd ready = {outgoing_->link->fd(), POLLOUT | POLLRDHUP, 0};
  poll(&ready, 1, 0);
  if (outgoing_->state == Attempt::State::kConnecting) {
    if (ready.revents == 0) {
      if (clock_.Now() > outgoing_->give_up) s = absl::UnavailableError("connecting timed out");
    } else {
      int error = 0;
      socklen_t size = sizeof(error);
      getsockopt(outgoing_->link->fd(), SOL_SOCKET, SO_ERROR, &error, &size);
      if (error != 0) s = absl::UnavailableError(std::strerror(error));
      if (s.ok()) outgoing_->state = Attempt::State::kHandshake;
    }
  } else if (outgoing_->state == Attempt::State::kReady) {
    if (ready.revents & (POLLRDHUP | POLLERR)) s = absl::UnavailableError("connection closed");
  } else if (clock_.Now() > outgoing_->give_up) {
    s = absl::UnavailableError("handshake timed out");
  }
  if (s.ok() && outgoing_->state != Attempt::State::kConnecting) s = Step(*outgoing_, true, Next());
  if (!s.ok()) {
    outgoing_error_ = std::string(s.message());
    outgoing_.reset();
  }
}

void Connector::AcceptIncoming() {
  while (incoming_.size() < kMaxIncoming) {
    Fd fd = AcceptOne(listener_, tuning_);
    if (!fd.valid()) return;
    absl::StatusOr<std::unique_ptr<TlsLink>> link = NewLink(std::move(fd), false);
    if (!link.ok()) continue;
    auto attempt = std::make_unique<Attempt>();
    attempt->link = *std::move(link);
    attempt->give_up = clock_.Now() + kHandshakeLimit;
    incoming_.push_back(std::move(attempt));
  }
}

// The newest connection that authenticates as prev wins: an older one is a leftover.
void Connector::StepIncoming() {
  AcceptIncoming();
  for (std::unique_ptr<Attempt>& a : incoming_) {
    absl::Status s = Step(*a, false, Prev());
    if (s.ok() && clock_.Now() > a->give_up) s = absl::UnavailableError("handshake timed out");
    if (!s.ok()) {
      incoming_error_ = std::string(s.message());
      a.reset();
    } else if (a->state == Attempt::State::kReady) {
      from_prev_ = std::move(a);
    }
  }
  incoming_.erase(std::remove(incoming_.begin(), incoming_.end(), nullptr), incoming_.end());
  if (from_prev_ == nullptr) return;
  pollfd ready = {from_prev_->link->fd(), POLLRDHUP, 0};
  if (poll(&ready, 1, 0) > 0) {
    incoming_error_ = "connection closed";
    from_prev_.reset();
  }
}

void Connector::Wait(absl::Time deadline) {
  std::vector<pollfd> fds = {{wake_.get(), POLLIN, 0}};
  if (incoming_.size() < kMaxIncoming) fds.push_back({listener_.get(), POLLIN, 0});
  for (const auto& a : incoming_) fds.push_back({a->link->fd(), a->link->Events(), 0});
  if (from_prev_ != nullptr) fds.push_back({from_prev_->link->fd(), POLLRDHUP, 0});
  if (outgoing_ != nullptr) {
    short events = outgoing_->link->Events();
    if (outgoing_->state == Attempt::State::kConnecting) events = POLLOUT;
    if (outgoing_->state == Attempt::State::kReady) events = POLLRDHUP;
    fds.push_back({outgoing_->link->fd(), events, 0});
  }
  const absl::Duration left = std::min(deadline - clock_.Now(), kRetryPause);
  const int64_t ms = absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1)));
  poll(fds.data(), fds.size(), static_cast<int>(std::max<int64_t>(ms, 0)));
}

absl::Status Connector::TooLate() const {
  std::string text;
  const auto describe = [&text](absl::string_view who, int party, const std::string& error) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", "no connection ", who, " (P", party, ")");
    if (!error.empty()) absl::StrAppend(&text, ": ", error);
  };
  if (outgoing_ == nullptr || outgoing_->state != Attempt::State::kReady) {
    describe("to next", Next(), outgoing_error_);
  }
  if (from_prev_ == nullptr) describe("from prev", Prev(), incoming_error_);
  return absl::DeadlineExceededError(text);
}

absl::StatusOr<std::unique_ptr<PeerChannel>> Connector::Connect(absl::Time deadline) {
  outgoing_.reset();
  from_prev_.reset();
  incoming_.clear();
  outgoing_error_.clear();
  incoming_error_.clear();
  while (!shut_down_) {
    StepOutgoing();
    StepIncoming();
    if (outgoing_ != nullptr && outgoing_->state == Attempt::State::kReady &&
        from_prev_ != nullptr) {
      return MakeTlsPeerChannel(options_.party, std::move(from_prev_->link),
                                std::move(outgoing_->link), clock_);
    }
    if (clock_.Now() >= deadline) {
      absl::Status s = TooLate();
      outgoing_.reset();
      from_prev_.reset();
      incoming_.clear();
      return s;
    }
    Wait(deadline);
  }
  return absl::CancelledError("peer connector was shut down");
}

}  // namespace

absl::StatusOr<std::unique_ptr<TlsPeerConnector>> TlsPeerConnector::Create(
    const TlsPeerOptions& options, Clock& clock) {
  auto connector = std::make_unique<Connector>(options, clock);
  if (absl::Status s = connector->Open(); !s.ok()) return s;
  return connector;
}

}  // namespace mpckdc
