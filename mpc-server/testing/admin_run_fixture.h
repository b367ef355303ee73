// SPDX-License-Identifier: Apache-2.0
// For tests of whole command lines: three fake servers (real gRPC) and a KDC's database in memory.
#ifndef MPC_SERVER_TESTING_ADMIN_RUN_FIXTURE_H_
#define MPC_SERVER_TESTING_ADMIN_RUN_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "mpc-server/admin/commands.h"
#include "mpc-server/admin/names.h"
#include "mpc-server/key/string_to_key.h"
#include "mpc-server/testing/enrolment.h"
#include "mpc-server/testing/fake_admin_service.h"

namespace mpckdc::admin {

inline constexpr char kRealm[] = "EXAMPLE.COM";

inline const std::vector<int32_t> kAllEnctypes = {kEnctypeAes256Gcm,    kEnctypeAes128Gcm,
                                                  kEnctypeAes256Sha1,   kEnctypeAes128Sha1,
                                                  kEnctypeAes256Sha384, kEnctypeAes128Sha256};

inline v1::KeyInfo KeyOf(const std::string& principal, uint32_t kvno, int32_t enctype,
                         const std::string& handle) {
  v1::KeyInfo key;
  key.set_principal(principal);
  key.set_kvno(kvno);
  key.set_enctype(enctype);
  key.set_handle(handle);
  return key;
}

inline std::string KeytabEntry(const std::string& name, int enctype, const std::string& key) {
  return enroll::KeytabBytes({name}, 3, enctype, key, /*long_kvno=*/false);
}

// A KDC's database, as the program mpc-kdb shows it.
struct FakeKdb {
  absl::StatusOr<std::string> Run(const std::vector<std::string>& arguments,
                                  const std::string& input) {
    if (arguments[0].starts_with("set-handles") && before_set) std::exchange(before_set, nullptr)();
    // As processes wait for the database's lock: mpc-admin has some written while it plans others.
    absl::MutexLock lock(database.get());
    const std::string& command = arguments[0];
    if (command == "list") return List();
    if (command == "tickets") return Tickets(arguments[1]);
    if (command == "purge") return Purge(arguments[1], nlohmann::json::parse(input)["keep_from"]);
    if (command == "plan") return Plan(arguments[1]).dump();
    if (command == "delete" && principals.erase(arguments[1]) == 0) {
      return absl::NotFoundError("no principal");
    }
    if (command == "set-handles" && (fail_set.ok() || set_all_the_same)) {
      const nlohmann::json fresh = nlohmann::json::parse(input);
      if (!AsExpected(arguments[1], fresh)) return absl::FailedPreconditionError(kChanged);
      Set(arguments[1], fresh);
    }
    if (command == "set-handles" && !fail_set.ok()) return fail_set;
    std::string answer;
    for (absl::string_view line : absl::StrSplit(input, '\n', absl::SkipEmpty())) {
      const nlohmann::json request = nlohmann::json::parse(line);
      if (command == "plan-many") absl::StrAppend(&answer, Plan(request).dump(), "\n");
      if (command != "set-handles-many") continue;
      if (fail_set_after.has_value() && (*fail_set_after)-- == 0) {
        fail_set_after.reset();
        return absl::UnavailableError("mpc-kdb was ended by signal 9");
      }
      if (!AsExpected(request["principal"], request)) {
        absl::StrAppendFormat(&answer, R"({"error": "%s", "not_found": false})" "\n", kChanged);
        continue;
      }
      const bool refused = request["principal"] == fail_one;
      if (!refused) Set(request["principal"], request);
      answer += refused ? "{\"error\": \"no room\", \"not_found\": false}\n" : "{}\n";
    }
    return answer;
  }

  absl::StatusOr<std::string> Tickets(const std::string& principal) {
    if (!principals.contains(principal)) return absl::NotFoundError("no principal");
    return nlohmann::json{{"principal", principal},
                          {"changed", absl::ToUnixSeconds(changed[principal])},
                          {"longest", absl::ToInt64Seconds(longest)}}
        .dump();
  }

  absl::StatusOr<std::string> Purge(const std::string& principal, uint32_t keep_from) {
    if (!fail_purge.ok()) return fail_purge;
    std::erase_if(principals[principal], [=](const auto& key) { return key.kvno() < keep_from; });
    return "";
  }

