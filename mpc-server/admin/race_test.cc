// SPDX-License-Identifier: Apache-2.0
//
// What somebody else does while a command is between reading and writing: no old key comes back, no
// key that was made meanwhile is lost unseen, and none that is being made is deleted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/testing/admin_run_fixture.h"

namespace mpckdc::admin {
namespace {

using When = enroll::FakeAdminServer::When;

constexpr char kAlice[] = "alice@EXAMPLE.COM";

class RaceTest : public RunTest {
 protected:
  // What kadmind writes meanwhile.
  void Change(uint32_t kvno, char handle) {
    kdb_.principals[kAlice] = {KeyOf(kAlice, kvno, kEnctypeAes256Gcm, std::string(16, handle))};
  }
  std::vector<std::string> Named() { return HandlesOf(kdb_.principals[kAlice]); }
  std::string Keytab() {
    const std::string keytab = File("keytab-of-before");
    std::ofstream(keytab) << "\x05\x02" << KeytabEntry("alice", 18, std::string(32, 'a'));
    return keytab;
  }
  // At one server, before it does what `call` says.
  void Before(const std::string& call, std::function<void()> what) {
    realm_.servers[1]->set_fault([=, done = false](When when, const std::string& called) mutable {
      if (!done && when == When::kBefore && called == call) {
        done = true;
        what();
      }
      return grpc::Status::OK;
    });
  }
};

// ---- Keys that are being made ----

TEST_F(RaceTest, DoctorDeletesNoKeyThatIsBeingMade) {
  Enroll(0, "bob");
  kdb_.before_set = [this] { Expect(0, {"doctor", "--fix"}); };
  Enroll(0, "alice", {}, {}, {"before the KDC's database named them"});
  ExpectKeys(4);
  kdb_.before_set = [this] { Expect(0, {"delete", "--old", "--all"}); };
  Enroll(0, "carol");
  ExpectKeys(6);
  Expect(0, {"doctor"}, {"(6 keys in use)"});
}

TEST_F(RaceTest, NorOneOfMany) {
  Enroll(0, "bob");
  kdb_.before_set = [this] { Expect(0, {"doctor", "--fix"}); };
  Expect(0, {"enroll", "--all", "--keytab", Keytab()}, {"1 enrolled"});
  ExpectKeys(3);
  Expect(0, {"doctor"}, {"(3 keys in use)"});
}

// kadmind writes between doctor's look at the database and its deletion.
TEST_F(RaceTest, DoctorRestoresWhatCameIntoUse) {
  Enroll(0, "alice");
  Enroll(0, "bob");
  const std::vector<v1::KeyInfo> keys = kdb_.principals[kAlice];
  for (const bool doctor : {true, false}) {
    kdb_.principals.erase(kAlice);
    Before("DeleteKeys", [&] { kdb_.principals[kAlice] = keys; });
    if (doctor) {
      Expect(0, {"doctor", "--fix"}, {"2 keys that came into use meanwhile"});
    } else {
      Expect(0, {"delete", "--old", "--all"}, {}, {"2 keys came into use meanwhile"});
    }
    ExpectKeys(4);
  }
}

// A server goes down amid a deletion: whoever deleted is told that he did, and what to do.
TEST_F(RaceTest, WhereAServerGoesDownAmidADeletionTheNextStepIsSaid) {
  Enroll(0, "alice");
  Enroll(0, "bob");
  kdb_.principals.erase(kAlice);
  Before("DeleteKeys", [&] { realm_.servers[1]->FailCalls("ListKeys"); });
  Expect(3, {"delete", "--old", "--all"}, {},
         {"2 keys deleted, and whether", "run mpc-admin delete --old --all again", "mpc-admin gc"});
}

// ATTACK. The same, and one server says of its time and of each key's what it likes.
TEST_F(RaceTest, NoServerAloneMakesAKeyLookOld) {
  Enroll(0, "bob");
  v1::KeyInfo old = KeyOf(kAlice, 1, kEnctypeAes256Gcm, std::string(16, 'o'));
  old.set_retired_us(1);
  realm_.servers[0]->AlsoList(old);
  realm_.servers[0]->status().set_time_us(1);
  realm_.servers[0]->status().set_delete_grace_us(1);
  kdb_.before_set = [this] { Run({"doctor", "--fix"}); };
  Enroll(0, "alice");
  for (int party = 0; party < 3; ++party) EXPECT_EQ(Keys(party), 4u) << party;
}

// ---- Keys that are replaced ----

// A keytab's version may be higher than all that the database has.
TEST_F(RaceTest, AnOldKeyDoesNotComeBack) {
  for (const bool all : {false, true}) {
    Enroll(0, "alice", {"--replace"});
    kdb_.before_set = [this] { Change(2, 'n'); };
    Change(1, 'o');
    std::vector<std::string> command = {"enroll", "--replace", "--keytab", Keytab()};
    command.push_back(all ? "--all" : "alice");
    const Outcome outcome = Expect(all ? 1 : 4, command);
    EXPECT_THAT(outcome.out + outcome.err, testing::HasSubstr("changed meanwhile"));
    EXPECT_EQ(Named(), std::vector<std::string>{std::string(16, 'n')}) << "the user's new password";
  }
}

TEST_F(RaceTest, WhoWasDeletedAndMadeAnewKeepsHisKeys) {
  Enroll(0, "alice");
  kdb_.before_set = [this] { Change(1, 'n'); };
  Expect(4, {"randkey", "alice"});
  EXPECT_EQ(Named(), std::vector<std::string>{std::string(16, 'n')});
  kdb_.before_set = [this] { kdb_.principals.erase(kAlice); };
  Expect(4, {"randkey", "alice"});
  EXPECT_FALSE(kdb_.principals.contains(kAlice)) << "who was deleted does not come back";
  kdb_.before_set = [this] { Change(1, 'm'); };
  Enroll(4, "alice");
  EXPECT_EQ(Named(), std::vector<std::string>{std::string(16, 'm')});
}

// ATTACK. As with kadmind: an administrator has the gate narrowed while another one replaces the
// keys.
TEST_F(RaceTest, AGateThatIsNarrowedMeanwhileHolds) {
  for (const char* command : {"enroll", "randkey"}) {
    for (const auto& server : realm_.servers) server->Clear();
    kdb_.principals.clear();
    Enroll(0, "alice");
    const std::vector<std::string> before = Named();
    Before("CommitKeys", [&] {
      for (const auto& server : realm_.servers) {
        for (const std::string& handle : before) {
          v1::SharePackage package = server->committed()[handle];
          package.mutable_info()->set_gate(v1::GATE_PKINIT);
          server->Plant(package);
        }
      }
    });
    std::vector<std::string> arguments = {command, "alice"};
    if (command == std::string("enroll")) {
      arguments.insert(arguments.end(), {"--replace", "--password-stdin"});
    }
    Expect(3, arguments, {}, {"the gate of the keys of alice@EXAMPLE.COM was changed meanwhile"});
    ExpectKeys(2);
    EXPECT_EQ(Named(), before);
    realm_.servers[1]->set_fault(nullptr);
    Expect(0, arguments);
    for (const auto& [handle, package] : realm_.servers[2]->committed()) {
      EXPECT_EQ(package.info().gate(), v1::GATE_PKINIT);
    }
  }
}

TEST_F(RaceTest, NorDoesARunOverManyLoseIt) {
  Enroll(0, "alice");
  kdb_.before_set = [this] { Expect(0, {"policy", "alice", "--gate", "kdc-trusted"}); };
  Enroll(0, "alice", {"--replace"});  // the policy sees the new keys
  kdb_.before_set = [this] {
    for (const auto& server : realm_.servers) {
      for (const std::string& handle : Named()) {
        v1::SharePackage package = server->committed()[handle];
        package.mutable_info()->set_gate(v1::GATE_PKINIT);
        server->Plant(package);
      }
    }
  };
  Expect(0, {"enroll", "--all", "--replace", "--keytab", Keytab()}, {"1 enrolled"},
         {"the gate of the keys of alice@EXAMPLE.COM was changed meanwhile"});
  for (const auto& [handle, package] : realm_.servers[2]->committed()) {
    if (!absl::c_linear_search(Named(), handle)) continue;
    EXPECT_EQ(package.info().gate(), v1::GATE_PKINIT);
  }
}

// Gates are looked at once more when old keys are deleted, and one server lists another one.
TEST_F(RaceTest, NorDoesAServerThatLiesWidenIt) {
  Enroll(0, "alice");
  Expect(0, {"policy", "alice", "--gate", "pkinit"});
  v1::SharePackage invented = realm_.servers[1]->committed()[Named()[0]];
  invented.mutable_info()->set_handle(std::string(16, 'i'));
  invented.mutable_info()->set_gate(v1::GATE_TIMESTAMP);
  realm_.servers[1]->set_fault([=, this](When when, const std::string& called) {
    if (when == When::kBefore && called == "DeleteKeys") realm_.servers[1]->Plant(invented);
    return grpc::Status::OK;
  });
  Expect(0, {"enroll", "--all", "--replace", "--delete-old", "--keytab", Keytab()}, {"1 enrolled"});
  ASSERT_TRUE(realm_.servers[1]->committed().contains(std::string(16, 'i')));
  for (const std::string& handle : Named()) {
    EXPECT_EQ(realm_.servers[2]->committed()[handle].info().gate(), v1::GATE_PKINIT);
  }
}

}  // namespace
}  // namespace mpckdc::admin
