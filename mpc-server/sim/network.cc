// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/sim/network.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/protocol/replicated_share.h"

namespace mpckdc::sim {

uint64_t Dice::Below(uint64_t n) {
  uint8_t bytes[8];
  random_.Fill(bytes);
  uint64_t value;
  std::memcpy(&value, bytes, 8);
  return value % n;
}

absl::Duration Dice::Between(absl::Duration a, absl::Duration b) {
  const auto span = static_cast<uint64_t>(absl::ToInt64Nanoseconds(b - a));
  return a + absl::Nanoseconds(static_cast<int64_t>(Below(span + 1)));
}

// ---- SimExecutor ----

void SimExecutor::Start(const std::string& name, absl::AnyInvocable<void()> body) {
  fiber_ = scheduler_->Spawn(name, std::move(body));
}

void SimExecutor::Join() {
  while (fiber_ != nullptr && !scheduler_->Done(fiber_)) {
    scheduler_->Sleep(absl::Milliseconds(1));
  }
}

void SimExecutor::Wait(absl::Mutex* mu, absl::Time deadline) {
  mu->Unlock();
  scheduler_->Wait(clock_->Global(deadline));
  mu->Lock();
}

void SimExecutor::Wake() {
  // Only a wait that is under way is ended: the body looks at its state before each wait.
  scheduler_->Wake(fiber_);
}

// ---- Channels ----

class SimChannel : public PeerChannel {
 public:
  SimChannel(Network* network, std::shared_ptr<Network::Ring> ring, int party, SimClock* clock,
             std::shared_ptr<bool> dead)
      : network_(network), ring_(std::move(ring)), party_(party), clock_(clock),
        dead_(std::move(dead)) {}
  ~SimChannel() override { network_->CloseRing(ring_, party_); }

  absl::Status Exchange(const RoundId& id, const RoundBuffers& b, absl::Time deadline) override {
    if (Killed(id.step)) return Gone();
    const auto header = [&id](size_t size) {
      return FrameHeader{FrameType::kRound, id.round, id.session, id.batch,
                         static_cast<uint32_t>(size)};
    };
    if (!b.to_next.empty()) Put(Neighbour::kNext, header(b.to_next.size()), b.to_next);
    if (!b.to_prev.empty()) Put(Neighbour::kPrev, header(b.to_prev.size()), b.to_prev);
    absl::Status s;
    if (!b.from_prev.empty()) s = Take(Neighbour::kPrev, id, b.from_prev, deadline);
    if (s.ok() && !b.from_next.empty()) s = Take(Neighbour::kNext, id, b.from_next, deadline);
    return Break(s);
  }

  absl::Status Send(Neighbour to, FrameType type, absl::Span<const uint8_t> payload) override {
    if (Killed(absl::StrCat("send ", FrameTypeName(type)))) return Gone();
    if (!broken_.ok()) return broken_;
    Put(to, {type, 0, session_, 0, static_cast<uint32_t>(payload.size())}, payload);
    return absl::OkStatus();
  }

  absl::StatusOr<Frame> Receive(Neighbour from, absl::Time deadline) override {
    if (!broken_.ok()) return broken_;
    Network::Wire wire;
    absl::Status s = Next(from, deadline, &wire);
    if (absl::IsDeadlineExceeded(s)) return s;
    if (s.ok() && Killed(absl::StrCat("receive ", FrameTypeName(wire.header.type)))) return Gone();
    if (s.ok() && wire.header.type == FrameType::kRound) {
      s = absl::DataLossError("a round frame where a control frame was expected");
    }
    if (s.ok()) {
      s = CheckFrameHeader({wire.header.type, 0, session_, 0, wire.header.length}, wire.header);
    }
    if (!s.ok()) return Break(s);
    return Frame{wire.header.type, std::move(wire.payload)};
  }

  void BindSession(uint32_t session) override { session_ = session; }
  ChannelCounters Counters() const override { return {}; }

 private:
  int Party(Neighbour n) const {
    return n == Neighbour::kNext ? NextParty(party_) : PrevParty(party_);
  }
  absl::Status Gone() { return Break(absl::CancelledError("the process was killed")); }
  absl::Status Break(const absl::Status& s) {
    if (!s.ok()) broken_ = s;
    return s;
  }
  bool Killed(const std::string& step) {
    if (!*dead_ && network_->hook_ && network_->hook_(party_, step)) *dead_ = true;
    return *dead_;
  }

  void Put(Neighbour to, const FrameHeader& header, absl::Span<const uint8_t> payload) {
    network_->Deliver(ring_, party_, Party(to),
                      {header, SecretBytes(payload.begin(), payload.end())});
  }

  // The next frame from a neighbour.
  absl::Status Next(Neighbour from, absl::Time deadline, Network::Wire* wire) {
    Network::Pipe& pipe = ring_->pipes[{Party(from), party_}];
    Scheduler* const scheduler = network_->scheduler_;
    while (pipe.arrived.empty()) {
      if (*dead_) return absl::CancelledError("the process was killed");
      if (pipe.closed) return absl::UnavailableError(absl::StrCat("P", Party(from), " is gone"));
      if (clock_->Now() >= deadline) return absl::DeadlineExceededError("nothing received");
      pipe.reader = scheduler->current();
      scheduler->Wait(clock_->Global(deadline));
      pipe.reader = nullptr;
    }
    *wire = std::move(pipe.arrived.front());
    pipe.arrived.pop_front();
    if (wire->header.type != FrameType::kAbort) return absl::OkStatus();
    return absl::AbortedError(std::string(wire->payload.begin(), wire->payload.end()));
  }

