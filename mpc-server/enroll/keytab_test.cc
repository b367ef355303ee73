// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/enroll/keytab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "mpc-server/key/string_to_key.h"
#include "mpc-server/testing/bytes.h"
#include "mpc-server/testing/enrolment.h"

namespace mpckdc::enroll {
namespace {

const std::string kMagic = "\x05\x02";

TEST(Keytab, ReadsEntriesAndSkipsHoles) {
  const std::string file = kMagic + KeytabBytes({"alice"}, 300, -24001, std::string(16, 'a')) +
                           Be(static_cast<uint32_t>(-9), 4) + std::string(9, 'z') +
                           KeytabBytes({"HTTP", "w/e@b"}, 2, 18, std::string(32, 'b'), false);
  absl::StatusOr<std::vector<KeytabEntry>> entries = ParseKeytab(Bytes(file));
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_EQ((*entries)[0].principal, "alice@EXAMPLE.COM");
  EXPECT_EQ((*entries)[0].kvno, 300u);
  EXPECT_EQ((*entries)[0].enctype, -24001);
  EXPECT_EQ(Hex((*entries)[0].key), Hex(std::string(16, 'a')));
  EXPECT_EQ((*entries)[1].principal, "HTTP/w\\/e\\@b@EXAMPLE.COM");
  EXPECT_EQ((*entries)[1].kvno, 2u);
}

// Whatever is cut off, and whatever byte is changed: an error or other entries, never a crash or a
// read outside.
TEST(Keytab, SurvivesDamage) {
  const std::string file = kMagic + KeytabBytes({"alice"}, 1, 17, std::string(16, 'a')) +
                           KeytabBytes({"a", "b", "c"}, 1, 18, std::string(32, 'b'));
  for (size_t size = 0; size < file.size(); ++size) {
    const absl::StatusOr<std::vector<KeytabEntry>> entries =
        ParseKeytab(Bytes(file.substr(0, size)));
    if (entries.ok()) {
      EXPECT_LT(entries->size(), 2u);
    }
  }
  for (size_t i = 0; i < file.size(); ++i) {
    for (const int change : {0x01, 0x80, 0xff}) {
      std::string damaged = file;
      damaged[i] = static_cast<char>(damaged[i] ^ change);
      ParseKeytab(Bytes(damaged)).IgnoreError();
    }
  }
}

TEST(Keytab, NamesTheProblem) {
  EXPECT_THAT(std::string(ParseKeytab(Bytes("hello")).status().message()),
              testing::HasSubstr("0x0502"));
  const std::string cut = kMagic + Be(1000, 4) + "x";
  EXPECT_THAT(std::string(ParseKeytab(Bytes(cut)).status().message()),
              testing::HasSubstr("cut off in entry 1"));
  EXPECT_THAT(std::string(ReadKeytab("/nonexistent/keytab").status().message()),
              testing::HasSubstr("/nonexistent/keytab"));
}

TEST(EnrollableKeys, TakesTheLatestVersionAndSharedBaseKeys) {
  const std::string file = kMagic + KeytabBytes({"alice"}, 1, 17, std::string(16, 'o')) +
                           KeytabBytes({"alice"}, 2, 17, std::string(16, 'n')) +
                           KeytabBytes({"alice"}, 2, 18, std::string(32, 'N')) +
                           KeytabBytes({"alice"}, 2, 20, std::string(32, 'S')) +
                           KeytabBytes({"alice"}, 2, 23, std::string(16, 'r')) +
                           KeytabBytes({"bob"}, 7, -24002, std::string(32, 'b'));
  auto principals = EnrollableKeys(*ParseKeytab(Bytes(file)));
  ASSERT_TRUE(principals.ok()) << principals.status();
  const KeytabKeys& alice = principals->at("alice@EXAMPLE.COM");
  EXPECT_EQ(alice.kvno, 2u);
  EXPECT_EQ(alice.keys.size(), 5u);
  for (const int32_t enctype : {kEnctypeAes128Gcm, kEnctypeAes128Sha1}) {
    EXPECT_EQ(Hex(alice.keys.at(enctype)), Hex(std::string(16, 'n')));
  }
  for (const int32_t enctype : {kEnctypeAes256Gcm, kEnctypeAes256Sha1}) {
    EXPECT_EQ(Hex(alice.keys.at(enctype)), Hex(std::string(32, 'N')));
  }
  EXPECT_EQ(Hex(alice.keys.at(kEnctypeAes256Sha384)), Hex(std::string(32, 'S')));
  const KeytabKeys& bob = principals->at("bob@EXAMPLE.COM");  // a gcm key alone stays one
  EXPECT_EQ(bob.keys.size(), 1u);
  EXPECT_EQ(bob.keys.count(kEnctypeAes256Gcm), 1u);
}

TEST(EnrollableKeys, RefusesContradictions) {
  const std::string two = kMagic + KeytabBytes({"alice"}, 2, 17, std::string(16, 'n')) +
                          KeytabBytes({"alice"}, 2, -24001, std::string(16, 'm'));
  EXPECT_FALSE(EnrollableKeys(*ParseKeytab(Bytes(two))).ok());
  const std::string same = kMagic + KeytabBytes({"alice"}, 2, 17, std::string(16, 'n')) +
                           KeytabBytes({"alice"}, 2, -24001, std::string(16, 'n'));
  EXPECT_TRUE(EnrollableKeys(*ParseKeytab(Bytes(same))).ok());
  const std::string size = kMagic + KeytabBytes({"alice"}, 2, 17, std::string(15, 'n'));
  EXPECT_FALSE(EnrollableKeys(*ParseKeytab(Bytes(size))).ok());
}

}  // namespace
}  // namespace mpckdc::enroll
