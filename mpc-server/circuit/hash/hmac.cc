// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/hash/hmac.h"

#include <algorithm>

#include "mpc-server/circuit/lane_groups.h"

namespace mpckdc {
namespace {

constexpr const char* kSteps[] = {"hmac/sha1", "hmac/sha256", "hmac/sha384"};

}  // namespace

// Lanes wait for their next compression or are in a run. As soon as some wait, a run starts with
// all that wait for the same kind; so lanes of equal lengths stay together.
void Hmac::Reset(absl::Span<const HmacLane> lanes, Adder adder) {
  adder_ = adder;
  lanes_.clear();
  waiting_.clear();
  active_ = 0;
  std::sort(runs_.begin(), runs_.end(), EarlierMade);
  Grow(states_, lanes.size() * blocks_);
  Grow(inner_, lanes.size() * blocks_);
  for (const HmacLane& lane : lanes) {
    const size_t bytes =
        lane.shared_message != nullptr ? lane.bytes : lane.public_message.size();
    waiting_.push_back(lanes_.size());
    lanes_.push_back(
        {lane.states, lane.shared_message, lane.public_message.data(), bytes, 0, false});
  }
  StartWaiting();
}

RoundShape Hmac::NextRound() const {
  RoundShape shape = {0, 0, kSteps[static_cast<size_t>(hash_)]};
  for (size_t i = 0; i < active_; ++i) shape.to_next += runs_[i]->run.MessageBytes();
  return shape;
}

void Hmac::Produce(ZeroShares& zero, RoundOut out) {
  for (size_t i = 0; i < active_; ++i) {
    const size_t size = runs_[i]->run.MessageBytes();
    runs_[i]->run.Produce(zero, out.to_next.first(size));
    out.to_next.remove_prefix(size);
  }
}

absl::Status Hmac::Consume(RoundIn in) {
  for (size_t i = 0; i < active_; ++i) {
    const size_t size = runs_[i]->run.MessageBytes();
    runs_[i]->run.Consume(in.from_prev.first(size));
    in.from_prev.remove_prefix(size);
  }
  for (size_t i = 0; i < active_;) {
    if (runs_[i]->run.Done()) {
      EndRun(i);
    } else {
      ++i;
    }
  }
  StartWaiting();
  return absl::OkStatus();
}

// Its lanes go on; those after it in runs_ move up.
void Hmac::EndRun(size_t at) {
  for (size_t i = 0; i < runs_[at]->lanes.size(); ++i) {
    Advance(runs_[at]->lanes[i], runs_[at]->run.state(i));
  }
  --active_;
  const auto ended = runs_.begin() + static_cast<ptrdiff_t>(at);
  std::rotate(ended, ended + 1, runs_.begin() + static_cast<ptrdiff_t>(active_) + 1);
}

// One that is free, moved to the end of those under way. Equal batches take the same runs, so
// their buffers need not grow again.
Hmac::Run& Hmac::FreeRun(MessageKind kind) {
  const auto free = runs_.begin() + static_cast<ptrdiff_t>(active_);
  std::sort(free, runs_.end(), EarlierMade);
  auto at = std::find_if(free, runs_.end(), [&](const auto& run) { return run->kind == kind; });
  if (at == runs_.end()) {
    at = runs_.insert(runs_.end(), std::make_unique<Run>(hash_, isa_, kind, runs_.size()));
  }
  std::swap(*at, runs_[active_]);
  return *runs_[active_];
}

MessageKind Hmac::KindOfNext(const Lane& lane) const {
  const bool outer = lane.next == InnerBlocks(lane);
  return outer || lane.shared_message != nullptr ? MessageKind::kShared : MessageKind::kPublic;
}

HashBlock Hmac::BlockOf(size_t at) const {
  const Lane& lane = lanes_[at];
  if (lane.next == InnerBlocks(lane)) {
    return {lane.states + blocks_, &inner_[at * blocks_], nullptr, HashDigestBytes(hash_)};
  }
  const SharedBlock* state = lane.next == 0 ? lane.states : &states_[at * blocks_];
  return {state, lane.shared_message, lane.public_message, lane.bytes, lane.next};
}

void Hmac::Advance(size_t at, absl::Span<const SharedBlock> state) {
  Lane& lane = lanes_[at];
  ++lane.next;
  SecretVector<SharedBlock>& to = lane.next == InnerBlocks(lane) ? inner_ : states_;
  std::copy(state.begin(), state.end(), to.begin() + static_cast<ptrdiff_t>(at * blocks_));
  if (lane.next <= InnerBlocks(lane) && !lane.abandoned) waiting_.push_back(at);
}

void Hmac::StartWaiting() {
  std::sort(waiting_.begin(), waiting_.end());
  for (MessageKind kind : {MessageKind::kPublic, MessageKind::kShared}) {
    const auto is_next = [&](size_t at) { return KindOfNext(lanes_[at]) == kind; };
    if (std::none_of(waiting_.begin(), waiting_.end(), is_next)) continue;
    Run& run = FreeRun(kind);
    run.lanes.clear();
    inputs_.clear();
    for (size_t at : waiting_) {
      if (!is_next(at)) continue;
      run.lanes.push_back(at);
      inputs_.push_back(BlockOf(at));
    }
    run.run.Start(kind, adder_, inputs_);
    ++active_;
  }
  waiting_.clear();
}

Cost Hmac::DeclaredCost() const {
  std::vector<HmacShape> shapes;
  for (const Lane& lane : lanes_) shapes.push_back({lane.bytes, lane.shared_message != nullptr});
  return CostOfHmac(hash_, adder_, shapes);
}

}  // namespace mpckdc
