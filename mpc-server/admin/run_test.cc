// SPDX-License-Identifier: Apache-2.0
//
// Whole command lines against three fake servers (real gRPC) and a KDC's database in memory.
#include "mpc-server/admin/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/key/string_to_key.h"
#include "mpc-server/testing/fake_admin_service.h"
#include "mpc-server/testing/identity.h"

namespace mpckdc::admin {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using When = enroll::FakeAdminServer::When;

constexpr char kRealm[] = "EXAMPLE.COM";

const std::vector<int32_t> kAllEnctypes = {kEnctypeAes256Gcm,    kEnctypeAes128Gcm,
                                           kEnctypeAes256Sha1,   kEnctypeAes128Sha1,
                                           kEnctypeAes256Sha384, kEnctypeAes128Sha256};

struct MemoryKdb {
  std::map<std::string, std::vector<KdbEntry>> principals;
  std::vector<int32_t> enctypes = {kEnctypeAes256Gcm, kEnctypeAes128Gcm};
  absl::Status fail_set;         // answered by set-handles ...
  bool set_all_the_same = false; // ... although it did its work
  absl::Status fail_list;
  std::optional<int> fail_set_after;  // principals of many
  std::optional<int> fail_list_after;  // lists
  std::string fail_one;
};

class FakeKdb : public Kdb {
 public:
  explicit FakeKdb(MemoryKdb* state) : state_(*state) {}

  absl::StatusOr<KdbPlan> Plan(const std::string& principal, bool create) override {
    const auto found = state_.principals.find(principal);
    if (found == state_.principals.end() && !create) return absl::NotFoundError("no principal");
    KdbPlan plan;
    plan.principal = principal;
    plan.exists = found != state_.principals.end();
    for (const KdbEntry& entry : plan.exists ? found->second : std::vector<KdbEntry>()) {
      plan.kvno_next = std::max(plan.kvno_next, entry.kvno + 1);
    }
    for (const int32_t enctype : state_.enctypes) {
      plan.keys.push_back({enctype, 0, std::string(kRealm) + "alice", ""});
    }
    return plan;
  }

  absl::Status SetHandles(const std::string& principal, uint32_t kvno,
                          absl::Span<const KdbKey> keys, bool keep_old) override {
    if (state_.fail_set.ok() || state_.set_all_the_same) {
      std::vector<KdbEntry>& entries = state_.principals[principal];
      if (!keep_old) entries.clear();
      for (const KdbKey& key : keys) {
        entries.push_back({principal, kvno, key.enctype, key.handle});
      }
    }
    return state_.fail_set;
  }

  absl::StatusOr<std::vector<absl::StatusOr<KdbPlan>>> PlanMany(
      absl::Span<const std::string> principals, bool create) override {
    std::vector<absl::StatusOr<KdbPlan>> plans;
    for (const std::string& principal : principals) plans.push_back(Plan(principal, create));
    return plans;
  }

  // Goes as far as fail_set_after principals, then fails as a whole; fail_one is refused alone.
  absl::StatusOr<std::vector<absl::Status>> SetHandlesOfMany(
      absl::Span<const KdbNewKeys> principals) override {
    std::vector<absl::Status> results;
    for (const KdbNewKeys& one : principals) {
      if (state_.fail_set_after.has_value() && (*state_.fail_set_after)-- == 0) {
        state_.fail_set_after.reset();
        return absl::UnavailableError("mpc-kdb was ended by signal 9");
      }
      results.push_back(one.principal == state_.fail_one
                            ? absl::FailedPreconditionError("no room")
                            : SetHandles(one.principal, one.kvno, one.keys, one.keep_old));
    }
    return results;
  }

  absl::StatusOr<std::vector<KdbEntry>> List(const std::string&) override {
    if (!state_.fail_list.ok()) return state_.fail_list;
    if (state_.fail_list_after.has_value() && (*state_.fail_list_after)-- == 0) {
      return absl::UnavailableError("no route to the KDC");
    }
    std::vector<KdbEntry> all;
    for (const auto& [principal, entries] : state_.principals) {
      all.insert(all.end(), entries.begin(), entries.end());
    }
    return all;
  }

