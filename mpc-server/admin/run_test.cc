// SPDX-License-Identifier: Apache-2.0
//
// Whole command lines against three fake servers (real gRPC) and a KDC's database in memory.
#include "mpc-server/admin/commands.h"

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
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "mpc-server/admin/names.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/version.h"
#include "mpc-server/key/string_to_key.h"
#include "mpc-server/testing/enrolment.h"
#include "mpc-server/testing/fake_admin_service.h"

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

v1::KeyInfo KeyOf(const std::string& principal, uint32_t kvno, int32_t enctype,
                  const std::string& handle) {
  v1::KeyInfo key;
  key.set_principal(principal);
  key.set_kvno(kvno);
  key.set_enctype(enctype);
  key.set_handle(handle);
  return key;
}

// A KDC's database, as the program mpc-kdb shows it.
struct FakeKdb {
  absl::StatusOr<std::string> Run(const std::vector<std::string>& arguments,
                                  const std::string& input) {
    const std::string& command = arguments[0];
    if (command == "list") return List();
    if (command == "plan") return Plan(arguments[1]).dump();
    if (command == "delete" && principals.erase(arguments[1]) == 0) {
      return absl::NotFoundError("no principal");
    }
    if (command == "set-handles" && (fail_set.ok() || set_all_the_same)) {
      Set(arguments[1], json::parse(input));
    }
    if (command == "set-handles" && !fail_set.ok()) return fail_set;
    std::string answer;
    for (absl::string_view line : absl::StrSplit(input, '\n', absl::SkipEmpty())) {
      const json request = json::parse(line);
      if (command == "plan-many") absl::StrAppend(&answer, Plan(request).dump(), "\n");
      if (command != "set-handles-many") continue;
      if (fail_set_after.has_value() && (*fail_set_after)-- == 0) {
        fail_set_after.reset();
        return absl::UnavailableError("mpc-kdb was ended by signal 9");
      }
      const bool refused = request["principal"] == fail_one;
      if (!refused) Set(request["principal"], request);
      answer += refused ? "{\"error\": \"no room\", \"not_found\": false}\n" : "{}\n";
    }
    return answer;
  }

  json Plan(const std::string& principal) {
    const auto found = principals.find(principal);
    json plan = {{"principal", principal}, {"exists", found != principals.end()}};
    uint32_t next = 1;
    for (const v1::KeyInfo& key : plan["exists"] ? found->second : std::vector<v1::KeyInfo>()) {
      next = std::max(next, key.kvno() + 1);
    }
    plan["kvno_next"] = next;
    const std::string salt = Hex(absl::StrCat(kRealm, "alice"));
    for (const int32_t enctype : enctypes) {
      plan["enctypes"].push_back({{"enctype", enctype}, {"salt_type", 0}, {"salt", salt}});
    }
    return plan;
  }

  void Set(const std::string& principal, const json& fresh) {
    std::vector<v1::KeyInfo>& keys = principals[principal];
    if (!fresh["keep_old"]) keys.clear();
    for (const json& key : fresh["keys"]) {
      const std::string handle = key["handle"];
      keys.push_back(KeyOf(principal, fresh["kvno"], key["enctype"], *FromHex(handle)));
    }
  }

  absl::StatusOr<std::string> List() {
    if (!fail_list.ok()) return fail_list;
    if (fail_list_after.has_value() && (*fail_list_after)-- == 0) {
      return absl::UnavailableError("no route to the KDC");
    }
    std::string lines;
    for (const auto& [principal, keys] : principals) {
      for (const v1::KeyInfo& key : keys) {
        absl::StrAppendFormat(&lines,
                              R"({"principal":"%s","kvno":%d,"enctype":%d,"handle":"%s"})"
                              "\n",
                              principal, key.kvno(), key.enctype(), Hex(key.handle()));
      }
    }
    return lines;
  }

  std::map<std::string, std::vector<v1::KeyInfo>> principals;
  std::vector<int32_t> enctypes = {kEnctypeAes256Gcm, kEnctypeAes128Gcm};
  absl::Status fail_set;          // answered by set-handles ...
  bool set_all_the_same = false;  // ... although it did its work
  absl::Status fail_list;
  std::optional<int> fail_set_after;   // principals of many; then it fails as a whole
  std::optional<int> fail_list_after;  // lists
  std::string fail_one;                // of many: refused alone
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
    environment.kdb_program = [this](const AdminConfig&) {
      return [this](const auto& arguments, const auto& input, bool) {
        return kdb_.Run(arguments, input);
      };
    };
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

