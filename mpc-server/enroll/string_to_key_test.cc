// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/enroll/string_to_key.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "mpc-server/enroll/test_bytes.h"
#include "mpc-server/enroll/usage_keys.h"

namespace mpckdc::enroll {
namespace {

TEST(StringToKey, Rfc3962AppendixB) {
  struct {
    uint32_t iterations;
    std::string password, salt, key128, key256;
  } const vectors[] = {
      {1, "password", "ATHENA.MIT.EDUraeburn", "42263c6e89f4fc28b8df68ee09799f15",
       "fe697b52bc0d3ce14432ba036a92e65bbb52280990a2fa27883998d72af30161"},
      {2, "password", "ATHENA.MIT.EDUraeburn", "c651bf29e2300ac27fa469d693bdda13",
       "a2e16d16b36069c135d5e9d2e25f896102685618b95914b467c67622225824ff"},
      {1200, "password", "ATHENA.MIT.EDUraeburn", "4c01cd46d632d01e6dbe230a01ed642a",
       "55a6ac740ad17b4846941051e1e8b0a7548d93b0ab30a8bc3ff16280382b8c2a"},
      {5, "password", "\x12\x34\x56\x78\x78\x56\x34\x12", "e9b23d52273747dd5c35cb55be619d8e",
       "97a4e786be20d81a382d5ebc96d5909cabcdadc87ca48f574504159f16c36e31"},
      {1200, std::string(64, 'X'), "pass phrase equals block size",
       "59d1bb789a828b1aa54ef9c2883f69ed",
       "89adee3608db8bc71f1bfbfe459486b05618b70cbae22092534e56c553ba4b34"},
      {1200, std::string(65, 'X'), "pass phrase exceeds block size",
       "cb8005dc5f90179a7f02104c0018751d",
       "d78c5c9cb872a8c9dad4697f0bb5b2d21496c82beb2caeda2112fceea057401b"},
      {50, "\xf0\x9d\x84\x9e", "EXAMPLE.COMpianist", "f149c1f2e154a73452d43e7fe62a56e5",
       "4b6d9839f84406df1f09cc166db4b83c571848b784a3d6bdc346589a3e393f9e"},
  };
  for (const auto& v : vectors) {
    EXPECT_EQ(Hex(*StringToKey(kEnctypeAes128Gcm, Bytes(v.password), Bytes(v.salt), v.iterations)),
              v.key128);
    EXPECT_EQ(Hex(*StringToKey(kEnctypeAes256Gcm, Bytes(v.password), Bytes(v.salt), v.iterations)),
              v.key256);
  }
}

TEST(StringToKey, SharedVectors) {
  const nlohmann::json vectors = SharedVectors();
  ASSERT_FALSE(vectors["string_to_key"].empty());
  for (const nlohmann::json& v : vectors["string_to_key"]) {
    absl::StatusOr<SecretBytes> key =
        StringToKey(v["enctype"], FromHex(v["password"]), FromHex(v["salt"]), v["iterations"]);
    ASSERT_TRUE(key.ok()) << key.status();
    EXPECT_EQ(Hex(*key), v["key"]);
  }
}

TEST(StringToKey, RefusesBadInput) {
  const std::vector<uint8_t> text = {'x'};
  EXPECT_FALSE(StringToKey(17, text, text).ok());
  EXPECT_FALSE(StringToKey(0, text, text).ok());
  EXPECT_FALSE(StringToKey(kEnctypeAes128Gcm, text, text, 0).ok());
  EXPECT_FALSE(StringToKey(kEnctypeAes128Gcm, text, text, kMaxIterations + 1).ok());
  EXPECT_TRUE(StringToKey(kEnctypeAes128Gcm, {}, {}, 1).ok());
}

TEST(Enctypes, NamesGoBothWays) {
  for (const int32_t enctype : {kEnctypeAes128Gcm, kEnctypeAes256Gcm}) {
    EXPECT_EQ(*EnctypeFromName(EnctypeName(enctype)), enctype);
    EXPECT_EQ(*EnctypeFromName(std::to_string(enctype)), enctype);
  }
  EXPECT_FALSE(EnctypeFromName("aes128-cts").ok());
  EXPECT_FALSE(EnctypeFromName("17").ok());
  EXPECT_FALSE(EnctypeFromName("").ok());
}

}  // namespace
}  // namespace mpckdc::enroll
