// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/cts.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/params.h>

#include <cstdlib>
#include <memory>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/key/derivation.h"

namespace mpckdc {
namespace {

// CBC with a zero IV, the last two blocks exchanged and the last one cut (CS3).
std::string CbcCts(const SecretBytes& key, absl::string_view in, bool encrypt) {
  const std::unique_ptr<EVP_CIPHER, decltype(&EVP_CIPHER_free)> cipher(
      EVP_CIPHER_fetch(nullptr, key.size() == 16 ? "AES-128-CBC-CTS" : "AES-256-CBC-CTS", nullptr),
      EVP_CIPHER_free);
  const std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> ctx(EVP_CIPHER_CTX_new(),
                                                                            EVP_CIPHER_CTX_free);
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_CIPHER_PARAM_CTS_MODE,
                                       const_cast<char*>(OSSL_CIPHER_CTS_MODE_CS3), 0),
      OSSL_PARAM_construct_end()};
  const uint8_t iv[16] = {};
  std::string out(in.size(), '\0');
  int size = 0;
  if (EVP_CipherInit_ex2(ctx.get(), cipher.get(), key.data(), iv, encrypt ? 1 : 0, parameters) !=
          1 ||
      EVP_CipherUpdate(ctx.get(), reinterpret_cast<uint8_t*>(out.data()), &size,
                       AsBytes(in).data(), static_cast<int>(in.size())) != 1) {
    std::abort();
  }
  return out;
}

std::string Hmac(const Enctype& enctype, const SecretBytes& key, absl::string_view data) {
  const std::vector<uint8_t> digest = PlainHmac(enctype.hash, key, AsBytes(data));
  return std::string(digest.begin(), digest.begin() + static_cast<ptrdiff_t>(enctype.mac_bytes));
}

// RFC 3962 hashes the text, RFC 8009 the IV and the ciphertext.
std::string MessageMac(const Enctype& enctype, absl::Span<const uint8_t> base, uint32_t usage,
                       absl::string_view text, absl::string_view ciphertext) {
  return Hmac(enctype, *DeriveKey(enctype, base, usage, DerivedKeyKind::kKi),
              enctype.family == EnctypeFamily::kRfc3962
                  ? std::string(text)
                  : absl::StrCat(std::string(16, '\0'), ciphertext));
}

}  // namespace

std::vector<uint8_t> PlainHmac(HashKind hash, absl::Span<const uint8_t> key,
                               absl::Span<const uint8_t> data) {
  const EVP_MD* md = hash == HashKind::kSha1     ? EVP_sha1()
                     : hash == HashKind::kSha256 ? EVP_sha256()
                                                 : EVP_sha384();
  std::vector<uint8_t> digest(HashDigestBytes(hash));
  if (HMAC(md, key.data(), static_cast<int>(key.size()), data.data(), data.size(), digest.data(),
           nullptr) == nullptr) {
    std::abort();
  }
  return digest;
}

std::string CtsSeal(const Enctype& enctype, absl::Span<const uint8_t> base, uint32_t usage,
                    absl::string_view confounder, absl::string_view plaintext) {
  const std::string text = absl::StrCat(confounder, plaintext);
  const std::string ciphertext =
      CbcCts(*DeriveKey(enctype, base, usage, DerivedKeyKind::kKe), text, true);
  return ciphertext + MessageMac(enctype, base, usage, text, ciphertext);
}

std::optional<std::string> CtsOpen(const Enctype& enctype, absl::Span<const uint8_t> base,
                                   uint32_t usage, absl::string_view message) {
  if (message.size() < kConfounderBytes + enctype.mac_bytes) return std::nullopt;
  const absl::string_view ciphertext = message.substr(0, message.size() - enctype.mac_bytes);
  const std::string text =
      CbcCts(*DeriveKey(enctype, base, usage, DerivedKeyKind::kKe), ciphertext, false);
  if (MessageMac(enctype, base, usage, text, ciphertext) != message.substr(ciphertext.size())) {
    return std::nullopt;
  }
  return text.substr(kConfounderBytes);
}

std::string CtsChecksum(const Enctype& enctype, absl::Span<const uint8_t> base, uint32_t usage,
                        absl::string_view data) {
  return Hmac(enctype, *DeriveKey(enctype, base, usage, DerivedKeyKind::kKc), data);
}

}  // namespace mpckdc