  absl::Status Delete(const std::string& principal) override {
    return state_.principals.erase(principal) != 0 ? absl::OkStatus()
                                                   : absl::NotFoundError("no principal");
  }

 private:
  MemoryKdb& state_;
};

class RunTest : public testing::Test {
 protected:
  struct Outcome {
    int code;
    std::string out;
    std::string err;
  };

  static std::string File(const std::string& name) {
    return enroll::TestAuthority::Shared().directory() + "/" + name;
  }

  RunTest() : realm_(kRealm), config_(File("admin.toml")) {
    static const enroll::AdminIdentity identity =
        enroll::TestAuthority::Shared().Issue("admin", "root");
    std::ofstream(config_) << "realm = \"" << kRealm << "\"\ncluster = 1\n"
                           << "servers = [\"a:1\", \"b:1\", \"c:1\"]\ntimeout = 2\n"
                           << "[identity]\ncertificate = \"" << identity.certificate_file
                           << "\"\nkey = \"" << identity.key_file << "\"\nca = \""
                           << identity.ca_file << "\"\n";
  }

  Outcome Run(std::vector<std::string> arguments) {
    std::ostringstream out, err;
    Environment environment;
    environment.out = &out;
    environment.err = &err;
    environment.default_config = config_;
    environment.dial = [this](const AdminConfig&) { return realm_.Connect(); };
    environment.make_kdb = [this](const AdminConfig&) { return std::make_unique<FakeKdb>(&kdb_); };
    environment.read_password = [this]() -> absl::StatusOr<SecretBytes> {
      return SecretBytes(password_.begin(), password_.end());
    };
    environment.ask_password = [this](const std::string&, bool) -> absl::StatusOr<SecretBytes> {
      ++asked_;
      return SecretBytes(password_.begin(), password_.end());
    };
    const int code = RunAdmin(arguments, environment);
    return {code, out.str(), err.str()};
  }

  Outcome Enroll(const std::string& principal, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"enroll", principal, "--password-stdin"});
    return Run(more);
  }

  size_t Keys(int party) { return realm_.servers[party]->committed().size(); }

  void ExpectKeys(size_t count) {
    for (int party = 0; party < 3; ++party) {
      EXPECT_EQ(Keys(party), count) << party;
      EXPECT_EQ(realm_.servers[party]->staged(), 0u) << party;
    }
  }

  void FailAt(int party, const std::string& method, When when = When::kBefore) {
    realm_.servers[party]->set_fault([=](When at, const std::string& called) {
      return at == when && called == method
                 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "injected")
                 : grpc::Status::OK;
    });
  }

  // The servers hold the password's keys for all of the principal's handles.
  void ExpectKeysOfPassword(const std::string& principal) {
    const std::string salt = std::string(kRealm) + "alice";
    for (const KdbEntry& entry : kdb_.principals[principal]) {
      const SecretBytes key = *StringToKey(
          entry.enctype, std::vector<uint8_t>(password_.begin(), password_.end()),
          std::vector<uint8_t>(salt.begin(), salt.end()));
      EXPECT_EQ(Joined(entry.handle), std::string(key.begin(), key.end())) << entry.enctype;
    }
  }

  // The key that the servers' shares of a handle join to.
  std::string Joined(const std::string& handle) {
    std::array<std::string, 3> x, a;
    for (int party = 0; party < 3; ++party) {
      const v1::SharePackage package = realm_.servers[party]->committed()[handle];
      x[party] = package.base_x();
      a[party] = package.base_a();
    }
    return JoinForTest(x, a);
  }

  enroll::FakeRealm realm_;
  MemoryKdb kdb_;
  std::string config_;
  std::string password_ = "open sesame";
  int asked_ = 0;
};

TEST_F(RunTest, EnrolsAPassword) {
  const Outcome outcome = Enroll("alice");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("alice@EXAMPLE.COM: version 1 enrolled"));
  ExpectKeys(2);
  ExpectKeysOfPassword("alice@EXAMPLE.COM");
  EXPECT_THAT(outcome.out + outcome.err, Not(HasSubstr(password_)));
}

