// SPDX-License-Identifier: Apache-2.0
// OpenSSL gives a hash's state only through the functions that it would like to see unused.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "mpc-server/enroll/hash_state.h"

#include <openssl/sha.h>

#include <array>
#include <cassert>

namespace mpckdc::enroll {
namespace {

template <class Word>
void AppendWord(Word word, SecretBytes* out) {
  for (size_t i = sizeof(Word); i-- > 0;) out->push_back(static_cast<uint8_t>(word >> (8 * i)));
}

template <class Word>
SecretBytes BigEndian(absl::Span<const Word> words) {
  SecretBytes bytes;
  bytes.reserve(words.size() * sizeof(Word));
  for (const Word word : words) AppendWord(word, &bytes);
  return bytes;
}

SecretBytes AfterSha1(const uint8_t* block) {
  Secret<SHA_CTX> context;
  SHA_CTX& c = context.Get();
  SHA1_Init(&c);
  SHA1_Transform(&c, block);
  Secret<std::array<SHA_LONG, 5>> words({c.h0, c.h1, c.h2, c.h3, c.h4});
  return BigEndian<SHA_LONG>(words.Get());
}

SecretBytes AfterSha256(const uint8_t* block) {
  Secret<SHA256_CTX> context;
  SHA256_Init(&context.Get());
  SHA256_Transform(&context.Get(), block);
  return BigEndian<SHA_LONG>(context.Get().h);
}

SecretBytes AfterSha384(const uint8_t* block) {
  Secret<SHA512_CTX> context;
  SHA384_Init(&context.Get());
  SHA512_Transform(&context.Get(), block);
  return BigEndian<SHA_LONG64>(context.Get().h);
}

}  // namespace

SecretBytes StateAfterBlock(HashKind hash, absl::Span<const uint8_t> block) {
  assert(block.size() == HashBlockBytes(hash));
  switch (hash) {
    case HashKind::kSha1:
      return AfterSha1(block.data());
    case HashKind::kSha256:
      return AfterSha256(block.data());
    case HashKind::kSha384:
      return AfterSha384(block.data());
  }
  return {};
}

}  // namespace mpckdc::enroll
