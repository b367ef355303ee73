// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/aes/aes_batch.h"

#include <algorithm>

#include "mpc-server/circuit/bitslice/slices.h"

namespace mpckdc {
namespace {

size_t Ceil(size_t n, size_t unit) { return (n + unit - 1) / unit; }

size_t RingsUsed(const AesCut& cut, size_t lanes, size_t rings) {
  return std::clamp<size_t>(lanes / cut.ring_lanes, 1, rings);
}
size_t ChunksOf(const AesCut& cut, size_t share) {
  return std::max<size_t>(Ceil(share, cut.chunk_lanes), 1);
}

// Lanes cut into `pieces` of about equal length, whole groups but for the end. The last ones may be
// empty.
struct Range {
  size_t from, length;
};
Range PieceOf(size_t lanes, size_t piece, size_t pieces) {
  const size_t length = GroupCount(Ceil(lanes, pieces)) * kGroupLanes;
  const size_t from = std::min(lanes, piece * length);
  return {from, std::min(lanes - from, length)};
}
template <class T>
absl::Span<T> Piece(absl::Span<T> all, size_t piece, size_t pieces) {
  const Range range = PieceOf(all.size(), piece, pieces);
  return all.subspan(range.from, range.length);
}

// The lanes of one key size, and where their outputs go.
struct Share {
  absl::Span<const AesLane> lanes;
  absl::Span<SharedBlock> outputs;

  Share At(size_t piece, size_t pieces) const {
    return {Piece(lanes, piece, pieces), Piece(outputs, piece, pieces)};
  }
};

}  // namespace

std::vector<std::vector<size_t>> ChunksOfRings(const AesCut& cut, size_t lanes, size_t rings) {
  std::vector<std::vector<size_t>> all(RingsUsed(cut, lanes, rings));
  for (size_t r = 0; r < all.size(); ++r) {
    const size_t share = PieceOf(lanes, r, all.size()).length, chunks = ChunksOf(cut, share);
    for (size_t c = 0; c < chunks; ++c) all[r].push_back(PieceOf(share, c, chunks).length);
  }
  return all;
}

// One ring's share of a batch, cut into chunks.
class AesBatch::RingChunks : public ChunkSource {
 public:
  explicit RingChunks(const AesCut& cut, Isa isa) : cut_(cut), isa_(isa) {}

  void Reset(const Share& share128, const Share& share256, Sbox sbox,
             absl::Span<Circuit* const> others) {
    share128_ = share128;
    share256_ = share256;
    sbox_ = sbox;
    others_ = others;
    chunks_ = ChunksOf(cut_, std::max(share128.lanes.size(), share256.lanes.size()));
    while (slots_.size() < slots()) slots_.push_back(std::make_unique<Slot>(isa_));
    cost = {};
  }

  size_t chunks() const override { return chunks_; }
  size_t slots() const override { return std::min(chunks_, cut_.slots); }

  absl::Span<Circuit* const> Begin(size_t chunk, size_t slot) override {
    Slot& s = *slots_[slot];
    s.circuits.clear();
    if (chunk == 0) s.circuits.assign(others_.begin(), others_.end());
    Add(s, s.aes128, share128_.At(chunk, chunks_));
    Add(s, s.aes256, share256_.At(chunk, chunks_));
    return s.circuits;
  }

  void End(size_t chunk, size_t slot) override {
    Slot& s = *slots_[slot];
    Keep(s.aes128, share128_.At(chunk, chunks_));
    Keep(s.aes256, share256_.At(chunk, chunks_));
  }

  Cost cost;

 private:
  struct Slot {
    explicit Slot(Isa isa) : aes128(AesBits::k128, isa), aes256(AesBits::k256, isa) {}
    AesEncrypt aes128, aes256;
    std::vector<Circuit*> circuits;
  };

  void Add(Slot& slot, AesEncrypt& aes, const Share& share) {
    if (share.lanes.empty()) return;
    aes.Reset(share.lanes, sbox_);
    slot.circuits.push_back(&aes);
  }
  static void Keep(const AesEncrypt& aes, const Share& share) {
    if (share.lanes.empty()) return;
    std::copy(aes.outputs().begin(), aes.outputs().end(), share.outputs.begin());
  }

  const AesCut cut_;
  const Isa isa_;
  Share share128_, share256_;
  Sbox sbox_ = Sbox::kThroughput;
  absl::Span<Circuit* const> others_;
  size_t chunks_ = 0;
  std::vector<std::unique_ptr<Slot>> slots_;
};

AesBatch::AesBatch(const AesCut& cut, Isa isa) : cut_(cut), isa_(isa) {}
AesBatch::~AesBatch() = default;

absl::Status AesBatch::Run(Rings& rings, absl::Span<const AesLane> lanes128,
                           absl::Span<const AesLane> lanes256, Sbox sbox,
                           absl::Span<Circuit* const> others, Cost* cost) {
  count128_ = lanes128.size();
  count256_ = lanes256.size();
  if (outputs128_.size() < count128_) outputs128_.resize(count128_);
  if (outputs256_.size() < count256_) outputs256_.resize(count256_);
  const Share all128 = {lanes128, absl::MakeSpan(outputs128_).first(count128_)};
  const Share all256 = {lanes256, absl::MakeSpan(outputs256_).first(count256_)};
  const size_t used = RingsUsed(cut_, count128_ + count256_, rings.size());
  while (rings_.size() < used) rings_.push_back(std::make_unique<RingChunks>(cut_, isa_));
  for (size_t r = 0; r < used; ++r) {
    rings_[r]->Reset(all128.At(r, used), all256.At(r, used), sbox,
                     r == 0 ? others : absl::Span<Circuit* const>());
  }
  const absl::Status status = rings.Run(used, [this](size_t r, PartyContext& party) {
    return RunOverlapped(party, *rings_[r], &rings_[r]->cost);
  });
  if (!status.ok() || cost == nullptr) return status;
  Cost all;
  for (size_t r = 0; r < used; ++r) all = Together(all, rings_[r]->cost);
  *cost = *cost + all;
  return status;
}

}  // namespace mpckdc
