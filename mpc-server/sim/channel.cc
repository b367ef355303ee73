// SPDX-License-Identifier: Apache-2.0
//
// The simulated PeerChannel. It reads and checks headers with the code of production.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/sim/link.h"
#include "mpc-server/wire/posted_rounds.h"

namespace mpckdc::sim {

class SimChannel : public PeerChannel {
 public:
  SimChannel(Network* network, int party, SimClock* clock, std::shared_ptr<Connection> prev,
             std::shared_ptr<Connection> next, std::shared_ptr<bool> dead)
      : network_(network), party_(party), clock_(clock), prev_(std::move(prev)),
        next_(std::move(next)), dead_(std::move(dead)) {}
  ~SimChannel() override {
    for (const Neighbour n : {Neighbour::kPrev, Neighbour::kNext}) {
      From(n).reader = nullptr;
      network_->End(Link(n), party_, Party(n));
    }
  }

  absl::Status Post(const RoundId& id, absl::Span<const uint8_t> to_next,
                    absl::Span<const uint8_t> to_prev) override;
  absl::Status Collect(const RoundId& id, absl::Span<uint8_t> from_prev,
                       absl::Span<uint8_t> from_next, absl::Time deadline) override;
  absl::Status Send(Neighbour to, FrameType type, absl::Span<const uint8_t> payload) override;
  absl::StatusOr<Frame> Receive(Neighbour from, absl::Time deadline) override;
  void BindSession(uint32_t session) override { session_ = session; }
  ChannelCounters Counters() const override { return {}; }

 private:
  int Party(Neighbour n) const {
    return n == Neighbour::kNext ? NextParty(party_) : PrevParty(party_);
  }
  std::shared_ptr<Connection>& Link(Neighbour n) { return n == Neighbour::kNext ? next_ : prev_; }
  Pipe& From(Neighbour n) { return Link(n)->From(Party(n)); }

  absl::Status Gone() { return Break(absl::CancelledError("the process was killed")); }
  absl::Status Break(const absl::Status& s) {
    if (!s.ok() && broken_.ok()) broken_ = s;
    return s;
  }
  bool Killed(const char* step) {
    if (!*dead_ && network_->hook_ && network_->hook_(party_, step)) *dead_ = true;
    return *dead_;
  }

  void Put(Neighbour to, const FrameHeader& header, absl::Span<const uint8_t> payload);
  // One frame that has arrived, its header parsed.
  absl::Status Open(Neighbour from, FrameHeader* header, SecretBytes* payload);
  // The next frame from a neighbour. `other_too`: the other neighbour's end is an error as well.
  absl::Status Next(Neighbour from, bool other_too, absl::Time deadline, FrameHeader* header,
                    SecretBytes* payload);
  absl::Status Take(Neighbour from, const RoundId& id, absl::Span<uint8_t> out,
                    absl::Time deadline);

