// SPDX-License-Identifier: Apache-2.0
//
// The GCM enctypes on plain keys, by OpenSSL: what a client does, and the reference for tests of
// the circuits. doc/enctype.md draws the message.
#ifndef MPC_SERVER_TESTING_GCM_PLAIN_H_
#define MPC_SERVER_TESTING_GCM_PLAIN_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mpc-server/base/secret.h"

namespace mpckdc {

using GcmNonce = std::array<uint8_t, 12>;

inline constexpr size_t kGcmTagSize = 16;
inline constexpr size_t kGcmZeroSize = 16;  // the zero bytes before the plaintext

// AES-GCM of SP 800-38D under a key of 16 or 32 bytes and a nonce of 12.
struct GcmOutput {
  std::string ciphertext;
  std::string tag;
};
GcmOutput GcmEncrypt(absl::string_view key, absl::string_view nonce, absl::string_view aad,
                     absl::string_view plaintext);

// Kg(usage) of a base key of 16 or 32 bytes; H = AES(usage_key, 0).
SecretBytes PlainUsageKey(absl::Span<const uint8_t> base, uint32_t usage);
std::array<uint8_t, 16> PlainTagKey(absl::Span<const uint8_t> usage_key);

// nonce | header length | header | CTR(zero16 | plaintext) | tag. header: at most 255 bytes.
std::vector<uint8_t> PlainSeal(absl::Span<const uint8_t> usage_key,
                               absl::Span<const uint8_t> nonce, absl::Span<const uint8_t> header,
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
