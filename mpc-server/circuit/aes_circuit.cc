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
class AesEncryptImpl {
 public:
  AesEncryptImpl(AesBits bits, Isa isa)
      : bits_(bits),
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
                [&](size_t j) { return lanes[j].round_keys; });
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
        if (Round() == 1) return kernels_.start(state, KeyRows(g, 0), state, msg, width, source);
        return kernels_.next(sent, received, KeyRows(g, Round() - 1), state, msg, width, source);
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
  AesLinear Linear() const {
    return Round() == AesRounds(bits_) ? AesLinear::kShiftRows : AesLinear::kMixColumns;
  }

  uint8_t* StateOf(size_t g) { return state_.data() + g * 2 * kBlockPlane; }
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
      kernels_.finish(sent, received, KeyRows(g, AesRounds(bits_)), rows, width);
      uint8_t* out = reinterpret_cast<uint8_t*>(outputs_.data() + g * kGroupLanes);
      transpose_.to_pairs(rows, rows + kBlockPlane, {out, kPairBytes, groups_.LanesIn(g)},
                          scratch_.data());
    });
  }

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

AesEncrypt::AesEncrypt(AesBits bits, Isa isa)
    : impl_(std::make_unique<AesEncryptImpl>(bits, isa)), bits_(bits) {}
AesEncrypt::~AesEncrypt() = default;

void AesEncrypt::Reset(absl::Span<const AesLane> lanes, Sbox sbox) {
  impl_->Reset(lanes, sbox);
  sbox_ = sbox;
  lane_count_ = lanes.size();
}
absl::Span<const SharedBlock> AesEncrypt::outputs() const { return impl_->outputs(); }
bool AesEncrypt::Done() const { return impl_->Done(); }
RoundShape AesEncrypt::NextRound() const { return impl_->Shape(); }
void AesEncrypt::Produce(ZeroShares& zero, RoundOut out) { impl_->Produce(zero, out.to_next); }
absl::Status AesEncrypt::Consume(RoundIn in) {
  impl_->Consume(in.from_prev);
  return absl::OkStatus();
}
Cost AesEncrypt::DeclaredCost() const { return CostOfAes(bits_, lane_count_, sbox_); }

}  // namespace mpckdc
