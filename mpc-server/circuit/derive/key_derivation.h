// SPDX-License-Identifier: Apache-2.0
// A key derived from a base key, on shares: whose (the base), what for (the key usage number) and
// of which kind. How is the enctype's: circuit/derive/dk.h for RFC 3961's,
// circuit/derive/kdf_hmac_sha2.h for RFC 8009's. Both derive many at once.
#ifndef MPC_SERVER_CIRCUIT_DERIVE_KEY_DERIVATION_H_
#define MPC_SERVER_CIRCUIT_DERIVE_KEY_DERIVATION_H_

#include <cstdint>

#include "absl/types/span.h"
#include "mpc-server/key/derivation.h"
#include "mpc-server/share/flow.h"
#include "mpc-server/share/replicated_share.h"

namespace mpckdc {

// Requests of one base stand together: what depends on the base alone is computed once for them.
struct DerivedKeyRequest {
  const SharedBlock* base = nullptr;  // of the enctype's size; read in Reset()
  uint32_t usage = 0;
  DerivedKeyKind kind = DerivedKeyKind::kKe;
};

class KeyDerivation : public Flow {
 public:
  virtual void Reset(absl::Span<const DerivedKeyRequest> requests) = 0;
  // After Done(), until the next Reset(): the key in whole blocks, behind it zeros.
  virtual absl::Span<const SharedBlock> key(size_t request) const = 0;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_DERIVE_KEY_DERIVATION_H_
