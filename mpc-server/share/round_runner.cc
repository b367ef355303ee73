// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/share/round_runner.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/share/deviation.h"
#include "mpc-server/share/verifier.h"

namespace mpckdc {
namespace {

constexpr uint32_t kMaxRounds = 1u << 24;  // StreamPlace's field

void Grow(SecretBytes& bytes, size_t size) {
  if (bytes.size() < size) bytes.resize(size);
}

}  // namespace

ProofLog* RoundRunner::Log() const { return proving_ ? nullptr : party_.log_; }

void RoundRunner::BeginChunk(ChunkSource& source, Slot& slot, size_t at) {
  slot.circuits = source.Begin(slot.chunk, at);
  if (proving_ || party_.options_.randomness == Randomness::kKeyed) return;
  slot.zeros.Reset(slot.circuits, *party_.random_, Log() != nullptr);
  slot.exchanging = true;
  slot.zeros_only[0] = &slot.zeros;
}

// The round is named after the circuit that sends most.
void RoundRunner::Plan(Slot& slot) {
  slot.members.clear();
  slot.merged = {};
  size_t most = 0;
  const absl::Span<Circuit* const> circuits =
      slot.exchanging ? absl::Span<Circuit* const>(slot.zeros_only) : slot.circuits;
  for (Circuit* circuit : circuits) {
    if (circuit->Done()) continue;
    const RoundShape shape = circuit->NextRound();
    Merged& m = slot.merged;
    slot.members.push_back({circuit, shape, m.to_next, m.to_prev, m.from_prev, m.from_next});
    m.to_next += shape.to_next;
    m.to_prev += shape.to_prev;
    m.from_prev += shape.from_prev();
    m.from_next += shape.from_next();
    m.to_prove += shape.to_prove();
    m.opens = m.opens || shape.opened() != 0;
    const size_t size = shape.to_next + shape.to_prev + shape.from_prev() + shape.from_next();
    if (slot.members.size() == 1 || size > most) m.step = shape.step;
    most = std::max(most, size);
  }
}

void RoundRunner::Advance(ChunkSource& source, Slot& slot, size_t at) {
  while (slot.chunk < source.chunks()) {
    Plan(slot);
    if (!slot.members.empty()) return;
    if (slot.exchanging) {
      slot.exchanging = false;
      continue;
    }
    source.End(slot.chunk, at);
    slot.chunk += source.slots();
    if (slot.chunk < source.chunks()) BeginChunk(source, slot, at);
  }
}

absl::Status RoundRunner::Post(Slot& slot) {
  if (party_.next_round_ >= kMaxRounds) {
    return absl::ResourceExhaustedError(
        "a batch has more rounds than its zero shares can be told apart by");
  }
  Messages& m = slot.messages[slot.turn];
  Grow(m.to_next, slot.merged.to_next);
  Grow(m.from_prev, slot.merged.from_prev);
  Grow(m.to_prev, slot.merged.to_prev);
  Grow(m.from_next, slot.merged.from_next);
  const bool exchanged = !proving_ && party_.options_.randomness == Randomness::kExchanged;
  ZeroShares zero = exchanged
                        ? ZeroShares(slot.zeros.pool(), Log())
                        : ZeroShares(party_.streams_, party_.batch_, party_.next_round_, Log());
  for (const Member& p : slot.members) {
    p.circuit->Produce(zero, {absl::MakeSpan(m.to_next).subspan(p.next_at, p.shape.to_next),
                              absl::MakeSpan(m.to_prev).subspan(p.prev_at, p.shape.to_prev)});
  }
  if (!slot.exchanging) to_prove_ += slot.merged.to_prove;
  slot.id = {party_.session_, party_.batch_, static_cast<uint16_t>(party_.next_round_++),
             slot.merged.step};
  slot.posted = true;
  Declassify(m.to_next.data(), slot.merged.to_next);
  Declassify(m.to_prev.data(), slot.merged.to_prev);
  return party_.channel_.Post(slot.id, absl::MakeConstSpan(m.to_next).first(slot.merged.to_next),
                              absl::MakeConstSpan(m.to_prev).first(slot.merged.to_prev));
}

absl::Status RoundRunner::Collect(Slot& slot) {
  Messages& m = slot.messages[slot.turn];
  slot.turn ^= 1;
  slot.posted = false;
  absl::Status s = party_.channel_.Collect(
      slot.id, absl::MakeSpan(m.from_prev).first(slot.merged.from_prev),
      absl::MakeSpan(m.from_next).first(slot.merged.from_next),
      party_.clock_.Now() + party_.options_.round_timeout);
  for (const Member& p : slot.members) {
    if (!s.ok()) return s;
    s = p.circuit->Consume(
        {absl::MakeConstSpan(m.from_prev).subspan(p.from_prev_at, p.shape.from_prev()),
         absl::MakeConstSpan(m.from_next).subspan(p.from_next_at, p.shape.from_next())});
  }
  slot.cost = slot.cost + Cost{1, slot.merged.to_next, slot.merged.to_prev};
  return s;
}

// Before an opening, so that nothing is opened that rests on a message nobody has checked; and
// before the log becomes too long. All of it is public, so the three prove at the same place.
bool RoundRunner::ProofIsDue(const Slot& slot) const {
  if (proving_ || party_.verified()) return false;
  return slot.merged.opens || party_.log_->bytes() > limits::kProofLogBytes;
}

// What the other slots have posted, in that order. Their circuits go on at their next turn.
absl::Status RoundRunner::CollectAllAfter(size_t at, size_t used) {
  for (size_t i = 1; i < used; ++i) {
    Slot& slot = slots_[(at + i) % used];
    if (!slot.posted) continue;
    RETURN_IF_ERROR(Collect(slot));
  }
  return absl::OkStatus();
}

absl::Status RoundRunner::Prove(Cost* counted) {
  Circuit* const circuits[] = {&party_.verifier_->Begin(party_)};
  OneChunk chunk(circuits);
  proving_ = true;
  const absl::Status run = Run(chunk, counted);
  WipeStack();  // partial sums that its functions kept there, and what compilers put there
  if (!run.ok()) return Weightier(party_.verifier_->Finding(), run);
  party_.verifier_->End();
  return run;
}

// What is opened goes to both neighbours in equal parts; all else that went to next must stand in
// the log. A circuit that sent more than it recorded would escape the proof.
absl::Status RoundRunner::CheckRecorded(uint64_t before) const {
  const uint64_t recorded = party_.log_->message_bytes() - before;
  if (recorded == to_prove_) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("circuits sent ", to_prove_, " bytes to be proved and ", "recorded ", recorded));
}

