// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/hmac.h"

#include <algorithm>
#include <cassert>
#include <vector>

#include "mpc-server/circuit/hash_run.h"
#include "mpc-server/circuit/lane_groups.h"
#include "mpc-server/key/hash_plain.h"

namespace mpckdc {
namespace {

constexpr const char* kHmacSteps[] = {"hmac/sha1", "hmac/sha256", "hmac/sha384"};
constexpr const char* kCompressSteps[] = {"compress/sha1", "compress/sha256", "compress/sha384"};

}  // namespace

// Lanes wait for their next compression or are in a run. As soon as some wait, a run starts with
// all that wait for the same kind; so lanes of equal lengths stay together.
class HmacImpl {
 public:
  HmacImpl(HashKind hash, Isa isa) : hash_(hash), isa_(isa), blocks_(HashStateBlocks(hash)) {}

  void Reset(absl::Span<const HmacLane> lanes, Adder adder) {
    adder_ = adder;
    lanes_.clear();
    shapes_.clear();
    waiting_.clear();
    active_ = 0;
    std::sort(runs_.begin(), runs_.end(), EarlierMade);
    Grow(states_, lanes.size() * blocks_);
    Grow(inner_, lanes.size() * blocks_);
    for (const HmacLane& lane : lanes) {
      const bool shared = lane.shared_message != nullptr;
      const size_t bytes = shared ? lane.bytes : lane.public_message.size();
      waiting_.push_back(lanes_.size());
      lanes_.push_back({lane.states, lane.shared_message, lane.public_message.data(), bytes, 0});
      shapes_.push_back({bytes, shared});
    }
    StartWaiting();
  }

  absl::Span<const SharedBlock> digest(size_t lane) const {
    return absl::MakeConstSpan(states_).subspan(lane * blocks_, blocks_);
  }
  bool Done() const { return active_ == 0; }
  Cost DeclaredCost() const { return CostOfHmac(hash_, adder_, shapes_); }

  RoundShape Shape() const {
    RoundShape shape = {0, 0, kHmacSteps[static_cast<size_t>(hash_)]};
    for (size_t i = 0; i < active_; ++i) shape.to_next += runs_[i]->run.MessageBytes();
    return shape;
  }

  void Produce(ZeroShares& zero, absl::Span<uint8_t> out) {
    for (size_t i = 0; i < active_; ++i) {
      const size_t size = runs_[i]->run.MessageBytes();
      runs_[i]->run.Produce(zero, out.first(size));
      out.remove_prefix(size);
    }
  }

  void Consume(absl::Span<const uint8_t> received) {
    for (size_t i = 0; i < active_; ++i) {
      const size_t size = runs_[i]->run.MessageBytes();
      runs_[i]->run.Consume(received.first(size));
      received.remove_prefix(size);
    }
    for (size_t i = 0; i < active_;) {
      if (!runs_[i]->run.Done()) {
        ++i;
        continue;
      }
      for (size_t at = 0; at < runs_[i]->lanes.size(); ++at) {
        Advance(runs_[i]->lanes[at], runs_[i]->run.state(at));
      }
      --active_;
      std::rotate(runs_.begin() + static_cast<ptrdiff_t>(i),
                  runs_.begin() + static_cast<ptrdiff_t>(i) + 1,
                  runs_.begin() + static_cast<ptrdiff_t>(active_) + 1);
    }
    StartWaiting();
  }

 private:
  // `next` is the number of the compression that comes; the outer hash's is the last one.
  struct Lane {
    const SharedBlock* states;
    const SharedBlock* shared_message;
    const uint8_t* public_message;
    size_t bytes;
    size_t next;
  };
  struct Run {
    Run(HashKind hash, Isa isa, MessageKind of, size_t made)
        : kind(of), number(made), run(hash, isa) {}
    const MessageKind kind;
    const size_t number;
    HashRun run;
    std::vector<size_t> lanes;
  };
  static bool EarlierMade(const std::unique_ptr<Run>& a, const std::unique_ptr<Run>& b) {
    return a->number < b->number;
  }

  // One that is free, moved to the end of those under way. Equal batches take the same runs, so
  // their buffers need not grow again.
  Run& FreeRun(MessageKind kind) {
    const auto free = runs_.begin() + static_cast<ptrdiff_t>(active_);
    std::sort(free, runs_.end(), EarlierMade);
    auto at = std::find_if(free, runs_.end(), [&](const auto& run) { return run->kind == kind; });
    if (at == runs_.end()) {
      at = runs_.insert(runs_.end(), std::make_unique<Run>(hash_, isa_, kind, runs_.size()));
    }
    std::swap(*at, runs_[active_]);
    return *runs_[active_];
  }

  size_t InnerBlocks(const Lane& lane) const { return HmacInnerBlocks(hash_, lane.bytes); }
  MessageKind KindOfNext(const Lane& lane) const {
    const bool outer = lane.next == InnerBlocks(lane);
    return outer || lane.shared_message != nullptr ? MessageKind::kShared : MessageKind::kPublic;
  }

