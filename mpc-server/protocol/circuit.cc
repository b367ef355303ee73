// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/protocol/circuit.h"

#include "mpc-server/protocol/round_runner.h"

namespace mpckdc {
namespace {

constexpr uint32_t kMaxRounds = 1u << 16;  // the frame header's field

void Grow(SecretBytes& bytes, size_t size) {
  if (bytes.size() < size) bytes.resize(size);
}

}  // namespace

RoundShape RoundRunner::Plan(absl::Span<Circuit* const> circuits) {
  RoundShape merged;
  parts_.clear();
  for (Circuit* circuit : circuits) {
    if (circuit->Done()) continue;
    const RoundShape shape = circuit->NextRound();
    parts_.push_back({circuit, shape, merged.to_next, merged.to_prev});
    merged.to_next += shape.to_next;
    merged.to_prev += shape.to_prev;
    if (merged.step[0] == '\0') merged.step = shape.step;
  }
  return merged;
}

absl::Status RoundRunner::RunRound(const RoundShape& merged, Messages& m) {
  ZeroShares zero(party_.streams_, party_.batch_, party_.next_round_);
  for (const Part& p : parts_) {
    p.circuit->Produce(zero, {absl::MakeSpan(m.to_next).subspan(p.next_at, p.shape.to_next),
                              absl::MakeSpan(m.to_prev).subspan(p.prev_at, p.shape.to_prev)});
  }
  const RoundId id = {party_.session_, party_.batch_, static_cast<uint16_t>(party_.next_round_),
                      merged.step};
  const RoundBuffers buffers = {absl::MakeConstSpan(m.to_next).first(merged.to_next),
                                absl::MakeSpan(m.from_prev).first(merged.to_next),
                                absl::MakeConstSpan(m.to_prev).first(merged.to_prev),
                                absl::MakeSpan(m.from_next).first(merged.to_prev)};
  ++party_.next_round_;
  Declassify(m.to_next.data(), merged.to_next);
  Declassify(m.to_prev.data(), merged.to_prev);
  absl::Status s = party_.channel_.Exchange(
      id, buffers, party_.clock_.Now() + party_.options_.round_timeout);
  if (!s.ok()) return s;
  for (const Part& p : parts_) {
    s = p.circuit->Consume(
        {absl::MakeConstSpan(m.from_prev).subspan(p.next_at, p.shape.to_next),
         absl::MakeConstSpan(m.from_next).subspan(p.prev_at, p.shape.to_prev)});
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status RoundRunner::Run(absl::Span<Circuit* const> circuits, Cost* counted) {
  while (true) {
    const RoundShape merged = Plan(circuits);
    if (parts_.empty()) return absl::OkStatus();
    if (party_.next_round_ >= kMaxRounds) {
      return absl::ResourceExhaustedError("a batch has more rounds than the frame header counts");
    }
    Messages& m = messages_[turn_];
    turn_ ^= 1;
    Grow(m.to_next, merged.to_next);
    Grow(m.from_prev, merged.to_next);
    Grow(m.to_prev, merged.to_prev);
    Grow(m.from_next, merged.to_prev);
    if (absl::Status s = RunRound(merged, m); !s.ok()) return s;
    if (counted != nullptr) {
      counted->rounds += 1;
      counted->bytes_to_next += merged.to_next;
      counted->bytes_to_prev += merged.to_prev;
    }
  }
}

absl::Status RunTogether(PartyContext& party, absl::Span<Circuit* const> circuits,
                         Cost* counted) {
  return party.Run(circuits, counted);
}

}  // namespace mpckdc
