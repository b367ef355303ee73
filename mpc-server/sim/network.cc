// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/sim/network.h"

#include <algorithm>
#include <utility>

#include "mpc-server/sim/link.h"

namespace mpckdc::sim {
namespace {

// A frame that waits to be overtaken goes on alone after this time.
constexpr absl::Duration kLongestOvertaking = absl::Milliseconds(200);

bool IsRound(const Wire& wire) { return wire.header[1] == static_cast<uint8_t>(FrameType::kRound); }

void FlipOneBit(Dice& dice, Wire* wire, bool header_too) {
  const size_t header = header_too ? wire->header.size() : 0;
  const size_t at = dice.Below(header + wire->payload.size());
  uint8_t& byte = at < header ? wire->header[at] : wire->payload[at - header];
  byte ^= static_cast<uint8_t>(1 << dice.Below(8));
}

}  // namespace

std::unique_ptr<PeerLink> Network::Link(int party, SimClock* clock, const SimExecutor* executor) {
  auto link = std::make_unique<SimLink>(this, party, clock, executor);
  links_[party] = link.get();
  return link;
}

// ---- Frames ----

void Network::Send(const std::shared_ptr<Connection>& connection, int from, int to, Wire wire) {
  ++frames_;
  Pipe& pipe = connection->From(from);
  if (pipe.closed) return;
  Direction& way = Way(from, to);
  const bool round = IsRound(wire);
  const auto strikes = [&](Damage damage, bool suits) {
    if (!suits || way.next != damage) return false;
    way.next = Damage::kNone;
    lies_ += damage != Damage::kBadRecord && damage != Damage::kTruncate;
    return true;
  };
  if (pipe.overtaken.has_value()) {
    Launch(connection, from, to, std::move(wire));
    Launch(connection, from, to, *std::exchange(pipe.overtaken, std::nullopt));
    return;
  }
  if (strikes(Damage::kReorder, true)) {
    pipe.overtaken = std::move(wire);
    scheduler_->At(scheduler_->now() + kLongestOvertaking, [this, connection, from, to] {
      auto alone = std::exchange(connection->From(from).overtaken, std::nullopt);
      if (alone.has_value()) Launch(connection, from, to, *std::move(alone));
    });
    return;
  }
  if (strikes(Damage::kFlipControl, !round)) FlipOneBit(*dice_, &wire, true);
  if (strikes(Damage::kFlipRound, round)) FlipOneBit(*dice_, &wire, false);
  if (strikes(Damage::kBadRecord, true)) wire.fate = Wire::Fate::kBadRecord;
  if (strikes(Damage::kTruncate, true)) wire.fate = Wire::Fate::kTruncated;
  if (strikes(Damage::kDuplicate, true)) Launch(connection, from, to, wire);
  Launch(connection, from, to, std::move(wire));
}

void Network::Launch(const std::shared_ptr<Connection>& connection, int from, int to, Wire wire) {
  Pipe& pipe = connection->From(from);
  const Direction& way = Way(from, to);
  pipe.sent = std::max(pipe.sent, scheduler_->now());
  if (way.bytes_per_second > 0) {
    const auto bytes = static_cast<int64_t>(wire.header.size() + wire.payload.size());
    pipe.sent += absl::Seconds(bytes) / static_cast<int64_t>(way.bytes_per_second);
  }
  pipe.last = std::max(pipe.last, pipe.sent + dice_->Between(way.low, way.high));
  scheduler_->At(pipe.last, [this, connection, from, to, wire = std::move(wire)]() mutable {
    Arrive(*connection, from, to, std::move(wire));
  });
}

void Network::Arrive(Connection& connection, int from, int to, Wire wire) {
  Pipe& pipe = connection.From(from);
  if (pipe.closed) return;
  if (Way(from, to).blocked || !pipe.stuck.empty()) {
    pipe.stuck.push_back(std::move(wire));
    return;
  }
  pipe.arrived.push_back(std::move(wire));
  scheduler_->Wake(pipe.reader);
}

void Network::End(const std::shared_ptr<Connection>& connection, int from, int to) {
  const absl::Time when = std::max(connection->From(from).last, scheduler_->now());
  scheduler_->At(when, [this, connection, from, to] { Close(connection, from, to); });
}

void Network::Close(const std::shared_ptr<Connection>& connection, int from, int to) {
  Pipe& pipe = connection->From(from);
  if (Way(from, to).blocked) {
    pipe.end_stuck = true;
    return;
  }
  pipe.closed = true;
  scheduler_->Wake(pipe.reader);
}

// ---- Faults ----

void Network::Cut(int a, int b) {
  const Connections connections = Current(a, b);
  for (const std::shared_ptr<Connection>& connection : connections) {
    Close(connection, a, b);
    Close(connection, b, a);
  }
}

void Network::Slow(int from, int to, absl::Duration low, absl::Duration high,
                   uint64_t bytes_per_second) {
  Direction& way = Way(from, to);
  way.low = low;
  way.high = high;
  way.bytes_per_second = bytes_per_second;
}

// TCP has kept what was lost and sends it again, unless it gave the connection up.
void Network::Unblock(int from, int to) {
  const Connections connections = Current(from, to);
  const bool stuck = std::any_of(connections.begin(), connections.end(),
                                 [&](const auto& c) { return !c->From(from).stuck.empty(); });
  if (stuck && dice_->Chance(0.5)) return Cut(from, to);
  for (const std::shared_ptr<Connection>& connection : connections) {
    Pipe& pipe = connection->From(from);
    for (Wire& wire : std::exchange(pipe.stuck, {})) {
      Arrive(*connection, from, to, std::move(wire));
    }
    if (std::exchange(pipe.end_stuck, false)) Close(connection, from, to);
  }
}

void Network::Heal() {
  std::array<std::array<Direction, kParties>, kParties> before;
  std::swap(before, ways_);
  for (int from = 0; from < kParties; ++from) {
    for (int to = 0; to < kParties; ++to) {
      if (before[from][to].blocked) Unblock(from, to);
    }
  }
}

void Network::Kill(int party) {
  if (links_[party] != nullptr) links_[party]->Die();
  links_[party] = nullptr;
  for (const int other : {NextParty(party), PrevParty(party)}) Cut(party, other);
}

}  // namespace mpckdc::sim
