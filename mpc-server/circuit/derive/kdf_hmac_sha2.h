// SPDX-License-Identifier: Apache-2.0
// KDF-HMAC-SHA2 of RFC 8009 section 3 on shares: a key of k bits is the first k bits of
//
//     HMAC(base, 00000001 | usage (4) | kind (1) | 00 | k (4))       integers big-endian
//
// One HMAC is always enough: enctype 19 takes 128 bits of SHA-256, enctype 20 takes 256 bits for Ke
// and 192 for Ki and Kc of SHA-384. What is hashed is public, the base key is not.
//
// Two circuits in a row for all requests at once: the HMAC states of the base keys, the HMACs.
#ifndef MPC_SERVER_CIRCUIT_DERIVE_KDF_HMAC_SHA2_H_
#define MPC_SERVER_CIRCUIT_DERIVE_KDF_HMAC_SHA2_H_

#include <array>
#include <vector>

#include "mpc-server/base/secret.h"
#include "mpc-server/circuit/derive/key_derivation.h"
#include "mpc-server/circuit/hash/hmac.h"
#include "mpc-server/circuit/hash/hmac_states.h"
#include "mpc-server/key/enctype.h"

namespace mpckdc {

class KdfHmacSha2 : public KeyDerivation {
 public:
  // For enctype 19 or 20.
  KdfHmacSha2(const Enctype& enctype, Adder adder, Isa isa = BestIsa());

  void Reset(absl::Span<const DerivedKeyRequest> requests) override;
  absl::Span<const SharedBlock> key(size_t request) const override;
  Cost DeclaredCost() const override;

 private:
  struct Request {
    size_t base;  // whose states
    size_t bytes;
    std::array<uint8_t, kKdfMessageBytes> message;
    size_t first;  // of its blocks in keys_
  };
  void StartHmacs();
  void KeepKeys();

  const Enctype& enctype_;
  const Adder adder_;
  HmacStates states_;
  Hmac hmac_;
  std::vector<Request> requests_;
  SecretVector<SharedBlock> keys_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_DERIVE_KDF_HMAC_SHA2_H_
