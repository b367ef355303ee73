// SPDX-License-Identifier: Apache-2.0
//
// The plain compression functions, as whole hashes and as HMACs from their states, against FIPS
// 180-4's examples and OpenSSL.
#include "mpc-server/key/hash_plain.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "mpc-server/key/usage_keys.h"
#include "mpc-server/testing/bytes.h"

namespace mpckdc {
namespace {

using Octets = std::vector<uint8_t>;

constexpr HashKind kHashes[] = {HashKind::kSha1, HashKind::kSha256, HashKind::kSha384};

const EVP_MD* Md(HashKind hash) {
  return hash == HashKind::kSha1     ? EVP_sha1()
         : hash == HashKind::kSha256 ? EVP_sha256()
                                     : EVP_sha384();
}
Octets OpenSslHash(HashKind hash, const Octets& message) {
  Octets out(HashDigestBytes(hash));
  EVP_Digest(message.data(), message.size(), out.data(), nullptr, Md(hash), nullptr);
  return out;
}
Octets OpenSslHmac(HashKind hash, const Octets& key, const Octets& message) {
  Octets out(HashDigestBytes(hash));
  HMAC(Md(hash), key.data(), static_cast<int>(key.size()), message.data(), message.size(),
       out.data(), nullptr);
  return out;
}

// Hashes on from a state that holds `before` bytes already.
Octets HashOn(HashKind hash, absl::Span<const uint8_t> from, size_t before, Octets message) {
  const size_t bits = 8 * (before + message.size()), block = HashBlockBytes(hash);
  message.push_back(0x80);
  while ((message.size() + HashLengthBytes(hash)) % block != 0) message.push_back(0);
  for (size_t i = HashLengthBytes(hash); i-- > 0;) {
    message.push_back(i < 8 ? static_cast<uint8_t>(bits >> 8 * i) : 0);
  }
  Octets state(from.begin(), from.begin() + static_cast<ptrdiff_t>(HashStateBytes(hash)));
  for (size_t at = 0; at < message.size(); at += block) {
    CompressPlain(hash, absl::MakeSpan(state), &message[at]);
  }
  state.resize(HashDigestBytes(hash));
  return state;
}
Octets Hash(HashKind hash, const Octets& message) {
  return HashOn(hash, HashInitialState(hash), 0, message);
}

Octets RandomOctets(size_t size, std::mt19937& random) {
  Octets octets(size);
  for (uint8_t& byte : octets) byte = static_cast<uint8_t>(random());
  return octets;
}

TEST(HashPlainTest, Fips180) {
  const Octets abc = Bytes("abc");
  EXPECT_EQ(Hex(Hash(HashKind::kSha1, abc)), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(Hex(Hash(HashKind::kSha256, abc)),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Hex(Hash(HashKind::kSha384, abc)),
            "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed"
            "8086072ba1e7cc2358baeca134c825a7");
}

TEST(HashPlainTest, EveryLengthEqualsOpenSsl) {
  std::mt19937 random(7);
  for (HashKind hash : kHashes) {
    for (size_t length = 0; length < 300; ++length) {
      const Octets message = RandomOctets(length, random);
      ASSERT_EQ(Hash(hash, message), OpenSslHash(hash, message)) << length;
    }
  }
}

// The control: a flipped bit is seen.
TEST(HashPlainTest, OneBitMatters) {
  const Octets a(70, 1);
  for (HashKind hash : kHashes) {
    for (size_t at : {0u, 63u, 69u}) {
      Octets b = a;
      b[at] ^= 0x40;
      EXPECT_NE(Hash(hash, b), OpenSslHash(hash, a));
    }
  }
}

// Whoever has the two states can finish an HMAC without the key.
TEST(HmacStatesOf, FinishAnHmac) {
  std::mt19937 random(1);
  for (const HashKind hash : kHashes) {
    for (size_t turn = 0; turn < 20; ++turn) {
      const Octets key = RandomOctets(16 + 4 * (turn % 5), random);
      const Octets text = RandomOctets(turn * 17, random);
      const SecretBytes states = *HmacStatesOf(hash, key);
      const size_t bytes = 16 * HashStateBlocks(hash), block = HashBlockBytes(hash);
      ASSERT_EQ(states.size(), 2 * bytes);
      const absl::Span<const uint8_t> inner = absl::MakeConstSpan(states).first(bytes);
      const absl::Span<const uint8_t> outer = absl::MakeConstSpan(states).subspan(bytes);
      const Octets expected = OpenSslHmac(hash, key, text);
      EXPECT_EQ(HashOn(hash, outer, block, HashOn(hash, inner, block, text)), expected);
      EXPECT_NE(HashOn(hash, inner, block, HashOn(hash, outer, block, text)), expected);
    }
  }
}

TEST(HmacStatesOf, PaddedToWholeBlocks) {
  const Octets key(16, 7);
  const SecretBytes sha1 = *HmacStatesOf(HashKind::kSha1, key);
  ASSERT_EQ(sha1.size(), 64u);
  for (const size_t at : {20, 52}) {
    EXPECT_EQ(Hex(sha1).substr(2 * at, 24), std::string(24, '0'));
    EXPECT_NE(Hex(sha1).substr(2 * (at - 20), 40), std::string(40, '0'));
  }
  EXPECT_EQ(HmacStatesOf(HashKind::kSha384, key)->size(), 128u);
  EXPECT_FALSE(HmacStatesOf(HashKind::kSha1, Octets(65)).ok());
}

}  // namespace
}  // namespace mpckdc