  absl::Status Take(Neighbour from, const RoundId& id, absl::Span<uint8_t> out,
                    absl::Time deadline) {
    Network::Wire wire;
    absl::Status s = Next(from, deadline, &wire);
    if (s.ok()) {
      s = CheckFrameHeader({FrameType::kRound, id.round, id.session, id.batch,
                            static_cast<uint32_t>(out.size())},
                           wire.header);
    }
    if (!s.ok()) return s;
    std::memcpy(out.data(), wire.payload.data(), out.size());
    return absl::OkStatus();
  }

  Network* const network_;
  const std::shared_ptr<Network::Ring> ring_;
  const int party_;
  SimClock* const clock_;
  const std::shared_ptr<bool> dead_;
  uint32_t session_ = 0;
  absl::Status broken_;
};

class SimLink : public PeerLink {
 public:
  SimLink(Network* network, int party, SimClock* clock)
      : network_(network), party_(party), clock_(clock) {}
  ~SimLink() override {
    if (network_->waiting_[party_] == this) network_->waiting_[party_] = nullptr;
  }

  absl::StatusOr<std::unique_ptr<PeerChannel>> Connect(absl::Time deadline) override {
    Scheduler* const scheduler = network_->scheduler_;
    ring_.reset();
    while (!*dead_ && !down_ && ring_ == nullptr && clock_->Now() < deadline) {
      network_->waiting_[party_] = this;
      fiber_ = scheduler->current();
      Meet();
      if (ring_ == nullptr) {
        scheduler->Wait(
            std::min(clock_->Global(deadline), scheduler->now() + absl::Milliseconds(100)));
      }
    }
    if (network_->waiting_[party_] == this) network_->waiting_[party_] = nullptr;
    if (*dead_ || down_) return absl::CancelledError("shut down");
    if (ring_ == nullptr) return absl::DeadlineExceededError("a neighbour is missing");
    return std::make_unique<SimChannel>(network_, std::move(ring_), party_, clock_, dead_);
  }

  void Shutdown() override {
    down_ = true;
    network_->scheduler_->Wake(fiber_);
  }
  void Die() {
    *dead_ = true;
    network_->scheduler_->Wake(fiber_);
  }

 private:
  // When all three wait and can reach each other: a new ring.
  void Meet() {
    for (int p = 0; p < kParties; ++p) {
      if (network_->waiting_[p] == nullptr) return;
      if (network_->partitioned_[Network::Pair(p, NextParty(p))]) return;
    }
    auto ring = std::make_shared<Network::Ring>();
    for (int p = 0; p < kParties; ++p) {
      SimLink* const link = network_->waiting_[p];
      link->ring_ = ring;
      network_->current_[p] = ring;
      network_->waiting_[p] = nullptr;
      if (link != this) network_->scheduler_->Wake(link->fiber_);
    }
  }

  Network* const network_;
  const int party_;
  SimClock* const clock_;
  std::shared_ptr<Network::Ring> ring_;
  std::shared_ptr<bool> dead_ = std::make_shared<bool>(false);
  Fiber* fiber_ = nullptr;
  bool down_ = false;

  friend class Network;
};

// ---- Network ----

std::unique_ptr<PeerLink> Network::Link(int party, SimClock* clock) {
  auto link = std::make_unique<SimLink>(this, party, clock);
  links_[party] = link.get();
  return link;
}

void Network::Deliver(const std::shared_ptr<Ring>& ring, int from, int to, Wire wire) {
  ++frames_;
  Pipe& pipe = ring->pipes[{from, to}];
  if (pipe.closed || partitioned_[Pair(from, to)]) return;
  if (wire.header.type != FrameType::kRound && !wire.payload.empty() &&
      std::exchange(corrupt_[{from, to}], false)) {
    wire.payload[dice_->Below(wire.payload.size())] ^= static_cast<uint8_t>(1 << dice_->Below(8));
  }
  pipe.last = std::max(pipe.last, scheduler_->now() + dice_->Between(low_, high_));
  auto shared = std::make_shared<Wire>(std::move(wire));
  scheduler_->At(pipe.last, [this, ring, from, to, shared] {
    Pipe& arriving = ring->pipes[{from, to}];
    if (arriving.closed || partitioned_[Pair(from, to)]) return;
    arriving.arrived.push_back(std::move(*shared));
    scheduler_->Wake(arriving.reader);
  });
}

void Network::CloseRing(const std::shared_ptr<Ring>& ring, int party) {
  for (const int other : {NextParty(party), PrevParty(party)}) {
    for (const auto& way : {std::pair{party, other}, std::pair{other, party}}) {
      Pipe& pipe = ring->pipes[way];
      // What was sent before the end still arrives; the end follows it.
      const absl::Time when = std::max(pipe.last, scheduler_->now());
      scheduler_->At(when, [this, ring, way] {
        Pipe& closing = ring->pipes[way];
        closing.closed = true;
        scheduler_->Wake(closing.reader);
      });
    }
  }
}

void Network::Cut(int a, int b) {
  const std::shared_ptr<Ring> ring = current_[a];
  if (ring == nullptr || ring != current_[b]) return;
  for (const auto& way : {std::pair{a, b}, std::pair{b, a}}) {
    Pipe& pipe = ring->pipes[way];
    pipe.closed = true;
    scheduler_->Wake(pipe.reader);
  }
}

void Network::Kill(int party) {
  if (links_[party] != nullptr) links_[party]->Die();
  if (waiting_[party] == links_[party]) waiting_[party] = nullptr;
  links_[party] = nullptr;
  for (const int other : {NextParty(party), PrevParty(party)}) Cut(party, other);
}

}  // namespace mpckdc::sim
