// SPDX-License-Identifier: Apache-2.0
//
// A nonce that the servers chose, taken apart: seconds (4) | cluster (2) | sequence (6), big-endian.
#ifndef MPC_SERVER_KEY_NONCE_H_
#define MPC_SERVER_KEY_NONCE_H_

#include <array>
#include <cstdint>
#include <string>

namespace mpckdc {

using Nonce = std::array<uint8_t, 12>;

struct NonceFields {
  uint32_t seconds = 0;
  uint16_t cluster = 0;
  uint64_t sequence = 0;  // below kNonceSequenceEnd
};
inline constexpr uint64_t kNonceSequenceEnd = 1ull << 48;

NonceFields SplitNonce(const Nonce& nonce);
Nonce JoinNonce(const NonceFields& fields);
// nonce + count; the sequence does not reach its end in the life of a realm, and this checks that.
Nonce AdvanceNonce(const Nonce& nonce, uint64_t count);
std::string NonceText(const Nonce& nonce);  // "seconds.cluster.sequence"

}  // namespace mpckdc

#endif  // MPC_SERVER_KEY_NONCE_H_
