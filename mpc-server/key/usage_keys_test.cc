// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/key/usage_keys.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "mpc-server/key/string_to_key.h"
#include "mpc-server/testing/bytes.h"

namespace mpckdc::enroll {
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

TEST(ExpandAesKey, Fips197AppendixA) {
  const std::vector<uint8_t> key128 = FromHex("2b7e151628aed2a6abf7158809cf4f3c");
  const SecretBytes round_keys = *ExpandAesKey(key128);
  ASSERT_EQ(round_keys.size(), 11u * 16);
  EXPECT_EQ(Hex(round_keys).substr(32, 32), "a0fafe1788542cb123a339392a6c7605");
  EXPECT_EQ(Hex(round_keys).substr(320), "d014f9a8c9ee2589e13f0cc8b6630ca6");

  const std::vector<uint8_t> key256 =
      FromHex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4");
  const SecretBytes long_round_keys = *ExpandAesKey(key256);
  ASSERT_EQ(long_round_keys.size(), 15u * 16);
  EXPECT_EQ(Hex(long_round_keys).substr(64, 32), "9ba354118e6925afa51a8b5f2067fcde");
  EXPECT_EQ(Hex(long_round_keys).substr(448), "fe4890d1e6188d0b046df344706c631e");
}

TEST(UsageKeys, SharedVectors) {
  const nlohmann::json vectors = SharedVectors();
  ASSERT_FALSE(vectors["usage_keys"].empty());
  for (const nlohmann::json& v : vectors["usage_keys"]) {
    EXPECT_EQ(Hex(NFold(FromHex(v["constant"]), 16)), v["folded"]);
    const SecretBytes key = *GcmUsageKey(FromHex(v["base"]), v["usage"]);
    EXPECT_EQ(Hex(key), v["key"]);
    EXPECT_EQ(Hex(*GhashKey(key)), v["h"]);
  }
}

TEST(UsageKeys, ExpandUsagesCoversTheClass) {
  const std::vector<uint8_t> base(32, 7);
  const std::vector<ExpandedUsage> user = *ExpandUsages(kEnctypeAes256Gcm, base, v1::KEY_CLASS_USER);
  ASSERT_EQ(user.size(), 3u);
  EXPECT_EQ(user[0].usage, 1u);
  EXPECT_EQ(user[1].usage, 3u);
  EXPECT_EQ(user[2].usage, 56u);
  const std::vector<ExpandedUsage> tgs = *ExpandUsages(kEnctypeAes256Gcm, base, v1::KEY_CLASS_TGS);
  ASSERT_EQ(tgs.size(), 2u);
  EXPECT_EQ(tgs[0].usage, 2u);
  EXPECT_EQ(tgs[1].usage, 17u);
  for (const ExpandedUsage& usage : user) {
    const SecretBytes key = *GcmUsageKey(base, usage.usage);
    EXPECT_EQ(usage.round_keys, *ExpandAesKey(key));
    EXPECT_EQ(usage.h, *GhashKey(key));
    EXPECT_TRUE(usage.mac_states.empty());
  }
  EXPECT_TRUE(ExpandUsages(kEnctypeAes256Gcm, base, v1::KEY_CLASS_UNSPECIFIED)->empty());
  EXPECT_FALSE(ExpandUsages(23, base, v1::KEY_CLASS_USER).ok());
}

TEST(UsageKeys, RefusesOtherKeySizes) {
  for (const size_t size : {0, 15, 17, 24, 33}) {
    const std::vector<uint8_t> key(size);
    EXPECT_FALSE(GcmUsageKey(key, 1).ok()) << size;
    EXPECT_FALSE(ExpandAesKey(key).ok()) << size;
    EXPECT_FALSE(GhashKey(key).ok()) << size;
  }
  EXPECT_FALSE(DeriveKey(std::vector<uint8_t>(16), {}).ok());
}

}  // namespace
}  // namespace mpckdc::enroll
