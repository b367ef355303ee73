// SPDX-License-Identifier: Apache-2.0
// The usage keys of enctypes 17 to 20 from a base key in the clear, by OpenSSL's KDFs. For tests
// only, in a library of its own.
#ifndef MPC_SERVER_TESTING_USAGE_KEY_ORACLE_H_
#define MPC_SERVER_TESTING_USAGE_KEY_ORACLE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mpc-server/circuit/key_derivation.h"
#include "mpc-server/key/enctype.h"

namespace mpckdc {

// Ke, Ki or Kc: OpenSSL's KRB5KDF (17, 18) or KBKDF (19, 20).
std::vector<uint8_t> PlainDerivedKey(const Enctype& enctype, absl::Span<const uint8_t> base,
                                     uint32_t usage, DerivedKeyKind kind);

// The states of HMAC after key ^ ipad and key ^ opad as records have them: inner, outer,
// HashStateBlocks(hash) blocks each.
std::vector<Block> PlainHmacStates(HashKind hash, absl::Span<const uint8_t> key);

// What a record keeps of a usage, in the clear.
struct PlainUsage {
  std::vector<Block> round_keys;
  std::vector<Block> mac_states;
};
PlainUsage PlainUsageOf(const Enctype& enctype, absl::Span<const uint8_t> base, uint32_t usage);

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_USAGE_KEY_ORACLE_H_
