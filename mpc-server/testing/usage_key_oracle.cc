// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/usage_key_oracle.h"

#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "mpc-server/key/hash_plain.h"
#include "mpc-server/testing/aes_plain.h"

namespace mpckdc {
namespace {

void Must(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "usage key oracle: OpenSSL's %s failed\n", what);
  std::abort();
}

OSSL_PARAM Name(const char* parameter, const char* value) {
  return OSSL_PARAM_construct_utf8_string(parameter, const_cast<char*>(value), 0);
}
OSSL_PARAM Octets(const char* parameter, absl::Span<const uint8_t> value) {
  return OSSL_PARAM_construct_octet_string(parameter, const_cast<uint8_t*>(value.data()),
                                           value.size());
}

std::vector<uint8_t> Kdf(const char* name, const OSSL_PARAM* parameters, size_t bytes) {
  const std::unique_ptr<EVP_KDF, decltype(&EVP_KDF_free)> kdf(
      EVP_KDF_fetch(nullptr, name, nullptr), EVP_KDF_free);
  Must(kdf != nullptr, name);
  const std::unique_ptr<EVP_KDF_CTX, decltype(&EVP_KDF_CTX_free)> ctx(EVP_KDF_CTX_new(kdf.get()),
                                                                      EVP_KDF_CTX_free);
  std::vector<uint8_t> out(bytes);
  Must(ctx != nullptr && EVP_KDF_derive(ctx.get(), out.data(), out.size(), parameters) == 1, name);
  return out;
}

}  // namespace

std::vector<uint8_t> PlainDerivedKey(const Enctype& enctype, absl::Span<const uint8_t> base,
                                     uint32_t usage, DerivedKeyKind kind) {
  uint8_t label[5];
  for (int i = 0; i < 4; ++i) label[i] = static_cast<uint8_t>(usage >> (24 - 8 * i));
  label[4] = static_cast<uint8_t>(kind);
  const size_t bytes =
      kind == DerivedKeyKind::kKe ? enctype.key_bytes : enctype.mac_key_bytes;
  if (enctype.family == EnctypeFamily::kRfc3962) {
    const char* cipher = enctype.key_bytes == 16 ? "AES-128-CBC" : "AES-256-CBC";
    const OSSL_PARAM parameters[] = {Name(OSSL_KDF_PARAM_CIPHER, cipher),
                                     Octets(OSSL_KDF_PARAM_KEY, base),
                                     Octets(OSSL_KDF_PARAM_CONSTANT, label), OSSL_PARAM_END};
    return Kdf("KRB5KDF", parameters, bytes);
  }
  const OSSL_PARAM parameters[] = {
      Name(OSSL_KDF_PARAM_MODE, "COUNTER"), Name(OSSL_KDF_PARAM_MAC, "HMAC"),
      Name(OSSL_KDF_PARAM_DIGEST, enctype.hash == HashKind::kSha256 ? "SHA256" : "SHA384"),
      Octets(OSSL_KDF_PARAM_KEY, base), Octets(OSSL_KDF_PARAM_SALT, label), OSSL_PARAM_END};
  return Kdf("KBKDF", parameters, bytes);
}

std::vector<Block> PlainHmacStates(HashKind hash, absl::Span<const uint8_t> key) {
  std::vector<Block> states;
  for (const uint8_t pad : {uint8_t{0x36}, uint8_t{0x5C}}) {
    std::vector<uint8_t> block(HashBlockBytes(hash), pad);
    for (size_t i = 0; i < key.size(); ++i) block[i] ^= key[i];
    const absl::Span<const uint8_t> first = HashInitialState(hash);
    std::vector<uint8_t> state(first.begin(), first.end());
    CompressPlain(hash, absl::MakeSpan(state), block.data());
    state.resize(HashStateBlocks(hash) * sizeof(Block));
    for (size_t at = 0; at < state.size(); at += sizeof(Block)) {
      std::memcpy(states.emplace_back().data(), &state[at], sizeof(Block));
    }
  }
  return states;
}

PlainUsage PlainUsageOf(const Enctype& enctype, absl::Span<const uint8_t> base, uint32_t usage) {
  const bool encryption = IsEncryptionUsage(usage);
  PlainUsage found;
  if (encryption) {
    const SecretVector<Block> keys =
        PlainKeySchedule(PlainDerivedKey(enctype, base, usage, DerivedKeyKind::kKe));
    found.round_keys.assign(keys.begin(), keys.end());
  }
  const DerivedKeyKind mac = encryption ? DerivedKeyKind::kKi : DerivedKeyKind::kKc;
  found.mac_states = PlainHmacStates(enctype.hash, PlainDerivedKey(enctype, base, usage, mac));
  return found;
}

}  // namespace mpckdc
