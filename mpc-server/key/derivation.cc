// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/key/derivation.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"

namespace mpckdc {
namespace {

constexpr size_t kBlock = 16;

// The first bytes of CBC under a zero IV over `first` and then zeros: E(first), E(E(first)), ...
absl::StatusOr<SecretBytes> AesChain(absl::Span<const uint8_t> key,
                                     absl::Span<const uint8_t> first, size_t bytes) {
  if (key.size() != 16 && key.size() != 32) {
    return absl::InvalidArgumentError(
        absl::StrCat("an AES key has 16 or 32 bytes here, not ", key.size()));
  }
  const std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> context(
      EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  const uint8_t iv[kBlock] = {};
  SecretBytes chain(bytes);
  std::copy(first.begin(), first.end(), chain.begin());
  int written = 0;
  if (context == nullptr ||
      EVP_EncryptInit_ex(context.get(), key.size() == 16 ? EVP_aes_128_cbc() : EVP_aes_256_cbc(),
                         nullptr, key.data(), iv) != 1 ||
      EVP_CIPHER_CTX_set_padding(context.get(), 0) != 1 ||
      EVP_EncryptUpdate(context.get(), chain.data(), &written, chain.data(),
                        static_cast<int>(bytes)) != 1 ||
      written != static_cast<int>(bytes)) {
    return absl::InternalError("AES failed");
  }
  return chain;
}

std::vector<uint8_t> Label(uint32_t usage, DerivedKeyKind kind) {
  std::vector<uint8_t> label;
  AppendUint(label, usage, 4);
  label.push_back(static_cast<uint8_t>(kind));
  return label;
}

}  // namespace

std::vector<uint8_t> NFold(absl::Span<const uint8_t> input, size_t output_bytes) {
  std::vector<uint8_t> output(output_bytes, 0);
  if (input.empty() || output_bytes == 0) return output;
  const size_t in_bits = input.size() * 8;
  const size_t total = std::lcm(input.size(), output_bytes);
  // Copy number c of the input is rotated right by 13*c bits; the copies, one after the other, are
  // cut into outputs that are added with end-around carry, from the last byte to the first.
  auto byte_at = [&](size_t position) -> unsigned {
    const size_t copy = position / input.size();
    const size_t bit = (position % input.size()) * 8 + in_bits - (13 * copy) % in_bits;
    unsigned value = 0;
    for (size_t i = 0; i < 8; ++i) {
      const size_t source = (bit + i) % in_bits;
      value = value << 1 | ((input[source / 8] >> (7 - source % 8)) & 1u);
    }
    return value;
  };
  unsigned carry = 0;
  for (size_t position = total; position-- > 0;) {
    uint8_t& sum = output[position % output_bytes];
    carry += sum + byte_at(position);
    sum = static_cast<uint8_t>(carry);
    carry >>= 8;
  }
  for (size_t i = output_bytes; carry != 0; i = i == 0 ? output_bytes : i) {
    --i;
    carry += output[i];
    output[i] = static_cast<uint8_t>(carry);
    carry >>= 8;
  }
  return output;
}

std::array<uint8_t, 16> UsageConstant(uint32_t usage, DerivedKeyKind kind) {
  const std::vector<uint8_t> folded = NFold(Label(usage, kind), kBlock);
  std::array<uint8_t, 16> constant{};
  std::copy(folded.begin(), folded.end(), constant.begin());
  return constant;
}

absl::StatusOr<SecretBytes> Rfc3961Dk(absl::Span<const uint8_t> base,
                                      absl::Span<const uint8_t> constant) {
  if (constant.empty()) return absl::InvalidArgumentError("a derivation constant is empty");
  return AesChain(base, NFold(constant, kBlock), base.size());
}

std::array<uint8_t, kKdfMessageBytes> KdfMessage(uint32_t usage, DerivedKeyKind kind,
                                                 size_t bytes) {
  std::vector<uint8_t> all;
  AppendUint(all, 1, 4);
  AppendBytes(all, Label(usage, kind));
  all.push_back(0);
  AppendUint(all, 8 * bytes, 4);
  std::array<uint8_t, kKdfMessageBytes> message{};
  std::copy(all.begin(), all.end(), message.begin());
  return message;
}

absl::StatusOr<SecretBytes> Rfc8009Kdf(HashKind hash, absl::Span<const uint8_t> key,
                                       absl::Span<const uint8_t> label, size_t bytes) {
  if (hash == HashKind::kSha1 || bytes == 0 || bytes > HashDigestBytes(hash)) {
    return absl::InvalidArgumentError(absl::StrCat("KDF-HMAC-SHA2 makes no key of ", bytes,
                                                   " bytes here"));
  }
  std::vector<uint8_t> input;
  AppendUint(input, 1, 4);
  AppendBytes(input, label);
  input.push_back(0);
  AppendUint(input, 8 * bytes, 4);
  SecretBytes digest(HashDigestBytes(hash));
  if (HMAC(hash == HashKind::kSha384 ? EVP_sha384() : EVP_sha256(), key.data(),
           static_cast<int>(key.size()), input.data(), input.size(), digest.data(),
           nullptr) == nullptr) {
    return absl::InternalError("HMAC failed");
  }
  digest.resize(bytes);
  return digest;
}

absl::StatusOr<SecretBytes> DeriveKey(const Enctype& enctype, absl::Span<const uint8_t> base,
                                      uint32_t usage, DerivedKeyKind kind) {
  const bool gcm = kind == DerivedKeyKind::kKg;
  if (enctype.is_gcm() != gcm || base.size() != enctype.key_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("a base key of ", base.size(), " bytes has no ",
                                                   gcm ? "Kg" : "Kc, Ke and Ki", " of ",
                                                   enctype.name));
  }
  const std::vector<uint8_t> label = Label(usage, kind);
  if (enctype.family != EnctypeFamily::kRfc8009) return Rfc3961Dk(base, label);
  return Rfc8009Kdf(enctype.hash, base, label, DerivedKeyBytes(enctype, kind));
}

absl::StatusOr<SecretBytes> GhashKey(absl::Span<const uint8_t> key) {
  return AesChain(key, {}, kBlock);
}

}  // namespace mpckdc
