// SPDX-License-Identifier: Apache-2.0
//
// Derived keys against the RFCs' vectors, our own vectors, and OpenSSL's KDFs.
#include "mpc-server/key/derivation.h"

#include <gtest/gtest.h>
#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "mpc-server/base/bytes.h"
#include "mpc-server/testing/bytes.h"

namespace mpckdc {
namespace {

TEST(NFold, Rfc3961AppendixA1) {
  struct {
    size_t bits;
    std::string input, folded;
  } const vectors[] = {
      {64, "012345", "be072631276b1955"},
      {56, "password", "78a07b6caf85fa"},
      {64, "Rough Consensus, and Running Code", "bb6ed30870b7f0e0"},
      {168, "password", "59e4a8ca7c0385c3c37b3f6d2000247cb6e6bd5b3e"},
      {192, "MASSACHVSETTS INSTITVTE OF TECHNOLOGY",
       "db3b0d8f0b061e603282b308a50841229ad798fab9540c1b"},
      {168, "Q", "518a54a215a8452a518a54a215a8452a518a54a215"},
      {168, "ba", "fb25d531ae8974499f52fd92ea9857c4ba24cf297e"},
      {64, "kerberos", "6b65726265726f73"},
      {128, "kerberos", "6b65726265726f737b9b5b2b93132b93"},
      {168, "kerberos", "8372c236344e5f1550cd0747e15d62ca7a5a3bcea4"},
      {256, "kerberos", "6b65726265726f737b9b5b2b93132b935c9bdcdad95c9899c4cae4dee6d6cae4"},
  };
  for (const auto& v : vectors) EXPECT_EQ(Hex(NFold(Bytes(v.input), v.bits / 8)), v.folded);
}

const Enctype& GcmOf(size_t key_bytes) {
  return *FindEnctype(key_bytes == 16 ? kEnctypeAes128Gcm : kEnctypeAes256Gcm);
}

TEST(DeriveKey, SharedVectors) {
  const nlohmann::json vectors = SharedVectors();
  ASSERT_FALSE(vectors["usage_keys"].empty());
  for (const nlohmann::json& v : vectors["usage_keys"]) {
    EXPECT_EQ(Hex(NFold(FromHex(v["constant"]), 16)), v["folded"]);
    EXPECT_EQ(Hex(UsageConstant(v["usage"], DerivedKeyKind::kKg)), v["folded"]);
    const std::vector<uint8_t> base = FromHex(v["base"]);
    const SecretBytes key = *DeriveKey(GcmOf(base.size()), base, v["usage"], DerivedKeyKind::kKg);
    EXPECT_EQ(Hex(key), v["key"]);
    EXPECT_EQ(Hex(*GhashKey(key)), v["h"]);
  }
}

TEST(DeriveKey, PublishedVectors) {
  struct {
    int32_t enctype;
    std::string base, kc, ke, ki;  // of usage 2
  } const vectors[] = {
      // The keys that MIT krb5's tests of derivation have for RFC 3962's first vector.
      {kEnctypeAes128Sha1, "42263c6e89f4fc28b8df68ee09799f15", "34280a382bc92769b2da2f9ef066854b",
       "5b14fc4e250e14ddf9dccf1af6674f53", "4ed31063621684f09ae8d89991af3e8f"},
      {kEnctypeAes256Sha1, "fe697b52bc0d3ce14432ba036a92e65bbb52280990a2fa27883998d72af30161",
       "bfab388bdcb238e9f9c98d6a878304f04d30c82556375ac507a7a852790f4674",
       "c7cfd9cd75fe793a586a542d87e0d1396f1134a104bb1a9190b8c90ada3ddf37",
       "97151b4c76945063e2eb0529dc067d97d7bba90776d8126d91f34f3101aea8ba"},
      // RFC 8009 appendix A.
      {kEnctypeAes128Sha256, "3705d96080c17728a0e800eab6e0d23c",
       "b31a018a48f54776f403e9a396325dc3", "9b197dd1e8c5609d6e67c3e37c62c72e",
       "9fda0e56ab2d85e1569a688696c26a6c"},
      {kEnctypeAes256Sha384, "6d404d37faf79f9df0d33568d320669800eb4836472ea8a026d16b7182460c52",
       "ef5718be86cc84963d8bbb5031e9f5c4ba41f28faf69e73d",
       "56ab22bee63d82d7bc5227f6773f8ea7a5eb1c825160c38312980c442e5c7e49",
       "69b16514e3cd8e56b82010d5c73012b622c4d00ffc23ed1f"},
  };
  for (const auto& v : vectors) {
    const auto key = [&](uint32_t usage, DerivedKeyKind kind) {
      return Hex(*DeriveKey(*FindEnctype(v.enctype), FromHex(v.base), usage, kind));
    };
    EXPECT_EQ(key(2, DerivedKeyKind::kKc), v.kc) << v.enctype;
    EXPECT_EQ(key(2, DerivedKeyKind::kKe), v.ke) << v.enctype;
    EXPECT_EQ(key(2, DerivedKeyKind::kKi), v.ki) << v.enctype;
    EXPECT_NE(key(3, DerivedKeyKind::kKc), v.kc) << v.enctype;
  }
}

OSSL_PARAM Name(const char* parameter, const char* value) {
  return OSSL_PARAM_construct_utf8_string(parameter, const_cast<char*>(value), 0);
}
OSSL_PARAM Octets(const char* parameter, const std::vector<uint8_t>& value) {
  return OSSL_PARAM_construct_octet_string(parameter, const_cast<uint8_t*>(value.data()),
                                           value.size());
}

std::string Kdf(const char* name, const OSSL_PARAM* parameters, size_t bytes) {
  const std::unique_ptr<EVP_KDF, decltype(&EVP_KDF_free)> kdf(
      EVP_KDF_fetch(nullptr, name, nullptr), EVP_KDF_free);
  const std::unique_ptr<EVP_KDF_CTX, decltype(&EVP_KDF_CTX_free)> ctx(EVP_KDF_CTX_new(kdf.get()),
                                                                      EVP_KDF_CTX_free);
  std::vector<uint8_t> out(bytes);
  if (EVP_KDF_derive(ctx.get(), out.data(), out.size(), parameters) != 1) return "";
  return Hex(out);
}

// KRB5KDF is DK; KBKDF in counter mode (SP 800-108) is what RFC 8009 takes its KDF from.
std::string OpenSslKey(const Enctype& enctype, const std::vector<uint8_t>& base, uint32_t usage,
                       DerivedKeyKind kind) {
  std::vector<uint8_t> label;
  AppendUint(label, usage, 4);
  label.push_back(static_cast<uint8_t>(kind));
  const size_t bytes = DerivedKeyBytes(enctype, kind);
  if (enctype.family != EnctypeFamily::kRfc8009) {
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

TEST(DeriveKey, EqualsOpenSslsKdfs) {
  std::mt19937 random(1);
  for (const Enctype& enctype : kEnctypes) {
    const std::vector<DerivedKeyKind> kinds =
        enctype.is_gcm() ? std::vector{DerivedKeyKind::kKg}
                         : std::vector{DerivedKeyKind::kKc, DerivedKeyKind::kKe,
                                       DerivedKeyKind::kKi};
    for (const uint32_t usage : {1u, 2u, 3u, 17u, 56u, 0x01020304u}) {
      std::vector<uint8_t> base(enctype.key_bytes);
      for (uint8_t& byte : base) byte = static_cast<uint8_t>(random());
      for (const DerivedKeyKind kind : kinds) {
        EXPECT_EQ(Hex(*DeriveKey(enctype, base, usage, kind)),
                  OpenSslKey(enctype, base, usage, kind))
            << enctype.name << " usage " << usage;
      }
    }
  }
}

TEST(DeriveKey, RefusesOtherSizesAndKinds) {
  for (const Enctype& enctype : kEnctypes) {
    const auto derives = [&](size_t bytes, DerivedKeyKind kind) {
      return DeriveKey(enctype, std::vector<uint8_t>(bytes), 1, kind).ok();
    };
    for (const size_t size : {0, 15, 17, 24, 33}) {
      EXPECT_FALSE(derives(size, DerivedKeyKind::kKe));
      EXPECT_FALSE(derives(size, DerivedKeyKind::kKg));
    }
    EXPECT_EQ(derives(enctype.key_bytes, DerivedKeyKind::kKe), !enctype.is_gcm());
    EXPECT_EQ(derives(enctype.key_bytes, DerivedKeyKind::kKg), enctype.is_gcm());
  }
  for (const size_t size : {0, 15, 17, 24, 33}) {
    EXPECT_FALSE(Rfc3961Dk(std::vector<uint8_t>(size), Bytes("kerberos")).ok()) << size;
    EXPECT_FALSE(GhashKey(std::vector<uint8_t>(size)).ok()) << size;
  }
  EXPECT_FALSE(Rfc3961Dk(std::vector<uint8_t>(16), {}).ok());
  EXPECT_FALSE(Rfc8009Kdf(HashKind::kSha1, {}, {}, 16).ok());
  EXPECT_FALSE(Rfc8009Kdf(HashKind::kSha256, {}, {}, 33).ok());
  EXPECT_FALSE(Rfc8009Kdf(HashKind::kSha256, {}, {}, 0).ok());
}

}  // namespace
}  // namespace mpckdc
