// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/key/message_format.h"

#include <algorithm>
#include <cstring>

namespace mpckdc {

std::optional<MessageView> ParseMessage(absl::string_view message) {
  if (message.size() < kNonceBytes + 1) return std::nullopt;
  const size_t header_bytes = static_cast<uint8_t>(message[kNonceBytes]);
  const size_t fixed = kNonceBytes + 1 + header_bytes + kTagBytes;
  if (message.size() < fixed + kZeroBytes) return std::nullopt;
  MessageView view;
  std::memcpy(view.nonce.data(), message.data(), kNonceBytes);
  view.header = message.substr(kNonceBytes + 1, header_bytes);
  view.ciphertext = message.substr(kNonceBytes + 1 + header_bytes, message.size() - fixed);
  std::memcpy(view.tag.data(), message.data() + message.size() - kTagBytes, kTagBytes);
  return view;
}

std::optional<ChecksumView> ParseChecksum(absl::string_view checksum) {
  if (checksum.size() != kChecksumBytes) return std::nullopt;
  ChecksumView view;
  std::memcpy(view.nonce.data(), checksum.data(), kNonceBytes);
  std::memcpy(view.tag.data(), checksum.data() + kNonceBytes, kTagBytes);
  return view;
}

std::optional<CtsMessageView> ParseCtsMessage(const Enctype& enctype, absl::string_view message) {
  if (message.size() < kConfounderBytes + enctype.mac_bytes) return std::nullopt;
  const size_t length = message.size() - enctype.mac_bytes;
  return CtsMessageView{message.substr(0, length), message.substr(length)};
}

std::array<uint8_t, kBlockBytes> CounterBlock(const Nonce& nonce, uint32_t counter) {
  std::array<uint8_t, kBlockBytes> block{};
  std::copy(nonce.begin(), nonce.end(), block.begin());
  for (int i = 0; i < 4; ++i) block[12 + i] = static_cast<uint8_t>(counter >> (24 - 8 * i));
  return block;
}

std::string HeaderAad(absl::string_view header) {
  std::string aad(1, static_cast<char>(header.size()));
  aad.append(header.data(), header.size());
  return aad;
}

}  // namespace mpckdc
