// SPDX-License-Identifier: Apache-2.0
// The AES key schedule on shares: key -> round keys, for many keys at once.
// AES-128: 40 rounds, 85 bytes per key and party; AES-256: 52 rounds, 110.5 bytes. The round keys
// are those of FIPS 197, section 5.2.
#ifndef MPC_SERVER_CIRCUIT_AES_KEY_SCHEDULE_H_
#define MPC_SERVER_CIRCUIT_AES_KEY_SCHEDULE_H_

#include "mpc-server/base/secret.h"
#include "mpc-server/circuit/aes/aes_circuit.h"
#include "mpc-server/circuit/aes/aes_kernels.h"
#include "mpc-server/circuit/aes/key_words.h"
#include "mpc-server/circuit/aes/sbox_log.h"
#include "mpc-server/circuit/bitslice/transpose.h"
#include "mpc-server/circuit/lane_groups.h"

namespace mpckdc {

// Sliced words w[0..4*(rounds+1)) per group, two planes. One S-box layer of one word at a time:
// w[i] needs w[i-1].
class KeySchedule : public Circuit {
 public:
  explicit KeySchedule(AesBits bits, Isa isa = BestIsa());

  // `keys`: AesKeyBlocks(bits) shared blocks per key, key after key. Copied.
  void Reset(absl::Span<const SharedBlock> keys);
  // After Done(): AesRoundKeys(bits) blocks of one key; fits AesLane::round_keys.
  absl::Span<const SharedBlock> round_keys(size_t key) const;

  bool Done() const override;
  RoundShape NextRound() const override;
  void Produce(ZeroShares& zero, RoundOut out) override;
  absl::Status Consume(RoundIn in) override;
  Cost DeclaredCost() const override;

 private:
  uint8_t* Rows(size_t g) { return rows_.data() + g * 2 * plane_; }
  size_t Layer() const;
  SboxStage Stage() const;
  size_t MessageRows() const;
  void Kernel(size_t g, size_t width, const uint8_t* sent, const uint8_t* received, uint8_t* msg,
              const ZeroSource* source);
  void FinishWord(size_t g, size_t width, const uint8_t* sent, const uint8_t* received);
  void Unslice(size_t g);

  const KeyWordPlan words_;
  const size_t plane_;
  const AesKernels& kernels_;
  const TransposeFunctions& transpose_;
  LaneGroups groups_;
  SboxLog log_;
  size_t step_ = 0;
  SecretBytes rows_, state_, norm_;  // per group
  SecretBytes scratch_;
  SecretVector<SharedBlock> round_keys_;
};

Cost CostOfKeySchedule(AesBits bits, size_t keys);

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_AES_KEY_SCHEDULE_H_