  // What a command line must end with, and what results and remarks must have in them.
  Outcome Expect(int code, const std::vector<std::string>& arguments,
                 const std::vector<std::string>& in_out = {},
                 const std::vector<std::string>& in_err = {}) {
    const Outcome outcome = Run(arguments);
    const std::string line = absl::StrJoin(arguments, " ");
    EXPECT_EQ(outcome.code, code) << line << ": " << outcome.out << outcome.err;
    for (const std::string& text : in_out) EXPECT_THAT(outcome.out, HasSubstr(text)) << line;
    for (const std::string& text : in_err) EXPECT_THAT(outcome.err, HasSubstr(text)) << line;
    return outcome;
  }

  Outcome Enroll(int code, const std::string& principal, std::vector<std::string> more = {},
                 const std::vector<std::string>& in_out = {},
                 const std::vector<std::string>& in_err = {}) {
    more.insert(more.begin(), {"enroll", principal, "--password-stdin"});
    return Expect(code, more, in_out, in_err);
  }

  size_t Keys(int party) { return realm_.servers[party]->committed().size(); }

  void ExpectKeys(size_t count) {
    for (int party = 0; party < 3; ++party) {
      EXPECT_EQ(Keys(party), count) << party;
      EXPECT_EQ(realm_.servers[party]->staged(), 0u) << party;
    }
  }

  // The servers hold the password's keys for all of the principal's handles.
  void ExpectKeysOfPassword(const std::string& principal) {
    const std::string salt = absl::StrCat(kRealm, "alice");
    for (const v1::KeyInfo& entry : kdb_.principals[principal]) {
      const SecretBytes key =
          *StringToKey(entry.enctype(), std::vector<uint8_t>(password_.begin(), password_.end()),
                       std::vector<uint8_t>(salt.begin(), salt.end()));
      EXPECT_EQ(realm_.Joined(entry.handle()), std::string(key.begin(), key.end()))
          << entry.enctype();
    }
  }

  enroll::FakeRealm realm_;
  FakeKdb kdb_;
  std::string config_;
  std::string password_ = "open sesame";
  int asked_ = 0;
};

// What server `party` saw of those that it names.
void Accuse(enroll::FakeRealm& realm, int party, const std::vector<uint32_t>& suspects) {
  v1::StatusReply& status = realm.servers[party]->status();
  status.set_peers_connected(false);
  for (const uint32_t suspect : suspects) status.mutable_quarantine()->add_suspects(suspect);
  status.mutable_quarantine()->set_text("two stories");
  status.mutable_quarantine()->set_batch(7);
  status.mutable_quarantine()->set_session(std::string(16, '\x2b'));
}

TEST_F(RunTest, StatusAndDoctorNameAServerThatDeviated) {
  Accuse(realm_, 0, {1, 2});
  Accuse(realm_, 2, {0, 1});
  Expect(1, {"status"}, {"QUARANTINED"},
         {"is quarantined: party 1 or party 2 deviated on ", "two stories",
          "what the servers saw fits party 1; or it was party 0 or party 2, which only says"});
  const json status = json::parse(Expect(1, {"status", "--json"}).out);
  EXPECT_EQ(status["suspects"], json::array({1}));
  for (const json& server : status["servers"]) {  // in any order
    const json& seen = server["quarantine"];
    EXPECT_EQ(seen.is_null(), server["party"] == 1);
    if (server["party"] != 0) continue;
    EXPECT_EQ(seen["suspects"], json::array({1, 2}));
    EXPECT_EQ(seen["batch"], 7);
    EXPECT_EQ(seen["session"], Hex(std::string(16, '\x2b')));
  }
  EXPECT_EQ(status["possible_suspects"], json::array({0, 1, 2}));
  Expect(1, {"doctor"}, {"BAD", "is quarantined", "fits party 1", "readmit"});
}

