// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/usage_key_oracle.h"

#include <openssl/evp.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "mpc-server/key/usage_keys.h"

namespace mpckdc {

std::vector<Block> BlocksOf(absl::Span<const uint8_t> bytes) {
  std::vector<Block> blocks((bytes.size() + sizeof(Block) - 1) / sizeof(Block), Block{});
  if (!bytes.empty()) std::memcpy(blocks.data(), bytes.data(), bytes.size());
  return blocks;
}

std::vector<Block> PlainKeySchedule(absl::Span<const uint8_t> key) {
  return BlocksOf(*ExpandAesKey(key));
}

Block PlainAes(absl::Span<const uint8_t> key, const Block& input, bool encrypt) {
  const std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> ctx(EVP_CIPHER_CTX_new(),
                                                                            &EVP_CIPHER_CTX_free);
  Block out{};
  int size = 0;
  if (EVP_CipherInit_ex(ctx.get(), key.size() == 16 ? EVP_aes_128_ecb() : EVP_aes_256_ecb(),
                        nullptr, key.data(), nullptr, encrypt ? 1 : 0) != 1 ||
      EVP_CIPHER_CTX_set_padding(ctx.get(), 0) != 1 ||
      EVP_CipherUpdate(ctx.get(), out.data(), &size, input.data(), sizeof(input)) != 1) {
    std::abort();  // OpenSSL is out of memory or broken
  }
  return out;
}

PlainUsage PlainUsageOf(const Enctype& enctype, absl::Span<const uint8_t> base, uint32_t usage) {
  const ExpandedUsage expanded = *ExpandUsage(enctype, base, usage);
  PlainUsage plain{BlocksOf(expanded.round_keys), BlocksOf(expanded.mac_states)};
  if (enctype.is_gcm()) plain.h = BlocksOf(expanded.h)[0];
  return plain;
}

}  // namespace mpckdc
