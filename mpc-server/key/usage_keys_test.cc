// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/key/usage_keys.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "mpc-server/key/derivation.h"
#include "mpc-server/testing/bytes.h"

namespace mpckdc {
namespace {

TEST(ExpandAesKey, Fips197AppendixA) {
  const struct {
    std::string key, second, last;  // round keys after the key itself
  } rows[] = {{"2b7e151628aed2a6abf7158809cf4f3c", "a0fafe1788542cb123a339392a6c7605",
               "d014f9a8c9ee2589e13f0cc8b6630ca6"},
              {"603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
               "9ba354118e6925afa51a8b5f2067fcde", "fe4890d1e6188d0b046df344706c631e"}};
  for (const auto& row : rows) {
    const std::string expanded = Hex(*ExpandAesKey(FromHex(row.key)));
    ASSERT_EQ(expanded.size(), 32 * (row.key.size() / 8 + 7));
    EXPECT_EQ(expanded.substr(row.key.size(), 32), row.second);
    EXPECT_EQ(expanded.substr(expanded.size() - 32), row.last);
  }
}

TEST(ExpandAesKey, RefusesOtherKeySizes) {
  for (const size_t size : {0, 15, 17, 24, 33}) {
    EXPECT_FALSE(ExpandAesKey(std::vector<uint8_t>(size)).ok()) << size;
  }
}

TEST(ExpandUsages, CoversTheClass) {
  const std::vector<uint8_t> base(32, 7);
  const auto usages = [&](KeyClass key_class) {
    const std::vector<ExpandedUsage> all = *ExpandUsages(kEnctypeAes256Gcm, base, key_class);
    std::vector<uint32_t> numbers;
    for (const ExpandedUsage& usage : all) numbers.push_back(usage.usage);
    return numbers;
  };
  EXPECT_EQ(usages(KeyClass::kUser), (std::vector<uint32_t>{1, 3, 56}));
  EXPECT_EQ(usages(KeyClass::kTgs), (std::vector<uint32_t>{2, 17, 64}));
  EXPECT_EQ(usages(KeyClass::kService), (std::vector<uint32_t>{2, 17, 64}));
  EXPECT_TRUE(usages(KeyClass{}).empty());
  EXPECT_FALSE(ExpandUsages(23, base, KeyClass::kUser).ok());
}

// Each part is what its name says of the key of its kind, and no usage has another part.
TEST(ExpandUsages, HoldsWhatItsEnctypeNeeds) {
  for (const Enctype& enctype : kEnctypes) {
    const std::vector<uint8_t> base(enctype.key_bytes, 0x3c);
    const auto key = [&](uint32_t usage, DerivedKeyKind kind) {
      return *DeriveKey(enctype, base, usage, kind);
    };
    for (const KeyClass key_class : {KeyClass::kUser, KeyClass::kService}) {
      const std::vector<ExpandedUsage> usages = *ExpandUsages(enctype.number, base, key_class);
      for (const ExpandedUsage& u : usages) {
        if (enctype.is_gcm()) {
          const SecretBytes kg = key(u.usage, DerivedKeyKind::kKg);
          EXPECT_EQ(u.round_keys, *ExpandAesKey(kg));
          EXPECT_EQ(u.h, *GhashKey(kg));
          EXPECT_TRUE(u.mac_states.empty());
          continue;
        }
        const bool checksum = u.usage == 17 || u.usage == 56 || u.usage == 64;
        EXPECT_TRUE(u.h.empty());
        EXPECT_EQ(u.mac_states,
                  *HmacStatesOf(enctype.hash, key(u.usage, checksum ? DerivedKeyKind::kKc
                                                                    : DerivedKeyKind::kKi)));
        EXPECT_EQ(u.mac_states.size(), 16 * enctype.mac_state_blocks());
        EXPECT_EQ(u.round_keys, checksum ? SecretBytes()
                                         : *ExpandAesKey(key(u.usage, DerivedKeyKind::kKe)));
      }
    }
  }
}

}  // namespace
}  // namespace mpckdc
