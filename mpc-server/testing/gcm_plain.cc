// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/gcm_plain.h"

#include <openssl/evp.h>

#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "mpc-server/circuit/usage_key.h"

namespace mpckdc {
namespace {

constexpr uint8_t kDeriveByte = 0x47;

struct FreeCtx {
  void operator()(EVP_CIPHER_CTX* c) const { EVP_CIPHER_CTX_free(c); }
};
using Ctx = std::unique_ptr<EVP_CIPHER_CTX, FreeCtx>;

// OpenSSL fails here only when it is out of memory or broken.
void Must(bool ok) {
  if (ok) return;
  std::fputs("OpenSSL refused AES\n", stderr);
  std::abort();
}

Block EncryptBlock(absl::Span<const uint8_t> key, const Block& in) {
  assert(key.size() == 16 || key.size() == 32);
  Ctx ctx(EVP_CIPHER_CTX_new());
  Block out;
  int n = 0;
  Must(EVP_EncryptInit_ex(ctx.get(), key.size() == 16 ? EVP_aes_128_ecb() : EVP_aes_256_ecb(),
                          nullptr, key.data(), nullptr) == 1);
  EVP_CIPHER_CTX_set_padding(ctx.get(), 0);
  Must(EVP_EncryptUpdate(ctx.get(), out.data(), &n, in.data(), sizeof(Block)) == 1 && n == 16);
  return out;
}

Ctx StartGcm(absl::Span<const uint8_t> key, const uint8_t* nonce, bool encrypt) {
  assert(key.size() == 16 || key.size() == 32);
  Ctx ctx(EVP_CIPHER_CTX_new());
  Must(EVP_CipherInit_ex(ctx.get(), key.size() == 16 ? EVP_aes_128_gcm() : EVP_aes_256_gcm(),
                         nullptr, key.data(), nonce, encrypt) == 1);
  return ctx;
}
void AddAad(const Ctx& ctx, absl::Span<const uint8_t> aad) {
  int n = 0;
  Must(EVP_CipherUpdate(ctx.get(), nullptr, &n, aad.data(), static_cast<int>(aad.size())) == 1);
}
void Crypt(const Ctx& ctx, absl::Span<const uint8_t> in, uint8_t* out) {
  int n = 0;
  Must(EVP_CipherUpdate(ctx.get(), out, &n, in.data(), static_cast<int>(in.size())) == 1);
}
void FinishWithTag(const Ctx& ctx, uint8_t* tag) {
  uint8_t none[16];
  int n = 0;
  Must(EVP_CipherFinal_ex(ctx.get(), none, &n) == 1 && n == 0);
  Must(EVP_CIPHER_CTX_ctrl(ctx.get(), EVP_CTRL_AEAD_GET_TAG, kGcmTagSize, tag) == 1);
}

}  // namespace

// RFC 3961, 5.1: K1 = E(base, n-fold(constant)), K2 = E(base, K1), cut to the key's size.
SecretBytes PlainDeriveKey(absl::Span<const uint8_t> base, absl::Span<const uint8_t> constant) {
  SecretBytes key;
  Block block = NFold16(constant);
  while (key.size() < base.size()) {
    block = EncryptBlock(base, block);
    key.insert(key.end(), block.begin(), block.end());
  }
  Wipe(block.data(), block.size());
  return key;
}

SecretBytes PlainUsageKey(absl::Span<const uint8_t> base, uint32_t usage) {
  uint8_t constant[5];
  for (int i = 0; i < 4; ++i) constant[i] = static_cast<uint8_t>(usage >> (24 - 8 * i));
  constant[4] = kDeriveByte;
  return PlainDeriveKey(base, constant);
}

SecretBytes PlainPrfKey(absl::Span<const uint8_t> base) {
  const uint8_t constant[4] = {'p', 'r', 'f', kDeriveByte};
  return PlainDeriveKey(base, constant);
}

Block PlainTagKey(absl::Span<const uint8_t> usage_key) {
  return EncryptBlock(usage_key, Block{});
}

std::vector<uint8_t> PlainSeal(absl::Span<const uint8_t> usage_key, const GcmNonce& nonce,
                               absl::Span<const uint8_t> header,
                               absl::Span<const uint8_t> plaintext) {
  assert(header.size() <= kGcmMaxHeader);
  std::vector<uint8_t> m(nonce.begin(), nonce.end());
  m.push_back(static_cast<uint8_t>(header.size()));
  m.insert(m.end(), header.begin(), header.end());
  const size_t body = m.size();
  m.resize(body + kGcmZeroSize + plaintext.size() + kGcmTagSize);
  const Ctx ctx = StartGcm(usage_key, nonce.data(), true);
  AddAad(ctx, absl::MakeConstSpan(m).subspan(nonce.size(), 1 + header.size()));
  const uint8_t zero[kGcmZeroSize] = {};
  Crypt(ctx, zero, m.data() + body);
  Crypt(ctx, plaintext, m.data() + body + kGcmZeroSize);
  FinishWithTag(ctx, m.data() + m.size() - kGcmTagSize);
  return m;
}

absl::StatusOr<OpenedMessage> PlainOpen(absl::Span<const uint8_t> usage_key,
                                        absl::Span<const uint8_t> message) {
  const size_t nonce_size = sizeof(GcmNonce);
  const size_t header_size = message.size() > nonce_size ? message[nonce_size] : 0;
  const size_t body = nonce_size + 1 + header_size;
  if (message.size() < body + kGcmZeroSize + kGcmTagSize) {
    return absl::InvalidArgumentError("GCM message is shorter than its fields");
  }
  const auto ciphertext = message.subspan(body, message.size() - body - kGcmTagSize);
  SecretBytes plain(ciphertext.size());
  const Ctx ctx = StartGcm(usage_key, message.data(), false);
  AddAad(ctx, message.subspan(nonce_size, 1 + header_size));
  Crypt(ctx, ciphertext, plain.data());
  uint8_t tag[kGcmTagSize], none[16];
  std::memcpy(tag, message.data() + message.size() - kGcmTagSize, kGcmTagSize);
  Must(EVP_CIPHER_CTX_ctrl(ctx.get(), EVP_CTRL_AEAD_SET_TAG, kGcmTagSize, tag) == 1);
  int n = 0;
  const bool tag_good = EVP_CipherFinal_ex(ctx.get(), none, &n) == 1;
  const uint8_t zero[kGcmZeroSize] = {};
  const bool zero_good = ConstantTimeEqual(zero, absl::MakeConstSpan(plain).first(kGcmZeroSize));
  if (!tag_good || !zero_good) return absl::DataLossError("GCM message does not verify");
  OpenedMessage opened;
  std::memcpy(opened.nonce.data(), message.data(), nonce_size);
  opened.header.assign(message.begin() + nonce_size + 1, message.begin() + body);
  opened.plaintext.assign(plain.begin() + kGcmZeroSize, plain.end());
  return opened;
}

std::vector<uint8_t> PlainGmac(absl::Span<const uint8_t> usage_key, const GcmNonce& nonce,
                               absl::Span<const uint8_t> data) {
  std::vector<uint8_t> out(nonce.begin(), nonce.end());
  out.resize(nonce.size() + kGcmTagSize);
  const Ctx ctx = StartGcm(usage_key, nonce.data(), true);
  AddAad(ctx, data);
  FinishWithTag(ctx, out.data() + nonce.size());
  return out;
}

}  // namespace mpckdc