// Whatever the liar says of the others.
TEST_F(RunTest, OnlyWhatTheOthersSayCounts) {
  const struct {
    std::vector<std::vector<uint32_t>> seen;  // by party; empty: nothing
    std::vector<uint32_t> named, possible;
    std::string text;
  } cases[] = {
      {{{1}, {}, {}}, {1}, {0, 1}, "fits party 1; or it was party 0, which only says"},
      {{{1}, {0}, {}}, {}, {0, 1}, "contradict each other: party 0 or party 1 deviated"},
      {{{1}, {0, 2}, {1}}, {}, {1}, "contradict each other: party 1 deviated"},
      {{{1}, {}, {1}}, {1}, {1}, "saw fits party 1\n"},
      {{{1, 2}, {0, 2}, {0, 1}}, {}, {0, 1, 2}, "party 0 or party 1 or party 2 deviated"},
      {{{1}, {2}, {0}}, {}, {}, "more than one server deviates"},
  };
  for (const auto& c : cases) {
    for (uint32_t p = 0; p < 3; ++p) {
      realm_.servers[p]->status().clear_quarantine();
      if (!c.seen[p].empty()) Accuse(realm_, static_cast<int>(p), c.seen[p]);
    }
    const json status = json::parse(Expect(1, {"status", "--json"}).out);
    EXPECT_EQ(status["suspects"], json(c.named));
    EXPECT_EQ(status["possible_suspects"], json(c.possible));
    Expect(1, {"status"}, {}, {c.text});
  }
}

TEST_F(RunTest, ReadmitEndsQuarantinesAndSaysWhich) {
  Accuse(realm_, 0, {1, 2});
  realm_.servers[2]->FailCalls("Readmit");
  Expect(3, {"readmit"}, {"party 0 ended its quarantine: party 1 or party 2 deviated"},
         {"run mpc-admin readmit again"});
  EXPECT_FALSE(realm_.servers[0]->status().has_quarantine());
  realm_.servers[2]->set_fault(nullptr);
  Expect(4, {"readmit"}, {"nothing to readmit: none of the three servers is quarantined"});
  Accuse(realm_, 1, {2});
  const json ended = json::parse(Expect(0, {"readmit", "--json"}).out);
  EXPECT_EQ(ended["readmitted"].size(), 1u);
  EXPECT_EQ(ended["readmitted"][0]["party"], 1);
}

TEST_F(RunTest, StatusAndDoctorNameRecordsThatDiffer) {
  for (const auto& server : realm_.servers) {
    server->status().set_different_records(2);
    server->status().set_different_record("the three servers hold different records of key 01");
  }
  Expect(1, {"status"}, {}, {"2 keys are refused: the three servers hold different records"});
  Expect(1, {"doctor"}, {"BAD", "hold different records of key 01", "restore that server's store"});
}

TEST_F(RunTest, StatusAndDoctorSayWhichSecurityAndSemiHonestLoudly) {
  const Outcome active = Expect(0, {"status"}, {"SECURITY", "active"});
  EXPECT_THAT(active.out + active.err, Not(HasSubstr("SEMI-HONEST")));
  EXPECT_THAT(Expect(0, {"doctor"}, {"security is active"}).out, Not(HasSubstr("SEMI-HONEST")));
  for (const auto& server : realm_.servers) server->status().set_security("semi-honest");
  Expect(0, {"status"}, {"SEMI-HONEST"}, {"security is SEMI-HONEST, for benchmarks alone"});
  Expect(
      0, {"doctor"},
      {"warning", "security is SEMI-HONEST", "take security = \"semi-honest\" out of the three"});
}

// The three refuse to work together: mpc-server/share/session_test.cc.
TEST_F(RunTest, ADifferenceInSecurityIsAFinding) {
  realm_.servers[1]->status().set_security("semi-honest");
  constexpr char kText[] =
      "differ in [engine] security and do not work together: party 0 has active, party 1 has "
      "semi-honest, party 2 has active";
  Expect(0, {"status"}, {}, {kText});
  Expect(1, {"doctor"}, {"BAD", kText});
}

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

TEST_F(RunTest, BadInputIsRefusedBeforeAnythingIsAsked) {
  const std::vector<std::vector<std::string>> lines = {
      {"enroll"},
      {"enroll", "alice@OTHER.ORG"},
      {"enroll", "krbtgt/EXAMPLE.COM"},
      {"enroll", "krbtgt/EXAMPLE.COM@OTHER.ORG"},
      {"enroll", "--all"},
      {"enroll", "alice", "--all", "--keytab", "x"},
      {"enroll", "alice", "--keytab", "/nonexistent/keytab"},
      {"delete"},
      {"delete", "--all"},
      {"list", "--config", "/nonexistent/admin.toml"},
      {"frobnicate"},
  };
  for (const std::vector<std::string>& line : lines) {
    EXPECT_EQ(Expect(2, line, {}, {"next: "}).out, "");
  }
  EXPECT_EQ(asked_, 0);
  ExpectKeys(0);
}

