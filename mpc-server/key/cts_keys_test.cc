// SPDX-License-Identifier: Apache-2.0
#define OPENSSL_SUPPRESS_DEPRECATED  // a hash is gone on with from a state here
#include "mpc-server/key/cts_keys.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <random>
#include <string>
#include <vector>

#include "mpc-server/key/string_to_key.h"
#include "mpc-server/key/usage_keys.h"
#include "mpc-server/testing/bytes.h"

namespace mpckdc::enroll {
namespace {

struct SubkeyVector {
  int32_t enctype;
  std::string base, kc, ke, ki;  // of usage 2
};

const SubkeyVector kVectors[] = {
    // The keys that MIT krb5's tests of derivation have for RFC 3962's first vector.
    {kEnctypeAes128Sha1, "42263c6e89f4fc28b8df68ee09799f15", "34280a382bc92769b2da2f9ef066854b",
     "5b14fc4e250e14ddf9dccf1af6674f53", "4ed31063621684f09ae8d89991af3e8f"},
    {kEnctypeAes256Sha1, "fe697b52bc0d3ce14432ba036a92e65bbb52280990a2fa27883998d72af30161",
     "bfab388bdcb238e9f9c98d6a878304f04d30c82556375ac507a7a852790f4674",
     "c7cfd9cd75fe793a586a542d87e0d1396f1134a104bb1a9190b8c90ada3ddf37",
     "97151b4c76945063e2eb0529dc067d97d7bba90776d8126d91f34f3101aea8ba"},
    // RFC 8009 appendix A.
    {kEnctypeAes128Sha256, "3705d96080c17728a0e800eab6e0d23c", "b31a018a48f54776f403e9a396325dc3",
     "9b197dd1e8c5609d6e67c3e37c62c72e", "9fda0e56ab2d85e1569a688696c26a6c"},
    {kEnctypeAes256Sha384, "6d404d37faf79f9df0d33568d320669800eb4836472ea8a026d16b7182460c52",
     "ef5718be86cc84963d8bbb5031e9f5c4ba41f28faf69e73d",
     "56ab22bee63d82d7bc5227f6773f8ea7a5eb1c825160c38312980c442e5c7e49",
     "69b16514e3cd8e56b82010d5c73012b622c4d00ffc23ed1f"},
};

TEST(CtsKeys, PublishedVectors) {
  for (const SubkeyVector& v : kVectors) {
    const Enctype& enctype = *FindEnctype(v.enctype);
    const std::vector<uint8_t> base = FromHex(v.base);
    EXPECT_EQ(Hex(*DeriveSubkey(enctype, base, 2, Subkey::kKc)), v.kc) << v.enctype;
    EXPECT_EQ(Hex(*DeriveSubkey(enctype, base, 2, Subkey::kKe)), v.ke) << v.enctype;
    EXPECT_EQ(Hex(*DeriveSubkey(enctype, base, 2, Subkey::kKi)), v.ki) << v.enctype;
    EXPECT_NE(Hex(*DeriveSubkey(enctype, base, 3, Subkey::kKc)), v.kc) << v.enctype;
  }
}

TEST(CtsKeys, RefusesOtherSizes) {
  for (const Enctype& enctype : kEnctypes) {
    for (const size_t size : {0, 15, 17, 24, 33}) {
      EXPECT_FALSE(DeriveSubkey(enctype, std::vector<uint8_t>(size), 1, Subkey::kKe).ok());
    }
    EXPECT_EQ(DeriveSubkey(enctype, std::vector<uint8_t>(enctype.key_bytes), 1, Subkey::kKe).ok(),
              !enctype.is_gcm());
  }
  EXPECT_FALSE(KdfHmacSha2(HashKind::kSha1, {}, {}, 16).ok());
  EXPECT_FALSE(KdfHmacSha2(HashKind::kSha256, {}, {}, 33).ok());
  EXPECT_FALSE(KdfHmacSha2(HashKind::kSha256, {}, {}, 0).ok());
  EXPECT_FALSE(HmacStates(HashKind::kSha1, std::vector<uint8_t>(65)).ok());
}

uint32_t Load32(const uint8_t* p) {
  return static_cast<uint32_t>(p[0]) << 24 | p[1] << 16 | p[2] << 8 | p[3];
}
uint64_t Load64(const uint8_t* p) { return static_cast<uint64_t>(Load32(p)) << 32 | Load32(p + 4); }

// A hash of `first block | text`, gone on with by OpenSSL from the state after that first block.
std::vector<uint8_t> GoOnSha1(absl::Span<const uint8_t> state, absl::Span<const uint8_t> text) {
  SHA_CTX context;
  SHA1_Init(&context);
  context.h0 = Load32(&state[0]);
  context.h1 = Load32(&state[4]);
  context.h2 = Load32(&state[8]);
  context.h3 = Load32(&state[12]);
  context.h4 = Load32(&state[16]);
  context.Nl = 8 * 64;  // bits hashed so far
  SHA1_Update(&context, text.data(), text.size());
  std::vector<uint8_t> digest(20);
  SHA1_Final(digest.data(), &context);
  return digest;
}

std::vector<uint8_t> GoOnSha256(absl::Span<const uint8_t> state, absl::Span<const uint8_t> text) {
  SHA256_CTX context;
  SHA256_Init(&context);
  for (int i = 0; i < 8; ++i) context.h[i] = Load32(&state[4 * i]);
  context.Nl = 8 * 64;
  SHA256_Update(&context, text.data(), text.size());
  std::vector<uint8_t> digest(32);
  SHA256_Final(digest.data(), &context);
  return digest;
}

std::vector<uint8_t> GoOnSha384(absl::Span<const uint8_t> state, absl::Span<const uint8_t> text) {
  SHA512_CTX context;
  SHA384_Init(&context);
  for (int i = 0; i < 8; ++i) context.h[i] = Load64(&state[8 * i]);
  context.Nl = 8 * 128;
  SHA384_Update(&context, text.data(), text.size());
  std::vector<uint8_t> digest(48);
  SHA384_Final(digest.data(), &context);
  return digest;
}

// Whoever has the two states can finish an HMAC without the key.
TEST(HmacStates, FinishAnHmac) {
  struct {
    HashKind hash;
    const EVP_MD* md;
    std::vector<uint8_t> (*go_on)(absl::Span<const uint8_t>, absl::Span<const uint8_t>);
  } const hashes[] = {{HashKind::kSha1, EVP_sha1(), GoOnSha1},
                      {HashKind::kSha256, EVP_sha256(), GoOnSha256},
                      {HashKind::kSha384, EVP_sha384(), GoOnSha384}};
  std::mt19937 random(1);
  for (const auto& h : hashes) {
    for (int turn = 0; turn < 20; ++turn) {
      std::vector<uint8_t> key(16 + 4 * (turn % 5)), text(turn * 17);
      for (uint8_t& byte : key) byte = static_cast<uint8_t>(random());
      for (uint8_t& byte : text) byte = static_cast<uint8_t>(random());
      const SecretBytes states = *HmacStates(h.hash, key);
      const size_t bytes = 16 * HashStateBlocks(h.hash);
      ASSERT_EQ(states.size(), 2 * bytes);
      const absl::Span<const uint8_t> inner = absl::MakeConstSpan(states).first(bytes);
      const absl::Span<const uint8_t> outer = absl::MakeConstSpan(states).subspan(bytes);
      std::vector<uint8_t> expected(HashDigestBytes(h.hash));
      HMAC(h.md, key.data(), static_cast<int>(key.size()), text.data(), text.size(),
           expected.data(), nullptr);
      EXPECT_EQ(h.go_on(outer, h.go_on(inner, text)), expected);
      EXPECT_NE(h.go_on(inner, h.go_on(outer, text)), expected);
    }
  }
}

TEST(HmacStates, PaddedToWholeBlocks) {
  const std::vector<uint8_t> key(16, 7);
  const SecretBytes sha1 = *HmacStates(HashKind::kSha1, key);
  ASSERT_EQ(sha1.size(), 64u);
  for (const size_t at : {20, 52}) {
    EXPECT_EQ(Hex(sha1).substr(2 * at, 24), std::string(24, '0'));
    EXPECT_NE(Hex(sha1).substr(2 * (at - 20), 40), std::string(40, '0'));
  }
  EXPECT_EQ(HmacStates(HashKind::kSha384, key)->size(), 128u);
}

TEST(ExpandUsages, OfCtsEnctypes) {
  for (const SubkeyVector& v : kVectors) {
    const Enctype& enctype = *FindEnctype(v.enctype);
    const std::vector<uint8_t> base = FromHex(v.base);
    const std::vector<ExpandedUsage> tgs = *ExpandUsages(v.enctype, base, v1::KEY_CLASS_SERVICE);
    ASSERT_EQ(tgs.size(), 2u);
    EXPECT_EQ(tgs[0].usage, 2u);
    EXPECT_EQ(tgs[0].round_keys, *ExpandAesKey(FromHex(v.ke)));
    EXPECT_EQ(tgs[0].mac_states, *HmacStates(enctype.hash, FromHex(v.ki)));
    EXPECT_TRUE(tgs[0].h.empty());
    EXPECT_EQ(tgs[1].usage, 17u);
    EXPECT_TRUE(tgs[1].round_keys.empty());
    EXPECT_EQ(tgs[1].mac_states,
              *HmacStates(enctype.hash, *DeriveSubkey(enctype, base, 17, Subkey::kKc)));
    const std::vector<ExpandedUsage> user = *ExpandUsages(v.enctype, base, v1::KEY_CLASS_USER);
    ASSERT_EQ(user.size(), 3u);
    for (const ExpandedUsage& usage : user) {
      EXPECT_EQ(usage.round_keys.size(), usage.usage == 56 ? 0 : 16 * enctype.round_keys());
      EXPECT_EQ(usage.mac_states.size(), 16 * enctype.mac_state_blocks());
    }
  }
}

}  // namespace
}  // namespace mpckdc::enroll
