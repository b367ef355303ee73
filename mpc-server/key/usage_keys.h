// SPDX-License-Identifier: Apache-2.0
//
// What the servers keep per key besides the key itself, computed in the clear where the key is in
// the clear anyway: on the machine that enrols a password, or kadmind's.
#ifndef MPC_SERVER_KEY_USAGE_KEYS_H_
#define MPC_SERVER_KEY_USAGE_KEYS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/key/enctype.h"
#include "mpc-server/key/hash_kind.h"
#include "mpc-server/key/key_info.h"

namespace mpckdc {

// FIPS 197 key expansion: 11 or 15 round keys of 16 bytes. No table is indexed by key bytes.
absl::StatusOr<SecretBytes> ExpandAesKey(absl::Span<const uint8_t> key);

// What HMAC's two hashes are after their first blocks, which are the key alone (RFC 2104):
//   state after key ^ ipad | state after key ^ opad
// each big-endian and padded with zeros to whole blocks of 16 bytes (hash_kind.h).
absl::StatusOr<SecretBytes> HmacStatesOf(HashKind hash, absl::Span<const uint8_t> key);

// What a usage has of its enctype; the others are empty (store/key_record.h).
struct ExpandedUsage {
  uint32_t usage = 0;
  SecretBytes round_keys = {};  // of Kg(usage), or of Ke(usage): not in a usage of checksums
  SecretBytes h = {};           // gcm's
  SecretBytes mac_states = {};  // 17 to 20: under Ki(usage), in a usage of checksums Kc(usage)
};
absl::StatusOr<ExpandedUsage> ExpandUsage(const Enctype& enctype, absl::Span<const uint8_t> base,
                                          uint32_t usage);

// For every usage of the class, ascending. An error for an enctype that is not held on shares.
absl::StatusOr<std::vector<ExpandedUsage>> ExpandUsages(int32_t enctype,
                                                        absl::Span<const uint8_t> base,
                                                        KeyClass key_class);

}  // namespace mpckdc

#endif  // MPC_SERVER_KEY_USAGE_KEYS_H_
