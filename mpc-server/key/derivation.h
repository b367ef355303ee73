// SPDX-License-Identifier: Apache-2.0
//
// Keys that follow from a base key in the clear (RFC 3961, RFC 8009): on the machine that enrols a
// password, and in tests of what the servers do with the same keys on shares.
#ifndef MPC_SERVER_KEY_DERIVATION_H_
#define MPC_SERVER_KEY_DERIVATION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/key/enctype.h"
#include "mpc-server/key/hash_kind.h"

namespace mpckdc {

// What a key derived for a usage does: the last byte of its constant, usage (4) | byte. RFC 3961
// section 5.3 and RFC 8009 section 5; Kg is the GCM enctypes'.
enum class DerivedKeyKind : uint8_t {
  kKg = 0x47,  // AES-GCM
  kKi = 0x55,  // HMAC of messages
  kKc = 0x99,  // HMAC of checksums
  kKe = 0xAA,  // AES of messages
};

constexpr size_t DerivedKeyBytes(const Enctype& enctype, DerivedKeyKind kind) {
  const bool cipher = kind == DerivedKeyKind::kKg || kind == DerivedKeyKind::kKe;
  return cipher ? enctype.key_bytes : enctype.mac_key_bytes;
}

// n-fold of RFC 3961 section 5.1.
std::vector<uint8_t> NFold(absl::Span<const uint8_t> input, size_t output_bytes);

// What DK encrypts for a usage: its constant, n-folded to a block. It is public.
std::array<uint8_t, 16> UsageConstant(uint32_t usage, DerivedKeyKind kind);

// DK of RFC 3961 section 5.1 for AES keys of 16 or 32 bytes (random-to-key is the identity).
absl::StatusOr<SecretBytes> Rfc3961Dk(absl::Span<const uint8_t> base,
                                      absl::Span<const uint8_t> constant);

// What KDF-HMAC-SHA2 hashes for a key of `bytes` bytes: see Rfc8009Kdf(). It is public.
inline constexpr size_t kKdfMessageBytes = 14;
std::array<uint8_t, kKdfMessageBytes> KdfMessage(uint32_t usage, DerivedKeyKind kind, size_t bytes);

// KDF-HMAC-SHA2 of RFC 8009 section 3, without a context:
// HMAC(key, 00000001 | label | 00 | bits as 4 bytes), its first `bytes` bytes.
absl::StatusOr<SecretBytes> Rfc8009Kdf(HashKind hash, absl::Span<const uint8_t> key,
                                       absl::Span<const uint8_t> label, size_t bytes);

// Kg of a GCM enctype; Kc, Ke or Ki of 17 to 20. An error for a kind that the enctype has not.
absl::StatusOr<SecretBytes> DeriveKey(const Enctype& enctype, absl::Span<const uint8_t> base,
                                      uint32_t usage, DerivedKeyKind kind);

// H = AES(key, 0): GHASH's key.
absl::StatusOr<SecretBytes> GhashKey(absl::Span<const uint8_t> key);

}  // namespace mpckdc

#endif  // MPC_SERVER_KEY_DERIVATION_H_
