// SPDX-License-Identifier: Apache-2.0
// DK of RFC 3961 section 5.1 for AES keys on shares: K1 = AES(base, n-fold of usage | kind), and
// for AES-256 K2 = AES(base, K1). The constants are public.
//
// Two or three circuits in a row for all requests at once: the schedules of the base keys, the
// first blocks, the second blocks.
#ifndef MPC_SERVER_CIRCUIT_DERIVE_DK_H_
#define MPC_SERVER_CIRCUIT_DERIVE_DK_H_

#include <cstdint>
#include <vector>

#include "mpc-server/base/secret.h"
#include "mpc-server/circuit/aes/aes_circuit.h"
#include "mpc-server/circuit/aes/key_schedule.h"
#include "mpc-server/circuit/derive/key_derivation.h"

namespace mpckdc {

class DeriveDk : public KeyDerivation {
 public:
  explicit DeriveDk(AesBits bits, Isa isa = BestIsa());

  void Reset(absl::Span<const DerivedKeyRequest> requests) override;
  absl::Span<const SharedBlock> key(size_t request) const override;
  Cost DeclaredCost() const override;

 private:
  struct Request {
    size_t base;  // whose schedule
    Block constant;
  };
  // Block b of every key: AES of the constant, or of the block before.
  void StartBlock(size_t b);

  const AesBits bits_;
  const size_t blocks_;  // of a key
  std::vector<Request> requests_;
  KeySchedule schedule_;
  AesEncrypt aes_;
  SecretVector<SharedBlock> keys_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_DERIVE_DK_H_