  HashBlock BlockOf(size_t at) const {
    const Lane& lane = lanes_[at];
    if (lane.next == InnerBlocks(lane)) {
      return {lane.states + blocks_, &inner_[at * blocks_], nullptr, HashDigestBytes(hash_)};
    }
    const SharedBlock* state = lane.next == 0 ? lane.states : &states_[at * blocks_];
    return {state, lane.shared_message, lane.public_message, lane.bytes, lane.next};
  }

  void Advance(size_t at, absl::Span<const SharedBlock> state) {
    Lane& lane = lanes_[at];
    ++lane.next;
    SecretVector<SharedBlock>& to = lane.next == InnerBlocks(lane) ? inner_ : states_;
    std::copy(state.begin(), state.end(), to.begin() + static_cast<ptrdiff_t>(at * blocks_));
    if (lane.next <= InnerBlocks(lane)) waiting_.push_back(at);
  }

  void StartWaiting() {
    if (waiting_.empty()) return;
    std::sort(waiting_.begin(), waiting_.end());
    for (MessageKind kind : {MessageKind::kPublic, MessageKind::kShared}) {
      if (std::none_of(waiting_.begin(), waiting_.end(),
                       [&](size_t at) { return KindOfNext(lanes_[at]) == kind; })) {
        continue;
      }
      Run& run = FreeRun(kind);
      run.lanes.clear();
      inputs_.clear();
      for (size_t at : waiting_) {
        if (KindOfNext(lanes_[at]) != kind) continue;
        run.lanes.push_back(at);
        inputs_.push_back(BlockOf(at));
      }
      run.run.Start(kind, adder_, inputs_);
      ++active_;
    }
    waiting_.clear();
  }

  const HashKind hash_;
  const Isa isa_;
  const size_t blocks_;
  Adder adder_ = Adder::kPrefix;
  std::vector<Lane> lanes_;
  std::vector<HmacShape> shapes_;
  std::vector<size_t> waiting_;
  std::vector<HashBlock> inputs_;
  std::vector<std::unique_ptr<Run>> runs_;   // the first active_ are under way
  size_t active_ = 0;
  SecretVector<SharedBlock> states_, inner_;  // after a lane's last compression; inner digests
};

Hmac::Hmac(HashKind hash, Isa isa) : impl_(std::make_unique<HmacImpl>(hash, isa)) {}
Hmac::~Hmac() = default;
void Hmac::Reset(absl::Span<const HmacLane> lanes, Adder adder) { impl_->Reset(lanes, adder); }
absl::Span<const SharedBlock> Hmac::digest(size_t lane) const { return impl_->digest(lane); }
bool Hmac::Done() const { return impl_->Done(); }
RoundShape Hmac::NextRound() const { return impl_->Shape(); }
void Hmac::Produce(ZeroShares& zero, RoundOut out) { impl_->Produce(zero, out.to_next); }
absl::Status Hmac::Consume(RoundIn in) {
  impl_->Consume(in.from_prev);
  return absl::OkStatus();
}
Cost Hmac::DeclaredCost() const { return impl_->DeclaredCost(); }

class HashCompressImpl {
 public:
  HashCompressImpl(HashKind hash, Isa isa) : hash(hash), run(hash, isa) {
    Block block{};
    const auto state = HashInitialState(hash);
    for (size_t i = 0; i < state.size(); ++i) {
      block[i % block.size()] = state[i];
      if ((i + 1) % block.size() != 0 && i + 1 != state.size()) continue;
      initial.push_back(SharePublic(block));
      block.fill(0);
    }
  }

  const HashKind hash;
  HashRun run;
  Adder adder = Adder::kPrefix;
  size_t lanes = 0;
  std::vector<SharedBlock> initial;  // public
  std::vector<HashBlock> inputs;
};

HashCompress::HashCompress(HashKind hash, Isa isa)
    : impl_(std::make_unique<HashCompressImpl>(hash, isa)) {}
HashCompress::~HashCompress() = default;

void HashCompress::Reset(absl::Span<const CompressLane> lanes, Adder adder) {
  impl_->adder = adder;
  impl_->lanes = lanes.size();
  impl_->inputs.clear();
  for (const CompressLane& lane : lanes) {
    impl_->inputs.push_back({lane.state == nullptr ? impl_->initial.data() : lane.state, lane.block,
                             nullptr, HashBlockBytes(impl_->hash), 0, false});
  }
  if (!lanes.empty()) impl_->run.Start(MessageKind::kShared, adder, impl_->inputs);
}
absl::Span<const SharedBlock> HashCompress::state(size_t lane) const {
  return impl_->run.state(lane);
}
bool HashCompress::Done() const { return impl_->lanes == 0 || impl_->run.Done(); }
RoundShape HashCompress::NextRound() const {
  return {impl_->run.MessageBytes(), 0, kCompressSteps[static_cast<size_t>(impl_->hash)]};
}
void HashCompress::Produce(ZeroShares& zero, RoundOut out) {
  impl_->run.Produce(zero, out.to_next);
}
absl::Status HashCompress::Consume(RoundIn in) {
  impl_->run.Consume(in.from_prev);
  return absl::OkStatus();
}
Cost HashCompress::DeclaredCost() const {
  return CostOfCompress(impl_->hash, impl_->adder, impl_->lanes);
}

}  // namespace mpckdc