TEST_F(RunTest, TheSamePrincipalTwiceNeedsReplace) {
  ASSERT_EQ(Enroll("alice").code, 0);
  const auto before = kdb_.principals;
  const Outcome again = Enroll("alice");
  EXPECT_EQ(again.code, 4);
  EXPECT_THAT(again.err, HasSubstr("has protected keys already, version 1"));
  EXPECT_THAT(again.err, HasSubstr("next: repeat with --replace"));
  EXPECT_EQ(asked_, 0);
  ExpectKeys(2);

  const Outcome replaced = Enroll("alice", {"--replace"});
  EXPECT_EQ(replaced.code, 0) << replaced.err;
  EXPECT_THAT(replaced.out, HasSubstr("version 2"));
  EXPECT_THAT(replaced.out, HasSubstr("old keys stay"));
  ExpectKeys(4);
  EXPECT_EQ(Enroll("alice", {"--replace", "--delete-old"}).code, 0);
  ExpectKeys(4);
  EXPECT_EQ(Run({"delete", "--old", "alice"}).code, 0);
  ExpectKeys(2);
}

TEST_F(RunTest, InterruptedBetweenServersNothingIsUsableAndARerunWorks) {
  FailAt(1, "StageKeys");
  const Outcome failed = Enroll("alice");
  EXPECT_EQ(failed.code, 3);
  EXPECT_THAT(failed.err, HasSubstr(realm_.servers[1]->address()));
  EXPECT_THAT(failed.err, HasSubstr("no key was changed"));
  EXPECT_THAT(failed.err, HasSubstr("next: "));
  ExpectKeys(0);
  EXPECT_TRUE(kdb_.principals.empty());
  realm_.servers[1]->set_fault(nullptr);
  EXPECT_EQ(Enroll("alice").code, 0);
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
  const Outcome doctor = Run({"doctor"});
  EXPECT_EQ(doctor.code, 0);
  EXPECT_THAT(doctor.out, HasSubstr("alice@EXAMPLE.COM version 1 aes256-gcm on servers 0--"));
  const Outcome rerun = Enroll("alice");
  EXPECT_EQ(rerun.code, 0) << rerun.err;
  EXPECT_THAT(Run({"list", "--staged"}).out, HasSubstr("alice@EXAMPLE.COM"));
}

TEST_F(RunTest, AFailedKdbWriteTakesTheKeysBack) {
  kdb_.fail_set = absl::FailedPreconditionError("database is read-only");
  const Outcome outcome = Enroll("alice");
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.err, HasSubstr("database is read-only; no key was changed"));
  ExpectKeys(0);
}

TEST_F(RunTest, AKdbWriteWhoseAnswerIsLostIsFoundOut) {
  kdb_.fail_set = absl::UnavailableError("connection lost");
  kdb_.set_all_the_same = true;
  EXPECT_EQ(Enroll("alice").code, 0);
  ExpectKeys(2);
}

TEST_F(RunTest, AnotherDatabaseDeletesNothing) {
  ASSERT_EQ(Enroll("alice").code, 0);
  kdb_.principals.clear();
  const Outcome outcome = Run({"delete", "--old", "--all"});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.err, HasSubstr("refers to none of the servers' keys"));
  EXPECT_EQ(Run({"doctor", "--fix"}).code, 1);
  ExpectKeys(2);
}

TEST_F(RunTest, AKdbThatCannotBeReadKeepsTheKeys) {
  ASSERT_EQ(Enroll("bob").code, 0);
  kdb_.fail_set = kdb_.fail_list = absl::UnavailableError("connection lost");
  const Outcome outcome = Enroll("alice");
  EXPECT_EQ(outcome.code, 5);
  EXPECT_THAT(outcome.err, HasSubstr("may or may not have the new keys"));
  EXPECT_THAT(outcome.err, HasSubstr("doctor"));
  ExpectKeys(4);
  kdb_.fail_set = kdb_.fail_list = absl::OkStatus();
  const Outcome doctor = Run({"doctor", "--fix"});
  EXPECT_EQ(doctor.code, 0) << doctor.out;
  ExpectKeys(2);
}

