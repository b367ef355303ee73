// SPDX-License-Identifier: Apache-2.0
//
// The messages of both families, taken apart, and what they cost in blocks. gcm (doc/enctype.md):
//
//   nonce (12) | header length (1) | header | CTR(16 zero bytes | plaintext) | tag (16)
//
// Counter block 1 masks the tag, blocks 2, 3, ... make the keystream.
//
// Enctypes 17 to 20 (RFC 3962, RFC 8009):
//
//   CBC-CTS(confounder (16) | plaintext) | HMAC (12, 12, 16 or 24)
#ifndef MPC_SERVER_KEY_MESSAGE_FORMAT_H_
#define MPC_SERVER_KEY_MESSAGE_FORMAT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "mpc-server/key/enctype.h"
#include "mpc-server/key/nonce.h"

namespace mpckdc {

inline constexpr size_t kBlockBytes = 16;
inline constexpr size_t kNonceBytes = 12;
inline constexpr size_t kTagBytes = 16;
inline constexpr size_t kZeroBytes = 16;  // before the plaintext, checked on opening
inline constexpr size_t kChecksumBytes = kNonceBytes + kTagBytes;

using Tag = std::array<uint8_t, kTagBytes>;

// A message taken apart; the views point into it.
struct MessageView {
  Nonce nonce{};
  absl::string_view header;
  absl::string_view ciphertext;  // at least kZeroBytes
  Tag tag{};

  size_t PlaintextBytes() const { return ciphertext.size() - kZeroBytes; }
};

// nullopt when it is too short for its fields.
std::optional<MessageView> ParseMessage(absl::string_view message);

struct ChecksumView {
  Nonce nonce{};
  Tag tag{};
};
std::optional<ChecksumView> ParseChecksum(absl::string_view checksum);

// A message of enctypes 17 to 20 taken apart.
struct CtsMessageView {
  absl::string_view ciphertext;  // at least kConfounderBytes
  absl::string_view mac;

  size_t PlaintextBytes() const { return ciphertext.size() - kConfounderBytes; }
};
std::optional<CtsMessageView> ParseCtsMessage(const Enctype& enctype, absl::string_view message);

constexpr size_t BlocksOf(size_t bytes) { return (bytes + kBlockBytes - 1) / kBlockBytes; }

// Block number `counter` of a nonce: counter 1 is J0.
std::array<uint8_t, kBlockBytes> CounterBlock(const Nonce& nonce, uint32_t counter);

// The additional data of a message: header length | header.
std::string HeaderAad(absl::string_view header);

}  // namespace mpckdc

#endif  // MPC_SERVER_KEY_MESSAGE_FORMAT_H_
