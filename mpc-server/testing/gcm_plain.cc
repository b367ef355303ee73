// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/gcm_plain.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "mpc-server/base/bytes.h"
#include "mpc-server/key/derivation.h"

namespace mpckdc {

GcmOutput GcmEncrypt(absl::string_view key, absl::string_view nonce, absl::string_view aad,
                     absl::string_view plaintext) {
  const std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> ctx(EVP_CIPHER_CTX_new(),
                                                                            EVP_CIPHER_CTX_free);
  GcmOutput out{std::string(plaintext.size(), '\0'), std::string(kGcmTagSize, '\0')};
  auto* ciphertext = reinterpret_cast<uint8_t*>(out.ciphertext.data());
  int n = 0;
  if (EVP_EncryptInit_ex(ctx.get(), key.size() == 16 ? EVP_aes_128_gcm() : EVP_aes_256_gcm(),
                         nullptr, AsBytes(key).data(), AsBytes(nonce).data()) != 1 ||
      EVP_EncryptUpdate(ctx.get(), nullptr, &n, AsBytes(aad).data(),
                        static_cast<int>(aad.size())) != 1 ||
      EVP_EncryptUpdate(ctx.get(), ciphertext, &n, AsBytes(plaintext).data(),
                        static_cast<int>(plaintext.size())) != 1 ||
      EVP_EncryptFinal_ex(ctx.get(), ciphertext + n, &n) != 1 ||
      EVP_CIPHER_CTX_ctrl(ctx.get(), EVP_CTRL_GCM_GET_TAG, kGcmTagSize, out.tag.data()) != 1) {
    std::abort();  // OpenSSL is out of memory or broken
  }
  return out;
}

SecretBytes PlainUsageKey(absl::Span<const uint8_t> base, uint32_t usage) {
  const Enctype* gcm = FindEnctype(base.size() == 16 ? kEnctypeAes128Gcm : kEnctypeAes256Gcm);
  return *DeriveKey(*gcm, base, usage, DerivedKeyKind::kKg);
}

std::array<uint8_t, 16> PlainTagKey(absl::Span<const uint8_t> usage_key) {
  const SecretBytes h = *GhashKey(usage_key);
  std::array<uint8_t, 16> out{};
  std::copy(h.begin(), h.end(), out.begin());
  return out;
}

std::vector<uint8_t> PlainSeal(absl::Span<const uint8_t> usage_key,
                               absl::Span<const uint8_t> nonce, absl::Span<const uint8_t> header,
                               absl::Span<const uint8_t> plaintext) {
  const std::string aad =
      static_cast<char>(header.size()) + std::string(header.begin(), header.end());
  const std::string text =
      std::string(kGcmZeroSize, '\0') + std::string(plaintext.begin(), plaintext.end());
  const GcmOutput out = GcmEncrypt(AsText(usage_key), AsText(nonce), aad, text);
  const std::string message = std::string(AsText(nonce)) + aad + out.ciphertext + out.tag;
  return {message.begin(), message.end()};
}

absl::StatusOr<OpenedMessage> PlainOpen(absl::Span<const uint8_t> usage_key,
                                        absl::Span<const uint8_t> message) {
  constexpr size_t kNonce = sizeof(GcmNonce);
  const size_t header_size = message.size() > kNonce ? message[kNonce] : 0;
  const size_t body = kNonce + 1 + header_size;
  if (message.size() < body + kGcmZeroSize + kGcmTagSize) {
    return absl::InvalidArgumentError("GCM message is shorter than its fields");
  }
  const absl::string_view key = AsText(usage_key), nonce = AsText(message.first(kNonce));
  const auto ciphertext = message.subspan(body, message.size() - body - kGcmTagSize);
  // In counter mode what encrypts zeros decrypts everything.
  std::string text =
      GcmEncrypt(key, nonce, "", std::string(ciphertext.size(), '\0')).ciphertext;
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(text[i] ^ ciphertext[i]);
  const auto header = message.subspan(kNonce + 1, header_size);
  const std::string tag =
      GcmEncrypt(key, nonce, AsText(message.subspan(kNonce, 1 + header_size)), text).tag;
  if (tag != AsText(message.last(kGcmTagSize)) ||
      text.substr(0, kGcmZeroSize) != std::string(kGcmZeroSize, '\0')) {
    return absl::DataLossError("GCM message does not verify");
  }
  OpenedMessage opened;
  std::copy(nonce.begin(), nonce.end(), opened.nonce.begin());
  opened.header.assign(header.begin(), header.end());
  opened.plaintext.assign(text.begin() + kGcmZeroSize, text.end());
  return opened;
}

std::vector<uint8_t> PlainGmac(absl::Span<const uint8_t> usage_key, const GcmNonce& nonce,
                               absl::Span<const uint8_t> data) {
  std::vector<uint8_t> out(nonce.begin(), nonce.end());
  AppendBytes(out, AsBytes(GcmEncrypt(AsText(usage_key), AsText(nonce), AsText(data), "").tag));
  return out;
}

}  // namespace mpckdc
