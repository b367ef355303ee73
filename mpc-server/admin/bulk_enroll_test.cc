// SPDX-License-Identifier: Apache-2.0
// Many principals at once: few calls, and a run that goes on where another one stopped.
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "mpc-server/admin/import.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/testing/admin_run_fixture.h"

namespace mpckdc::admin {
namespace {

using When = enroll::FakeAdminServer::When;

class BulkTest : public RunTest {
 protected:
  // More than two chunks.
  static constexpr size_t kUsers = 2 * limits::kBulkPrincipals + 100;

  BulkTest() : keytab_(File("many")) {
    kdb_.enctypes = {kEnctypeAes128Gcm};
    std::ofstream out(keytab_);
    out << "\x05\x02";
    for (size_t i = 0; i < kUsers; ++i) out << KeytabEntry(User(i), 17, Key(i));
  }

  static std::string User(size_t i) { return absl::StrFormat("u%05d", i); }
  static std::string Key(size_t i) { return absl::StrFormat("key of user %04d", i); }
  Outcome EnrolAll(int code, const std::vector<std::string>& in_out = {},
                   const std::vector<std::string>& in_err = {}) {
    return Expect(code, {"enroll", "--all", "--keytab", keytab_}, in_out, in_err);
  }
  // Who is in the database has a key on all three servers, and it is the right one.
  void ExpectNobodyHalfEnrolled() {
    const auto committed = realm_.servers[0]->committed();
    for (const auto& [principal, entries] : kdb_.principals) {
      ASSERT_EQ(entries.size(), 1u);
      ASSERT_EQ(committed.count(entries[0].handle()), 1u) << principal;
    }
    for (size_t user : {size_t{0}, kdb_.principals.size() - 1}) {
      EXPECT_EQ(realm_.Joined(kdb_.principals[User(user) + "@EXAMPLE.COM"][0].handle()), Key(user));
    }
  }

