// SPDX-License-Identifier: Apache-2.0
// DK of RFC 3961 section 5.1 for AES keys on shares: K1 = AES(base, n-fold of usage | kind), and
// for AES-256 K2 = AES(base, K1). The constants are public.
//
// Two or three circuits in a row for all requests at once: the schedules of the base keys, the
// first blocks, the second blocks.
#ifndef MPC_SERVER_CIRCUIT_DK_H_
#define MPC_SERVER_CIRCUIT_DK_H_

#include <cstdint>
#include <vector>

#include "mpc-server/base/secret.h"
#include "mpc-server/circuit/aes_circuit.h"
#include "mpc-server/circuit/key_derivation.h"
#include "mpc-server/circuit/key_schedule.h"

namespace mpckdc {

class DeriveDk : public KeyDerivation {
 public:
  explicit DeriveDk(AesBits bits, Isa isa = BestIsa());

  void Reset(absl::Span<const DerivedKeyRequest> requests) override;
  absl::Span<const SharedBlock> key(size_t request) const override;

  bool Done() const override { return stage_ == Stage::kDone; }
  RoundShape NextRound() const override { return current_->NextRound(); }
  void Produce(ZeroShares& zero, RoundOut out) override { current_->Produce(zero, out); }
  absl::Status Consume(RoundIn in) override;
  Cost DeclaredCost() const override;

 private:
  enum class Stage { kSchedule, kFirst, kSecond, kDone };
  struct Request {
    size_t base;  // whose schedule
    Block constant;
  };
  void Advance();
  std::vector<AesLane> Lanes(const AesEncrypt* previous) const;

  const AesBits bits_;
  Stage stage_ = Stage::kDone;
  Circuit* current_ = nullptr;
  std::vector<Request> requests_;
  KeySchedule schedule_;
  AesEncrypt first_, second_;
  SecretVector<SharedBlock> keys_;  // AesKeyBlocks(bits) each
};

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_DK_H_
