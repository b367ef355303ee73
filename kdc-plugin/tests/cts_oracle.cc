// SPDX-License-Identifier: Apache-2.0
#include "kdc-plugin/tests/cts_oracle.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <cstdlib>
#include <vector>

#include "mpc-server/key/enctype.h"

namespace mpckdc::test {
namespace {

// The last byte of a usage's constant (RFC 3961 section 5.3, RFC 8009 section 5).
enum Purpose : uint8_t { kEncryption = 0xAA, kIntegrity = 0x55, kChecksum = 0x99 };

constexpr size_t kBlock = 16;

unsigned char* U8(std::string& s) { return reinterpret_cast<unsigned char*>(s.data()); }
const unsigned char* U8(const std::string& s) {
  return reinterpret_cast<const unsigned char*>(s.data());
}

const Enctype& Find(int32_t number) {
  const Enctype* enctype = FindEnctype(number);
  if (enctype == nullptr || enctype->is_gcm()) std::abort();
  return *enctype;
}

const EVP_MD* Hash(const Enctype& enctype) {
  switch (enctype.hash) {
    case HashKind::kSha1:
      return EVP_sha1();
    case HashKind::kSha256:
      return EVP_sha256();
    default:
      return EVP_sha384();
  }
}

OSSL_PARAM Octets(const char* name, const std::string& value) {
  return OSSL_PARAM_construct_octet_string(name, const_cast<char*>(value.data()), value.size());
}
OSSL_PARAM Name(const char* name, const char* value) {
  return OSSL_PARAM_construct_utf8_string(name, const_cast<char*>(value), 0);
}

std::string Derived(const char* function, const OSSL_PARAM* parameters, size_t bytes) {
  std::string out(bytes, '\0');
  EVP_KDF* kdf = EVP_KDF_fetch(nullptr, function, nullptr);
  EVP_KDF_CTX* ctx = EVP_KDF_CTX_new(kdf);
  if (ctx == nullptr || EVP_KDF_derive(ctx, U8(out), bytes, parameters) != 1) std::abort();
  EVP_KDF_CTX_free(ctx);
  EVP_KDF_free(kdf);
  return out;
}

// Ke, Ki or Kc: DK of RFC 3961, or KDF-HMAC-SHA2 of RFC 8009 (counter mode of SP 800-108).
std::string UsageKeyFor(const Enctype& enctype, const std::string& base, uint32_t usage,
                        Purpose purpose) {
  std::string constant;
  for (int shift = 24; shift >= 0; shift -= 8) constant.push_back(static_cast<char>(usage >> shift));
  constant.push_back(static_cast<char>(purpose));
  const size_t bytes = purpose == kEncryption ? enctype.key_bytes : enctype.mac_key_bytes;
  if (enctype.family == EnctypeFamily::kRfc3962) {
    const OSSL_PARAM parameters[] = {
        Name(OSSL_KDF_PARAM_CIPHER, enctype.key_bytes == 16 ? "AES-128-CBC" : "AES-256-CBC"),
        Octets(OSSL_KDF_PARAM_KEY, base), Octets(OSSL_KDF_PARAM_CONSTANT, constant),
        OSSL_PARAM_construct_end()};
    return Derived("KRB5KDF", parameters, bytes);
  }
  const OSSL_PARAM parameters[] = {
      Name(OSSL_KDF_PARAM_MODE, "COUNTER"), Name(OSSL_KDF_PARAM_MAC, "HMAC"),
      Name(OSSL_KDF_PARAM_DIGEST, EVP_MD_get0_name(Hash(enctype))),
      Octets(OSSL_KDF_PARAM_KEY, base), Octets(OSSL_KDF_PARAM_SALT, constant),
      OSSL_PARAM_construct_end()};
  return Derived("KBKDF", parameters, bytes);
}

std::string Hmac(const Enctype& enctype, const std::string& key, const std::string& data) {
  std::string out(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  if (HMAC(Hash(enctype), key.data(), static_cast<int>(key.size()), U8(data), data.size(), U8(out),
           &size) == nullptr) {
    std::abort();
  }
  return out.substr(0, enctype.mac_bytes);
}

// The variant that always swaps the last two blocks, a zero IV.
std::string CbcCts(const std::string& key, const std::string& in, bool encrypt) {
  const char* name = key.size() == 16 ? "AES-128-CBC-CTS" : "AES-256-CBC-CTS";
  const std::string iv(kBlock, '\0');
  const OSSL_PARAM parameters[] = {Name(OSSL_CIPHER_PARAM_CTS_MODE, OSSL_CIPHER_CTS_MODE_CS3),
                                   OSSL_PARAM_construct_end()};
  std::string out(in.size(), '\0');
  EVP_CIPHER* cipher = EVP_CIPHER_fetch(nullptr, name, nullptr);
  EVP_CIPHER_CTX* ctx = EVP_CIPHER_CTX_new();
  int size = 0;
  if (cipher == nullptr ||
      EVP_CipherInit_ex2(ctx, cipher, U8(key), U8(iv), encrypt ? 1 : 0, parameters) != 1 ||
      EVP_CipherUpdate(ctx, U8(out), &size, U8(in), static_cast<int>(in.size())) != 1) {
    std::abort();
  }
  EVP_CIPHER_CTX_free(ctx);
  EVP_CIPHER_free(cipher);
  return out;
}

std::string MessageMac(const Enctype& enctype, const std::string& base, uint32_t usage,
                       const std::string& text, const std::string& ciphertext) {
  const std::string ki = UsageKeyFor(enctype, base, usage, kIntegrity);
  return Hmac(enctype, ki,
              enctype.family == EnctypeFamily::kRfc3962 ? text
                                                        : std::string(kBlock, '\0') + ciphertext);
}

}  // namespace

std::string CtsSeal(int32_t number, const std::string& base, uint32_t usage,
                    const std::string& confounder, const std::string& plain) {
  const Enctype& enctype = Find(number);
  const std::string text = confounder + plain;
  const std::string ciphertext =
      CbcCts(UsageKeyFor(enctype, base, usage, kEncryption), text, true);
  return ciphertext + MessageMac(enctype, base, usage, text, ciphertext);
}

bool CtsOpen(int32_t number, const std::string& base, uint32_t usage, const std::string& message,
             std::string* plain) {
  const Enctype& enctype = Find(number);
  if (message.size() < kConfounderBytes + enctype.mac_bytes) return false;
  const std::string ciphertext = message.substr(0, message.size() - enctype.mac_bytes);
  const std::string text =
      CbcCts(UsageKeyFor(enctype, base, usage, kEncryption), ciphertext, false);
  *plain = text.substr(kConfounderBytes);
  return message.substr(ciphertext.size()) == MessageMac(enctype, base, usage, text, ciphertext);
}

std::string CtsChecksum(int32_t number, const std::string& base, uint32_t usage,
                        const std::string& data) {
  const Enctype& enctype = Find(number);
  return Hmac(enctype, UsageKeyFor(enctype, base, usage, kChecksum), data);
}

}  // namespace mpckdc::test