TEST_F(RunTest, ErrorsAreJsonToo) {
  const json error = json::parse(Expect(4, {"list", "bob", "--json"}).out);
  EXPECT_THAT(error["error"].get<std::string>(), HasSubstr("no key of bob@EXAMPLE.COM"));
  EXPECT_EQ(error["exit"], 4);
}

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
  // The old ticket-granting keys stay in the database.
  Expect(0, {"randkey", "krbtgt/EXAMPLE.COM", "--delete-old"});
  EXPECT_EQ(kdb_.principals["krbtgt/EXAMPLE.COM@EXAMPLE.COM"].size(), 4u);
  ExpectKeys(4);
}

TEST_F(RunTest, DeletesPrincipalAndKeys) {
  Enroll(0, "alice");
  Enroll(0, "bob");
  Expect(0, {"delete", "alice"});
  EXPECT_EQ(kdb_.principals.count("alice@EXAMPLE.COM"), 0u);
  ExpectKeys(2);
  Expect(4, {"delete", "alice"}, {}, {"neither the KDC nor the servers know alice@EXAMPLE.COM"});
  Expect(0, {"randkey", "krbtgt/EXAMPLE.COM"});
  Expect(4, {"delete", "krbtgt/EXAMPLE.COM"});
  ExpectKeys(4);
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

TEST_F(RunTest, VerifyFindsAKeyWhoseRecordsDoNotFit) {
  Enroll(0, "alice");
  v1::SharePackage damaged = realm_.servers[2]->committed().begin()->second;
  damaged.clear_usages();
  realm_.servers[2]->Plant(damaged);
  Expect(1, {"verify", "alice"}, {"BAD   alice@EXAMPLE.COM version 1", "1 key good"});
}

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
  Expect(1, {"doctor", "--json"}, {"on servers 0-2"});
  Expect(5, {"list"});
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
  Expect(1, {"doctor"}, {"start mpc-server on " + realm_.servers[2]->address()});
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

TEST_F(RunTest, InitRealmIsHarmlessTwice) {
  for (auto& server : realm_.servers) server->status().set_initialised(false);
  Enroll(4, "alice", {}, {}, {"next: run mpc-admin init-realm"});
  Expect(0, {"init-realm"});
  Expect(0, {"init-realm"}, {"ready already"});
  Enroll(0, "alice");
}

std::string KeytabEntry(const std::string& name, int enctype, const std::string& key) {
  return enroll::KeytabBytes({name}, 3, enctype, key, /*long_kvno=*/false);
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

TEST_F(RunTest, DoctorNamesServicesWhoseTicketsDoNotAge) {
  Enroll(0, "HTTP/www.example.com");
  Expect(0, {"doctor"}, {}, {});
  kdb_.principals["HTTP/www.example.com@EXAMPLE.COM"][0].set_enctype(kEnctypeAes256Sha1);
  Expect(0, {"doctor"}, {"lives as long as the key: HTTP/www.example.com@EXAMPLE.COM"});
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

// mpc-kdb dies in the middle of a chunk: whom it wrote are enrolled, the others' keys are withdrawn.
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

TEST_F(BulkTest, CtrlCEndsWhatIsBegun) {
  realm_.servers[0]->set_fault([](When when, const std::string& called) {
    if (when == When::kBefore && called == "StageKeys") raise(SIGINT);
    return grpc::Status::OK;
  });
  EnrolAll(3, {}, {absl::StrCat("stopped after ", limits::kBulkPrincipals)});
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
  Expect(0, {"test-login", "alice", "--password-stdin", "--kinit", kinit}, {"logged in"});
  password_ = "wrong";
  Expect(6, {"test-login", "alice", "--password-stdin", "--kinit", kinit});
  Expect(2, {"test-login", "alice", "--password-stdin", "--kinit", "/nonexistent/kinit"}, {},
         {"--kinit"});
}

TEST_F(RunTest, HelpAndVersion) {
  Expect(0, {"--help"}, {"test-login"});
  Expect(0, {"help", "enroll"}, {"--keytab FILE"});
  Expect(0, {"enroll", "--help"}, {"--password-stdin"});
  Expect(0, {"--version"}, {"mpc-admin "});
}

}  // namespace
}  // namespace mpckdc::admin
