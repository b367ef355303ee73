// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/key/string_to_key.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "mpc-server/testing/bytes.h"

namespace mpckdc {
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
    auto key = [&](int32_t enctype) {
      return Hex(*StringToKey(enctype, Bytes(v.password), Bytes(v.salt), v.iterations));
    };
    for (const int32_t e : {kEnctypeAes128Gcm, kEnctypeAes128Sha1}) EXPECT_EQ(key(e), v.key128);
    for (const int32_t e : {kEnctypeAes256Gcm, kEnctypeAes256Sha1}) EXPECT_EQ(key(e), v.key256);
  }
}

// The salt begins with 16 bytes that are no text. The count is the default.
TEST(StringToKey, Rfc8009AppendixA) {
  std::vector<uint8_t> salt = FromHex("10df9dd783e5bc8acea1730e74355f61");
  const std::vector<uint8_t> name = Bytes("ATHENA.MIT.EDUraeburn");
  salt.insert(salt.end(), name.begin(), name.end());
  auto key = [&](int32_t enctype, std::optional<uint32_t> iterations) {
    return Hex(*StringToKey(enctype, Bytes("password"), salt, iterations));
  };
  const std::string key128 = "089bca48b105ea6ea77ca5d2f39dc5e7";
  const std::string key256 = "45bd806dbf6a833a9cffc1c94589a222367a79bc21c413718906e9f578a78467";
  for (const std::optional<uint32_t> count : {std::optional<uint32_t>(), {32768u}}) {
    EXPECT_EQ(key(kEnctypeAes128Sha256, count), key128);
    EXPECT_EQ(key(kEnctypeAes256Sha384, count), key256);
  }
  EXPECT_NE(key(kEnctypeAes128Sha256, 4096), key128);
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
  for (const int32_t other : {16, 21, 0}) EXPECT_FALSE(StringToKey(other, text, text).ok());
  EXPECT_FALSE(StringToKey(kEnctypeAes128Gcm, text, text, 0).ok());
  EXPECT_FALSE(StringToKey(kEnctypeAes128Gcm, text, text, kMaxIterations + 1).ok());
  EXPECT_TRUE(StringToKey(kEnctypeAes128Gcm, {}, {}, 1).ok());
}

TEST(Enctypes, NamesGoBothWays) {
  for (const Enctype& enctype : kEnctypes) {
    EXPECT_EQ(EnctypeName(enctype.number), enctype.name);
    EXPECT_EQ(*EnctypeFromName(enctype.name), enctype.number);
    EXPECT_EQ(*EnctypeFromName(std::to_string(enctype.number)), enctype.number);
    EXPECT_TRUE(absl::StrContains(EnctypeNames(), enctype.name));
  }
  EXPECT_EQ(EnctypeName(23), "23");
  for (const char* unknown : {"", "23", "0", "des-cbc-crc", "aes256", "aes256-ct"}) {
    EXPECT_FALSE(EnctypeFromName(unknown).ok()) << unknown;
  }
}

TEST(Enctypes, Aliases) {
  const std::pair<const char*, int32_t> aliases[] = {
      {"aes128-cts", 17},  {"aes256-cts", 18},  {"aes128-sha1", 17},        {"aes256-sha1", 18},
      {"aes128-sha2", 19}, {"aes256-sha2", 20}, {"aes256-gcm-gmac", -24002}};
  for (const auto& [name, enctype] : aliases) EXPECT_EQ(*EnctypeFromName(name), enctype) << name;
}

}  // namespace
}  // namespace mpckdc
