// SPDX-License-Identifier: Apache-2.0
// Keys that the servers draw, and what is done with keys that are there: list, verify, policy,
// delete; which enctypes and classes they have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mpc-server/testing/admin_run_fixture.h"

namespace mpckdc::admin {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

TEST_F(RunTest, RandkeyLetsTheServersDraw) {
  const Outcome outcome = Expect(0, {"randkey", "krbtgt/EXAMPLE.COM", "--json"});
  EXPECT_EQ(json::parse(outcome.out)["keys"].size(), 2u);
  for (auto& server : realm_.servers) {
    EXPECT_EQ(server->calls("DrawKey"), 2);
    EXPECT_EQ(server->calls("StageKeys"), 0);
    for (const auto& [handle, package] : server->committed()) {
      EXPECT_EQ(package.info().key_class(), v1::KEY_CLASS_TGS);
    }
  }
  // The old ticket-granting keys stay in the database, until somebody wants their tickets to end.
  Expect(0, {"randkey", "krbtgt/EXAMPLE.COM"},
         {"version 2", "tickets under the old keys stay good until mpc-admin rotate-krbtgt"});
  EXPECT_EQ(kdb_.principals["krbtgt/EXAMPLE.COM@EXAMPLE.COM"].size(), 4u);
  ExpectKeys(4);
  Expect(0, {"randkey", "krbtgt/EXAMPLE.COM", "--delete-old"}, {"the old keys are deleted"});
  EXPECT_EQ(kdb_.principals["krbtgt/EXAMPLE.COM@EXAMPLE.COM"].size(), 2u);
  ExpectKeys(2);
}

TEST_F(RunTest, DeletesPrincipalAndKeys) {
  Enroll(0, "alice");
  Enroll(0, "bob");
  Expect(0, {"delete", "alice"});
  EXPECT_EQ(kdb_.principals.count("alice@EXAMPLE.COM"), 0u);
  ExpectKeys(2);
  Expect(4, {"delete", "alice"}, {}, {"alice@EXAMPLE.COM was deleted already"});
  Expect(4, {"delete", "carol"}, {}, {"neither the KDC nor the servers know carol@EXAMPLE.COM"});
  Expect(0, {"randkey", "krbtgt/EXAMPLE.COM"});
  Expect(4, {"delete", "krbtgt/EXAMPLE.COM"});
  ExpectKeys(4);
}

// A new password is on the servers before it is in the database.
TEST_F(RunTest, OldKeysAreNoneThatSomebodyIsMaking) {
  Enroll(0, "alice");
  const std::string made(16, 'm'), old(16, 'o');
  for (const auto& server : realm_.servers) {
    v1::SharePackage package = server->committed().begin()->second;
    package.mutable_info()->set_handle(old);
    server->Plant(package);
    package.mutable_info()->set_handle(made);
    package.mutable_info()->set_kvno(2);
    server->Plant(package);
  }
  Expect(0, {"delete", "--old", "--now", "alice"}, {"1 key deleted"}, {"left: 1 key newer"});
  for (const auto& server : realm_.servers) {
    EXPECT_EQ(server->committed().count(old), 0u);
    EXPECT_EQ(server->committed().count(made), 1u) << "who changed the password is locked out";
  }
}

TEST_F(RunTest, ListsVerifiesAndSetsPolicy) {
  Expect(0, {"list"}, {"the servers hold no keys yet"});
  Enroll(0, "alice");
  Expect(0, {"list"}, {"012"});
  EXPECT_EQ(json::parse(Run({"list", "--json"}).out)["keys"].size(), 2u);
  Expect(0, {"verify"}, {"2 keys good"});
  Expect(0, {"policy", "alice", "--gate", "kdc-trusted"}, {"gate kdc-trusted"});
  // Replaced keys keep their gate.
  Enroll(0, "alice", {"--replace", "--delete-old"});
  Expect(0, {"policy", "alice"}, {"version 2 aes256-gcm: gate kdc-trusted"});
  realm_.servers[2]->FailCalls("SetPolicy");
  Expect(5, {"policy", "alice", "--gate", "none"}, {}, {"not undone everywhere"});
  for (const auto& [handle, package] : realm_.servers[0]->committed()) {
    EXPECT_EQ(package.info().gate(), v1::GATE_KDC_TRUSTED) << "not put back";
  }
}

// ATTACK. One server says that somebody else's key is the principal's, whose gate is to be opened; or
// what the gate was before.
TEST_F(RunTest, NoServerAloneOpensAGate) {
  Enroll(0, "alice");
  Enroll(0, "bob");
  const auto lie = [&](int party, auto change) {
    for (auto [handle, package] : realm_.servers[party]->committed()) {
      change(*package.mutable_info());
      realm_.servers[party]->Plant(package);
    }
  };
  const auto expect_gates = [&](int party, const std::string& principal, v1::Gate gate) {
    for (const auto& [handle, package] : realm_.servers[party]->committed()) {
      if (package.info().principal() == principal) {
        EXPECT_EQ(package.info().gate(), gate) << party << " of " << principal;
      }
    }
  };
  lie(2, [](v1::KeyInfo& info) { info.set_principal("alice@EXAMPLE.COM"); });
  Expect(5, {"policy", "alice", "--gate", "none"}, {}, {"do not all say that they are alice"});
  expect_gates(0, "bob@EXAMPLE.COM", v1::GATE_TIMESTAMP);
  expect_gates(1, "bob@EXAMPLE.COM", v1::GATE_TIMESTAMP);
  realm_.servers[2]->Clear();
  for (const auto& [handle, package] : realm_.servers[0]->committed()) {
    realm_.servers[2]->Plant(package);
  }
  lie(0, [](v1::KeyInfo& info) { info.set_gate(v1::GATE_NONE); });
  realm_.servers[0]->FailCalls("SetPolicy", enroll::FakeAdminServer::When::kBefore,
                               grpc::StatusCode::UNAVAILABLE, 1);
  Expect(3, {"policy", "alice", "--gate", "kdc-trusted"}, {}, {"the policy is as before"});
  expect_gates(1, "alice@EXAMPLE.COM", v1::GATE_TIMESTAMP);
  expect_gates(2, "alice@EXAMPLE.COM", v1::GATE_TIMESTAMP);
}

// ATTACK. Who knows the password and is to need a certificate from now on changes it again and again:
// kadmind has asked for the gate before, and commits keys with that one after the tool has listed them.
TEST_F(RunTest, AGateIsThatOfKeysWhichCameMeanwhile) {
  Enroll(0, "alice");
  using Fault = enroll::FakeAdminServer::Fault;
  const auto commit_meanwhile = [&](uint32_t times) {
    for (const auto& server : realm_.servers) {
      auto left = std::make_shared<uint32_t>(times);
      enroll::FakeAdminServer* const fake = server.get();
      const Fault fault = [fake, left](enroll::FakeAdminServer::When when, const std::string& call) {
        if (call == "SetPolicy" && when == enroll::FakeAdminServer::When::kBefore && *left > 0) {
          v1::SharePackage package = fake->committed().begin()->second;
          package.mutable_info()->set_handle(std::string(16, static_cast<char>('a' + *left)));
          package.mutable_info()->set_gate(v1::GATE_TIMESTAMP);
          fake->Plant(package);
          --*left;
        }
        return grpc::Status::OK;
      };
      server->set_fault(fault);
    }
  };
  commit_meanwhile(1);
  Expect(0, {"policy", "alice", "--gate", "pkinit"}, {"gate pkinit"});
  for (const auto& server : realm_.servers) {
    EXPECT_EQ(server->committed().size(), 3u);
    for (const auto& [handle, package] : server->committed()) {
      EXPECT_EQ(package.info().gate(), v1::GATE_PKINIT) << handle;
    }
  }
  commit_meanwhile(100);
  Expect(5, {"policy", "alice", "--gate", "kdc-trusted"}, {}, {"new keys of alice@EXAMPLE.COM"});
}

// Each server collects what was deleted by itself.
TEST_F(RunTest, AGateIsSetWhileOneServerHasCollectedAlready) {
  Enroll(0, "alice");
  Enroll(0, "alice", {"--replace", "--delete-old"});
  const auto packages = realm_.servers[1]->committed();
  realm_.servers[1]->Clear();
  size_t collected = 0;
  for (const auto& [handle, package] : packages) {
    if (package.info().retired_us() != 0) {
      ++collected;
    } else {
      realm_.servers[1]->Plant(package);
    }
  }
  ASSERT_GT(collected, 0u);
  Expect(0, {"policy", "alice", "--gate", "kdc-trusted"}, {"gate kdc-trusted"});
  for (const auto& server : realm_.servers) {
    for (const auto& [handle, package] : server->committed()) {
      if (package.info().retired_us() != 0) continue;
      EXPECT_EQ(package.info().gate(), v1::GATE_KDC_TRUSTED);
    }
  }
}

TEST_F(RunTest, VerifyFindsAKeyWhoseRecordsDoNotFit) {
  Enroll(0, "alice");
  v1::SharePackage damaged = realm_.servers[2]->committed().begin()->second;
  damaged.clear_usages();
  realm_.servers[2]->Plant(damaged);
  Expect(1, {"verify", "alice"}, {"BAD   alice@EXAMPLE.COM version 1", "1 key good"});
}

// One that lies about a key that nobody knows gets neither a crash nor a verdict.
TEST_F(RunTest, VerifyNamesAServerThatSpeaksOfAnotherKey) {
  Enroll(0, "alice");
  realm_.servers[2]->AlsoVerify(std::string(16, 'x'));
  Expect(5, {"verify", "alice"}, {}, {"party 2 speaks of key 78787878"});
}

// Servers reduce a deleted key that a password history names each by itself.
TEST_F(RunTest, VerifyLooksAgainAtADeletedKeyThatOneServerHasReduced) {
  Enroll(0, "alice");
  v1::SharePackage whole = realm_.servers[2]->committed().begin()->second;
  whole.mutable_info()->set_retired_us(1);
  whole.mutable_info()->set_for_history(true);
  for (int party = 0; party < 3; ++party) realm_.servers[party]->Plant(whole);
  v1::SharePackage reduced = whole;
  reduced.clear_usages();
  realm_.servers[2]->Plant(reduced);
  std::thread others([&] {
    while (realm_.servers[2]->calls("VerifyKeys") == 0) absl::SleepFor(absl::Milliseconds(20));
    realm_.servers[2]->Plant(whole);  // the fake calls a record without usages bad: all are alike now
  });
  Expect(0, {"verify", "alice"}, {"2 keys good"});
  others.join();

  realm_.servers[2]->Plant(reduced);
  Expect(1, {"verify", "alice"}, {"BAD   alice@EXAMPLE.COM version 1", "1 key good"});
}

TEST_F(RunTest, ATicketGrantingKeyIsOfGcm) {
  kdb_.enctypes = {kEnctypeAes256Sha1, kEnctypeAes256Gcm, kEnctypeAes256Sha384};
  const std::string krbtgt = "krbtgt/EXAMPLE.COM@EXAMPLE.COM";
  Expect(0, {"randkey", "krbtgt/EXAMPLE.COM"});
  ASSERT_EQ(kdb_.principals[krbtgt].size(), 1u);
  EXPECT_EQ(kdb_.principals[krbtgt][0].enctype(), kEnctypeAes256Gcm);
  Expect(2, {"randkey", "krbtgt/EXAMPLE.COM", "--enctype", "aes256-cts"}, {},
         {"aes256-cts-hmac-sha1-96"});
  EXPECT_EQ(kdb_.principals[krbtgt].size(), 1u);
  // The key by which the other realm sends us users is in this database too.
  Expect(4, {"list", "krbtgt/EXAMPLE.COM@OTHER.ORG"}, {}, {"the servers hold no key of"});
  Expect(2, {"list", "krbtgt/OTHER.ORG@OTHER.ORG"}, {}, {"belongs to realm OTHER.ORG"});
  Expect(0, {"randkey", "krbtgt/OTHER.ORG", "--enctype", "aes256-cts"});
  EXPECT_EQ(kdb_.principals["krbtgt/OTHER.ORG@EXAMPLE.COM"].back().enctype(), kEnctypeAes256Sha1);
}

// kadmin's keys too; those from before are named, and one command replaces them all.
TEST_F(RunTest, KeysOfKadminAreOfGcm) {
  kdb_.enctypes = kAllEnctypes;
  const auto of_kadmin = [&](const std::string& name) -> std::vector<v1::KeyInfo>& {
    return kdb_.principals[absl::StrCat("kadmin/", name, "@EXAMPLE.COM")];
  };
  Enroll(0, "kadmin/admin");
  EXPECT_EQ(of_kadmin("admin").size(), 2u);
  Expect(2, {"randkey", "kadmin/admin", "--enctype", "aes256-cts"}, {},
         {"kadmin/admin@EXAMPLE.COM must have keys of aes256-gcm or aes128-gcm"});
  Expect(2, {"randkey"}, {}, {"name a PRINCIPAL, or say --kadmin"});
  Expect(2, {"randkey", "kadmin/admin", "--kadmin"});
  Expect(0, {"doctor"});
  Expect(0, {"randkey", "--kadmin"}, {"every kadmin/* principal has gcm keys alone"});

  // As a realm from before has them. The fake servers hold the keys under other types.
  Enroll(0, "kadmin/changepw");
  Enroll(0, "kadmin/host.example.com");
  for (const char* name : {"changepw", "host.example.com"}) {
    of_kadmin(name)[0].set_enctype(kEnctypeAes256Sha1);
  }
  Expect(1, {"doctor"},
         {"which the servers no longer use: kadmin/changepw@EXAMPLE.COM, "
          "kadmin/host.example.com@EXAMPLE.COM",
          "mpc-admin randkey --kadmin"});
  const std::vector<v1::KeyInfo> admin = of_kadmin("admin");
  const json told = json::parse(Expect(0, {"randkey", "--kadmin", "--json"}).out);
  EXPECT_EQ(told["principals"].size(), 2u);
  EXPECT_EQ(of_kadmin("admin")[0].handle(), admin[0].handle()) << "it was good";
  for (const char* name : {"changepw", "host.example.com"}) {
    for (const v1::KeyInfo& key : of_kadmin(name)) EXPECT_LT(key.enctype(), 0);
  }
  ExpectKeys(6);  // the old ones are gone
  Expect(0, {"doctor"});
}

// A run that was killed after it wrote to the database and before it deleted leaves what `randkey`
// without --delete-old leaves.
TEST_F(RunTest, RandkeyKadminDeletesWhatAKilledRunLeft) {
  Enroll(0, "alice");
  Expect(0, {"randkey", "alice"});  // whose old keys are not its business
  Enroll(0, "kadmin/admin");
  kdb_.principals.erase("kadmin/admin@EXAMPLE.COM");  // as if it were being made
  Enroll(0, "kadmin/changepw");
  Expect(0, {"randkey", "kadmin/changepw"});
  ExpectKeys(10);
  Expect(0, {"doctor"}, {"keys to which the KDC does not refer", "kadmin/changepw"});
  Expect(0, {"randkey", "--kadmin"},
         {"kadmin/changepw@EXAMPLE.COM version 1 aes256-gcm: left by an earlier run, deleted"});
  ExpectKeys(8);
  EXPECT_THAT(Expect(0, {"doctor"}).out, Not(HasSubstr("kadmin/changepw")));
  EXPECT_THAT(Expect(0, {"randkey", "--kadmin"}).out, Not(HasSubstr("deleted")));
}

// ATTACK. One server says that a gate is a wider one. doctor sends the administrator to look at the list
// and set the gate again: he must not take the lie for what was set.
TEST_F(RunTest, NoServerAloneShowsAWiderGate) {
  Enroll(0, "alice");
  Expect(0, {"policy", "alice", "--gate", "pkinit"}, {"gate pkinit"});
  for (auto [handle, package] : realm_.servers[0]->committed()) {
    package.mutable_info()->set_gate(v1::GATE_NONE);
    realm_.servers[0]->Plant(package);
  }
  Expect(1, {"doctor"}, {"servers and KDC describe keys differently: alice@EXAMPLE.COM"});
  Expect(5, {"list", "alice"}, {"none/pkinit/pkinit"});
  Expect(5, {"policy", "alice"}, {"gate none/pkinit/pkinit"},
         {"the servers do not hold the same: run mpc-admin doctor"});
  const json key = json::parse(Run({"list", "alice", "--json"}).out)["keys"][0];
  EXPECT_EQ(key["gate"], "pkinit");
  EXPECT_EQ(key["gates"], json({"none", "pkinit", "pkinit"}));
}

// ATTACK. One server lists, when it is asked for one principal's keys, another's that was deleted and
// which no database names: yesterday's dump does.
TEST_F(RunTest, NoServerHasAnothersKeysDeletedWithThose) {
  Enroll(0, "bob");
  Enroll(0, "bob", {"--replace", "--delete-old"});
  Enroll(0, "alice");
  Expect(0, {"randkey", "krbtgt/EXAMPLE.COM"});
  for (const auto& [handle, package] : realm_.servers[0]->committed()) {
    if (package.info().retired_us() != 0) realm_.servers[2]->AlsoList(package.info());
  }
  const size_t before = realm_.servers[0]->committed().size();
  Expect(5, {"delete", "alice", "--old", "--now"}, {},
         {"lists a key of bob@EXAMPLE.COM among those of alice"});
  Expect(5, {"rotate-krbtgt"}, {}, {"lists a key of bob@EXAMPLE.COM among those of krbtgt/"});
  EXPECT_EQ(realm_.servers[0]->committed().size(), before);
}

// ATTACK. One server's list never ends: kadmind, which reads one for each new password, would hang and
// fill the KDC's memory.
TEST_F(RunTest, NoServersListGoesOnForEver) {
  const auto client = realm_.servers[1]->NewClient();
  for (const size_t in_each : {0, 20'000}) {
    realm_.servers[1]->ListForEver(in_each);
    const auto list = client->ListKeys("alice@EXAMPLE.COM", enroll::Listed::kCommitted,
                                       absl::Milliseconds(in_each == 0 ? 20 : 2000));
    EXPECT_THAT(list.status().message(), HasSubstr("the list of keys does not end")) << in_each;
  }
  realm_.servers[1]->ListForEver(70'000);
  const auto all = client->ListAllKeys(enroll::Listed::kCommitted, 1, absl::Seconds(10));
  EXPECT_THAT(all.status().message(), HasSubstr("the list of keys does not end"));
}

// ATTACK. One server says that a key of kadmin's that is being made is an old one.
TEST_F(RunTest, NoServerAloneMakesAKeyOfKadminOld) {
  Enroll(0, "kadmin/changepw");
  Expect(0, {"randkey", "kadmin/changepw"});
  Expect(0, {"randkey", "--kadmin"}, {"left by an earlier run"});
  const std::vector<v1::KeyInfo> before = kdb_.principals["kadmin/changepw@EXAMPLE.COM"];
  Expect(0, {"randkey", "kadmin/changepw"});
  kdb_.principals["kadmin/changepw@EXAMPLE.COM"] = before;  // not written yet
  for (auto [handle, package] : realm_.servers[0]->committed()) {
    package.mutable_info()->set_kvno(1);
    realm_.servers[0]->Plant(package);
  }
  EXPECT_THAT(Expect(0, {"randkey", "--kadmin"}).out, Not(HasSubstr("left by an earlier run")));
}

// A service's name makes its keys a service's; an administrator may say otherwise, and it stays so.
TEST_F(RunTest, ClassesOfServices) {
  const auto class_of = [&](const std::string& principal) {
    const json keys = json::parse(Run({"list", principal, "--json"}).out)["keys"];
    return keys[keys.size() - 1]["class"];
  };
  Enroll(0, "HTTP/www.example.com");
  EXPECT_EQ(class_of("HTTP/www.example.com"), "service");
  Expect(0, {"randkey", "HTTP/www.example.com", "--class", "user"});
  EXPECT_EQ(class_of("HTTP/www.example.com"), "user");
  Expect(0, {"randkey", "HTTP/www.example.com"});
  EXPECT_EQ(class_of("HTTP/www.example.com"), "user");
}

}  // namespace
}  // namespace mpckdc::admin
