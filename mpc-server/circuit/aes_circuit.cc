// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/aes_circuit.h"

#include <vector>

#include "mpc-server/circuit/aes_kernels.h"
#include "mpc-server/circuit/lane_groups.h"

namespace mpckdc {
namespace {

// By SboxStage.
constexpr const char* kSteps[] = {"aes/norm",    "aes/helper", "aes/inverse",
                                  "aes/product", "aes/twist",  "aes/scale"};
constexpr size_t kBlockBytes = 16;
constexpr size_t kNormPlanes = 2 * 4 * kBlockBytes * kRowBytes;

}  // namespace

// The state between rounds: per group the S-box inputs in the tower basis (kept for the product
// stage) and the opened norms (kept for the inverse stage). Round keys are sliced when a round
// needs them, not before: they cost no memory and each is read once.
class AesEncryptImpl {
 public:
  AesEncryptImpl(AesBits bits, Isa isa)
      : bits_(bits),
        kernels_(SharedAesKernels(isa)),
        transpose_(TransposeFunctionsFor(isa)),
        staging_(kGroupLanes * kBlockBytes),
        key_rows_(2 * kBlockPlane),
        block_rows_(2 * kBlockPlane) {}

  void Reset(absl::Span<const AesLane> lanes, Sbox sbox) {
    sbox_ = sbox;
    lanes_.assign(lanes.begin(), lanes.end());
    groups_.Reset(lanes.size());
    step_ = 0;
    Grow(state_, groups_.groups() * 2 * kBlockPlane);
    Grow(norm_, groups_.groups() * kNormPlanes);
    outputs_.resize(lanes.size());
  }

  absl::Span<const SharedBlock> outputs() const { return outputs_; }
  bool Done() const { return lanes_.empty() || step_ == SboxStages(sbox_) * AesRounds(bits_); }
  SboxStage Stage() const { return StageAt(sbox_, step_); }
  size_t Round() const { return 1 + step_ / SboxStages(sbox_); }
  size_t Rows() const { return kBlockBytes * SlicesPerByte(Stage()); }
  RoundShape Shape() const {
    return {groups_.MessageBytes(Rows()), 0, kSteps[static_cast<size_t>(Stage())]};
  }

  void Produce(ZeroShares& zero, absl::Span<uint8_t> out) {
    groups_.Produce(zero, out, Rows(),
                    [this](size_t g, size_t width, const uint8_t* sent, const uint8_t* received,
                           uint8_t* msg) { Kernel(g, width, sent, received, msg); });
  }

  void Consume(absl::Span<const uint8_t> from_prev) {
    groups_.Consume(from_prev);
    ++step_;
    if (Done()) Finish();
  }

 private:
  static void Grow(SecretBytes& bytes, size_t size) {
    if (bytes.size() < size) bytes.resize(size);
  }

  void Kernel(size_t g, size_t width, const uint8_t* sent, const uint8_t* received, uint8_t* msg) {
    uint8_t* state = state_.data() + g * 2 * kBlockPlane;
    uint8_t* norm = norm_.data() + g * kNormPlanes;
    switch (Stage()) {
      case SboxStage::kNorm:
        SliceRoundKey(g, Round() - 1);
        if (Round() == 1) {
          SliceInput(g);
          kernels_.start(block_rows_.data(), key_rows_.data(), state, msg, width);
        } else {
          kernels_.next(sent, received, key_rows_.data(), state, msg, width);
        }
        return;
      case SboxStage::kHelper:
        return kernels_.helper(kBlockBytes, sent, received, norm, msg, width);
      case SboxStage::kInverse:
        return kernels_.inverse(kBlockBytes, norm, sent, received, msg, width);
      case SboxStage::kProduct:
        return kernels_.product(Linear(), state, sent, received, msg, width);
      case SboxStage::kTwist:
        return kernels_.twist(kBlockBytes, state, sent, received, msg, width);
      case SboxStage::kScale:
        return kernels_.scale(Linear(), sent, received, msg, width);
    }
  }
  AesLinear Linear() const {
    return Round() == AesRounds(bits_) ? AesLinear::kShiftRows : AesLinear::kMixColumns;
  }

  const AesLane& Lane(size_t g, size_t j) const { return lanes_[g * kGroupLanes + j]; }

  void SliceRoundKey(size_t g, size_t k) {
    const size_t n = groups_.LanesIn(g);
    uint8_t* rows = key_rows_.data();
    SliceBlocks(transpose_, n, staging_.data(), rows,
                [&](size_t j) { return Lane(g, j).round_keys[k].x.data(); });
    SliceBlocks(transpose_, n, staging_.data(), rows + kBlockPlane,
                [&](size_t j) { return Lane(g, j).round_keys[k].a.data(); });
  }

  // A public block v is shared as x = 0, a = v.
  void SliceInput(size_t g) {
    static constexpr Block kZero{};
    const size_t n = groups_.LanesIn(g);
    SliceBlocks(transpose_, n, staging_.data(), block_rows_.data(), [&](size_t j) {
      const AesLane& l = Lane(g, j);
      return l.shared_input == nullptr ? kZero.data() : l.shared_input->x.data();
    });
    SliceBlocks(transpose_, n, staging_.data(), block_rows_.data() + kBlockPlane, [&](size_t j) {
      const AesLane& l = Lane(g, j);
      return l.shared_input == nullptr ? l.public_input.data() : l.shared_input->a.data();
    });
  }

  void Finish() {
    groups_.Finish([this](size_t g, size_t width, const uint8_t* sent, const uint8_t* received) {
      SliceRoundKey(g, AesRounds(bits_));
      uint8_t* rows = block_rows_.data();
      kernels_.finish(sent, received, key_rows_.data(), rows, width);
      const size_t n = groups_.LanesIn(g);
      SharedBlock* out = outputs_.data() + g * kGroupLanes;
      transpose_.to_blocks(rows, staging_.data(), n);
      for (size_t j = 0; j < n; ++j) std::memcpy(out[j].x.data(), &staging_[16 * j], 16);
      transpose_.to_blocks(rows + kBlockPlane, staging_.data(), n);
      for (size_t j = 0; j < n; ++j) std::memcpy(out[j].a.data(), &staging_[16 * j], 16);
    });
  }

  const AesBits bits_;
  Sbox sbox_ = Sbox::kThroughput;
  const AesKernels& kernels_;
  const TransposeFunctions& transpose_;
  std::vector<AesLane> lanes_;
  LaneGroups groups_;
  size_t step_ = 0;
  SecretBytes state_, norm_;                      // per group
  SecretBytes staging_, key_rows_, block_rows_;   // of one group
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
