// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/aes/aes_circuit.h"

#include <cstring>

namespace mpckdc {
namespace {

// By SboxStage.
constexpr const char* kSteps[] = {"aes/norm",    "aes/helper", "aes/inverse",
                                  "aes/product", "aes/twist",  "aes/scale"};
constexpr size_t kBlockBytes = 16;
constexpr size_t kNormPlanes = 2 * 4 * kBlockBytes * kRowBytes;

}  // namespace

AesCipher::AesCipher(AesDirection direction, AesBits bits, Isa isa)
    : decrypt_(direction == AesDirection::kDecrypt),
      bits_(bits),
      kernels_(AllAesKernels().For(isa)),
      transpose_(AllTransposes().For(isa)),
      log_(kBlockBytes, isa),
      scratch_(kTransposeScratchBytes),
      public_pairs_(kGroupLanes * kPairBytes),
      block_rows_(2 * kBlockPlane) {}

void AesCipher::Reset(absl::Span<const AesLane> lanes, Sbox sbox) {
  sbox_ = sbox;
  groups_.Reset(lanes.size());
  log_.Reset(sbox);
  step_ = 0;
  Grow(state_, groups_.groups() * 2 * kBlockPlane);
  Grow(norm_, groups_.groups() * kNormPlanes);
  Grow(outputs_, lanes.size());
  keys_.Reset(lanes.size(), AesRoundKeys(bits_),
              [&](size_t j) { return lanes[j].round_keys; },
              decrypt_ ? KeyOrder::kBackward : KeyOrder::kForward);
  for (size_t g = 0; g < groups_.groups(); ++g) {
    SliceInput(lanes.subspan(g * kGroupLanes, groups_.LanesIn(g)), g);
  }
}

bool AesCipher::Done() const {
  return groups_.lanes() == 0 || step_ == SboxStages(sbox_) * AesRounds(bits_);
}

RoundShape AesCipher::NextRound() const {
  return {groups_.MessageBytes(Rows()), 0, kSteps[static_cast<size_t>(Stage())]};
}

void AesCipher::Produce(ZeroShares& zero, RoundOut out) {
  groups_.Produce(
      kernels_, zero, out.to_next, Rows(),
      [this](size_t g, size_t width, const uint8_t* sent, const uint8_t* received, uint8_t* msg,
             const ZeroSource* source) { Kernel(g, width, sent, received, msg, source); },
      [&](size_t g, const SentRows& in, const ZeroRows& parts) {
        log_.Record(*zero.log(),
                    {Stage(), Round() - 1, Linear(), g, groups_.LanesIn(g), StateOf(g), in, parts});
      });
}

absl::Status AesCipher::Consume(RoundIn in) {
  groups_.Consume(in.from_prev);
  ++step_;
  if (Done()) Finish();
  return absl::OkStatus();
}

void AesCipher::Kernel(size_t g, size_t width, const uint8_t* sent, const uint8_t* received,
                       uint8_t* msg, const ZeroSource* source) {
  uint8_t* state = StateOf(g);
  uint8_t* norm = norm_.data() + g * kNormPlanes;
  switch (Stage()) {
    case SboxStage::kNorm:
      return Norm(KeyRows(g, Round() - 1), sent, received, state, msg, width, source);
    case SboxStage::kHelper:
      return kernels_.helper(kBlockBytes, sent, received, norm, msg, width, source);
    case SboxStage::kInverse:
      return kernels_.inverse(kBlockBytes, norm, sent, received, msg, width, source);
    case SboxStage::kProduct:
      return kernels_.product(Linear(), state, sent, received, msg, width, source);
    case SboxStage::kTwist:
      return kernels_.twist(kBlockBytes, state, sent, received, msg, width, source);
    case SboxStage::kScale:
      return kernels_.scale(Linear(), sent, received, msg, width, source);
  }
}

void AesCipher::Norm(const uint8_t* key, const uint8_t* sent, const uint8_t* received,
                     uint8_t* state, uint8_t* msg, size_t width, const ZeroSource* source) {
  if (Round() == 1) {
    const auto start = decrypt_ ? kernels_.decrypt_start : kernels_.start;
    return start(state, key, state, msg, width, source);
  }
  const auto next = decrypt_ ? kernels_.decrypt_next : kernels_.next;
  next(sent, received, key, state, msg, width, source);
}

AesLinear AesCipher::Linear() const {
  if (decrypt_) return AesLinear::kInvShiftRows;
  return Round() == AesRounds(bits_) ? AesLinear::kShiftRows : AesLinear::kMixColumns;
}

// A public block v is shared as x = 0, a = v.
void AesCipher::SliceInput(absl::Span<const AesLane> lanes, size_t g) {
  const uint8_t* from[kGroupLanes];
  for (size_t j = 0; j < lanes.size(); ++j) {
    from[j] = reinterpret_cast<const uint8_t*>(lanes[j].shared_input);
    if (from[j] != nullptr) continue;
    uint8_t* pair = &public_pairs_[j * kPairBytes];
    std::memset(pair, 0, kBlockBytes);
    std::memcpy(pair + kBlockBytes, lanes[j].public_input.data(), kBlockBytes);
    from[j] = pair;
  }
  uint8_t* rows = StateOf(g);
  transpose_.to_rows({from, lanes.size(), 0}, rows, rows + kBlockPlane, scratch_.data());
}

void AesCipher::Finish() {
  groups_.Finish([this](size_t g, size_t width, const uint8_t* sent, const uint8_t* received) {
    log_.Finish(g, received);
    uint8_t* rows = block_rows_.data();
    const auto finish = decrypt_ ? kernels_.decrypt_finish : kernels_.finish;
    finish(sent, received, KeyRows(g, AesRounds(bits_)), rows, width);
    uint8_t* out = reinterpret_cast<uint8_t*>(outputs_.data() + g * kGroupLanes);
    transpose_.to_pairs(rows, rows + kBlockPlane, {out, kPairBytes, groups_.LanesIn(g)},
                        scratch_.data());
  });
}

Cost AesCipher::DeclaredCost() const { return CostOfAes(bits_, groups_.lanes(), sbox_); }

Cost CostOfSboxLayers(size_t layers, size_t bytes, Sbox sbox, size_t lanes) {
  if (lanes == 0) return {};
  size_t slices = 0;
  for (size_t i = 0; i < SboxStages(sbox); ++i) slices += SlicesPerByte(StageAt(sbox, i));
  return {layers * SboxStages(sbox), WireBytes(lanes, layers * bytes * slices), 0};
}

Cost CostOfAes(AesBits bits, size_t blocks, Sbox sbox) {
  return CostOfSboxLayers(AesRounds(bits), sizeof(Block), sbox, blocks);
}

}  // namespace mpckdc