// One turn per slot, again and again: rounds are collected in the order in which they were posted.
// This order and the circuits' are public, so all slots may write one log: its sections come in the
// same order at the three parties.
absl::Status RoundRunner::Run(ChunkSource& source, Cost* counted) {
  const uint64_t recorded = Log() != nullptr ? Log()->message_bytes() : 0;
  to_prove_ = 0;
  slots_.resize(std::max(slots_.size(), source.slots()));
  const size_t used = source.slots();
  for (size_t at = 0; at < used; ++at) {
    Slot& slot = slots_[at];
    slot.chunk = at;
    slot.posted = slot.exchanging = false;
    slot.cost = {};
    if (at < source.chunks()) BeginChunk(source, slot, at);
  }
  for (size_t active = used; active != 0;) {
    active = 0;
    for (size_t at = 0; at < used; ++at) {
      Slot& slot = slots_[at];
      if (slot.posted) {
        RETURN_IF_ERROR(Collect(slot));
      }
      Advance(source, slot, at);
      if (slot.chunk >= source.chunks()) continue;
      if (ProofIsDue(slot)) {
        RETURN_IF_ERROR(CollectAllAfter(at, used));
        RETURN_IF_ERROR(party_.proof_runner_->Prove(counted));
      }
      RETURN_IF_ERROR(Post(slot));
      ++active;
    }
  }
  if (Log() != nullptr) {
    RETURN_IF_ERROR(CheckRecorded(recorded));
  }
  if (counted == nullptr) return absl::OkStatus();
  Cost all;
  for (size_t at = 0; at < used; ++at) all = Together(all, slots_[at].cost);
  *counted = *counted + all;
  return absl::OkStatus();
}

}  // namespace mpckdc
