// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/share/round_runner.h"

#include <algorithm>

#include "absl/algorithm/container.h"
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
  const auto taken = [&slot](size_t i) {
    return absl::c_linear_search(slot.posted, i) || (!slot.rounds.empty() && i == slot.last);
  };
  slot.planned = 0;
  while (taken(slot.planned)) ++slot.planned;
  if (slot.planned >= slot.rounds.size()) slot.rounds.resize(slot.planned + 1);
  Round& round = slot.plan();
  round.members.clear();
  round.merged = {};
  size_t most = 0;
  for (Circuit* circuit : slot.running()) {
    if (circuit->Done()) continue;
    const RoundShape shape = circuit->NextRound();
    Merged& m = round.merged;
    round.members.push_back({circuit, shape, m.to_next, m.to_prev, m.from_prev, m.from_next});
    m.to_next += shape.to_next;
    m.to_prev += shape.to_prev;
    m.from_prev += shape.from_prev();
    m.from_next += shape.from_next();
    m.to_prove += shape.to_prove();
    m.opens = m.opens || shape.opened() != 0;
    const size_t size = shape.to_next + shape.to_prev + shape.from_prev() + shape.from_next();
    if (round.members.size() == 1 || size > most) m.step = shape.step;
    most = std::max(most, size);
  }
}

void RoundRunner::Advance(ChunkSource& source, Slot& slot, size_t at) {
  while (slot.chunk < source.chunks()) {
    Plan(slot);
    if (!slot.plan().members.empty()) return;
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
  Round& m = slot.plan();
  Grow(m.to_next, m.merged.to_next);
  Grow(m.to_prev, m.merged.to_prev);
  const bool exchanged = !proving_ && party_.options_.randomness == Randomness::kExchanged;
  ZeroShares zero = exchanged
                        ? ZeroShares(slot.zeros.pool(), Log())
                        : ZeroShares(party_.streams_, party_.batch_, party_.next_round_, Log());
  for (const Member& p : m.members) {
    p.circuit->Produce(zero, {absl::MakeSpan(m.to_next).subspan(p.next_at, p.shape.to_next),
                              absl::MakeSpan(m.to_prev).subspan(p.prev_at, p.shape.to_prev)});
  }
  if (!slot.exchanging) to_prove_ += m.merged.to_prove;
  m.id = {party_.session_, party_.batch_, static_cast<uint16_t>(party_.next_round_++),
          m.merged.step};
  slot.posted.push_back(slot.planned);
  Declassify(m.to_next.data(), m.merged.to_next);
  Declassify(m.to_prev.data(), m.merged.to_prev);
  return party_.channel_.Post(m.id, absl::MakeConstSpan(m.to_next).first(m.merged.to_next),
                              absl::MakeConstSpan(m.to_prev).first(m.merged.to_prev));
}

bool RoundRunner::RunsAhead(const Slot& slot) {
  bool any = false;
  for (const Circuit* circuit : slot.running()) {
    if (circuit->Done()) continue;
    if (!circuit->RunsAhead()) return false;
    any = true;
  }
  return any;
}

absl::Status RoundRunner::PostAhead(Slot& slot) {
  while (slot.posted.size() < kRoundsAhead && RunsAhead(slot)) {
    Plan(slot);
    if (ProofIsDue(slot)) break;  // when all is collected
    RETURN_IF_ERROR(Post(slot));
  }
  return absl::OkStatus();
}

absl::Status RoundRunner::Collect(Slot& slot) {
  slot.last = slot.posted.front();
  slot.posted.pop_front();
  Round& m = slot.rounds[slot.last];
  Received& in = slot.received[slot.turn ^= 1];
  Grow(in.from_prev, m.merged.from_prev);
  Grow(in.from_next, m.merged.from_next);
  absl::Status s =
      party_.channel_.Collect(m.id, absl::MakeSpan(in.from_prev).first(m.merged.from_prev),
                              absl::MakeSpan(in.from_next).first(m.merged.from_next),
                              party_.clock_.Now() + party_.options_.round_timeout);
  for (const Member& p : m.members) {
    if (!s.ok()) return s;
    s = p.circuit->Consume(
        {absl::MakeConstSpan(in.from_prev).subspan(p.from_prev_at, p.shape.from_prev()),
         absl::MakeConstSpan(in.from_next).subspan(p.from_next_at, p.shape.from_next())});
  }
  slot.cost = slot.cost + Cost{1, m.merged.to_next, m.merged.to_prev};
  return s;
}

// Before an opening, so that nothing is opened that rests on a message nobody has checked; and
// before the log becomes too long. All of it is public, so the three prove at the same place.
bool RoundRunner::ProofIsDue(const Slot& slot) const {
  if (proving_ || party_.verified()) return false;
  return slot.rounds[slot.planned].merged.opens || party_.log_->bytes() > limits::kProofLogBytes;
}

// What the other slots have posted, in that order. Their circuits go on at their next turn.
absl::Status RoundRunner::CollectAllAfter(size_t at, size_t used) {
  for (size_t i = 1; i < used; ++i) {
    Slot& slot = slots_[(at + i) % used];
    while (!slot.posted.empty()) RETURN_IF_ERROR(Collect(slot));
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
    slot.posted.clear();
    slot.exchanging = false;
    slot.cost = {};
    if (at < source.chunks()) BeginChunk(source, slot, at);
  }
  for (size_t active = used; active != 0;) {
    active = 0;
    for (size_t at = 0; at < used; ++at) {
      Slot& slot = slots_[at];
      if (!slot.posted.empty()) {
        RETURN_IF_ERROR(Collect(slot));
      }
      if (!slot.posted.empty()) {  // rounds ahead are under way
        RETURN_IF_ERROR(PostAhead(slot));
        ++active;
        continue;
      }
      Advance(source, slot, at);
      if (slot.chunk >= source.chunks()) continue;
      if (ProofIsDue(slot)) {
        RETURN_IF_ERROR(CollectAllAfter(at, used));
        RETURN_IF_ERROR(party_.proof_runner_->Prove(counted));
      }
      RETURN_IF_ERROR(Post(slot));
      if (used == 1) RETURN_IF_ERROR(PostAhead(slot));
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