  nlohmann::json Plan(const std::string& principal) {
    const auto found = principals.find(principal);
    nlohmann::json plan = {{"principal", principal}, {"exists", found != principals.end()}};
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

  static constexpr char kChanged[] = "its keys were changed meanwhile";
  // As mpc-kdb looks at it under the database's lock.
  bool AsExpected(const std::string& principal, const nlohmann::json& fresh) {
    if (!fresh.contains("expected")) return true;
    const auto found = principals.find(principal);
    if (found == principals.end()) return !fresh["expected"]["exists"].get<bool>();
    uint32_t kvno = 0;
    std::set<std::string> handles;
    for (const v1::KeyInfo& key : found->second) {
      kvno = std::max(kvno, key.kvno());
      handles.insert(Hex(key.handle()));
    }
    return fresh["expected"]["exists"] == true && fresh["expected"]["kvno"] == kvno &&
           fresh["expected"]["handles"].get<std::set<std::string>>() == handles;
  }

  void Set(const std::string& principal, const nlohmann::json& fresh) {
    std::vector<v1::KeyInfo>& keys = principals[principal];
    if (!fresh["keep_old"]) keys.clear();
    changed[principal] = absl::Now();
    for (const nlohmann::json& key : fresh["keys"]) {
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
      if (keys.empty()) {
        absl::StrAppendFormat(&lines, R"({"principal":"%s","keyless":true})" "\n", principal);
      }
      for (const v1::KeyInfo& key : keys) {
        nlohmann::json line = {{"principal", principal},
                               {"kvno", key.kvno()},
                               {"enctype", key.enctype()},
                               {"handle", Hex(key.handle())}};
        if (!key.renamed_from().empty()) line["renamed_from"] = key.renamed_from();
        if (!key.renamed_to().empty()) line["renamed_to"] = key.renamed_to();
        absl::StrAppend(&lines, line.dump(), "\n");
      }
    }
    return lines;
  }

  std::map<std::string, std::vector<v1::KeyInfo>> principals;
  std::vector<int32_t> enctypes = {kEnctypeAes256Gcm, kEnctypeAes128Gcm};
  absl::Status fail_set;          // answered by set-handles ...
  bool set_all_the_same = false;  // ... although it did its work
  absl::Status fail_list, fail_purge;
  std::map<std::string, absl::Time> changed;
  absl::Duration longest = absl::Hours(24);  // of tickets
  std::optional<int> fail_set_after;   // principals of many; then it fails as a whole
  std::optional<int> fail_list_after;  // lists
  std::string fail_one;                // of many: refused alone
  std::function<void()> before_set;  // once: what others do when the new keys are on the servers
  // While a program runs; a copy's too.
  std::shared_ptr<absl::Mutex> database = std::make_shared<absl::Mutex>();
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
    const int code = RunTo(&out, &err, arguments);
    return {code, out.str(), err.str()};
  }

  int RunTo(std::ostream* out, std::ostream* err, const std::vector<std::string>& arguments) {
    Environment environment;
    environment.out = out;
    environment.err = err;
    environment.out_is_terminal = columns_ != nullptr;
    environment.columns = columns_;
    environment.default_config = config_;
    environment.dial = [this](const AdminConfig&, size_t triple) {
      return triple == 0 ? realm_.Connect() : second_->Connect();
    };
    environment.kdb_program = [this](const AdminConfig&) {
      return [this](const auto& arguments, const auto& input, bool) {
        return kdb_.Run(arguments, input);
      };
    };
    environment.confirm = [this](const std::string& question) -> absl::StatusOr<bool> {
      question_ = question;
      return yes_;
    };
    environment.read_password = [this]() -> absl::StatusOr<SecretBytes> {
      return SecretBytes(password_.begin(), password_.end());
    };
    environment.ask_password = [this](const std::string&, bool) -> absl::StatusOr<SecretBytes> {
      ++asked_;
      return SecretBytes(password_.begin(), password_.end());
    };
    return RunAdmin(arguments, environment);
  }

  // What a command line must end with, and what results and remarks must have in them.
  Outcome Expect(int code, const std::vector<std::string>& arguments,
                 const std::vector<std::string>& in_out = {},
                 const std::vector<std::string>& in_err = {}) {
    const Outcome outcome = Run(arguments);
    const std::string line = absl::StrJoin(arguments, " ");
    EXPECT_EQ(outcome.code, code) << line << ": " << outcome.out << outcome.err;
    for (const std::string& text : in_out)
      EXPECT_THAT(outcome.out, testing::HasSubstr(text)) << line;
    for (const std::string& text : in_err)
      EXPECT_THAT(outcome.err, testing::HasSubstr(text)) << line;
    return outcome;
  }

  Outcome Enroll(int code, const std::string& principal, std::vector<std::string> more = {},
                 const std::vector<std::string>& in_out = {},
                 const std::vector<std::string>& in_err = {}) {
    more.insert(more.begin(), {"enroll", principal, "--password-stdin"});
    return Expect(code, more, in_out, in_err);
  }

  size_t Keys(int party) { return realm_.servers[party]->in_use(); }

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

  // A second triple. What the machines of a party share they have each for themselves here.
  void AddTriple() {
    second_.emplace(kRealm);
    std::ifstream in(config_);
    std::string text(std::istreambuf_iterator<char>(in), {});
    const std::string one = "[\"a:1\", \"b:1\", \"c:1\"]";
    text.replace(text.find(one), one.size(), "[" + one + ", [\"a:2\", \"b:2\", \"c:2\"]]");
    std::ofstream(config_) << text;
    for (int party = 0; party < 3; ++party) {
      v1::StatusReply& first = realm_.servers[party]->status();
      v1::DatabaseStatus& database = *first.mutable_database();
      database.set_reachable(true);
      database.set_where(absl::StrCat("db", party, ":5432/mpckdc"));
      database.set_system(40 + party);
      database.set_answer_us(300);
      database.set_commit_us(1200);
      second_->servers[party]->BeMachineOf(*realm_.servers[party], /*triple=*/1);
    }
  }

  enroll::FakeRealm realm_;
  std::optional<enroll::FakeRealm> second_;
  FakeKdb kdb_;
  std::string config_;
  std::string password_ = "open sesame";
  int asked_ = 0;
  bool yes_ = false;  // the answer to what was asked last
  size_t (*columns_)() = nullptr;  // of the terminal that results go to, if they go to one
  std::string question_;
};

}  // namespace mpckdc::admin

#endif  // MPC_SERVER_TESTING_ADMIN_RUN_FIXTURE_H_
