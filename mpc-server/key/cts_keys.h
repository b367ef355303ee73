// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_KEY_CTS_KEYS_H_
#define MPC_SERVER_KEY_CTS_KEYS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/key/enctype.h"
#include "mpc-server/key/hash_kind.h"

// Keys of enctypes 17 to 20 that follow from a base key.

namespace mpckdc::enroll {

// KDF-HMAC-SHA2 of RFC 8009 section 3, without a context:
// HMAC(key, 00000001 | label | 00 | bits as 4 bytes), its first `bytes` bytes.
absl::StatusOr<SecretBytes> KdfHmacSha2(HashKind hash, absl::Span<const uint8_t> key,
                                        absl::Span<const uint8_t> label, size_t bytes);

// What a key derived for a usage does: the last byte of its constant, usage (4) | byte.
enum class Subkey : uint8_t {
  kKc = 0x99,  // HMAC of a checksum
  kKe = 0xAA,  // AES of a message
  kKi = 0x55,  // HMAC of a message
};

// Kc, Ke or Ki: by DK of RFC 3961 (17 and 18), or KDF-HMAC-SHA2 (19 and 20).
absl::StatusOr<SecretBytes> DeriveSubkey(const Enctype& enctype, absl::Span<const uint8_t> base,
                                         uint32_t usage, Subkey subkey);

// What HMAC's two hashes are after their first blocks, which are the key alone:
//   state after key ^ ipad | state after key ^ opad
// each big-endian and padded with zeros to whole blocks of 16 bytes (hash_kind.h).
absl::StatusOr<SecretBytes> HmacStates(HashKind hash, absl::Span<const uint8_t> key);

}  // namespace mpckdc::enroll

#endif  // MPC_SERVER_KEY_CTS_KEYS_H_
