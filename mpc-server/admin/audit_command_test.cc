// SPDX-License-Identifier: Apache-2.0
//
// mpc-admin audit, as its user sees it: files only, no configuration, no network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "mpc-server/admin/commands.h"
#include "mpc-server/key/key_info.h"
#include "mpc-server/testing/audit_log.h"

namespace mpckdc::admin {
namespace {

using audit::kAlice;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

class AuditCommandTest : public audit::ThreeLogs {
 protected:
  struct Outcome {
    int code;
    std::string out, err;
  };

  static Outcome Run(std::vector<std::string> arguments) {
    std::ostringstream out, err;
    Environment environment;  // neither configuration nor servers
    environment.out = &out;
    environment.err = &err;
    environment.default_config = "/nonexistent/admin.toml";
    arguments.insert(arguments.begin(), "audit");
    const int code = RunAdmin(arguments, environment);
    return {code, out.str(), err.str()};
  }

  static void Expect(int code, const std::vector<std::string>& arguments,
                     const std::vector<std::string>& in_out = {}) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.code, code) << outcome.out << outcome.err;
    for (const std::string& text : in_out) EXPECT_THAT(outcome.out, HasSubstr(text));
  }
};

TEST_F(AuditCommandTest, VerifySaysWhatItRead) {
  GoodBatch();
  const Outcome good = Run({"verify", File(0)});
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_EQ(good.out, absl::StrCat("log of     \"realm\":\"EXAMPLE.COM\",\"party\":0\n"
                                   "lines      1 to 2 (2)\n"
                                   "from       2027-01-15T08:00:00.000000Z\n"
                                   "to         2027-01-15T08:00:01.000000Z\n"
                                   "head       ", logs_[0]->Status().head.hash, "\n"
                                   "the chain is intact\n"));
  EXPECT_EQ(Run({"verify", folder_.File("p0")}).out, good.out) << "the folder is as good";
  const json object = json::parse(Run({"verify", "--json", File(0)}).out);
  EXPECT_EQ(object["head"], logs_[0]->Status().head.hash);
  EXPECT_TRUE(object["intact"]);
}

TEST_F(AuditCommandTest, VerifyNamesFileLineAndKind) {
  for (int i = 0; i < 4; ++i) GoodBatch();
  Rewrite(0, [](auto& lines) { lines.erase(lines.begin() + 2); });
  Expect(1, {"verify", File(0)}, {absl::StrCat(File(0), ":3: missing: line 3 is missing\n")});
  const json object = json::parse(Run({"verify", "--json", File(0)}).out);
  EXPECT_EQ(object["breaks"][0]["kind"], "missing");
  EXPECT_EQ(object["breaks"][0]["line"], 3);
}

TEST_F(AuditCommandTest, VerifyLooksForAKnownHead) {
  GoodBatch();
  const std::string head = logs_[0]->Status().head.hash;
  GoodBatch();
  Expect(0, {"verify", File(0), "--head", head});
  Expect(1, {"verify", File(1), "--head", head}, {"is no line of this log"});
  Expect(2, {"verify", File(0), "--head", "abc"});
}

TEST_F(AuditCommandTest, ReconcileFindsNothingOrSomething) {
  GoodBatch();
  Expect(0, {"reconcile", File(2), folder_.File("p0"), File(1)},
         {"1 jobs in 1 batches are told alike by all three", "nothing is unexplained"});
  GoodBatch({0, 2});
  GoodBatch();
  Expect(1, {"reconcile", File(0), File(1), File(2)},
         {"OK - OK", "server 1 has no line of it and was running",
          "not explained, by KDC:\n  1  kdc1"});
  const json object = json::parse(Run({"reconcile", "--json", File(0), File(1), File(2)}).out);
  EXPECT_EQ(object["unexplained"], 1);
  EXPECT_EQ(object["by_principal"][kAlice], 1);
  EXPECT_TRUE(object["findings"][0]["servers"][1].is_null());
  Expect(0, {"reconcile", "--since", "2027-01-15T08:00:02.5Z", File(0), File(1), File(2)});
}

