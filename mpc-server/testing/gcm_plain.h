// SPDX-License-Identifier: Apache-2.0
// The GCM enctypes on plain keys, by OpenSSL: what a client does, and the reference for the tests
// of the circuits. doc/enctype.md draws the message. For tests and enroll/.
#ifndef MPC_SERVER_TESTING_GCM_PLAIN_H_
#define MPC_SERVER_TESTING_GCM_PLAIN_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/share/replicated_share.h"

namespace mpckdc {

using GcmNonce = std::array<uint8_t, 12>;

inline constexpr size_t kGcmTagSize = 16;
inline constexpr size_t kGcmZeroSize = 16;   // the zero bytes before the plaintext
inline constexpr size_t kGcmMaxHeader = 255;

// DK(base, constant) of RFC 3961 for AES: base is 16 or 32 bytes, so is the result.
SecretBytes PlainDeriveKey(absl::Span<const uint8_t> base, absl::Span<const uint8_t> constant);
// Kg(usage) = DK(base, usage | 0x47).
SecretBytes PlainUsageKey(absl::Span<const uint8_t> base, uint32_t usage);
// DK(base, "prf" | 0x47).
SecretBytes PlainPrfKey(absl::Span<const uint8_t> base);
// H = AES(usage_key, 0).
Block PlainTagKey(absl::Span<const uint8_t> usage_key);

// nonce | header length | header | CTR(zero16 | plaintext) | tag. header: at most 255 bytes.
std::vector<uint8_t> PlainSeal(absl::Span<const uint8_t> usage_key, const GcmNonce& nonce,
                               absl::Span<const uint8_t> header,
                               absl::Span<const uint8_t> plaintext);
struct OpenedMessage {
  GcmNonce nonce;
  std::vector<uint8_t> header;
  SecretBytes plaintext;
};
// InvalidArgument: too short for its own lengths. DataLoss: tag or zero bytes are wrong.
absl::StatusOr<OpenedMessage> PlainOpen(absl::Span<const uint8_t> usage_key,
                                        absl::Span<const uint8_t> message);

// nonce | tag, 28 bytes, data as additional data.
std::vector<uint8_t> PlainGmac(absl::Span<const uint8_t> usage_key, const GcmNonce& nonce,
                               absl::Span<const uint8_t> data);

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_GCM_PLAIN_H_
