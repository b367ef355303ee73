// SPDX-License-Identifier: Apache-2.0
// What doctor and status find: at the servers, and between their stores and the KDC's database.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "mpc-server/base/version.h"
#include "mpc-server/testing/admin_run_fixture.h"

namespace mpckdc::admin {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

TEST_F(RunTest, DoctorComparesStoresWithTheKdb) {
  Enroll(0, "alice");
  Enroll(0, "bob");
  Expect(0, {"doctor"});
  // A handle that leads nowhere.
  kdb_.principals["carol@EXAMPLE.COM"] = {
      KeyOf("carol@EXAMPLE.COM", 1, kEnctypeAes256Gcm, std::string(16, 'c'))};
  Expect(1, {"doctor"}, {"no server has: carol@EXAMPLE.COM version 1 aes256-gcm"});
  kdb_.principals.erase("carol@EXAMPLE.COM");
  // Keys to which nothing refers.
  kdb_.principals.erase("bob@EXAMPLE.COM");
  Expect(0, {"doctor"}, {"does not refer: bob@EXAMPLE.COM"});
  Expect(0, {"doctor", "--fix"});
  ExpectKeys(2);
  // A key that one server lost.
  realm_.servers[1]->Clear();
  Expect(1, {"doctor", "--json"}, {"on servers 0-2", "mpc-admin catch-up PARTY"});
  Expect(5, {"list"});
}

TEST_F(RunTest, DoctorNamesARunbookForWhateverIsNotGood) {
  Enroll(0, "alice");
  const Outcome good = Expect(0, {"doctor"});
  EXPECT_THAT(good.out, Not(HasSubstr("runbook")));
  kdb_.principals.erase("alice@EXAMPLE.COM");
  realm_.servers[0]->status().set_certificate_expires_us(1);
  Expect(1, {"doctor"},
         {"next: renew it\n         see:  runbook certificates.md\n", "see:  runbook enrol.md",
          "/usr/share/doc/mpc-admin/runbooks"});
  const json findings = json::parse(Expect(1, {"doctor", "--json"}).out)["findings"];
  for (const json& finding : findings) {
    EXPECT_EQ(finding["level"] == "ok", finding["runbook"] == "") << finding;
  }
}

// As where a directory's access rules hide krbPrincipalKey from us: keys that are in use are the ones
// to which nothing seems to refer.
TEST_F(RunTest, DoctorDeletesNoKeyOfWhoShowsNone) {
  Enroll(0, "alice");
  Enroll(0, "bob");
  Enroll(0, "carol");
  kdb_.principals["bob@EXAMPLE.COM"].clear();
  kdb_.principals.erase("carol@EXAMPLE.COM");
  Expect(0, {"doctor", "--fix"},
         {"shows no key of theirs: bob@EXAMPLE.COM", "krbPrincipalKey",
          "deleted keys to which nothing refers: carol@EXAMPLE.COM"});
  ExpectKeys(4);
  Expect(0, {"delete", "--old", "--all"}, {"0 keys deleted"}, {"left: those of 1 principals"});
  ExpectKeys(4);
  Expect(0, {"delete", "--old", "bob"}, {"2 keys deleted"});
  ExpectKeys(2);
}

// Two entries of which a crash left both: which one is in use, and what ends the other.
TEST_F(RunTest, DoctorNamesWhatAnInterruptedRenamingLeft) {
  Enroll(0, "alice");
  Enroll(0, "bob");
  v1::KeyInfo& alice = kdb_.principals["alice@EXAMPLE.COM"][0];
  v1::KeyInfo& bob = kdb_.principals["bob@EXAMPLE.COM"][0];
  bob.set_renamed_from("alice@EXAMPLE.COM");
  Expect(0, {"doctor"},
         {"renaming alice@EXAMPLE.COM to bob@EXAMPLE.COM was interrupted; the old name holds",
          "mpc-admin delete bob@EXAMPLE.COM"});
  alice.set_renamed_to("bob@EXAMPLE.COM");
  EXPECT_THAT(Expect(0, {"doctor"},
                     {"alice@EXAMPLE.COM was renamed and is bob@EXAMPLE.COM now",
                      "mpc-admin delete alice@EXAMPLE.COM"})
                  .out,
              Not(HasSubstr("interrupted")));
  bob.clear_renamed_from();
  Expect(0, {"doctor"}, {"alice@EXAMPLE.COM was renamed and is bob@EXAMPLE.COM now"});
  alice.clear_renamed_to();
  EXPECT_THAT(Expect(0, {"doctor"}).out, Not(HasSubstr("renam")));
}

TEST_F(RunTest, DoctorLooksAtServers) {
  v1::StatusReply& status = realm_.servers[1]->status();
  const v1::StatusReply good = status;
  auto finds = [&](const char* text, int code) {
    Expect(code, {"doctor"}, {text});
    status = good;
  };
  const auto after = [](absl::Duration d) { return absl::ToUnixMicros(absl::Now() + d); };
  status.set_time_us(after(absl::Minutes(10)));
  finds("clocks differ", 1);
  status.set_time_us(after(-absl::Seconds(30)));
  finds("clocks differ", 0);
  status.set_certificate_expires_us(after(absl::Hours(48)));
  finds("renew it before that day", 0);
  status.set_certificate_expires_us(after(-absl::Hours(48)));
  finds("certificate expired on", 1);
  status.set_authority_expires_us(after(absl::Hours(48)));
  finds("the authority of party 1", 0);
  status.set_certificate_trouble("the private key does not belong to it");
  finds("does not use the certificate that is in its files: the private key", 1);
  status.set_quotas("principal_logins 1/min burst 1");
  finds("different quotas, the lowest is in force", 0);
  status.set_peer_skew_us_next(7'000'000);
  finds("clocks differ: party 2 differs from party 1 as that one sees it by +7.000 s", 0);
  status.set_peer_skew_us_next(-700'000'000);
  finds("beyond [policy] clock_skew logins are refused", 1);
  status.set_peers_connected(false);
  finds("look at its log: it says what differs", 1);
  status.set_peers_connected(false);
  status.set_security("semi-honest");
  finds("make [engine] security the same on all three", 1);
  status.set_degraded("the disk is full");
  finds("is degraded: the disk is full", 1);
  status.set_epoch(7);
  finds("epoch", 1);
  status.set_peers_connected(false);
  realm_.servers[2]->Stop();
  Expect(1, {"doctor"},
         {"start mpc-server on " + realm_.servers[2]->address(),
          "nothing here: it takes all three, and one does not answer"});
}

// Of each caller the newest certificate counts, whichever server saw it.
TEST_F(RunTest, DoctorLooksAtTheCertificatesOfCallers) {
  const auto saw = [&](int server, const char* name, absl::Duration left) {
    v1::CallerCertificate& caller = *realm_.servers[server]->status().add_callers();
    caller.set_name(name);
    caller.set_expires_us(absl::ToUnixMicros(absl::Now() + left));
  };
  saw(0, "kdc/kdc1", absl::Hours(24 * 29));
  saw(1, "kdc/kdc1", absl::Hours(24 * 90));
  saw(2, "admin/kadmin", absl::Hours(24 * 29));
  const std::string out = Expect(0, {"doctor"}, {"admin/kadmin's certificate is good until"}).out;
  EXPECT_THAT(out, HasSubstr("ok       kdc/kdc1's certificate"));
  EXPECT_THAT(out, HasSubstr("warning  admin/kadmin's certificate"));
  saw(0, "admin/late", -absl::Hours(1));
  Expect(1, {"doctor"}, {"admin/late's certificate expired on"});
}

// Of a server that is merely old it says that, and nothing of which it cannot know.
TEST_F(RunTest, DoctorTellsVersionsApart) {
  const std::string first = realm_.servers[0]->address(), second = realm_.servers[1]->address();
  const auto doctor = [&](int code) { return Expect(code, {"doctor"}).out; };
  EXPECT_THAT(doctor(0), Not(HasSubstr("upgrade")));
  v1::StatusReply& status = realm_.servers[1]->status();
  // As 0.1.0 answers: without the protocol's number, and without quotas that came later.
  status.set_software("mpc-server 0.1.0");
  status.set_quotas("principal_logins 1/min burst 1");
  status.clear_peer_protocol();
  status.set_peers_connected(false);
  const std::string old = doctor(1);
  EXPECT_THAT(old, HasSubstr("the servers are of different versions: party "));
  EXPECT_THAT(old, HasSubstr("party 0 (" + first +
                             ") runs mpc-server " MPCKDC_VERSION ", protocol 5 between servers"));
  EXPECT_THAT(old, HasSubstr("party 1 (" + second +
                             ") runs mpc-server 0.1.0, so old that it "
                             "does not say which protocol it speaks"));
  EXPECT_THAT(old, HasSubstr("next: upgrade all three"));
  EXPECT_THAT(old, Not(HasSubstr("quotas")));
  EXPECT_THAT(old, Not(HasSubstr("reach its peers address")));

  status.set_software("mpc-server 0.9.0");
  status.set_peer_protocol(9);
  const std::string newer = doctor(1);
  EXPECT_THAT(newer, HasSubstr("BAD      the servers speak different protocols"));
  EXPECT_THAT(newer, HasSubstr("runs mpc-server 0.9.0, protocol 9 between servers"));
  EXPECT_THAT(newer, Not(HasSubstr("quotas")));

  for (auto& server : realm_.servers) {
    server->status().set_software("mpc-server 0.1.0");
    server->status().clear_peer_protocol();
    server->status().set_peers_connected(true);
  }
  const std::string all_old = doctor(0);
  EXPECT_THAT(all_old,
              HasSubstr("this is mpc-admin " MPCKDC_VERSION ", the servers run mpc-server 0.1.0"));
  EXPECT_THAT(all_old, HasSubstr("next: upgrade all three"));
  EXPECT_THAT(all_old, Not(HasSubstr("quotas")));
}

TEST_F(RunTest, StatusShowsWhoIsMissing) {
  Expect(0, {"status"}, {"ready"});
  realm_.servers[0]->Stop();
  const json status = json::parse(Expect(3, {"status", "--json"}).out);
  ASSERT_EQ(status["servers"].size(), 3u);
  EXPECT_EQ(status["servers"][0]["peers_connected"], true);
  EXPECT_EQ(status["servers"][2]["reachable"], false);
}

// An address that stands twice in the configuration, or a server that says it is another: the third is
// not asked at all, and nothing that the answers say by themselves is wrong.
TEST_F(RunTest, StatusSeesThatTheThreeAreNotThree) {
  v1::StatusReply& status = realm_.servers[2]->status();
  const v1::StatusReply good = status;
  status.set_party(1);
  Expect(1, {"status"}, {"ready"}, {"are both of party 1", "mpc-admin doctor"});
  status = good;
  status.set_triple(7);
  Expect(1, {"status"}, {"ready"}, {"are of triples"});
  status = good;
  Expect(0, {"status"});
}

TEST_F(RunTest, DoctorNamesServicesWhoseTicketsDoNotAge) {
  Enroll(0, "HTTP/www.example.com");
  Expect(0, {"doctor"}, {}, {});
  kdb_.principals["HTTP/www.example.com@EXAMPLE.COM"][0].set_enctype(kEnctypeAes256Sha1);
  Expect(0, {"doctor"}, {"lives as long as the key: HTTP/www.example.com@EXAMPLE.COM"});
  // As kadmin addprinc makes one.
  const std::string handle = kdb_.principals["HTTP/www.example.com@EXAMPLE.COM"][0].handle();
  v1::KeyInfo between;
  for (const auto& server : realm_.servers) {
    v1::SharePackage package = server->committed().at(handle);
    package.mutable_info()->set_principal("krbtgt/OTHER.ORG@EXAMPLE.COM");
    package.mutable_info()->set_handle(std::string(16, 'b'));
    package.mutable_info()->set_key_class(v1::KEY_CLASS_TGS);
    between = package.info();
    server->Plant(package);
  }
  std::vector<v1::KeyInfo>& stored = kdb_.principals["krbtgt/OTHER.ORG@EXAMPLE.COM"];
  stored.push_back(between);
  EXPECT_THAT(Expect(0, {"doctor"}).out, Not(HasSubstr("krbtgt/OTHER.ORG@EXAMPLE.COM")));
  stored[0].set_enctype(kEnctypeAes256Sha1);
  Expect(0, {"doctor"}, {"is good as long as the key: krbtgt/OTHER.ORG@EXAMPLE.COM"});
}

// A key without usage 64 is named while it is its principal's newest.
TEST_F(RunTest, DoctorNamesKeysFromBeforeAuthenticationIndicators) {
  Enroll(0, "HTTP/www.example.com");
  const v1::KeyInfo key = kdb_.principals["HTTP/www.example.com@EXAMPLE.COM"][0];
  for (const auto& server : realm_.servers) {
    v1::SharePackage package = server->committed().at(key.handle());
    package.mutable_info()->set_before_cammac(true);
    server->Plant(package);
  }
  Expect(0, {"doctor"},
         {"before authentication indicators", "HTTP/www.example.com@EXAMPLE.COM",
          "mpc-admin rotate-krbtgt"});
  // It is no more when a newer one is there.
  v1::KeyInfo newer = key;
  newer.set_handle(std::string(16, 'n'));
  newer.set_kvno(key.kvno() + 1);
  kdb_.principals["HTTP/www.example.com@EXAMPLE.COM"].push_back(newer);
  for (const auto& server : realm_.servers) {
    v1::SharePackage package = server->committed().at(key.handle());
    *package.mutable_info() = newer;
    server->Plant(package);
  }
  EXPECT_THAT(Expect(0, {"doctor"}).out, Not(HasSubstr("before authentication indicators")));
}

}  // namespace
}  // namespace mpckdc::admin
