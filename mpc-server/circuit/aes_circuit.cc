// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/aes_circuit.h"

#include <cstring>

#include "mpc-server/circuit/aes_kernels.h"
#include "mpc-server/circuit/lane_groups.h"
#include "mpc-server/circuit/round_key_slices.h"

namespace mpckdc {
namespace {

// By SboxStage.
constexpr const char* kSteps[] = {"aes/norm",    "aes/helper", "aes/inverse",
                                  "aes/product", "aes/twist",  "aes/scale"};
constexpr size_t kBlockBytes = 16;
constexpr size_t kNormPlanes = 2 * 4 * kBlockBytes * kRowBytes;

}  // namespace

// The state between rounds: per group the S-box inputs in the tower basis (kept for the product
// stage), which begins as the sliced input, and the opened norms (kept for the inverse stage).
class AesCipherImpl {
 public:
  AesCipherImpl(AesDirection direction, AesBits bits, Isa isa)
      : decrypt_(direction == AesDirection::kDecrypt),
        bits_(bits),
        kernels_(SharedAesKernels(isa)),
        transpose_(TransposeFunctionsFor(isa)),
        scratch_(kTransposeScratchBytes),
        public_pairs_(kGroupLanes * kPairBytes),
        block_rows_(2 * kBlockPlane) {}

  void Reset(absl::Span<const AesLane> lanes, Sbox sbox) {
    sbox_ = sbox;
    groups_.Reset(lanes.size());
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

  absl::Span<const SharedBlock> outputs() const {
    return absl::MakeConstSpan(outputs_).first(groups_.lanes());
  }
  bool Done() const {
    return groups_.lanes() == 0 || step_ == SboxStages(sbox_) * AesRounds(bits_);
  }
  SboxStage Stage() const { return StageAt(sbox_, step_); }
  size_t Round() const { return 1 + step_ / SboxStages(sbox_); }
  size_t Rows() const { return kBlockBytes * SlicesPerByte(Stage()); }
  RoundShape Shape() const {
    return {groups_.MessageBytes(Rows()), 0, kSteps[static_cast<size_t>(Stage())]};
  }

  void Produce(ZeroShares& zero, absl::Span<uint8_t> out) {
    groups_.Produce(kernels_, zero, out, Rows(),
                    [this](size_t g, size_t width, const uint8_t* sent, const uint8_t* received,
                           uint8_t* msg, const ZeroSource* source) {
                      Kernel(g, width, sent, received, msg, source);
                    });
  }

  void Consume(absl::Span<const uint8_t> from_prev) {
    groups_.Consume(from_prev);
    ++step_;
    if (Done()) Finish();
  }

 private:
  void Kernel(size_t g, size_t width, const uint8_t* sent, const uint8_t* received, uint8_t* msg,
              const ZeroSource* source) {
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
  void Norm(const uint8_t* key, const uint8_t* sent, const uint8_t* received, uint8_t* state,
            uint8_t* msg, size_t width, const ZeroSource* source) {
    if (Round() == 1) {
      const auto start = decrypt_ ? kernels_.decrypt_start : kernels_.start;
      return start(state, key, state, msg, width, source);
    }
    const auto next = decrypt_ ? kernels_.decrypt_next : kernels_.next;
    next(sent, received, key, state, msg, width, source);
  }
  AesLinear Linear() const {
    if (decrypt_) return AesLinear::kInvShiftRows;
    return Round() == AesRounds(bits_) ? AesLinear::kShiftRows : AesLinear::kMixColumns;
  }

  uint8_t* StateOf(size_t g) { return state_.data() + g * 2 * kBlockPlane; }
  // The k-th in the order of their use.
  const uint8_t* KeyRows(size_t g, size_t k) {
    return keys_.Rows(transpose_, g, k, scratch_.data());
  }

  // A public block v is shared as x = 0, a = v.
  void SliceInput(absl::Span<const AesLane> lanes, size_t g) {
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

  void Finish() {
    groups_.Finish([this](size_t g, size_t width, const uint8_t* sent, const uint8_t* received) {
      uint8_t* rows = block_rows_.data();
      const auto finish = decrypt_ ? kernels_.decrypt_finish : kernels_.finish;
      finish(sent, received, KeyRows(g, AesRounds(bits_)), rows, width);
      uint8_t* out = reinterpret_cast<uint8_t*>(outputs_.data() + g * kGroupLanes);
      transpose_.to_pairs(rows, rows + kBlockPlane, {out, kPairBytes, groups_.LanesIn(g)},
                          scratch_.data());
    });
  }

  const bool decrypt_;
  const AesBits bits_;
  Sbox sbox_ = Sbox::kThroughput;
  const AesKernels& kernels_;
  const TransposeFunctions& transpose_;
  LaneGroups groups_;
  RoundKeySlices keys_;
  size_t step_ = 0;
  SecretBytes state_, norm_;                          // per group
  SecretBytes scratch_, public_pairs_, block_rows_;   // of one group
  SecretVector<SharedBlock> outputs_;
};

AesCipher::AesCipher(AesDirection direction, AesBits bits, Isa isa)
    : impl_(std::make_unique<AesCipherImpl>(direction, bits, isa)),
      direction_(direction),
      bits_(bits) {}
AesCipher::~AesCipher() = default;

void AesCipher::Reset(absl::Span<const AesLane> lanes, Sbox sbox) {
  impl_->Reset(lanes, sbox);
  sbox_ = sbox;
  lane_count_ = lanes.size();
}
absl::Span<const SharedBlock> AesCipher::outputs() const { return impl_->outputs(); }
bool AesCipher::Done() const { return impl_->Done(); }
RoundShape AesCipher::NextRound() const { return impl_->Shape(); }
void AesCipher::Produce(ZeroShares& zero, RoundOut out) { impl_->Produce(zero, out.to_next); }
absl::Status AesCipher::Consume(RoundIn in) {
  impl_->Consume(in.from_prev);
  return absl::OkStatus();
}
Cost AesCipher::DeclaredCost() const { return CostOfAes(bits_, lane_count_, sbox_, direction_); }

}  // namespace mpckdc
