// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/cts.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>

#include "mpc-server/key/hash_plain.h"
#include "mpc-server/testing/gcm_plain.h"

namespace mpckdc {
namespace {

const EVP_MD* MdOf(HashKind hash) {
  return hash == HashKind::kSha1     ? EVP_sha1()
         : hash == HashKind::kSha256 ? EVP_sha256()
                                     : EVP_sha384();
}

std::string HmacOf(HashKind hash, const PlainBytes& key, absl::string_view data) {
  std::string out(HashDigestBytes(hash), '\0');
  unsigned size = 0;
  HMAC(MdOf(hash), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const uint8_t*>(data.data()), data.size(),
       reinterpret_cast<uint8_t*>(out.data()), &size);
  return out;
}

void AppendNumber(std::string* out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out->push_back(static_cast<char>(value >> shift));
}

// RFC 8009 section 3.
PlainBytes KdfHmacSha2(HashKind hash, const PlainBytes& base, absl::string_view label,
                       size_t bytes) {
  std::string input("\0\0\0\1", 4);
  input.append(label.data(), label.size());
  input.push_back('\0');
  AppendNumber(&input, static_cast<uint32_t>(8 * bytes));
  const std::string out = HmacOf(hash, base, input);
  return {out.begin(), out.begin() + static_cast<ptrdiff_t>(bytes)};
}

std::string AesEcb(const PlainBytes& key, absl::string_view blocks, bool encrypt) {
  EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new();
  EVP_CipherInit_ex(context, key.size() == 16 ? EVP_aes_128_ecb() : EVP_aes_256_ecb(), nullptr,
                    key.data(), nullptr, encrypt ? 1 : 0);
  EVP_CIPHER_CTX_set_padding(context, 0);
  std::string out(blocks.size(), '\0');
  int size = 0;
  EVP_CipherUpdate(context, reinterpret_cast<uint8_t*>(out.data()), &size,
                   reinterpret_cast<const uint8_t*>(blocks.data()),
                   static_cast<int>(blocks.size()));
  EVP_CIPHER_CTX_free(context);
  return out;
}

std::string Xor(absl::string_view a, absl::string_view b) {
  std::string out(std::min(a.size(), b.size()), '\0');
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<char>(a[i] ^ b[i]);
  return out;
}

// CBC with a zero IV and the last two blocks exchanged, the last one cut.
std::string CtsEncryptPlain(const PlainBytes& key, std::string text) {
  const size_t size = text.size(), blocks = (size + 15) / 16;
  text.resize(16 * blocks, '\0');
  std::string out, last(16, '\0');
  for (size_t i = 0; i < blocks; ++i) {
    last = AesEcb(key, Xor(text.substr(16 * i, 16), last), true);
    out += last;
  }
  if (blocks == 1) return out;
  const std::string before = out.substr(16 * (blocks - 2), 16);
  out.resize(16 * (blocks - 2));
  return (out + last + before).substr(0, size);
}

std::string CtsDecryptPlain(const PlainBytes& key, const std::string& in) {
  const size_t size = in.size(), blocks = (size + 15) / 16;
  if (blocks == 1) return AesEcb(key, in, false);
  const size_t tail = size - 16 * (blocks - 1);
  const std::string stolen = AesEcb(key, in.substr(16 * (blocks - 2), 16), false);
  std::string before = in.substr(16 * (blocks - 1)) + stolen.substr(tail);
  std::string chain = in.substr(0, 16 * (blocks - 2)) + before;
  std::string out, last(16, '\0');
  for (size_t i = 0; i + 1 < blocks; ++i) {
    const std::string block = chain.substr(16 * i, 16);
    out += Xor(AesEcb(key, block, false), last);
    last = block;
  }
  return out + Xor(stolen, before).substr(0, tail);
}

// The HMAC of a message, over its text or over IV and ciphertext.
std::string MessageMac(const Enctype& enctype, const PlainBytes& base, uint32_t usage,
                       absl::string_view text, absl::string_view ciphertext) {
  const PlainBytes key = CtsUsageKey(enctype, base, usage, kForIntegrity);
  const std::string input = enctype.family == EnctypeFamily::kRfc3962
                                ? std::string(text)
                                : std::string(16, '\0') + std::string(ciphertext);
  return HmacOf(enctype.hash, key, input).substr(0, enctype.mac_bytes);
}

}  // namespace

PlainBytes CtsUsageKey(const Enctype& enctype, const PlainBytes& base, uint32_t usage,
                       uint8_t purpose) {
  std::string label;
  AppendNumber(&label, usage);
  label.push_back(static_cast<char>(purpose));
  if (enctype.family == EnctypeFamily::kRfc3962) {
    const SecretBytes key = PlainDeriveKey(
        base, {reinterpret_cast<const uint8_t*>(label.data()), label.size()});
    return {key.begin(), key.end()};
  }
  return KdfHmacSha2(enctype.hash, base, label,
                     purpose == kForEncryption ? enctype.key_bytes : enctype.mac_key_bytes);
}

PlainBytes HmacStates(HashKind hash, const PlainBytes& key) {
  PlainBytes out;
  for (const uint8_t pad : {0x36, 0x5c}) {
    PlainBytes block(HashBlockBytes(hash), pad);
    for (size_t i = 0; i < key.size(); ++i) block[i] ^= key[i];
    const absl::Span<const uint8_t> first = HashInitialState(hash);
    PlainBytes state(first.begin(), first.end());
    CompressPlain(hash, absl::MakeSpan(state), block.data());
    state.resize(16 * HashStateBlocks(hash));
    out.insert(out.end(), state.begin(), state.end());
  }
  return out;
}

std::string CtsSeal(const Enctype& enctype, const PlainBytes& base, uint32_t usage,
                    absl::string_view plaintext, RandomSource& random) {
  PlainBytes confounder(kConfounderBytes);
  random.Fill(absl::MakeSpan(confounder));
  const std::string text = std::string(confounder.begin(), confounder.end()) + std::string(plaintext);
  const std::string ciphertext =
      CtsEncryptPlain(CtsUsageKey(enctype, base, usage, kForEncryption), text);
  return ciphertext + MessageMac(enctype, base, usage, text, ciphertext);
}

std::optional<std::string> CtsOpen(const Enctype& enctype, const PlainBytes& base, uint32_t usage,
                                   absl::string_view message) {
  if (message.size() < kConfounderBytes + enctype.mac_bytes) return std::nullopt;
  const std::string ciphertext(message.substr(0, message.size() - enctype.mac_bytes));
  const std::string text =
      CtsDecryptPlain(CtsUsageKey(enctype, base, usage, kForEncryption), ciphertext);
  if (MessageMac(enctype, base, usage, text, ciphertext) != message.substr(ciphertext.size())) {
    return std::nullopt;
  }
  return text.substr(kConfounderBytes);
}

std::string CtsChecksum(const Enctype& enctype, const PlainBytes& base, uint32_t usage,
                        absl::string_view data) {
  return HmacOf(enctype.hash, CtsUsageKey(enctype, base, usage, kForChecksum), data)
      .substr(0, enctype.mac_bytes);
}

}  // namespace mpckdc