  const std::string keytab_;
};

TEST_F(BulkTest, EnrolsEverybodyInFewCalls) {
  EnrolAll(0, {absl::StrCat(kUsers, " enrolled, 0 had protected keys")});
  ExpectKeys(kUsers);
  EXPECT_EQ(kdb_.principals.size(), kUsers);
  ExpectNobodyHalfEnrolled();
  EXPECT_EQ(realm_.servers[1]->calls("CommitKeys"), 3);
  EnrolAll(0, {absl::StrCat("0 enrolled, ", kUsers, " had protected keys")});
  ExpectKeys(kUsers);
}

// Whichever call of whichever server fails in the second chunk: the first one stays, the second
// leaves nothing, and the same command goes on.
TEST_F(BulkTest, GoesOnAfterAServerFailed) {
  for (const char* method : {"StageKeys", "CommitKeys"}) {
    SCOPED_TRACE(method);
    for (auto& server : realm_.servers) server->Clear();
    kdb_.principals.clear();
    realm_.servers[1]->FailCalls(method, When::kBefore, grpc::StatusCode::UNAVAILABLE,
                                 /*times=*/1000, /*spared=*/1);
    EnrolAll(
        3, {},
        {absl::StrCat("stopped after ", limits::kBulkPrincipals), "it goes on where it stopped"});
    ExpectKeys(limits::kBulkPrincipals);
    EXPECT_EQ(kdb_.principals.size(), limits::kBulkPrincipals);
    realm_.servers[1]->set_fault(nullptr);
    EnrolAll(0, {absl::StrCat(kUsers - limits::kBulkPrincipals, " enrolled, ",
                              limits::kBulkPrincipals, " had protected keys already")});
    ExpectKeys(kUsers);
    ExpectNobodyHalfEnrolled();
  }
}

// mpc-kdb dies in the middle of a chunk: whom it wrote are enrolled, the others' keys are
// withdrawn.
TEST_F(BulkTest, GoesOnAfterTheDatabaseFailed) {
  kdb_.fail_set_after = static_cast<int>(limits::kBulkPrincipals) + 7;
  EnrolAll(3, {}, {"ended by signal 9"});
  EXPECT_EQ(kdb_.principals.size(), limits::kBulkPrincipals + 7);
  ExpectKeys(limits::kBulkPrincipals + 7);
  EnrolAll(0);
  ExpectKeys(kUsers);
  ExpectNobodyHalfEnrolled();
}

TEST_F(BulkTest, AnUnreadableDatabaseKeepsTheKeysAndSaysSo) {
  kdb_.fail_set_after = 3;
  kdb_.fail_list_after = 1;
  EnrolAll(5, {}, {"may or may not have the last keys"});
  EXPECT_GE(Keys(0), limits::kBulkPrincipals) << "the database may name them";
}

TEST_F(BulkTest, OneRefusedPrincipalDoesNotStopTheOthers) {
  kdb_.fail_one = "u00003@EXAMPLE.COM";
  EnrolAll(1, {"u00003@EXAMPLE.COM: no room"});
  EXPECT_EQ(kdb_.principals.size(), kUsers - 1);
  ExpectKeys(kUsers - 1);
}

TEST_F(BulkTest, ReplacesAndDeletesTheOldKeys) {
  Expect(0, {"enroll", "--all", "--keytab", keytab_, "--gate", "none"});
  const auto before = kdb_.principals;
  Expect(0, {"enroll", "--all", "--keytab", keytab_, "--replace", "--delete-old"});
  ExpectKeys(kUsers);
  ExpectNobodyHalfEnrolled();
  const v1::KeyInfo& entry = kdb_.principals["u00007@EXAMPLE.COM"][0];
  EXPECT_NE(entry.handle(), before.at("u00007@EXAMPLE.COM")[0].handle());
  EXPECT_EQ(entry.kvno(), 4u) << "the keytab says 3, which the database had";
  EXPECT_EQ(realm_.servers[2]->committed()[entry.handle()].info().gate(), v1::GATE_NONE)
      << "replaced keys keep their gate";
}

TEST_F(BulkTest, NoServerAloneMakesAGateWider) {
  EnrolAll(0);
  for (auto [handle, package] : realm_.servers[0]->committed()) {
    package.mutable_info()->set_gate(v1::GATE_NONE);
    realm_.servers[0]->Plant(package);
  }
  Expect(0, {"enroll", "--all", "--keytab", keytab_, "--replace", "--delete-old"}, {},
         {"do not agree on gate or class of the keys of u00007@EXAMPLE.COM"});
  for (const auto& [principal, keys] : kdb_.principals) {
    EXPECT_EQ(realm_.servers[0]->committed()[keys[0].handle()].info().gate(), v1::GATE_TIMESTAMP)
        << principal;
  }
}

TEST_F(BulkTest, CtrlCEndsWhatIsBegun) {
  realm_.servers[0]->set_fault([](When when, const std::string& called) {
    if (when == When::kBefore && called == "StageKeys") raise(SIGINT);
    return grpc::Status::OK;
  });
  EnrolAll(3, {}, {absl::StrCat("stopped after ", limits::kBulkPrincipals)});
  ExpectKeys(limits::kBulkPrincipals);
  EXPECT_EQ(kdb_.principals.size(), limits::kBulkPrincipals);
}

// A new password is on the servers before it is in the database. While mpc-admin looks for what an import
// that was killed has left there it must not take such keys away: the database names them a moment later.
TEST_F(RunTest, WhatAnImportLeftIsNoKeyThatSomebodyIsMaking) {
  Enroll(0, "alice");
  const std::string made(16, 'm'), left(16, 'l');
  for (const auto& server : realm_.servers) {
    v1::SharePackage package = server->committed().begin()->second;
    package.mutable_info()->set_handle(left);
    server->Plant(package);
    package.mutable_info()->set_handle(made);
    package.mutable_info()->set_kvno(2);
    server->Plant(package);
  }
  std::ostringstream out, err;
  Environment environment;
  environment.dial = [this](const AdminConfig&, size_t) { return realm_.Connect(); };
  environment.kdb_program = [this](const AdminConfig&) {
    return [this](const auto& arguments, const auto& input, bool) {
      return kdb_.Run(arguments, input);
    };
  };
  Console console(&out, &err, {});
  Session session(*LoadConfig(config_), Options(), &environment, &console);
  ASSERT_TRUE(session.Connect().ok());
  const absl::Status deleted = DeleteLeftovers(session, {"alice@EXAMPLE.COM"});
  EXPECT_TRUE(deleted.ok()) << deleted;
  for (const auto& server : realm_.servers) {
    EXPECT_EQ(server->committed().count(left), 0u);
    EXPECT_EQ(server->committed().count(made), 1u) << "who changed the password is locked out";
  }
}

}  // namespace
}  // namespace mpckdc::admin