TEST_F(AuditCommandTest, ShowPicksAPrincipal) {
  GoodBatch();
  GoodBatch({0, 1, 2}, "b0b00000000000000000000000000000");
  Write(0, "admin", {{"call", "StageKeys"}, {"who", "admin/root"}, {"result", "OK"},
                     {"keys", {{{"principal", "alice@EXAMPLE.COM"}}}}});
  const Outcome alice = Run({"show", "--principal", "alice", File(0)});
  EXPECT_EQ(alice.code, 0);
  EXPECT_THAT(alice.out, HasSubstr("LOGIN"));
  EXPECT_THAT(alice.out, HasSubstr("StageKeys"));
  EXPECT_THAT(alice.out, Not(HasSubstr("b0b0")));
  EXPECT_EQ(json::parse(Run({"show", "--json", "--principal", kAlice, File(0)}).out).size(), 1u);
  EXPECT_EQ(json::parse(Run({"show", "--json", File(0)}).out).size(), 3u);
}

// Refused jobs of a flood have no place of their own.
TEST_F(AuditCommandTest, ShowTellsWhatWasCounted) {
  GoodBatch();
  const auto kind = [](const char* verdict, uint64_t count, const std::string& principal) {
    return audit::Fields{{"kdc", "kdc1"},
                         {"op", "LOGIN"},
                         {"verdict", verdict},
                         {"count", count},
                         {"principal", principal}};
  };
  Write(0, "counted",
        {{"since", "2027-01-15T08:00:00+00:00"},
         {"counted", {kind("QUOTA", 995, kAlice), kind("UNPROVED", 77, std::string(32, 'b'))}}});
  Expect(0, {"show", File(0)}, {"QUOTA", "995 more since 2027", "UNPROVED", "77 more since 2027"});
  const Outcome alice = Run({"show", "--principal", "alice", File(0)});
  EXPECT_THAT(alice.out, HasSubstr("995 more since 2027"));
  EXPECT_THAT(alice.out, Not(HasSubstr("UNPROVED")));
  EXPECT_THAT(alice.err,
              HasSubstr("77 jobs that were refused, and not computed, are only counted"));
  const Outcome request = Run({"show", "--request", "0123456789abcdef", File(0)});
  EXPECT_EQ(request.out, "nothing was found\n");
  EXPECT_THAT(request.err, HasSubstr("1072 jobs that were refused"));
  EXPECT_EQ(json::parse(Run({"show", "--json", "--service", "kadmin/admin", File(0)}).out).size(),
            0u);
}

// The id of kadmin/admin@EXAMPLE.COM, by the document's rule.
std::string KadminId() { return HandleText(PrincipalIdOf("kadmin/admin@EXAMPLE.COM")); }

TEST_F(AuditCommandTest, ShowFindsTheTicketsOfAService) {
  const auto job = [&](const char* operation, std::vector<audit::Fields> keys) {
    audit::Fields made = Job(++id_, "OK");
    made["op"] = operation;
    made["keys"] = std::move(keys);
    ++batch_;
    Batch(0, {made});
  };
  const std::string krbtgt(32, 'a');
  job("LOGIN", {Key("open", 1, kAlice), Key("seal", 2, krbtgt), Key("seal", 3, kAlice)});
  job("REISSUE_TICKET", {Key("open", 2, krbtgt), Key("seal", 2, KadminId())});
  job("OPEN_TICKET", {Key("open", 2, KadminId())});
  job("MAKE_CHECKSUM", {Key("make_mac", 17, KadminId())});
  const json found = json::parse(Run({"show", "--json", "--service", "kadmin/admin", File(0)}).out);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0]["what"], "REISSUE_TICKET (seal 2)");
  EXPECT_EQ(found[0]["principal"], kAlice);
  EXPECT_EQ(found[1]["what"], "OPEN_TICKET (open 2)");
  Expect(0, {"show", "--service", KadminId(), "--principal", "alice", File(0)},
         {"REISSUE_TICKET (seal 2)"});
  Expect(0, {"show", "--service", krbtgt, File(0)}, {"LOGIN (seal 2)", "REISSUE_TICKET (open 2)"});
  Expect(0, {"show", "--service", "nfs/www", File(0)}, {"nothing was found"});
}