TEST_F(RunTest, BadInputIsRefusedBeforeAnythingIsAsked) {
  const std::vector<std::vector<std::string>> lines = {
      {"enroll"},
      {"enroll", "alice@OTHER.ORG"},
      {"enroll", "krbtgt/EXAMPLE.COM"},
      {"enroll", "--all"},
      {"enroll", "alice", "--all", "--keytab", "x"},
      {"enroll", "alice", "--keytab", "/nonexistent/keytab"},
      {"delete"},
      {"delete", "--all"},
      {"list", "--config", "/nonexistent/admin.toml"},
      {"frobnicate"},
  };
  for (const std::vector<std::string>& line : lines) {
    const Outcome outcome = Run(line);
    EXPECT_EQ(outcome.code, 2) << testing::PrintToString(line) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("next: "));
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_EQ(asked_, 0);
  ExpectKeys(0);
}

TEST_F(RunTest, ErrorsAreJsonToo) {
  const Outcome outcome = Run({"list", "bob", "--json"});
  EXPECT_EQ(outcome.code, 4);
  const json error = json::parse(outcome.out);
  EXPECT_THAT(error["error"].get<std::string>(), HasSubstr("no key of bob@EXAMPLE.COM"));
  EXPECT_EQ(error["exit"], 4);
}

TEST_F(RunTest, RandkeyLetsTheServersDraw) {
  const Outcome outcome = Run({"randkey", "krbtgt/EXAMPLE.COM", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out)["keys"].size(), 2u);
  for (auto& server : realm_.servers) {
    EXPECT_EQ(server->calls("DrawKey"), 2);
    EXPECT_EQ(server->calls("StageKeys"), 0);
    for (const auto& [handle, package] : server->committed()) {
      EXPECT_EQ(package.info().key_class(), v1::KEY_CLASS_TGS);
    }
  }
  // The old ticket-granting keys stay in the database.
  ASSERT_EQ(Run({"randkey", "krbtgt/EXAMPLE.COM", "--delete-old"}).code, 0);
  EXPECT_EQ(kdb_.principals["krbtgt/EXAMPLE.COM@EXAMPLE.COM"].size(), 4u);
  ExpectKeys(4);
}

