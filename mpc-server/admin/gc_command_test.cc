// SPDX-License-Identifier: Apache-2.0
// Deleted keys: shown, kept, ended at once; what doctor says of a database that still names them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "mpc-server/testing/admin_run_fixture.h"

namespace mpckdc::admin {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class GcTest : public RunTest {
 protected:
  size_t Held(int party = 0) { return realm_.servers[party]->committed().size(); }
};

TEST_F(GcTest, ReplacedKeysAreShownAndStay) {
  Expect(0, {"gc"}, {"no deleted keys"});
  Enroll(0, "alice");
  Enroll(0, "alice", {"--replace", "--delete-old"}, {"usable for the grace time"});
  EXPECT_EQ(Held(), 4u);
  ExpectKeys(2);
  Expect(0, {"gc"}, {"alice@EXAMPLE.COM", "USABLE UNTIL", " - "});
  const json keys = json::parse(Run({"gc", "--json"}).out)["keys"];
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys[0]["kvno"], 1);
  EXPECT_EQ(keys[0]["in_database"], false);
  const std::array<int64_t, 3> since = keys[0]["retired_us"];
  EXPECT_EQ(
      keys[0]["usable_until_us"].get<int64_t>() - *std::min_element(since.begin(), since.end()),
      absl::ToInt64Microseconds(absl::Hours(24)));
  Expect(0, {"list"}, {"DELETED"});
  Expect(0, {"doctor"}, {"2 deleted keys wait", "(2 keys in use)"});
  Expect(0, {"verify"}, {"4 keys good"});
}

TEST_F(GcTest, ADatabaseOfYesterdayIsSeenAndItsKeysKept) {
  Enroll(0, "alice");
  const FakeKdb yesterday = kdb_;
  Enroll(0, "alice", {"--replace", "--delete-old"});
  kdb_ = yesterday;
  Expect(1, {"gc"}, {"NAMES IT"}, {"mpc-admin gc --keep"});
  Expect(1, {"doctor"},
         {"names keys that were replaced or deleted", "mpc-admin gc --keep",
          "alice@EXAMPLE.COM version 1"});
  Expect(0, {"gc", "--keep"}, {"2 keys are in use again"});
  EXPECT_THAT(Expect(0, {"doctor"}).out, Not(HasSubstr("were replaced or deleted")));
  Expect(0, {"gc"}, {"no deleted keys"});
  // Those of today are the unused ones now.
  Expect(0, {"doctor", "--fix"}, {"deleted keys to which nothing refers"});
  EXPECT_EQ(json::parse(Run({"gc", "--json"}).out)["keys"][0]["kvno"], 2);
}

TEST_F(GcTest, AKeyThatOneServerHasCollectedCannotBeKept) {
  Enroll(0, "alice");
  const FakeKdb yesterday = kdb_;
  Enroll(0, "alice", {"--replace", "--delete-old"});
  kdb_ = yesterday;
  realm_.servers[1]->status().set_delete_grace_us(-1000);
  Expect(0, {"gc", "--collect"}, {"0, 2, 0"});
  Expect(1, {"gc", "--keep"}, {"0 keys are in use again"},
         {"alice@EXAMPLE.COM version 1 aes256-gcm on servers 0-2", "enroll --replace"});
  Expect(1, {"doctor"}, {"keys in use are missing on a server", "for different times"});
}

TEST_F(GcTest, EndsThemAtOnceButNotWhatTheDatabaseNames) {
  Enroll(0, "alice");
  Enroll(0, "bob");
  const FakeKdb yesterday = kdb_;
  Enroll(0, "alice", {"--replace", "--delete-old"});
  Expect(0, {"delete", "bob"}, {"usable for the grace time"});
  kdb_.principals["bob@EXAMPLE.COM"] = yesterday.principals.at("bob@EXAMPLE.COM");
  Expect(3, {"gc", "--now"}, {}, {"given up"});
  EXPECT_THAT(question_, HasSubstr("Delete 2 keys at once?"));
  EXPECT_EQ(Held(), 6u);
  yes_ = true;
  Expect(0, {"gc", "--now"}, {"2 keys deleted at once"}, {"2 more are named"});
  EXPECT_EQ(Held(), 4u);
  yes_ = false;
  Expect(0, {"gc", "--now", "--force", "--yes", "bob"}, {"2 keys deleted at once"});
  EXPECT_EQ(Held(), 2u);
}

