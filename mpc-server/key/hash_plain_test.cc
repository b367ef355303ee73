// SPDX-License-Identifier: Apache-2.0
// The plain compression functions, as whole hashes, against FIPS 180-4's examples and OpenSSL.
#include "mpc-server/key/hash_plain.h"

#include <openssl/evp.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace mpckdc {
namespace {

using Bytes = std::vector<uint8_t>;

const EVP_MD* Md(HashKind hash) {
  return hash == HashKind::kSha1     ? EVP_sha1()
         : hash == HashKind::kSha256 ? EVP_sha256()
                                     : EVP_sha384();
}
Bytes OpenSslHash(HashKind hash, const Bytes& message) {
  Bytes out(HashDigestBytes(hash));
  EVP_Digest(message.data(), message.size(), out.data(), nullptr, Md(hash), nullptr);
  return out;
}

Bytes Hash(HashKind hash, Bytes message) {
  const size_t bits = 8 * message.size(), block = HashBlockBytes(hash);
  message.push_back(0x80);
  while ((message.size() + HashLengthBytes(hash)) % block != 0) message.push_back(0);
  for (size_t i = HashLengthBytes(hash); i-- > 0;) {
    message.push_back(i < 8 ? static_cast<uint8_t>(bits >> 8 * i) : 0);
  }
  const auto iv = HashInitialState(hash);
  Bytes state(iv.begin(), iv.end());
  for (size_t at = 0; at < message.size(); at += block) {
    CompressPlain(hash, absl::MakeSpan(state), &message[at]);
  }
  state.resize(HashDigestBytes(hash));
  return state;
}

std::string Hex(const Bytes& bytes) {
  std::string s;
  for (uint8_t b : bytes) {
    s += "0123456789abcdef"[b >> 4];
    s += "0123456789abcdef"[b & 15];
  }
  return s;
}

TEST(HashPlainTest, Fips180) {
  const Bytes abc = {'a', 'b', 'c'};
  EXPECT_EQ(Hex(Hash(HashKind::kSha1, abc)), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(Hex(Hash(HashKind::kSha256, abc)),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Hex(Hash(HashKind::kSha384, abc)),
            "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed"
            "8086072ba1e7cc2358baeca134c825a7");
}

TEST(HashPlainTest, EveryLengthEqualsOpenSsl) {
  std::mt19937 random(7);
  for (HashKind hash : {HashKind::kSha1, HashKind::kSha256, HashKind::kSha384}) {
    for (size_t length = 0; length < 300; ++length) {
      Bytes message(length);
      for (uint8_t& b : message) b = static_cast<uint8_t>(random());
      ASSERT_EQ(Hash(hash, message), OpenSslHash(hash, message)) << length;
    }
  }
}

// The control: a flipped bit is seen.
TEST(HashPlainTest, OneBitMatters) {
  const Bytes a(70, 1);
  for (HashKind hash : {HashKind::kSha1, HashKind::kSha256, HashKind::kSha384}) {
    for (size_t at : {0u, 63u, 69u}) {
      Bytes b = a;
      b[at] ^= 0x40;
      EXPECT_NE(Hash(hash, b), OpenSslHash(hash, a));
    }
  }
}

}  // namespace
}  // namespace mpckdc
