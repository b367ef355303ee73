// SPDX-License-Identifier: Apache-2.0
//
// The simulated PeerChannel.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/sim/link.h"
#include "mpc-server/testing/frame_channel.h"

namespace mpckdc::sim {

namespace {

// Named steps of control frames; static, since a run counts them by the thousand.
struct ControlSteps {
  FrameType type;
  const char* send;
  const char* receive;
} constexpr kControlSteps[] = {
    {FrameType::kHello, "send hello", "receive hello"},
    {FrameType::kSeed, "send seed", "receive seed"},
    {FrameType::kConfirm, "send confirm", "receive confirm"},
    {FrameType::kAgreement, "send agreement", "receive agreement"},
    {FrameType::kAbort, "send abort", nullptr},  // Open() has taken it
};
// Null steps: nobody sends such a frame, a bit of its type was flipped.
ControlSteps StepsOf(FrameType type) {
  for (const ControlSteps& steps : kControlSteps) {
    if (steps.type == type) return steps;
  }
  return {type, "send", nullptr};
}

}  // namespace

class SimChannel : public FrameChannel {
 public:
  SimChannel(Network* network, int party, SimClock* clock, std::shared_ptr<Connection> prev,
             std::shared_ptr<Connection> next, std::shared_ptr<bool> dead)
      : FrameChannel(party),
        network_(network),
        clock_(clock),
        prev_(std::move(prev)),
        next_(std::move(next)),
        dead_(std::move(dead)) {}
  ~SimChannel() override {
    for (const Neighbour n : {Neighbour::kPrev, Neighbour::kNext}) {
      From(n).reader = nullptr;
      network_->End(Link(n), party_, Party(n));
    }
  }

  // The named step of a round is its posting: a process that dies in it has sent nothing of it.
  absl::Status Post(const RoundId& id, absl::Span<const uint8_t> to_next,
                    absl::Span<const uint8_t> to_prev) override {
    if (broken_.ok() && Killed(id.step)) return Gone();
    return FrameChannel::Post(id, to_next, to_prev);
  }
  absl::Status Send(Neighbour to, FrameType type, absl::Span<const uint8_t> payload) override {
    if (Killed(StepsOf(type).send)) return Gone();
    return FrameChannel::Send(to, type, payload);
  }
  absl::StatusOr<Frame> Receive(Neighbour from, absl::Time deadline) override {
    ASSIGN_OR_RETURN(Frame frame, FrameChannel::Receive(from, deadline));
    const char* const step = StepsOf(frame.type).receive;
    if (step != nullptr && Killed(step)) return Gone();
    return frame;
  }
  ChannelCounters Counters() const override { return {}; }

 private:
  std::shared_ptr<Connection>& Link(Neighbour n) { return n == Neighbour::kNext ? next_ : prev_; }
  Pipe& From(Neighbour n) { return Link(n)->From(Party(n)); }

  absl::Status Gone() { return Break(absl::CancelledError("the process was killed")); }
  absl::Status Break(const absl::Status& s) {
    if (broken_.ok()) broken_ = s;
    return s;
  }
  absl::Status Fail(Neighbour, absl::string_view, const absl::Status& cause) override {
    return Break(cause);
  }
  bool Killed(const char* step) { return network_->Killed(party_, step, *dead_); }

  absl::Status Put(Neighbour to, const FrameHeader& header, absl::string_view,
                   absl::Span<const uint8_t> payload) override {
    Wire wire;
    WriteFrameHeader(header, wire.header.data());
    wire.payload.assign(payload.begin(), payload.end());
    network_->Send(Link(to), party_, Party(to), std::move(wire));
    return broken_;
  }

  // One frame that has arrived.
  absl::Status TakeArrived(Neighbour from, FrameHeader* header, SecretBytes* payload) {
    Pipe& pipe = From(from);
    Wire wire = std::move(pipe.arrived.front());
    pipe.arrived.pop_front();
    if (wire.fate == Wire::Fate::kBadRecord) return absl::UnavailableError("bad record mac");
    if (wire.fate == Wire::Fate::kTruncated) {
      return absl::UnavailableError("the connection ended inside a frame");
    }
    return Open(wire.header.data(), std::move(wire.payload), header, payload);
  }

  // While a control frame is awaited, the other neighbour's end is an error as well.
  absl::Status Next(Neighbour from, bool control, absl::Time deadline, FrameHeader* header,
                    SecretBytes* payload) override {
    const Neighbour other = from == Neighbour::kPrev ? Neighbour::kNext : Neighbour::kPrev;
    Scheduler* const scheduler = network_->scheduler_;
    while (From(from).arrived.empty()) {
      if (*dead_) return absl::CancelledError("the process was killed");
      const auto gone = [this](Neighbour n) {
        return absl::UnavailableError(absl::StrCat("P", Party(n), " is gone"));
      };
      if (From(from).closed) return gone(from);
      if (control && From(other).closed) {
        // Its last word, if there is one.
        const absl::Status last =
            From(other).arrived.empty() ? absl::OkStatus() : TakeArrived(other, header, payload);
        return last.ok() ? gone(other) : last;
      }
      if (clock_->Now() >= deadline) return absl::DeadlineExceededError("nothing received");
      From(from).reader = From(other).reader = scheduler->current();
      scheduler->Wait(clock_->Global(deadline));
      From(from).reader = From(other).reader = nullptr;
    }
    return TakeArrived(from, header, payload);
  }

  Network* const network_;
  SimClock* const clock_;
  std::shared_ptr<Connection> prev_, next_;
  const std::shared_ptr<bool> dead_;
};

std::unique_ptr<PeerChannel> MakeSimChannel(Network* network, int party, SimClock* clock,
                                            std::shared_ptr<Connection> prev,
                                            std::shared_ptr<Connection> next,
                                            std::shared_ptr<bool> dead) {
  return std::make_unique<SimChannel>(network, party, clock, std::move(prev), std::move(next),
                                      std::move(dead));
}

}  // namespace mpckdc::sim