TEST_F(AuditCommandTest, ShowFindsTheJobsOfARequest) {
  const std::string name = "5d0c6e1f20b3a794";
  audit::Fields opened = Job(++id_, "OK"), sealed = Job(++id_, "DEADLINE"), another = Job(++id_, "OK");
  opened["op"] = "OPEN_PREAUTH";
  sealed["op"] = "SEAL_GRANTED";
  opened["request"] = sealed["request"] = name;
  another["request"] = "0000000000000001";
  Batch(0, {opened, another});
  ++batch_;
  Batch(0, {sealed});
  Write(0, "refused", {{"call", "Tags"}, {"kdc", "kdc1"}, {"request", name}, {"reason", "no such job"}});
  Write(0, "refused", {{"call", "Serve"}, {"from", "10.0.0.9"}, {"reason", "wrong role"}});
  Write(0, "admin", {{"call", "StageKeys"}, {"who", "admin/root"}, {"result", "OK"}});
  const json found = json::parse(Run({"show", "--json", "--request", name, File(0)}).out);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0]["what"], "OPEN_PREAUTH");
  EXPECT_EQ(found[1]["verdict"], "DEADLINE");
  EXPECT_EQ(found[2]["verdict"], "REFUSED");
  EXPECT_EQ(found[2]["detail"], "no such job");
  Expect(0, {"show", "--request", "ffffffffffffffff", File(0)}, {"nothing was found"});
  Expect(2, {"show", "--request", "alice", File(0)});
}

// A log has its texts as JSON; who reads it has a terminal. What a KDC told an honest server is as
// hostile as the log of one that lies.
TEST_F(AuditCommandTest, NoTextOfALogReachesTheTerminalAsAnEscape) {
  const std::string evil = "x\nall is well\033[2K\u009b";
  const auto expect = [](const std::vector<std::string>& arguments) {
    const Outcome outcome = Run(arguments);
    EXPECT_THAT(outcome.out + outcome.err,
                Not(::testing::AnyOf(HasSubstr("\033"), HasSubstr("\nall is well"),
                                     HasSubstr("\u009b"))))
        << arguments[0];
    return outcome.out + outcome.err;
  };
  audit::Fields job = Job(++id_, "REFUSED");
  for (const char* field : {"kdc", "op", "verdict", "detail", "session"}) job[field] = evil;
  Batch(0, {job});
  Write(0, "admin", {{"call", evil}, {"who", evil}, {"result", evil}, {"reason", evil}});
  EXPECT_THAT(expect({"show", File(0)}), HasSubstr("x\\x0aall is well\\x1b[2K"));
  expect({"reconcile", File(0), File(1), File(2)});
  // Of one that lies the owner is whatever it likes.
  audit::Head head;
  WriteFileForTest(File(0), audit::EncodeLine({"EXAMPLE.COM", 0}, absl::UnixEpoch(), "start", {},
                                              &head));
  Rewrite(0, [](auto& lines) {
    const size_t at = lines[0].find("EXAMPLE");
    lines[0].replace(at, 1, "\033[2J");
    const size_t end = lines[0].find(",\"hash\":\"");
    lines[0] = lines[0].substr(0, end) + ",\"hash\":\"" + audit::HashText(lines[0].substr(0, end)) +
               "\"}\n";
  });
  EXPECT_THAT(expect({"verify", File(0)}), HasSubstr("\\x1b[2JXAMPLE"));
}

TEST_F(AuditCommandTest, WrongUseIsExplained) {
  const std::vector<std::vector<std::string>> lines = {
      {},
      {"frobnicate", File(0)},
      {"verify"},
      {"verify", "/nonexistent/audit.log"},
      {"reconcile", File(0), File(1)},
      {"reconcile", File(0), File(1), File(1)},
      {"show", "--since", "yesterday", File(0)},
      {"show", "--since", "2027-01-02", "--until", "2027-01-01", File(0)},
  };
  for (std::vector<std::string> line : lines) {
    const Outcome outcome = Run(line);
    EXPECT_EQ(outcome.code, 2) << testing::PrintToString(line) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("next: "));
    line.push_back("--json");
    EXPECT_EQ(json::parse(Run(line).out)["exit"], 2) << testing::PrintToString(line);
  }
}

}  // namespace
}  // namespace mpckdc::admin
