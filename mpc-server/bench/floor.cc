// SPDX-License-Identifier: Apache-2.0
// The floor: the same messages in the same rounds with the same overlap as the protocol's, from and
// into buffers that nobody computes or reads. It is the least that the channel needs for them.
#include <algorithm>
#include <numeric>

#include "mpc-server/bench/workload.h"
#include "mpc-server/circuit/aes/aes_kernels.h"
#include "mpc-server/circuit/bitslice/slices.h"

namespace mpckdc::bench {

std::vector<size_t> RoundSizes(const BenchSetup& setup, size_t lanes) {
  constexpr size_t kBytesOfBlock = 16;
  std::vector<size_t> sizes;
  if (lanes == 0) return sizes;
  const Sbox sbox = SboxOf(setup);
  for (size_t step = 0; step < SboxStages(sbox) * AesRounds(setup.bits); ++step) {
    sizes.push_back(WireBytes(lanes, kBytesOfBlock * SlicesPerByte(StageAt(sbox, step))));
  }
  // All zero shares of the chunk come first.
  if (setup.randomness == Randomness::kExchanged) {
    sizes.insert(sizes.begin(), std::accumulate(sizes.begin(), sizes.end(), size_t{0}));
  }
  return sizes;
}

namespace {

class EmptyMessages : public Circuit {
 public:
  void Reset(const std::vector<size_t>& sizes) {
    sizes_ = &sizes;
    next_ = 0;
  }
  bool Done() const override { return next_ == sizes_->size(); }
  RoundShape NextRound() const override { return {(*sizes_)[next_], 0, "floor"}; }
  void Produce(ZeroShares&, RoundOut) override {}
  absl::Status Consume(RoundIn) override { return ++next_, absl::OkStatus(); }
  Cost DeclaredCost() const override {
    return {sizes_->size(), std::accumulate(sizes_->begin(), sizes_->end(), uint64_t{0}), 0};
  }

 private:
  const std::vector<size_t>* sizes_ = nullptr;
  size_t next_ = 0;
};

// One ring's chunks.
class RingFloor : public ChunkSource {
 public:
  RingFloor(const BenchSetup& setup, const std::vector<size_t>& chunks)
      : messages_(std::min(chunks.size(), setup.slots)) {
    for (size_t lanes : chunks) sizes_.push_back(RoundSizes(setup, lanes));
    for (EmptyMessages& m : messages_) circuits_.push_back(&m);
  }
  size_t chunks() const override { return sizes_.size(); }
  size_t slots() const override { return messages_.size(); }
  absl::Span<Circuit* const> Begin(size_t chunk, size_t slot) override {
    messages_[slot].Reset(sizes_[chunk]);
    return absl::MakeConstSpan(&circuits_[slot], 1);
  }
  void End(size_t, size_t) override {}

  Cost cost;

 private:
  std::vector<std::vector<size_t>> sizes_;  // of each chunk
  std::vector<EmptyMessages> messages_;     // of each slot
  std::vector<Circuit*> circuits_;
};

class Floor : public TeamWork {
 public:
  Floor(const BenchSetup& setup, size_t lanes) {
    for (const auto& chunks : ChunksOf(setup, lanes)) rings_.emplace_back(setup, chunks);
  }
  absl::Status Run(Rings& rings, uint32_t batch, Cost* cost) override {
    rings.BeginBatch(batch);
    absl::Status s = rings.Run(rings_.size(), [this](size_t r, PartyContext& party) {
      rings_[r].cost = {};
      return RunOverlapped(party, rings_[r], &rings_[r].cost);
    });
    Cost all;
    for (const RingFloor& ring : rings_) all = Together(all, ring.cost);
    *cost = *cost + all;
    return s;
  }

 private:
  std::vector<RingFloor> rings_;
};

}  // namespace

std::unique_ptr<TeamWork> MakeFloor(const BenchSetup& setup, size_t lanes) {
  return std::make_unique<Floor>(setup, lanes);
}

}  // namespace mpckdc::bench
