// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/deviating_channel.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>

#include "mpc-server/base/status_macros.h"

namespace mpckdc {
namespace {

constexpr const char* kNames[] = {
    "one bit", "several bits",    "whole row",        "constant", "cancelling", "noise",
    "echo",    "another round's", "an older batch's", "late",     "twice",      "swap"};
static_assert(std::size(kNames) == kLieKinds);

// The message is held until the neighbours' have come.
bool Waits(LieKind kind) { return kind == LieKind::kLate || kind == LieKind::kEcho; }
// It strikes the bytes, and now.
bool AltersBytes(LieKind kind) {
  return !Waits(kind) && kind != LieKind::kTwice && kind != LieKind::kSwap;
}
// A kind that a control frame can have, and a round.
bool Suits(LieKind kind, bool control) { return control ? !Waits(kind) : kind != LieKind::kSwap; }

std::string Text(absl::Span<const uint8_t> bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace

const char* LieName(LieKind kind) { return kNames[static_cast<int>(kind)]; }

RoundFilter AtStep(std::string step) {
  return [step = std::move(step)](const RoundId& id) { return step == id.step; };
}
RoundFilter AtRound(uint16_t round) {
  return [round](const RoundId& id) { return id.round == round; };
}

// ---- Liar ----

void Liar::ArmAll(std::vector<Lie> lies) {
  const absl::MutexLock lock(&mu_);
  armed_.clear();
  for (Lie& lie : lies) armed_.push_back({std::move(lie)});
}

bool Liar::armed() const {
  const absl::MutexLock lock(&mu_);
  return std::any_of(armed_.begin(), armed_.end(), [](const Armed& a) { return !a.spent; });
}

void Liar::KeepHistory() {
  const absl::MutexLock lock(&mu_);
  keeps_history_ = true;
}

void Liar::Watch(std::function<void(const SeenRound&)> watch) {
  const absl::MutexLock lock(&mu_);
  watch_ = std::move(watch);
}

std::map<std::string, uint64_t> Liar::counts() const {
  const absl::MutexLock lock(&mu_);
  return counts_;
}

uint64_t Liar::struck() const {
  uint64_t sum = 0;
  for (const auto& [kind, count] : counts()) sum += count;
  return sum;
}

std::set<std::string> Liar::steps() const {
  const absl::MutexLock lock(&mu_);
  return steps_;
}

uint64_t Liar::Below(uint64_t n) {
  uint64_t draw;
  random_.Fill({reinterpret_cast<uint8_t*>(&draw), sizeof(draw)});
  return draw % n;
}

std::vector<Flip> Liar::Draw(const Lie& lie, size_t size) {
  const auto bit = [this, size] { return Flip{Below(size), static_cast<uint8_t>(1 << Below(8))}; };
  switch (lie.kind) {
    case LieKind::kSeveralBits: {
      std::vector<Flip> flips;
      for (uint64_t left = 2 + Below(8); left > 0; --left) flips.push_back(bit());
      return flips;
    }
    case LieKind::kWholeRow: {
      std::vector<Flip> flips;
      const size_t row = Below(std::max<size_t>(size / lie.row_bytes, 1));
      for (size_t i = 0; i < lie.row_bytes; ++i) {
        flips.push_back({row * lie.row_bytes + i, 0xFF});
      }
      return flips;
    }
    case LieKind::kCancelling:
      return DrawCancelling(lie, size);
    default:
      return {bit()};
  }
}

// Anywhere in the message, or in one word of four rows: so errors cancel also where each word and
// every four rows have a weight of their own, that nobody knows in advance.
std::vector<Flip> Liar::DrawCancelling(const Lie& lie, size_t size) {
  const auto weight = [&](size_t row, size_t lane) { return KnownWeight(lie.weights, row, lane); };
  constexpr size_t kRows = 4, kWord = 8;
  const size_t fours = size / (kRows * lie.row_bytes);
  if (fours == 0 || Below(2) == 0) return CancellingFlips(weight, size, lie.row_bytes, random_);
  const size_t width = std::min(lie.row_bytes, kWord);
  const size_t at = Below(fours) * kRows * lie.row_bytes + Below(lie.row_bytes / width) * width;
  std::vector<Flip> flips = CancellingFlips(weight, kRows * width, width, random_);
  for (Flip& flip : flips) flip.byte = at + flip.byte / width * lie.row_bytes + flip.byte % width;
  return flips;
}

bool Liar::Replace(const Lie& lie, const Place& place, absl::Span<uint8_t> bytes) {
  if (lie.kind == LieKind::kNoise) {
    random_.Fill(bytes);
    return true;
  }
  const std::string* other = nullptr;
  if (place.control) {
    const auto it = control_.find({place.to, place.id.step});
    if (it != control_.end()) other = &it->second;
  } else if (lie.kind == LieKind::kOtherRound) {
    const auto it = by_size_.find({place.to, bytes.size()});
    if (it != by_size_.end() && it->second.batch == place.id.batch) other = &it->second.bytes;
  } else if (const auto it = by_round_.find({place.to, place.id.round}); it != by_round_.end()) {
    for (const Kept& kept : it->second) {
      if (kept.batch != place.id.batch) other = &kept.bytes;
    }
  }
  if (other == nullptr || other->size() != bytes.size() || *other == Text(bytes)) return false;
  std::copy(other->begin(), other->end(), bytes.begin());
  return true;
}

// False: there is nothing to put in the bytes' place, or no such error in so few.
bool Liar::Alter(const Lie& lie, const Place& place, absl::Span<uint8_t> bytes) {
  switch (lie.kind) {
    case LieKind::kNoise:
    case LieKind::kOtherRound:
    case LieKind::kOldBatch:
      return Replace(lie, place, bytes);
    default:
      break;
  }
  const std::vector<Flip> flips = lie.flips.empty() ? Draw(lie, bytes.size()) : lie.flips;
  const std::string before = Text(bytes);
  ApplyFlips(flips, bytes);
  return before != Text(bytes);
}

std::optional<Lie> Liar::Strike(const Place& place, size_t size) {
  if (size == 0) return std::nullopt;
  for (Armed& armed : armed_) {
    Lie& d = armed.lie;
    const bool wanted = place.to == Neighbour::kNext ? d.to_next : d.to_prev;
    if (armed.spent || !wanted || d.control != place.control || !Suits(d.kind, d.control)) continue;
    if (d.where && !d.where(place.id)) continue;
    if (armed.suited++ < d.skip) continue;
    if (d.kind != LieKind::kConstant) {
      armed.spent = true;
    } else if (d.flips.empty()) {
      d.flips = Draw(d, size);
    }
    return d;
  }
  return std::nullopt;
}

void Liar::Keep(const Place& place, absl::Span<const uint8_t> bytes) {
  if (!keeps_history_ || bytes.empty()) return;
  if (place.control) {
    control_[{place.to, place.id.step}] = Text(bytes);
    return;
  }
  by_size_[{place.to, bytes.size()}] = {place.id.batch, Text(bytes)};
  std::vector<Kept>& kept = by_round_[{place.to, place.id.round}];
  if (!kept.empty() && kept.back().batch == place.id.batch) kept.pop_back();
  if (kept.size() == 2) kept.erase(kept.begin());
  kept.push_back({place.id.batch, Text(bytes)});
}

void Liar::Tell(const SeenRound& seen) {
  std::function<void(const SeenRound&)> watch;
  {
    const absl::MutexLock lock(&mu_);
    watch = watch_;
  }
  if (watch) watch(seen);
}

// ---- The channel ----

class DeviatingChannel : public PeerChannel {
 public:
  DeviatingChannel(Liar* liar, std::unique_ptr<PeerChannel> inner)
      : liar_(*liar), inner_(std::move(inner)) {}

  absl::Status Post(const RoundId& id, absl::Span<const uint8_t> to_next,
                    absl::Span<const uint8_t> to_prev) override {
    Round& round = rounds_.emplace_back();
    round.id = id;
    round.next.meant = to_next;
    round.prev.meant = to_prev;
    // A message can wait for the neighbours' only where no other round is under way.
    const bool alone = rounds_.size() == 1;
    Deviate(round, Neighbour::kNext, alone, round.next);
    Deviate(round, Neighbour::kPrev, alone, round.prev);
    if (!alone && rounds_.front().waits) return absl::OkStatus();  // this one behind it
    if (round.waits) return inner_->Post(id, {}, {});
    return Send(round);
  }

  absl::Status Collect(const RoundId& id, absl::Span<uint8_t> from_prev,
                       absl::Span<uint8_t> from_next, absl::Time deadline) override {
    if (rounds_.empty()) return inner_->Collect(id, from_prev, from_next, deadline);
    Round round = std::move(rounds_.front());
    rounds_.pop_front();
    if (round.next.twice || round.prev.twice) {
      RETURN_IF_ERROR(inner_->Collect(id, {}, {}, deadline));
    }
    RETURN_IF_ERROR(inner_->Collect(id, from_prev, from_next, deadline));
    if (round.waits) {
      if (round.echoes) Echo(round.next, from_prev);
      RETURN_IF_ERROR(inner_->Post(id, round.next.sent, round.prev.sent));
      RETURN_IF_ERROR(inner_->Collect(id, {}, {}, deadline));
      for (const Round& ahead : rounds_) RETURN_IF_ERROR(Send(ahead));
    }
    liar_.Tell({id, round.next.meant, round.prev.meant, from_prev, from_next});
    return absl::OkStatus();
  }

  absl::Status Send(Neighbour to, FrameType type, absl::Span<const uint8_t> payload) override {
    if (type == FrameType::kAbort) return inner_->Send(to, type, payload);
    const std::string name(FrameTypeName(type));
    const Liar::Place place{to, {0, 0, 0, name.c_str()}, true};
    std::optional<Lie> struck;
    std::vector<uint8_t> bytes(payload.begin(), payload.end());
    {
      const absl::MutexLock lock(&liar_.mu_);
      struck = liar_.Strike(place, payload.size());
      if (struck && AltersBytes(struck->kind) &&
          !liar_.Alter(*struck, place, absl::MakeSpan(bytes))) {
        struck.reset();
      }
      if (struck) liar_.Count(*struck, place);
      liar_.Keep(place, payload);
    }
    if (struck && struck->kind == LieKind::kSwap) {
      held_.push_back({to, type, std::move(bytes)});
      return absl::OkStatus();
    }
    if (struck && struck->kind == LieKind::kTwice) {
      RETURN_IF_ERROR(inner_->Send(to, type, bytes));
    }
    RETURN_IF_ERROR(inner_->Send(to, type, bytes));
    for (const Held& held : std::exchange(held_, {})) {
      RETURN_IF_ERROR(inner_->Send(held.to, held.type, held.bytes));
    }
    return absl::OkStatus();
  }
  absl::StatusOr<Frame> Receive(Neighbour from, absl::Time deadline) override {
    return inner_->Receive(from, deadline);
  }
  void BindSession(uint32_t session) override { inner_->BindSession(session); }
  void LimitUnsent(size_t bytes) override { inner_->LimitUnsent(bytes); }
  ChannelCounters Counters() const override { return inner_->Counters(); }
  LineState Line(Neighbour n) const override { return inner_->Line(n); }

 private:
  // One message: as the engine meant it, and as it leaves. `copy` has it where the two differ.
  struct Message {
    absl::Span<const uint8_t> meant, sent;
    std::vector<uint8_t> copy;
    bool own_state = false, twice = false;

    absl::Span<const uint8_t> Again() const { return twice ? sent : sent.first(0); }
  };
  struct Round {
    RoundId id;
    Message next, prev;
    bool waits = false, echoes = false;
  };
  struct Held {
    Neighbour to;
    FrameType type;
    std::vector<uint8_t> bytes;
  };

  absl::Status Send(const Round& round) {
    if (round.next.twice || round.prev.twice) {
      RETURN_IF_ERROR(inner_->Post(round.id, round.next.Again(), round.prev.Again()));
    }
    return inner_->Post(round.id, round.next.sent, round.prev.sent);
  }

  // The memory of a message is the engine's own, and not constant there (share/circuit.h).
  static absl::Span<uint8_t> OwnState(absl::Span<const uint8_t> meant) {
    return {const_cast<uint8_t*>(meant.data()), meant.size()};
  }
  static absl::Span<uint8_t> Alterable(Message& message, bool own_state) {
    if (own_state) return OwnState(message.meant);
    message.copy.assign(message.meant.begin(), message.meant.end());
    message.sent = message.copy;
    return absl::MakeSpan(message.copy);
  }

  void Deviate(Round& round, Neighbour to, bool alone, Message& message) {
    message.sent = message.meant;
    const Liar::Place place{to, round.id, false};
    const absl::MutexLock lock(&liar_.mu_);
    const std::optional<Lie> struck = liar_.Strike(place, message.meant.size());
    if (liar_.keeps_history_ && !(struck && AltersBytes(struck->kind))) {
      liar_.Keep(place, message.meant);
    }
    if (!struck) return;
    if (AltersBytes(struck->kind)) {
      // Without an effect the bytes are as they were.
      if (!liar_.Alter(*struck, place, Alterable(message, struck->own_state))) return;
    } else if (Waits(struck->kind)) {
      if (!alone) return;
      round.waits = true;
      round.echoes |= struck->kind == LieKind::kEcho && to == Neighbour::kNext;
      message.own_state = struck->own_state;
    } else {
      message.twice = true;
    }
    liar_.Count(*struck, place);
  }

  // Takes prev's message for the liar's own.
  static void Echo(Message& message, absl::Span<const uint8_t> from_prev) {
    if (from_prev.size() != message.meant.size()) return;
    const absl::Span<uint8_t> bytes = Alterable(message, message.own_state);
    std::copy(from_prev.begin(), from_prev.end(), bytes.begin());
  }

  Liar& liar_;
  const std::unique_ptr<PeerChannel> inner_;
  std::deque<Round> rounds_;  // posted and not collected
  std::vector<Held> held_;    // control frames that let others pass
};

std::unique_ptr<PeerChannel> Liar::Wrap(std::unique_ptr<PeerChannel> channel) {
  return std::make_unique<DeviatingChannel>(this, std::move(channel));
}

}  // namespace mpckdc