TEST_F(RunTest, DeletesPrincipalAndKeys) {
  ASSERT_EQ(Enroll("alice").code, 0);
  ASSERT_EQ(Enroll("bob").code, 0);
  const Outcome outcome = Run({"delete", "alice"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(kdb_.principals.count("alice@EXAMPLE.COM"), 0u);
  ExpectKeys(2);
  const Outcome again = Run({"delete", "alice"});
  EXPECT_EQ(again.code, 4);
  EXPECT_THAT(again.err, HasSubstr("neither the KDC nor the servers know alice@EXAMPLE.COM"));
  ASSERT_EQ(Run({"randkey", "krbtgt/EXAMPLE.COM"}).code, 0);
  EXPECT_EQ(Run({"delete", "krbtgt/EXAMPLE.COM"}).code, 4);
  ExpectKeys(4);
}

TEST_F(RunTest, ListsVerifiesAndSetsPolicy) {
  EXPECT_THAT(Run({"list"}).out, HasSubstr("the servers hold no keys yet"));
  ASSERT_EQ(Enroll("alice").code, 0);
  EXPECT_THAT(Run({"list"}).out, HasSubstr("012"));
  EXPECT_EQ(json::parse(Run({"list", "--json"}).out)["keys"].size(), 2u);
  const Outcome verified = Run({"verify"});
  EXPECT_EQ(verified.code, 0);
  EXPECT_THAT(verified.out, HasSubstr("2 keys good"));
  const Outcome policy = Run({"policy", "alice", "--gate", "kdc-trusted"});
  EXPECT_EQ(policy.code, 0);
  EXPECT_THAT(policy.out, HasSubstr("gate kdc-trusted"));
  // Replaced keys keep their gate.
  ASSERT_EQ(Enroll("alice", {"--replace", "--delete-old"}).code, 0);
  EXPECT_THAT(Run({"policy", "alice"}).out, HasSubstr("version 2 aes256-gcm: gate kdc-trusted"));
  FailAt(2, "SetPolicy");
  const Outcome refused = Run({"policy", "alice", "--gate", "none"});
  EXPECT_NE(refused.code, 0);
  for (const auto& [handle, package] : realm_.servers[0]->committed()) {
    EXPECT_EQ(package.info().gate(), v1::GATE_KDC_TRUSTED) << "not put back";
  }
}

TEST_F(RunTest, VerifyFindsAKeyWhoseRecordsDoNotFit) {
  ASSERT_EQ(Enroll("alice").code, 0);
  v1::SharePackage damaged = realm_.servers[2]->committed().begin()->second;
  damaged.clear_usages();
  realm_.servers[2]->Plant(damaged);
  const Outcome outcome = Run({"verify", "alice"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("BAD   alice@EXAMPLE.COM version 1"));
  EXPECT_THAT(outcome.out, HasSubstr("1 key good"));
}

TEST_F(RunTest, DoctorComparesStoresWithTheKdb) {
  ASSERT_EQ(Enroll("alice").code, 0);
  ASSERT_EQ(Enroll("bob").code, 0);
  EXPECT_EQ(Run({"doctor"}).code, 0);
  // A handle that leads nowhere.
  kdb_.principals["carol@EXAMPLE.COM"] = {{"carol@EXAMPLE.COM", 1, -24002, std::string(16, 'c')}};
  Outcome doctor = Run({"doctor"});
  EXPECT_EQ(doctor.code, 1);
  EXPECT_THAT(doctor.out, HasSubstr("no server has: carol@EXAMPLE.COM version 1 aes256-gcm"));
  kdb_.principals.erase("carol@EXAMPLE.COM");
  // Keys to which nothing refers.
  kdb_.principals.erase("bob@EXAMPLE.COM");
  doctor = Run({"doctor"});
  EXPECT_EQ(doctor.code, 0);
  EXPECT_THAT(doctor.out, HasSubstr("does not refer: bob@EXAMPLE.COM"));
  EXPECT_EQ(Run({"doctor", "--fix"}).code, 0);
  ExpectKeys(2);
  // A key that one server lost.
  realm_.servers[1]->Clear();
  doctor = Run({"doctor", "--json"});
  EXPECT_EQ(doctor.code, 1);
  EXPECT_THAT(doctor.out, HasSubstr("on servers 0-2"));
  EXPECT_EQ(Run({"list"}).code, 5);
}

TEST_F(RunTest, DoctorLooksAtServers) {
  v1::StatusReply& status = realm_.servers[1]->status();
  const v1::StatusReply good = status;
  auto finds = [&](const char* text, int code) {
    const Outcome doctor = Run({"doctor"});
    EXPECT_THAT(doctor.out, HasSubstr(text));
    EXPECT_EQ(doctor.code, code) << doctor.out;
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
  status.set_software("fake 2");
  finds("different software", 0);
  status.set_quotas("principal_logins 1/min burst 1");
  finds("different quotas, the lowest is in force", 0);
  status.set_peer_skew_us_next(7'000'000);
  finds("clocks differ: party 2 differs from party 1 as that one sees it by +7.000 s", 0);
  status.set_peer_skew_us_next(-700'000'000);
  finds("beyond [policy] clock_skew logins are refused", 1);
  status.set_peers_connected(false);
  finds("not connected to both", 1);
  status.set_degraded("the disk is full");
  finds("is degraded: the disk is full", 1);
  status.set_epoch(7);
  finds("epoch", 1);
  realm_.servers[2]->Stop();
  const Outcome doctor = Run({"doctor"});
  EXPECT_EQ(doctor.code, 1);
  EXPECT_THAT(doctor.out, HasSubstr("start mpc-server on " + realm_.servers[2]->address()));
}

TEST_F(RunTest, StatusShowsWhoIsMissing) {
  Outcome outcome = Run({"status"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("ready"));
  realm_.servers[0]->Stop();
  outcome = Run({"status", "--json"});
  EXPECT_EQ(outcome.code, 3);
  const json status = json::parse(outcome.out);
  ASSERT_EQ(status["servers"].size(), 3u);
  EXPECT_EQ(status["servers"][0]["peers_connected"], true);
  EXPECT_EQ(status["servers"][2]["reachable"], false);
}

TEST_F(RunTest, InitRealmIsHarmlessTwice) {
  for (auto& server : realm_.servers) server->status().set_initialised(false);
  const Outcome before = Enroll("alice");
  EXPECT_EQ(before.code, 4);
  EXPECT_THAT(before.err, HasSubstr("next: run mpc-admin init-realm"));
  EXPECT_EQ(Run({"init-realm"}).code, 0);
  EXPECT_THAT(Run({"init-realm"}).out, HasSubstr("ready already"));
  EXPECT_EQ(Enroll("alice").code, 0);
}

std::string Be(uint32_t value, int size) {
  std::string out;
  for (int shift = 8 * (size - 1); shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
  return out;
}

std::string KeytabEntry(const std::string& name, int enctype, const std::string& key) {
  const std::string body = Be(1, 2) + Be(11, 2) + kRealm + Be(name.size(), 2) + name + Be(1, 4) +
                           Be(0, 4) + Be(3, 1) + Be(enctype & 0xffff, 2) + Be(key.size(), 2) + key;
  return Be(body.size(), 4) + body;
}

TEST_F(RunTest, EnrolsFromAKeytab) {
  const std::string keytab = File("keytab");
  std::ofstream(keytab) << "\x05\x02" << KeytabEntry("alice", 18, std::string(32, 'a'))
                        << KeytabEntry("bob", 17, std::string(16, 'b'))
                        << KeytabEntry("carol", 23, std::string(16, 'c'));
  const Outcome one = Run({"enroll", "alice", "--keytab", keytab});
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("version 3 enrolled from the keytab (aes256-gcm)"));
  EXPECT_EQ(Joined(kdb_.principals["alice@EXAMPLE.COM"][0].handle), std::string(32, 'a'));
  const Outcome all = Run({"enroll", "--all", "--keytab", keytab, "--json"});
  EXPECT_EQ(all.code, 1) << "carol's key cannot be enrolled";
  const json result = json::parse(all.out);
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
    std::vector<std::string> command = {"enroll", "--keytab", keytab, all ? "--all" : "alice"};
    const Outcome outcome = Run(command);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    std::map<int32_t, std::string> keys;
    for (const KdbEntry& entry : kdb_.principals["alice@EXAMPLE.COM"]) {
      keys[entry.enctype] = Joined(entry.handle);
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
  const Outcome outcome = Enroll("alice");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(realm_.servers[0]->calls("CommitKeys"), commits + 1);
  ExpectKeys(6);
  ExpectKeysOfPassword("alice@EXAMPLE.COM");
  for (const char* shown : {"aes256-gcm", "aes256-cts-hmac-sha1-96", "aes128-cts-hmac-sha256-128"}) {
    EXPECT_THAT(Run({"list", "alice"}).out, HasSubstr(shown));
  }
  EXPECT_EQ(Run({"doctor"}).code, 0);
  EXPECT_EQ(Run({"verify"}).code, 0);
  ASSERT_EQ(Run({"randkey", "alice", "--enctype", "aes256-cts,aes256-sha2"}).code, 0);
  EXPECT_EQ(kdb_.principals["alice@EXAMPLE.COM"].size(), 2u);
}

TEST_F(RunTest, ATicketGrantingKeyIsOfGcm) {
  kdb_.enctypes = {kEnctypeAes256Sha1, kEnctypeAes256Gcm, kEnctypeAes256Sha384};
  const std::string krbtgt = "krbtgt/EXAMPLE.COM@EXAMPLE.COM";
  ASSERT_EQ(Run({"randkey", "krbtgt/EXAMPLE.COM"}).code, 0);
  ASSERT_EQ(kdb_.principals[krbtgt].size(), 1u);
  EXPECT_EQ(kdb_.principals[krbtgt][0].enctype, kEnctypeAes256Gcm);
  const Outcome refused = Run({"randkey", "krbtgt/EXAMPLE.COM", "--enctype", "aes256-cts"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("aes256-cts-hmac-sha1-96"));
  EXPECT_EQ(kdb_.principals[krbtgt].size(), 1u);
  ASSERT_EQ(Run({"randkey", "krbtgt/OTHER.ORG", "--enctype", "aes256-cts"}).code, 0);
  EXPECT_EQ(kdb_.principals["krbtgt/OTHER.ORG@EXAMPLE.COM"].back().enctype, kEnctypeAes256Sha1);
}

// A service's name makes its keys a service's; an administrator may say otherwise, and it stays so.
TEST_F(RunTest, ClassesOfServices) {
  const auto class_of = [&](const std::string& principal) {
    const json keys = json::parse(Run({"list", principal, "--json"}).out)["keys"];
    return keys[keys.size() - 1]["class"];
  };
  ASSERT_EQ(Enroll("HTTP/www.example.com").code, 0);
  EXPECT_EQ(class_of("HTTP/www.example.com"), "service");
  ASSERT_EQ(Run({"randkey", "HTTP/www.example.com", "--class", "user"}).code, 0);
  EXPECT_EQ(class_of("HTTP/www.example.com"), "user");
  ASSERT_EQ(Run({"randkey", "HTTP/www.example.com"}).code, 0);
  EXPECT_EQ(class_of("HTTP/www.example.com"), "user");
}

// ---- Many at once ----

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
  Outcome EnrolAll(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"enroll", "--all", "--keytab", keytab_});
    return Run(more);
  }
  // Who is in the database has a key on all three servers, and it is the right one.
  void ExpectNobodyHalfEnrolled() {
    const auto committed = realm_.servers[0]->committed();
    for (const auto& [principal, entries] : kdb_.principals) {
      ASSERT_EQ(entries.size(), 1u);
      ASSERT_EQ(committed.count(entries[0].handle), 1u) << principal;
    }
    for (size_t user : {size_t{0}, kdb_.principals.size() - 1}) {
      EXPECT_EQ(Joined(kdb_.principals[User(user) + "@EXAMPLE.COM"][0].handle), Key(user));
    }
  }

  const std::string keytab_;
};

TEST_F(BulkTest, EnrolsEverybodyInFewCalls) {
  const Outcome outcome = EnrolAll();
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr(absl::StrCat(kUsers, " enrolled, 0 had protected keys")));
  ExpectKeys(kUsers);
  EXPECT_EQ(kdb_.principals.size(), kUsers);
  ExpectNobodyHalfEnrolled();
  EXPECT_EQ(realm_.servers[1]->calls("CommitKeys"), 3);
  const Outcome again = EnrolAll();
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.out, HasSubstr(absl::StrCat("0 enrolled, ", kUsers, " had protected keys")));
  ExpectKeys(kUsers);
}

// Whichever call of whichever server fails in the second chunk: the first one stays, the second
// leaves nothing, and the same command goes on.
TEST_F(BulkTest, GoesOnAfterAServerFailed) {
  for (const char* method : {"StageKeys", "CommitKeys"}) {
    SCOPED_TRACE(method);
    for (auto& server : realm_.servers) server->Clear();
    kdb_.principals.clear();
    const int before = realm_.servers[1]->calls(method);
    realm_.servers[1]->set_fault([=, this](When when, const std::string& called) {
      return when == When::kBefore && called == method &&
                     realm_.servers[1]->calls(method) > before + 1
                 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "injected")
                 : grpc::Status::OK;
    });
    const Outcome outcome = EnrolAll();
    EXPECT_EQ(outcome.code, 3);
    EXPECT_THAT(outcome.err, HasSubstr(absl::StrCat("stopped after ", limits::kBulkPrincipals)));
    EXPECT_THAT(outcome.err, HasSubstr("it goes on where it stopped"));
    ExpectKeys(limits::kBulkPrincipals);
    EXPECT_EQ(kdb_.principals.size(), limits::kBulkPrincipals);
    realm_.servers[1]->set_fault(nullptr);
    const Outcome again = EnrolAll();
    EXPECT_EQ(again.code, 0) << again.err;
    EXPECT_THAT(again.out,
                HasSubstr(absl::StrCat(kUsers - limits::kBulkPrincipals, " enrolled, ",
                                       limits::kBulkPrincipals, " had protected keys already")));
    ExpectKeys(kUsers);
    ExpectNobodyHalfEnrolled();
  }
}

// mpc-kdb dies in the middle of a chunk: whom it wrote are enrolled, the others' keys are withdrawn.
TEST_F(BulkTest, GoesOnAfterTheDatabaseFailed) {
  kdb_.fail_set_after = static_cast<int>(limits::kBulkPrincipals) + 7;
  const Outcome outcome = EnrolAll();
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("ended by signal 9"));
  EXPECT_EQ(kdb_.principals.size(), limits::kBulkPrincipals + 7);
  ExpectKeys(limits::kBulkPrincipals + 7);
  EXPECT_EQ(EnrolAll().code, 0);
  ExpectKeys(kUsers);
  ExpectNobodyHalfEnrolled();
}

