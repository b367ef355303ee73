// SPDX-License-Identifier: Apache-2.0
// Usage keys of the GCM enctypes, derived on shares: Kg(u) = DK(base, u as 4 bytes big-endian |
// 0x47) of RFC 3961, its round keys, and H(u) = AES(Kg(u), 0).
//
// Five circuits in a row for all requests at once: schedule of the base key, DK's one (AES-128) or
// two (AES-256) chained encryptions of the n-folded constant, schedule of Kg, encryption of zero.
#ifndef MPC_SERVER_CIRCUIT_USAGE_KEY_H_
#define MPC_SERVER_CIRCUIT_USAGE_KEY_H_

#include <cstdint>
#include <vector>

#include "mpc-server/circuit/aes_circuit.h"
#include "mpc-server/circuit/key_schedule.h"
#include "mpc-server/secret/secret.h"

namespace mpckdc {

// RFC 3961 n-fold of `in` to 16 bytes.
Block NFold16(absl::Span<const uint8_t> in);
// NFold16(usage as 4 bytes big-endian | 0x47): DK's constant for Kg(usage).
Block UsageConstant(uint32_t usage);

struct UsageKeyRequest {
  const SharedBlock* base = nullptr;  // AesKeyBlocks(bits) blocks; read in Reset()
  uint32_t usage = 0;
};
struct UsageKeyShare {
  uint32_t usage = 0;
  SecretVector<SharedBlock> round_keys;  // AesRoundKeys(bits) of Kg(usage)
  SharedBlock h;
};

class DeriveUsageKeys : public Circuit {
 public:
  explicit DeriveUsageKeys(AesBits bits, Isa isa = BestIsa());

  void Reset(absl::Span<const UsageKeyRequest> requests);
  // After Done(), in the order of the requests.
  const SecretVector<UsageKeyShare>& results() const { return results_; }

  bool Done() const override { return stage_ == Stage::kDone; }
  RoundShape NextRound() const override { return current_->NextRound(); }
  void Produce(ZeroShares& zero, RoundOut out) override { current_->Produce(zero, out); }
  absl::Status Consume(RoundIn in) override;
  Cost DeclaredCost() const override;

 private:
  enum class Stage { kBaseSchedule, kDeriveFirst, kDeriveSecond, kUsageSchedule, kTagKey, kDone };
  void Advance();

  const AesBits bits_;
  Stage stage_ = Stage::kDone;
  Circuit* current_ = nullptr;
  std::vector<Block> constants_;
  KeySchedule base_schedule_, usage_schedule_;
  AesEncrypt first_, second_, tag_key_;
  SecretVector<UsageKeyShare> results_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_USAGE_KEY_H_