  Network* const network_;
  const int party_;
  SimClock* const clock_;
  std::shared_ptr<Connection> prev_, next_;
  const std::shared_ptr<bool> dead_;
  uint32_t session_ = 0;
  absl::Status broken_;
  PostedRounds posted_;
};

namespace {

// Named steps of control frames; static, since a run counts them by the thousand.
const char* SendStep(FrameType type) {
  switch (type) {
    case FrameType::kHello: return "send hello";
    case FrameType::kSeed: return "send seed";
    case FrameType::kConfirm: return "send confirm";
    case FrameType::kAgreement: return "send agreement";
    case FrameType::kAbort: return "send abort";
    default: return "send";
  }
}
const char* ReceiveStep(FrameType type) {
  switch (type) {
    case FrameType::kHello: return "receive hello";
    case FrameType::kSeed: return "receive seed";
    case FrameType::kConfirm: return "receive confirm";
    case FrameType::kAgreement: return "receive agreement";
    default: return nullptr;  // nobody sends it: a bit of its type was flipped
  }
}

}  // namespace

void SimChannel::Put(Neighbour to, const FrameHeader& header, absl::Span<const uint8_t> payload) {
  Wire wire;
  WriteFrameHeader(header, wire.header.data());
  wire.payload.assign(payload.begin(), payload.end());
  network_->Send(Link(to), party_, Party(to), std::move(wire));
}

absl::Status SimChannel::Open(Neighbour from, FrameHeader* header, SecretBytes* payload) {
  Pipe& pipe = From(from);
  Wire wire = std::move(pipe.arrived.front());
  pipe.arrived.pop_front();
  if (wire.fate == Wire::Fate::kBadRecord) return absl::UnavailableError("bad record mac");
  if (wire.fate == Wire::Fate::kTruncated) {
    return absl::UnavailableError("the connection ended inside a frame");
  }
  RETURN_IF_ERROR(ReadFrameHeader(wire.header.data(), header));
  if (header->length != wire.payload.size()) {
    return absl::DataLossError("frame header: payload length differs from what follows");
  }
  *payload = std::move(wire.payload);
  if (header->type != FrameType::kAbort) return absl::OkStatus();
  return absl::AbortedError(std::string(payload->begin(), payload->end()));
}

absl::Status SimChannel::Next(Neighbour from, bool other_too, absl::Time deadline,
                              FrameHeader* header, SecretBytes* payload) {
  const Neighbour other = from == Neighbour::kPrev ? Neighbour::kNext : Neighbour::kPrev;
  Scheduler* const scheduler = network_->scheduler_;
  while (From(from).arrived.empty()) {
    if (*dead_) return absl::CancelledError("the process was killed");
    const auto gone = [this](Neighbour n) {
      return absl::UnavailableError(absl::StrCat("P", Party(n), " is gone"));
    };
    if (From(from).closed) return gone(from);
    if (other_too && From(other).closed) {
      // Its last word, if there is one.
      const absl::Status last = From(other).arrived.empty() ? absl::OkStatus()
                                                            : Open(other, header, payload);
      return last.ok() ? gone(other) : last;
    }
    if (clock_->Now() >= deadline) return absl::DeadlineExceededError("nothing received");
    From(from).reader = From(other).reader = scheduler->current();
    scheduler->Wait(clock_->Global(deadline));
    From(from).reader = From(other).reader = nullptr;
  }
  return Open(from, header, payload);
}

absl::Status SimChannel::Take(Neighbour from, const RoundId& id, absl::Span<uint8_t> out,
                              absl::Time deadline) {
  FrameHeader header;
  SecretBytes payload;
  absl::Status s = Next(from, false, deadline, &header, &payload);
  if (s.ok()) {
    s = CheckFrameHeader({FrameType::kRound, id.round, id.session, id.batch,
                          static_cast<uint32_t>(out.size())},
                         header);
  }
  if (s.ok()) std::memcpy(out.data(), payload.data(), out.size());
  return s;
}

// The named step of a round is its posting: a process that dies in it has sent nothing of it.
absl::Status SimChannel::Post(const RoundId& id, absl::Span<const uint8_t> to_next,
                              absl::Span<const uint8_t> to_prev) {
  if (!broken_.ok()) return broken_;
  if (Killed(id.step)) return Gone();
  const auto header = [&id](size_t size) {
    return FrameHeader{FrameType::kRound, id.round, id.session, id.batch,
                       static_cast<uint32_t>(size)};
  };
  posted_.Push(id);
  if (!to_next.empty()) Put(Neighbour::kNext, header(to_next.size()), to_next);
  if (!to_prev.empty()) Put(Neighbour::kPrev, header(to_prev.size()), to_prev);
  return absl::OkStatus();
}

absl::Status SimChannel::Collect(const RoundId& id, absl::Span<uint8_t> from_prev,
                                 absl::Span<uint8_t> from_next, absl::Time deadline) {
  if (!broken_.ok()) return broken_;
  absl::Status s = posted_.Pop(id).status();
  if (s.ok() && !from_prev.empty()) s = Take(Neighbour::kPrev, id, from_prev, deadline);
  if (s.ok() && !from_next.empty()) s = Take(Neighbour::kNext, id, from_next, deadline);
  return Break(s);
}

absl::Status SimChannel::Send(Neighbour to, FrameType type, absl::Span<const uint8_t> payload) {
  if (Killed(SendStep(type))) return Gone();
  if (!broken_.ok() && type != FrameType::kAbort) return broken_;
  Put(to, {type, 0, session_, 0, static_cast<uint32_t>(payload.size())}, payload);
  return broken_;
}

absl::StatusOr<Frame> SimChannel::Receive(Neighbour from, absl::Time deadline) {
  if (!broken_.ok()) return broken_;
  FrameHeader header;
  SecretBytes payload;
  absl::Status s = Next(from, true, deadline, &header, &payload);
  if (absl::IsDeadlineExceeded(s)) return s;
  if (s.ok()) s = CheckControlHeader(session_, header);
  if (!s.ok()) return Break(s);
  const char* const step = ReceiveStep(header.type);
  if (step != nullptr && Killed(step)) return Gone();
  return Frame{header.type, std::move(payload)};
}

std::unique_ptr<PeerChannel> MakeSimChannel(Network* network, int party, SimClock* clock,
                                            std::shared_ptr<Connection> prev,
                                            std::shared_ptr<Connection> next,
                                            std::shared_ptr<bool> dead) {
  return std::make_unique<SimChannel>(network, party, clock, std::move(prev), std::move(next),
                                      std::move(dead));
}

}  // namespace mpckdc::sim