TEST_F(BulkTest, AnUnreadableDatabaseKeepsTheKeysAndSaysSo) {
  kdb_.fail_set_after = 3;
  kdb_.fail_list_after = 1;
  const Outcome outcome = EnrolAll();
  EXPECT_EQ(outcome.code, 5);
  EXPECT_THAT(outcome.err, HasSubstr("may or may not have the last keys"));
  EXPECT_GE(Keys(0), limits::kBulkPrincipals) << "the database may name them";
}

TEST_F(BulkTest, OneRefusedPrincipalDoesNotStopTheOthers) {
  kdb_.fail_one = "u00003@EXAMPLE.COM";
  const Outcome outcome = EnrolAll();
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("u00003@EXAMPLE.COM: no room"));
  EXPECT_EQ(kdb_.principals.size(), kUsers - 1);
  ExpectKeys(kUsers - 1);
}

TEST_F(BulkTest, ReplacesAndDeletesTheOldKeys) {
  ASSERT_EQ(EnrolAll({"--gate", "none"}).code, 0);
  const auto before = kdb_.principals;
  ASSERT_EQ(EnrolAll({"--replace", "--delete-old"}).code, 0);
  ExpectKeys(kUsers);
  ExpectNobodyHalfEnrolled();
  const KdbEntry& entry = kdb_.principals["u00007@EXAMPLE.COM"][0];
  EXPECT_NE(entry.handle, before.at("u00007@EXAMPLE.COM")[0].handle);
  EXPECT_EQ(entry.kvno, 4u) << "the keytab says 3, which the database had";
  EXPECT_EQ(realm_.servers[2]->committed()[entry.handle].info().gate(), v1::GATE_NONE)
      << "replaced keys keep their gate";
}