// ATTACK. One server says of keys in use that they were deleted, and an administrator ends by force what
// was deleted of somebody.
TEST_F(GcTest, EndsNoKeyByOneServersWord) {
  Enroll(0, "bob");
  Enroll(0, "bob", {"--replace", "--delete-old"});
  Enroll(0, "alice");
  for (auto [handle, package] : realm_.servers[2]->committed()) {
    package.mutable_info()->set_retired_us(1);
    realm_.servers[2]->Plant(package);
  }
  const size_t before = realm_.servers[0]->committed().size();
  Expect(0, {"gc", "--now", "--force", "--yes"}, {"2 keys deleted at once"},
         {"which one server alone has deleted"});
  EXPECT_EQ(realm_.servers[0]->committed().size(), before - 2);
  EXPECT_EQ(realm_.servers[1]->committed().size(), before - 2);
}

TEST_F(GcTest, EndsNoKeyOfWhoShowsNoneInTheDatabase) {
  Enroll(0, "alice");
  Enroll(0, "alice", {"--replace", "--delete-old"});
  kdb_.principals["alice@EXAMPLE.COM"].clear();
  yes_ = true;
  Expect(0, {"gc", "--now"}, {"0 keys deleted at once"}, {"2 more are left", "--force"});
  EXPECT_EQ(Held(), 4u);
  Expect(0, {"gc", "--now", "--force"}, {"2 keys deleted at once"});
}

TEST_F(GcTest, DeleteNowIsAtOnce) {
  Enroll(0, "alice");
  Expect(0, {"delete", "alice", "--now"}, {"2 keys deleted from the servers"});
  EXPECT_EQ(Held(), 0u);
  Enroll(0, "alice");
  Expect(0, {"delete", "alice"});
  EXPECT_EQ(Held(), 2u);
  Expect(4, {"delete", "alice"}, {}, {"was deleted already", "delete --now"});
  Expect(0, {"delete", "alice", "--now"}, {"2 keys deleted"});
  EXPECT_EQ(Held(), 0u);
}

// A server that has the handle as another principal's refuses; the tool says which and why.
TEST_F(GcTest, AServersRefusalIsAnError) {
  Enroll(0, "alice");
  v1::SharePackage other = realm_.servers[2]->committed().begin()->second;
  other.mutable_info()->set_principal("bob@EXAMPLE.COM");
  realm_.servers[2]->Plant(other);
  const Outcome outcome = Expect(4, {"delete", "alice"}, {}, {"another principal's"});
  EXPECT_THAT(outcome.err, HasSubstr(Hex(other.info().handle())));
  EXPECT_EQ(realm_.servers[2]->in_use(), 1u) << "the other key was dealt with";
}

TEST_F(GcTest, AnOldServerIsNamed) {
  realm_.servers[1]->status().set_version(1);
  realm_.servers[1]->status().set_software("mpc-server 0.2.0");
  Expect(4, {"gc"}, {}, {"mpc-server 0.2.0", "speaks version 1", "this program 2"});
}

TEST_F(GcTest, OptionsThatDoNotGoTogether) {
  Expect(2, {"gc", "--now", "--keep"}, {}, {"one of"});
  Expect(2, {"gc", "--force"}, {}, {"--now"});
  Expect(2, {"gc", "--collect", "alice"}, {}, {"without a principal"});
}

}  // namespace
}  // namespace mpckdc::admin
