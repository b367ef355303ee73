// SPDX-License-Identifier: Apache-2.0
// Making the connections: for each ring one outgoing to next and one incoming from prev, all at
// once, since every party waits for all.
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/wire/callers.h"
#include "mpc-server/wire/link_channel.h"
#include "mpc-server/wire/record_choice.h"
#include "mpc-server/wire/ring.h"
#include "mpc-server/wire/tls_attempt.h"

namespace mpckdc {
namespace {

constexpr absl::Duration kRetryPause = absl::Milliseconds(100);
constexpr int kAcceptsPerStep = 1024;  // then those who were accepted have their turn

class Connector : public TlsPeerConnector {
 public:
  Connector(const TlsPeerOptions& options, Clock& clock)
      : options_(options),
        tuning_{options.socket_buffer_bytes, options.tcp_congestion},
        clock_(clock),
        wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
        rings_(static_cast<size_t>(options.rings)) {}

  absl::Status Open() {
    RETURN_IF_ERROR(Reload());
    ASSIGN_OR_RETURN(listener_, ListenOn(options_.listen, tuning_));
    return absl::OkStatus();
  }

  absl::StatusOr<Channels> ConnectAll(absl::Time deadline) override;
  absl::Status Reload() override;
  absl::Status StillGood() const override;
  int rings() const override { return options_.rings; }
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
  void StartOutgoing(int ring);
  void StepOutgoing(int ring);
  void ExpectPrev();
  void AcceptIncoming();
  void StepIncoming();
  bool Complete() const;
  absl::StatusOr<Channels> TakeChannels();
  void Clear();
  void Wait(absl::Time deadline);
  absl::Status TooLate() const;

  const TlsPeerOptions options_;
  const SocketTuning tuning_;
  Clock& clock_;
  Fd listener_, wake_;
  std::atomic<bool> shut_down_ = false;
  absl::Mutex ctx_mutex_;
  SslCtx ctx_ ABSL_GUARDED_BY(ctx_mutex_);

  // The two connections of one ring at this party.
  struct Ring {
    std::unique_ptr<Attempt> outgoing;   // under way or ready
    absl::Time next_try = absl::InfinitePast();
    std::unique_ptr<Attempt> from_prev;  // ready
  };
  std::vector<Ring> rings_;
  std::vector<PeerAddress> prev_addresses_;
  Callers<std::unique_ptr<Attempt>> callers_{&clock_, limits::kMaxExpectedCallers};
  bool accept_failed_ = false;
  // The certificates of the channels given out last, each once.
  std::set<std::pair<int, CertificateFingerprint>> in_use_;
  // The last error seen, for the administrator. A lost connection does not hide why the one before
  // it was refused.
  struct LastError {
    void Note(const absl::Status& s) {
      if (absl::IsUnavailable(s) && !status.ok() && !absl::IsUnavailable(status)) return;
      status = s;
    }
    absl::Status status;
  };
  LastError outgoing_error_, incoming_error_;
};

absl::Status Connector::Reload() {
  ASSIGN_OR_RETURN(SslCtx ctx, MakePeerSslCtx(options_));
  absl::MutexLock lock(&ctx_mutex_);
  ctx_ = std::move(ctx);
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

void Connector::StartOutgoing(int number) {
  Ring& ring = rings_[static_cast<size_t>(number)];
  if (ring.outgoing != nullptr || clock_.Now() < ring.next_try) return;
  ring.next_try = clock_.Now() + kRetryPause;
  absl::StatusOr<Fd> fd = StartConnect(options_.peers[static_cast<size_t>(Next())], tuning_);
  absl::StatusOr<std::unique_ptr<TlsLink>> link =
      fd.ok() ? NewLink(*std::move(fd), true) : fd.status();
  if (!link.ok()) {
    outgoing_error_.Note(link.status());
    return;
  }
  ring.outgoing = std::make_unique<Attempt>(
      Attempt::Outgoing(*std::move(link), number, clock_.Now() + limits::kHandshakeTimeout));
}

void Connector::StepOutgoing(int number) {
  StartOutgoing(number);
  std::unique_ptr<Attempt>& outgoing = rings_[static_cast<size_t>(number)].outgoing;
  if (outgoing == nullptr) return;
  absl::Status s = outgoing->Step(options_, Next(), clock_.Now());
  if (s.ok()) return;
  outgoing_error_.Note(s);
  outgoing.reset();
}

// Names may change their addresses. One that is not to be found now keeps those it had.
void Connector::ExpectPrev() {
  absl::StatusOr<std::vector<PeerAddress>> addresses =
      PeerAddressesOf(options_.peers[static_cast<size_t>(Prev())]);
  if (addresses.ok()) prev_addresses_ = *std::move(addresses);
}

void Connector::AcceptIncoming() {
  for (int i = 0; i < kAcceptsPerStep; ++i) {
    PeerAddress from;
    Fd fd = AcceptOne(listener_, tuning_, &from);
    accept_failed_ = !fd.valid() && errno != EAGAIN;  // out of descriptors, for example
    if (!fd.valid()) return;
    absl::StatusOr<std::unique_ptr<TlsLink>> link = NewLink(std::move(fd), false);
    if (!link.ok()) continue;
    const auto& expected = prev_addresses_;
    callers_.Add(std::make_unique<Attempt>(
                     Attempt::Incoming(*std::move(link), clock_.Now() + limits::kHandshakeTimeout)),
                 from, std::find(expected.begin(), expected.end(), from) != expected.end());
  }
}

// The newest connection of a ring that authenticates as prev wins: an older one is a leftover.
void Connector::StepIncoming() {
  AcceptIncoming();
  callers_.Step([this](std::unique_ptr<Attempt>& a) {
    absl::Status s = a->Step(options_, Prev(), clock_.Now());
    if (!s.ok()) {
      incoming_error_.Note(s);
      return true;
    }
    if (!a->ready()) return false;
    rings_[static_cast<size_t>(a->ring())].from_prev = std::move(a);
    return true;
  });
  for (Ring& ring : rings_) {
    if (ring.from_prev == nullptr) continue;
    absl::Status s = ring.from_prev->Step(options_, Prev(), clock_.Now());
    if (s.ok()) continue;
    incoming_error_.Note(s);
    ring.from_prev.reset();
  }
}

void Connector::Wait(absl::Time deadline) {
  std::vector<pollfd> fds = {{wake_.get(), POLLIN, 0}};
  const auto add = [&fds](const std::unique_ptr<Attempt>& a) {
    if (a != nullptr) fds.push_back({a->fd(), a->Events(), 0});
  };
  if (!accept_failed_) fds.push_back({listener_.get(), POLLIN, 0});
  callers_.ForEach(add);
  for (const Ring& ring : rings_) {
    add(ring.from_prev);
    add(ring.outgoing);
  }
  const absl::Duration left = std::min(deadline - clock_.Now(), kRetryPause);
  const int64_t ms = absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1)));
  poll(fds.data(), fds.size(), static_cast<int>(std::max<int64_t>(ms, 0)));
}

