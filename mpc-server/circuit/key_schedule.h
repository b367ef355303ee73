// SPDX-License-Identifier: Apache-2.0
// The AES key schedule on shares: key -> round keys, for many keys at once.
// AES-128: 40 rounds, 85 bytes per key and party; AES-256: 52 rounds, 110.5 bytes. The round keys
// are those of FIPS 197, section 5.2.
#ifndef MPC_SERVER_CIRCUIT_KEY_SCHEDULE_H_
#define MPC_SERVER_CIRCUIT_KEY_SCHEDULE_H_

#include <memory>

#include "mpc-server/circuit/aes_circuit.h"

namespace mpckdc {

class KeyScheduleImpl;

class KeySchedule : public Circuit {
 public:
  explicit KeySchedule(AesBits bits, Isa isa = BestIsa());
  ~KeySchedule() override;

  // `keys`: AesKeyBlocks(bits) shared blocks per key, key after key. Copied.
  void Reset(absl::Span<const SharedBlock> keys);
  size_t key_count() const { return key_count_; }
  // After Done(): AesRoundKeys(bits) blocks of one key; fits AesLane::round_keys.
  absl::Span<const SharedBlock> round_keys(size_t key) const;

  bool Done() const override;
  RoundShape NextRound() const override;
  void Produce(ZeroShares& zero, RoundOut out) override;
  absl::Status Consume(RoundIn in) override;
  Cost DeclaredCost() const override;

 private:
  std::unique_ptr<KeyScheduleImpl> impl_;
  AesBits bits_;
  size_t key_count_ = 0;
};

Cost CostOfKeySchedule(AesBits bits, size_t keys);

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_KEY_SCHEDULE_H_
