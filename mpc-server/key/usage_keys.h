// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_KEY_USAGE_KEYS_H_
#define MPC_SERVER_KEY_USAGE_KEYS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "proto/admin.pb.h"

// What the servers keep per key besides the key itself, computed in the clear where the key is in
// the clear anyway: on the machine that enrols a password, or kadmind's.

namespace mpckdc::enroll {

// n-fold of RFC 3961 section 5.1.
std::vector<uint8_t> NFold(absl::Span<const uint8_t> input, size_t output_bytes);

// DK of RFC 3961 section 5.1 for AES keys of 16 or 32 bytes (random-to-key is the identity).
absl::StatusOr<SecretBytes> DeriveKey(absl::Span<const uint8_t> base,
                                      absl::Span<const uint8_t> constant);

// Kg(usage) = DK(base, usage as 4 bytes big-endian | 0x47).
absl::StatusOr<SecretBytes> GcmUsageKey(absl::Span<const uint8_t> base, uint32_t usage);

// FIPS 197 key expansion: 11 or 15 round keys of 16 bytes. No table is indexed by key bytes.
absl::StatusOr<SecretBytes> ExpandAesKey(absl::Span<const uint8_t> key);

// H = AES(key, 0): GHASH's key.
absl::StatusOr<SecretBytes> GhashKey(absl::Span<const uint8_t> key);

// The usages under which a class of keys works: 1, 3, 56 for users; 2, 17 for krbtgt and services.
absl::Span<const uint32_t> UsagesOf(v1::KeyClass key_class);

// What a usage has of its enctype; the others are empty (store/key_record.h).
struct ExpandedUsage {
  uint32_t usage = 0;
  SecretBytes round_keys = {};  // of Kg(usage), or of Ke(usage): not in a usage of checksums
  SecretBytes h = {};           // of gcm
  SecretBytes mac_states = {};  // of 17 to 20: under Ki(usage), in a usage of checksums Kc(usage)
};

// For every usage of the class, ascending. An error for an enctype that is not held on shares.
absl::StatusOr<std::vector<ExpandedUsage>> ExpandUsages(int32_t enctype,
                                                        absl::Span<const uint8_t> base,
                                                        v1::KeyClass key_class);

}  // namespace mpckdc::enroll

#endif  // MPC_SERVER_KEY_USAGE_KEYS_H_