bool Ready(const std::unique_ptr<Attempt>& a) { return a != nullptr && a->ready(); }

bool Connector::Complete() const {
  return std::all_of(rings_.begin(), rings_.end(), [](const Ring& ring) {
    return Ready(ring.outgoing) && Ready(ring.from_prev);
  });
}

absl::Status Connector::TooLate() const {
  std::string text;
  const auto describe = [&](absl::string_view who, int party, size_t missing,
                            const LastError& error) {
    if (missing == 0) return;
    absl::StrAppend(&text, text.empty() ? "" : "; ", "no connection ", who, " (P", party, ")");
    if (missing < rings_.size()) {
      absl::StrAppend(&text, " for ", missing, " of ", rings_.size(), " rings");
    }
    if (!error.status.ok()) absl::StrAppend(&text, ": ", error.status.message());
  };
  size_t no_next = 0, no_prev = 0;
  for (const Ring& ring : rings_) {
    no_next += !Ready(ring.outgoing);
    no_prev += !Ready(ring.from_prev);
  }
  describe("to next", Next(), no_next, outgoing_error_);
  describe("from prev", Prev(), no_prev, incoming_error_);
  return absl::DeadlineExceededError(text);
}

absl::StatusOr<TlsPeerConnector::Channels> Connector::TakeChannels() {
  Channels channels;
  const int self = options_.party;
  in_use_.clear();
  for (Ring& ring : rings_) {
    in_use_.insert({Prev(), ring.from_prev->fingerprint()});
    in_use_.insert({Next(), ring.outgoing->fingerprint()});
    ASSIGN_OR_RETURN(std::unique_ptr<Link> prev,
                     StartRecords(std::move(*ring.from_prev).TakeLink(), Prev(), self, false));
    ASSIGN_OR_RETURN(std::unique_ptr<Link> next,
                     StartRecords(std::move(*ring.outgoing).TakeLink(), self, Next(), true));
    channels.push_back(MakeLinkChannel(self, std::move(prev), std::move(next), clock_));
  }
  return channels;
}

void Connector::Clear() {
  for (Ring& ring : rings_) {
    ring.outgoing.reset();
    ring.from_prev.reset();
  }
  callers_.Clear();
}

absl::Status Connector::StillGood() const {
  for (const auto& [party, fingerprint] : in_use_) {
    RETURN_IF_ERROR(CheckNotDenied(options_, party, fingerprint));
  }
  return absl::OkStatus();
}

absl::StatusOr<TlsPeerConnector::Channels> Connector::ConnectAll(absl::Time deadline) {
  outgoing_error_ = incoming_error_ = {};
  ExpectPrev();
  while (!shut_down_) {
    for (int ring = 0; ring < options_.rings; ++ring) StepOutgoing(ring);
    StepIncoming();
    if (Complete()) {
      absl::StatusOr<Channels> channels = TakeChannels();
      Clear();
      return channels;
    }
    if (clock_.Now() >= deadline) return TooLate();  // what there is stays for the next call
    Wait(deadline);
  }
  return absl::CancelledError("peer connector was shut down");
}

}  // namespace

absl::StatusOr<std::unique_ptr<PeerChannel>> TlsPeerConnector::Connect(absl::Time deadline) {
  if (rings() != 1) {
    return absl::FailedPreconditionError("Connect() is for one ring, ConnectAll() for several");
  }
  ASSIGN_OR_RETURN(Channels channels, ConnectAll(deadline));
  return std::move(channels.front());
}

absl::StatusOr<std::unique_ptr<TlsPeerConnector>> TlsPeerConnector::Create(
    const TlsPeerOptions& options, Clock& clock) {
  if (options.rings < 1 || options.rings > kMaxRings) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.rings, " rings (engine workers): must be 1 to ", kMaxRings));
  }
  auto connector = std::make_unique<Connector>(options, clock);
  RETURN_IF_ERROR(connector->Open());
  return connector;
}

}  // namespace mpckdc
