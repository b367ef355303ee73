// SPDX-License-Identifier: Apache-2.0
// Enrolment from a password or a keytab: what becomes of it, and what is left when it breaks off.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "mpc-server/testing/admin_run_fixture.h"

namespace mpckdc::admin {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

TEST_F(RunTest, EnrolsAPassword) {
  const Outcome outcome = Enroll(0, "alice", {}, {"alice@EXAMPLE.COM: version 1 enrolled"});
  ExpectKeys(2);
  ExpectKeysOfPassword("alice@EXAMPLE.COM");
  EXPECT_THAT(outcome.out + outcome.err, Not(HasSubstr(password_)));
}

TEST_F(RunTest, TheSamePrincipalTwiceNeedsReplace) {
  Enroll(0, "alice");
  Enroll(4, "alice", {}, {},
         {"has protected keys already, version 1", "next: repeat with --replace"});
  EXPECT_EQ(asked_, 0);
  ExpectKeys(2);

  Enroll(0, "alice", {"--replace"}, {"version 2", "old keys stay"});
  ExpectKeys(4);
  Enroll(0, "alice", {"--replace", "--delete-old"});
  ExpectKeys(4);
  Expect(0, {"delete", "--old", "alice"});
  ExpectKeys(2);
}

// One server that lies, or that was down when the gate was set, makes no gate wider; nor does it keep
// an administrator from replacing keys, who is told.
TEST_F(RunTest, NoServerAloneMakesAGateWider) {
  const auto gates = [&] {
    std::set<v1::Gate> now;
    for (const v1::KeyInfo& entry : kdb_.principals["alice@EXAMPLE.COM"]) {
      for (auto& server : realm_.servers) {
        now.insert(server->committed()[entry.handle()].info().gate());
      }
    }
    return now;
  };
  const auto lie = [&](int party, v1::Gate gate) {
    for (auto [handle, package] : realm_.servers[party]->committed()) {
      package.mutable_info()->set_gate(gate);
      realm_.servers[party]->Plant(package);
    }
  };
  const char kDiffer[] = "do not agree on gate or class of the keys of alice@EXAMPLE.COM";
  Enroll(0, "alice", {"--gate", "pkinit"});
  for (int party = 0; party < 3; ++party) {
    lie(party, v1::GATE_NONE);
    Enroll(0, "alice", {"--replace", "--delete-old"}, {}, {kDiffer, "gate pkinit"});
    EXPECT_EQ(gates(), std::set<v1::Gate>{v1::GATE_PKINIT}) << party;
  }
  Enroll(0, "alice", {"--replace", "--delete-old", "--gate", "timestamp"});
  for (int party = 0; party < 3; ++party) {
    for (const v1::Gate gate : {v1::GATE_KDC_TRUSTED, v1::GATE_TIMESTAMP_OR_PKINIT}) {
      lie(party, gate);
      Expect(0, {"randkey", "alice", "--delete-old"}, {}, {kDiffer, "gate timestamp"});
      EXPECT_EQ(gates(), std::set<v1::Gate>{v1::GATE_TIMESTAMP}) << party;
    }
  }
  // On what all three say there is nothing to be told, nor where the administrator decides himself.
  for (int party = 0; party < 3; ++party) lie(party, v1::GATE_KDC_TRUSTED);
  EXPECT_THAT(Enroll(0, "alice", {"--replace", "--delete-old"}).err, Not(HasSubstr("agree")));
  EXPECT_EQ(gates(), std::set<v1::Gate>{v1::GATE_KDC_TRUSTED});
  lie(1, v1::GATE_NONE);
  EXPECT_THAT(Enroll(0, "alice", {"--replace", "--gate", "pkinit"}).err, Not(HasSubstr("agree")));
  EXPECT_EQ(gates(), std::set<v1::Gate>{v1::GATE_PKINIT});
}

// The same of one that says that it has none, or that they are of another class.
TEST_F(RunTest, NoServerAloneMakesAnotherClass) {
  Enroll(0, "alice", {"--class", "service", "--gate", "kdc-trusted"});
  realm_.servers[0]->Clear();
  Enroll(0, "alice", {"--replace", "--delete-old"}, {}, {"do not agree on gate or class"});
  for (const v1::KeyInfo& entry : kdb_.principals["alice@EXAMPLE.COM"]) {
    const v1::KeyInfo info = realm_.servers[2]->committed()[entry.handle()].info();
    EXPECT_EQ(info.gate(), v1::GATE_TIMESTAMP);
    EXPECT_EQ(info.key_class(), v1::KEY_CLASS_USER) << "as the name says";
  }
}

TEST_F(RunTest, InterruptedBetweenServersNothingIsUsableAndARerunWorks) {
  realm_.servers[1]->FailCalls("StageKeys");
  Enroll(3, "alice", {}, {}, {realm_.servers[1]->address(), "no key was changed", "next: "});
  ExpectKeys(0);
  EXPECT_TRUE(kdb_.principals.empty());
  realm_.servers[1]->set_fault(nullptr);
  Enroll(0, "alice");
  ExpectKeys(2);
}

// Killed between servers one and two: nobody was there to clean up.
TEST_F(RunTest, DoctorNamesWhatAKilledEnrolmentLeft) {
  v1::DrawKeyRequest request;  // stages at one fake server only
  request.set_transaction("0123456789abcdef");
  request.mutable_info()->set_handle("fedcba9876543210");
  request.mutable_info()->set_principal("alice@EXAMPLE.COM");
  request.mutable_info()->set_kvno(1);
  request.mutable_info()->set_enctype(kEnctypeAes256Gcm);
  ASSERT_TRUE(realm_.servers[0]->DrawKey(nullptr, &request, nullptr).ok());
  Expect(0, {"doctor"}, {"alice@EXAMPLE.COM version 1 aes256-gcm on servers 0--"});
  Enroll(0, "alice");
  Expect(0, {"list", "--staged"}, {"alice@EXAMPLE.COM"});
}

TEST_F(RunTest, AFailedKdbWriteTakesTheKeysBack) {
  kdb_.fail_set = absl::FailedPreconditionError("database is read-only");
  Enroll(4, "alice", {}, {}, {"database is read-only; no key was changed"});
  ExpectKeys(0);
}

TEST_F(RunTest, AKdbWriteWhoseAnswerIsLostIsFoundOut) {
  kdb_.fail_set = absl::UnavailableError("connection lost");
  kdb_.set_all_the_same = true;
  Enroll(0, "alice");
  ExpectKeys(2);
}

TEST_F(RunTest, AnotherDatabaseDeletesNothing) {
  Enroll(0, "alice");
  kdb_.principals.clear();
  Expect(4, {"delete", "--old", "--all"}, {}, {"refers to none of the servers' keys"});
  Expect(1, {"doctor", "--fix"});
  ExpectKeys(2);
}

TEST_F(RunTest, AKdbThatCannotBeReadKeepsTheKeys) {
  Enroll(0, "bob");
  kdb_.fail_set = kdb_.fail_list = absl::UnavailableError("connection lost");
  Enroll(5, "alice", {}, {}, {"may or may not have the new keys", "doctor"});
  ExpectKeys(4);
  kdb_.fail_set = kdb_.fail_list = absl::OkStatus();
  Expect(0, {"doctor", "--fix"});
  ExpectKeys(2);
}

TEST_F(RunTest, InitRealmIsHarmlessTwice) {
  for (auto& server : realm_.servers) server->status().set_initialised(false);
  Enroll(4, "alice", {}, {}, {"next: run mpc-admin init-realm"});
  Expect(1, {"doctor"}, {"next: mpc-admin init-realm"});
  Expect(0, {"init-realm"}, {"now kdb5_util create makes"});
  Expect(0, {"init-realm"}, {"ready already"});
  Enroll(0, "alice");
}

TEST_F(RunTest, EnrolsFromAKeytab) {
  const std::string keytab = File("keytab");
  std::ofstream(keytab) << "\x05\x02" << KeytabEntry("alice", 18, std::string(32, 'a'))
                        << KeytabEntry("bob", 17, std::string(16, 'b'))
                        << KeytabEntry("carol", 23, std::string(16, 'c'));
  Expect(0, {"enroll", "alice", "--keytab", keytab},
         {"version 3 enrolled from the keytab (aes256-gcm)"});
  EXPECT_EQ(realm_.Joined(kdb_.principals["alice@EXAMPLE.COM"][0].handle()), std::string(32, 'a'));
  // Carol's key cannot be enrolled.
  const json result = json::parse(Expect(1, {"enroll", "--all", "--keytab", keytab, "--json"}).out);
  EXPECT_EQ(result["enrolled"].size(), 1u);
  EXPECT_EQ(result["already"], json({"alice@EXAMPLE.COM"}));
  EXPECT_EQ(result["failed"][0]["principal"], "carol@EXAMPLE.COM");
  ExpectKeys(2);
}

// With the realm's list one key of enctype 18 becomes two, of 17 two, of 19 and 20 one each.
TEST_F(RunTest, EnrolsAKeytabsKeysAsEverythingThatTheyAre) {
  kdb_.enctypes = kAllEnctypes;
  const std::string keytab = File("keytab-of-six");
  std::ofstream(keytab) << "\x05\x02" << KeytabEntry("alice", 18, std::string(32, 'a'))
                        << KeytabEntry("alice", 17, std::string(16, 'b'))
                        << KeytabEntry("alice", 20, std::string(32, 'c'))
                        << KeytabEntry("alice", 19, std::string(16, 'd'))
                        << KeytabEntry("bob", 18, std::string(32, 'e'));
  for (const bool all : {false, true}) {
    for (auto& server : realm_.servers) server->Clear();
    kdb_.principals.clear();
    Expect(0, {"enroll", "--keytab", keytab, all ? "--all" : "alice"});
    std::map<int32_t, std::string> keys;
    for (const v1::KeyInfo& entry : kdb_.principals["alice@EXAMPLE.COM"]) {
      keys[entry.enctype()] = realm_.Joined(entry.handle());
    }
    EXPECT_EQ(keys, (std::map<int32_t, std::string>{{kEnctypeAes256Gcm, std::string(32, 'a')},
                                                    {kEnctypeAes256Sha1, std::string(32, 'a')},
                                                    {kEnctypeAes128Gcm, std::string(16, 'b')},
                                                    {kEnctypeAes128Sha1, std::string(16, 'b')},
                                                    {kEnctypeAes256Sha384, std::string(32, 'c')},
                                                    {kEnctypeAes128Sha256, std::string(16, 'd')}}));
    EXPECT_EQ(kdb_.principals["bob@EXAMPLE.COM"].size(), all ? 2u : 0u);
    ExpectKeys(all ? 8 : 6);
  }
}

// A password gives a key of every enctype that the realm plans, in one transaction.
TEST_F(RunTest, EnrolsAPasswordInEveryEnctype) {
  kdb_.enctypes = kAllEnctypes;
  const int commits = realm_.servers[0]->calls("CommitKeys");
  Enroll(0, "alice");
  EXPECT_EQ(realm_.servers[0]->calls("CommitKeys"), commits + 1);
  ExpectKeys(6);
  ExpectKeysOfPassword("alice@EXAMPLE.COM");
  Expect(0, {"list", "alice"},
         {"aes256-gcm", "aes256-cts-hmac-sha1-96", "aes128-cts-hmac-sha256-128"});
  Expect(0, {"doctor"});
  Expect(0, {"verify"});
  Expect(0, {"randkey", "alice", "--enctype", "aes256-cts,aes256-sha2"});
  EXPECT_EQ(kdb_.principals["alice@EXAMPLE.COM"].size(), 2u);
}

}  // namespace
}  // namespace mpckdc::admin
