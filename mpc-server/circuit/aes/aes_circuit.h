// SPDX-License-Identifier: Apache-2.0
// AES-128 and AES-256 of many blocks at once, on shares, each block under its own key: encryption,
// and decryption under the same round keys.
//
//   AesEncrypt aes(AesBits::k128);             // or AesDecrypt
//   aes.Reset(lanes);                          // any number of lanes, each with its round keys
//   RunTogether(party, {&aes, ...}, &cost);    // 40 or 56 rounds, or 30 or 42
//   aes.output(3);                             // share of lane 3's ciphertext (or text)
//
// 128- and 256-bit lanes go into two circuits run together. Buffers are kept from Reset() to
// Reset(). Per block and party, by the variant of the S-box:
//
//                      AES-128                 AES-256
//   kThroughput   340 bytes, 40 rounds    476 bytes, 56 rounds
//   kLatency      440 bytes, 30 rounds    616 bytes, 42 rounds
#ifndef MPC_SERVER_CIRCUIT_AES_AES_CIRCUIT_H_
#define MPC_SERVER_CIRCUIT_AES_AES_CIRCUIT_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "mpc-server/base/isa.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/circuit/aes/aes_kernels.h"
#include "mpc-server/circuit/aes/round_key_slices.h"
#include "mpc-server/circuit/aes/sbox_log.h"
#include "mpc-server/circuit/aes/sbox_variant.h"
#include "mpc-server/circuit/bitslice/transpose.h"
#include "mpc-server/circuit/lane_groups.h"
#include "mpc-server/share/circuit.h"
#include "mpc-server/share/replicated_share.h"

namespace mpckdc {

enum class AesBits { k128 = 128, k256 = 256 };
inline constexpr size_t AesRounds(AesBits bits) { return bits == AesBits::k128 ? 10 : 14; }
inline constexpr size_t AesRoundKeys(AesBits bits) { return AesRounds(bits) + 1; }
inline constexpr size_t AesKeyBlocks(AesBits bits) { return bits == AesBits::k128 ? 1 : 2; }

enum class AesDirection { kEncrypt, kDecrypt };

// One block to encrypt or decrypt. The round keys stay the caller's until the circuit is done.
// Lanes that have their keys in common are cheapest when they stand together.
struct AesLane {
  const SharedBlock* round_keys = nullptr;    // AesRoundKeys(bits) blocks in order
  const SharedBlock* shared_input = nullptr;  // if null, public_input is taken
  Block public_input{};
};

// What the two directions have in common. Kept between rounds: per group the S-box inputs in the
// tower basis (for the product stage), which begin as the sliced input, and the opened norms (for
// the inverse stage).
class AesCipher : public Circuit {
 public:
  // Starts anew. The inputs are copied; no lane may have null round keys. The variant is
  // the same at the three parties.
  void Reset(absl::Span<const AesLane> lanes, Sbox sbox = Sbox::kThroughput);
  // After Done(), in the order of the lanes, until the next Reset().
  absl::Span<const SharedBlock> outputs() const {
    return absl::MakeConstSpan(outputs_).first(groups_.lanes());
  }
  const SharedBlock& output(size_t lane) const { return outputs()[lane]; }

  bool Done() const override;
  RoundShape NextRound() const override;
  void Produce(ZeroShares& zero, RoundOut out) override;
  absl::Status Consume(RoundIn in) override;
  Cost DeclaredCost() const override;

 protected:
  AesCipher(AesDirection direction, AesBits bits, Isa isa);

 private:
  SboxStage Stage() const { return StageAt(sbox_, step_); }
  size_t Round() const { return 1 + step_ / SboxStages(sbox_); }
  size_t Rows() const { return sizeof(Block) * SlicesPerByte(Stage()); }
  AesLinear Linear() const;
  void Kernel(size_t g, size_t width, const uint8_t* sent, const uint8_t* received, uint8_t* msg,
              const ZeroSource* source);
  void Norm(const uint8_t* key, const uint8_t* sent, const uint8_t* received, uint8_t* state,
            uint8_t* msg, size_t width, const ZeroSource* source);
  uint8_t* StateOf(size_t g) { return state_.data() + g * 2 * kBlockPlane; }
  // The k-th in the order of their use.
  const uint8_t* KeyRows(size_t g, size_t k) {
    return keys_.Rows(transpose_, g, k, scratch_.data());
  }
  void SliceInput(absl::Span<const AesLane> lanes, size_t g);
  void Finish();

  const bool decrypt_;
  const AesBits bits_;
  Sbox sbox_ = Sbox::kThroughput;
  const AesKernels& kernels_;
  const TransposeFunctions& transpose_;
  LaneGroups groups_;
  SboxLog log_;
  RoundKeySlices keys_;
  size_t step_ = 0;
  SecretBytes state_, norm_;                         // per group
  SecretBytes scratch_, public_pairs_, block_rows_;  // of one group
  SecretVector<SharedBlock> outputs_;
};

class AesEncrypt : public AesCipher {
 public:
  explicit AesEncrypt(AesBits bits, Isa isa = BestIsa())
      : AesCipher(AesDirection::kEncrypt, bits, isa) {}
};
class AesDecrypt : public AesCipher {
 public:
  explicit AesDecrypt(AesBits bits, Isa isa = BestIsa())
      : AesCipher(AesDirection::kDecrypt, bits, isa) {}
};

// What S-box layers of so many bytes each cost one party, in a row: all that AES sends.
Cost CostOfSboxLayers(size_t layers, size_t bytes, Sbox sbox, size_t lanes);
// What `blocks` lanes cost one party, in either direction.
Cost CostOfAes(AesBits bits, size_t blocks, Sbox sbox = Sbox::kThroughput);

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_AES_AES_CIRCUIT_H_
