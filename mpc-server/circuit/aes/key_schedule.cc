// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/aes/key_schedule.h"

namespace mpckdc {
namespace {

constexpr Sbox kSbox = Sbox::kThroughput;
constexpr size_t kStages = SboxStages(kSbox);
constexpr const char* kSteps[kStages] = {"key schedule/norm", "key schedule/helper",
                                             "key schedule/inverse", "key schedule/product"};
constexpr size_t kWordBytes = 4;
constexpr size_t kStatePlanes = 2 * 8 * kWordBytes * kRowBytes;
constexpr size_t kNormPlanes = 2 * 4 * kWordBytes * kRowBytes;

}  // namespace

KeySchedule::KeySchedule(AesBits bits, Isa isa)
    : words_(bits),
      plane_(words_.Count() * 8 * kWordBytes * kRowBytes),
      kernels_(AllAesKernels().For(isa)),
      transpose_(AllTransposes().For(isa)),
      log_(kWordBytes, isa),
      scratch_(kTransposeScratchBytes) {}

void KeySchedule::Reset(absl::Span<const SharedBlock> keys) {
  const size_t per_key = AesKeyBlocks(words_.bits());
  groups_.Reset(keys.size() / per_key);
  log_.Reset(kSbox);
  step_ = 0;
  const size_t groups = groups_.groups();
  Grow(rows_, groups * 2 * plane_);
  Grow(state_, groups * kStatePlanes);
  Grow(norm_, groups * kNormPlanes);
  Grow(round_keys_, groups_.lanes() * AesRoundKeys(words_.bits()));
  for (size_t g = 0; g < groups; ++g) {
    const size_t n = groups_.LanesIn(g);
    const uint8_t* from[kGroupLanes];
    for (size_t j = 0; j < n; ++j) {
      from[j] = reinterpret_cast<const uint8_t*>(&keys[(g * kGroupLanes + j) * per_key]);
    }
    for (size_t b = 0; b < per_key; ++b) {
      uint8_t* rows = Rows(g) + b * kBlockPlane;
      transpose_.to_rows({from, n, b * kPairBytes}, rows, rows + plane_, scratch_.data());
    }
  }
}

bool KeySchedule::Done() const {
  return groups_.lanes() == 0 || step_ == kStages * words_.SboxWords();
}
SboxStage KeySchedule::Stage() const { return StageAt(kSbox, step_); }
size_t KeySchedule::MessageRows() const { return kWordBytes * SlicesPerByte(Stage()); }

RoundShape KeySchedule::NextRound() const {
  return {groups_.MessageBytes(MessageRows()), 0, kSteps[step_ % kStages]};
}

void KeySchedule::Produce(ZeroShares& zero, RoundOut out) {
  groups_.Produce(
      kernels_, zero, out.to_next, MessageRows(),
      [this](size_t g, size_t width, const uint8_t* sent, const uint8_t* received, uint8_t* msg,
             const ZeroSource* source) { Kernel(g, width, sent, received, msg, source); },
      [&](size_t g, const SentRows& in, const ZeroRows& parts) {
        log_.Record(*zero.log(), {Stage(), Layer(), AesLinear::kWord, g, groups_.LanesIn(g),
                                  state_.data() + g * kStatePlanes, in, parts});
      });
}

absl::Status KeySchedule::Consume(RoundIn in) {
  groups_.Consume(in.from_prev);
  ++step_;
  if (!Done()) return absl::OkStatus();
  groups_.Finish([this](size_t g, size_t width, const uint8_t* sent, const uint8_t* received) {
    log_.Finish(g, received);
    FinishWord(g, width, sent, received);
    Unslice(g);
  });
  return absl::OkStatus();
}

absl::Span<const SharedBlock> KeySchedule::round_keys(size_t key) const {
  const size_t n = AesRoundKeys(words_.bits());
  return absl::MakeConstSpan(round_keys_).subspan(key * n, n);
}

size_t KeySchedule::Layer() const { return step_ / kStages; }

void KeySchedule::Kernel(size_t g, size_t width, const uint8_t* sent, const uint8_t* received,
                         uint8_t* msg, const ZeroSource* source) {
  uint8_t* state = state_.data() + g * kStatePlanes;
  uint8_t* norm = norm_.data() + g * kNormPlanes;
  switch (Stage()) {
    case SboxStage::kNorm: {
      if (Layer() != 0) FinishWord(g, width, sent, received);
      const KeyWord w = words_.At(Layer());
      return kernels_.word_start(Rows(g), plane_, w.index, w.rotate, state, msg, width, source);
    }
    case SboxStage::kHelper:
      return kernels_.helper(kWordBytes, sent, received, norm, msg, width, source);
    case SboxStage::kInverse:
      return kernels_.inverse(kWordBytes, norm, sent, received, msg, width, source);
    case SboxStage::kProduct:
      return kernels_.product(AesLinear::kWord, state, sent, received, msg, width, source);
    case SboxStage::kTwist:
    case SboxStage::kScale:
      break;  // of the other S-box
  }
}

// Completes the words of the layer whose product was just opened.
void KeySchedule::FinishWord(size_t g, size_t width, const uint8_t* sent,
                             const uint8_t* received) {
  const KeyWord w = words_.At(Layer() - 1);
  kernels_.word_finish(Rows(g), plane_, words_.KeyWords(), w.index, w.end, w.rcon, sent,
                       received, width);
}

void KeySchedule::Unslice(size_t g) {
  const size_t n = groups_.LanesIn(g), keys = AesRoundKeys(words_.bits());
  for (size_t r = 0; r < keys; ++r) {
    SharedBlock* out = round_keys_.data() + g * kGroupLanes * keys + r;
    const uint8_t* rows = Rows(g) + r * kBlockPlane;
    transpose_.to_pairs(rows, rows + plane_,
                        {reinterpret_cast<uint8_t*>(out), keys * kPairBytes, n},
                        scratch_.data());
  }
}

Cost KeySchedule::DeclaredCost() const {
  return CostOfKeySchedule(words_.bits(), groups_.lanes());
}

Cost CostOfKeySchedule(AesBits bits, size_t keys) {
  return CostOfSboxLayers(KeyWordPlan(bits).SboxWords(), kWordBytes, kSbox, keys);
}

}  // namespace mpckdc
