// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/sim/link.h"

#include <algorithm>
#include <utility>

namespace mpckdc::sim {
namespace {
constexpr absl::Duration kRetryPause = absl::Milliseconds(100);  // as TlsPeerConnector
}  // namespace

SimLink::~SimLink() {
  Drop();
  *dead_ = true;  // a handshake under way finds nobody
  if (network_->links_[party_] == this) network_->links_[party_] = nullptr;
}

bool SimLink::Takes() const {
  return connecting_ && !*dead_ && !down_ && executor_->fiber() != nullptr &&
         network_->scheduler_->PausedUntil(executor_->fiber()) <= network_->scheduler_->now();
}

bool SimLink::Usable(const Connections& connections) const {
  const int other = &connections == &outgoing_ ? NextParty(party_) : PrevParty(party_);
  return std::none_of(connections.begin(), connections.end(),
                      [other](const auto& connection) { return connection->From(other).closed; });
}

// A TLS handshake takes two ways there and back; it succeeds when all is well at its end.
void SimLink::TryNext() {
  if (handshake_ || !outgoing_.empty()) return;
  const int next = NextParty(party_);
  const auto& way = network_->Way(party_, next);
  const auto& back = network_->Way(next, party_);
  const absl::Duration takes = 2 * (way.high + back.high);
  handshake_ = true;
  Network* const network = network_;
  network_->scheduler_->At(network_->scheduler_->now() + takes, [this, network, next,
                                                                 dead = dead_] {
    if (*dead) return;
    handshake_ = false;
    SimLink* const server = network->links_[next];
    if (!Takes() || server == nullptr || !server->Takes()) return;
    if (network->Way(party_, next).blocked || network->Way(next, party_).blocked) return;
    if (!network->CertificateGood(next, clock_->Now())) return;
    if (!network->CertificateGood(party_, server->clock_->Now())) return;
    Connections connections(kSimRings);
    for (auto& connection : connections) connection = std::make_shared<Connection>(party_);
    network->current_[party_] = connections;
    Established(connections, true);
    server->Established(connections, false);
  });
}

// The newest connection that authenticates wins: an older one is a leftover.
void SimLink::Established(const Connections& connections, bool outgoing) {
  (outgoing ? outgoing_ : incoming_) = connections;
  network_->scheduler_->Wake(fiber_);
}

void SimLink::Drop() {
  for (const auto& connection : outgoing_) network_->End(connection, party_, NextParty(party_));
  for (const auto& connection : incoming_) network_->End(connection, party_, PrevParty(party_));
  outgoing_.clear();
  incoming_.clear();
}

absl::StatusOr<PeerChannels> SimLink::Connect(absl::Time deadline) {
  Scheduler* const scheduler = network_->scheduler_;
  Drop();
  if (network_->Killed(party_, "connect", *dead_)) {
    return absl::CancelledError("the process was killed");
  }
  connecting_ = true;
  fiber_ = scheduler->current();
  while (!*dead_ && !down_ && clock_->Now() < deadline) {
    if (!Usable(outgoing_)) outgoing_.clear();
    if (!Usable(incoming_)) incoming_.clear();
    if (!outgoing_.empty() && !incoming_.empty()) break;
    TryNext();
    scheduler->Wait(std::min(clock_->Global(deadline), scheduler->now() + kRetryPause));
  }
  connecting_ = false;
  if (*dead_ || down_) return absl::CancelledError("shut down");
  if (outgoing_.empty() || incoming_.empty()) {
    Drop();
    return absl::DeadlineExceededError("a neighbour is missing");
  }
  PeerChannels channels;
  for (size_t ring = 0; ring < kSimRings; ++ring) {
    channels.push_back(
        MakeSimChannel(network_, party_, clock_, incoming_[ring], outgoing_[ring], dead_));
    Liar* const liar = network_->liars_[party_];
    if (liar != nullptr) channels.back() = liar->Wrap(std::move(channels.back()));
  }
  incoming_.clear();
  outgoing_.clear();
  return channels;
}

void SimLink::Shutdown() {
  down_ = true;
  network_->scheduler_->Wake(fiber_);
}

void SimLink::Die() {
  *dead_ = true;
  network_->scheduler_->Wake(fiber_);
}

}  // namespace mpckdc::sim