TEST_F(BulkTest, CtrlCEndsWhatIsBegun) {
  realm_.servers[0]->set_fault([](When when, const std::string& called) {
    if (when == When::kBefore && called == "StageKeys") raise(SIGINT);
    return grpc::Status::OK;
  });
  const Outcome outcome = EnrolAll();
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr(absl::StrCat("stopped after ", limits::kBulkPrincipals)));
  ExpectKeys(limits::kBulkPrincipals);
  EXPECT_EQ(kdb_.principals.size(), limits::kBulkPrincipals);
}

TEST_F(RunTest, TestLoginRunsKinitInAPrivateCache) {
  const std::string kinit = File("kinit");
  std::ofstream(kinit) << "#!/bin/sh\nread password\n"
                          "case $KRB5CCNAME in FILE:*) ;; *) exit 9 ;; esac\n"
                          "[ \"$password\" = \"open sesame\" ] && exit 0\n"
                          "echo 'kinit: Password incorrect while getting' >&2\nexit 1\n";
  chmod(kinit.c_str(), 0755);
  Outcome outcome = Run({"test-login", "alice", "--password-stdin", "--kinit", kinit});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("logged in"));
  password_ = "wrong";
  outcome = Run({"test-login", "alice", "--password-stdin", "--kinit", kinit});
  EXPECT_EQ(outcome.code, 6);
  outcome = Run({"test-login", "alice", "--password-stdin", "--kinit", "/nonexistent/kinit"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--kinit"));
}

TEST_F(RunTest, HelpAndVersion) {
  EXPECT_EQ(Run({"--help"}).code, 0);
  EXPECT_THAT(Run({"--help"}).out, HasSubstr("test-login"));
  EXPECT_THAT(Run({"help", "enroll"}).out, HasSubstr("--keytab FILE"));
  EXPECT_THAT(Run({"enroll", "--help"}).out, HasSubstr("--password-stdin"));
  EXPECT_THAT(Run({"--version"}).out, HasSubstr("mpc-admin "));
}

}  // namespace
}  // namespace mpckdc::admin
