// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "mpc-server/admin/commands.h"
#include "mpc-server/admin/config.h"
#include "mpc-server/admin/console.h"
#include "mpc-server/admin/exit_code.h"
#include "mpc-server/admin/import_kdb.h"
#include "mpc-server/admin/kdb.h"
#include "mpc-server/admin/names.h"
#include "mpc-server/admin/options.h"
#include "mpc-server/admin/process.h"
#include "mpc-server/admin/terminal.h"

namespace mpckdc::admin {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Message(const absl::Status& s) { return std::string(s.message()); }

TEST(ShellWords, SplitAsAShellDoes) {
  EXPECT_THAT(*SplitShellWords("ssh  kdc1 mpc-kdb"), ElementsAre("ssh", "kdc1", "mpc-kdb"));
  EXPECT_THAT(*SplitShellWords("'a b' \"c \\\" d\" e\\ f g'h'\"i\" ''"),
              ElementsAre("a b", "c \" d", "e f", "ghi", ""));
  EXPECT_THAT(*SplitShellWords("\"a\\b\" '$HOME' `x`"), ElementsAre("a\\b", "$HOME", "`x`"));
  EXPECT_THAT(*SplitShellWords(" \t\n"), ElementsAre());
  EXPECT_FALSE(SplitShellWords("'a").ok());
  EXPECT_FALSE(SplitShellWords("\"a").ok());
  EXPECT_FALSE(SplitShellWords("a\\").ok());
}

TEST(ShellWords, QuotedWordsComeBack) {
  for (const std::string word : {"", "a", "a b", "it's", "$(rm -rf x)", "\\", "\"", "a\nb", "''"}) {
    EXPECT_THAT(*SplitShellWords(QuoteForShell(word)), ElementsAre(word));
    const ProcessResult result =
        *RunProcess({{"sh", "-c", "printf %s " + QuoteForShell(word)}, {}, {}});
    EXPECT_EQ(result.output, word);
  }
}

absl::Span<const uint8_t> AsBytes(const std::string& text) {
  return absl::MakeSpan(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

TEST(Process, PassesInputOutputEnvironmentAndExitStatus) {
  const std::string big(1 << 20, 'x');  // more than a pipe holds, both ways
  EXPECT_EQ(RunProcess({{"cat"}, AsBytes(big), {}})->output, big);
  const ProcessResult result =
      *RunProcess({{"sh", "-c", "echo $A; echo oops >&2; exit 7"}, {}, {"A=here"}});
  EXPECT_EQ(result.output, "here\n");
  EXPECT_EQ(result.errors, "oops\n");
  EXPECT_EQ(result.exit_code, 7);
  EXPECT_EQ(RunProcess({{"sh", "-c", "kill -9 $$"}, {}, {}})->signal, 9);
}

TEST(Process, SurvivesProgramsThatDoNotBehave) {
  EXPECT_TRUE(absl::IsNotFound(RunProcess({{"/nonexistent/program"}, {}, {}}).status()));
  EXPECT_FALSE(RunProcess({{}, {}, {}}).ok());
  const std::string big(1 << 20, 'x');
  EXPECT_EQ(RunProcess({{"true"}, AsBytes(big), {}})->exit_code, 0) << "does not read";
  const absl::Time start = absl::Now();
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      RunProcess({{"sleep", "60"}, {}, {}, absl::Milliseconds(200)}).status()));
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
}

// Of two servers' numbers, one of which may be anything.
TEST(ConsoleTest, ProgressIsAtMostAllOfIt) {
  std::ostringstream out, err;
  Console console(&out, &err, {.err_is_terminal = true});
  console.Progress(1, 2, "a");
  EXPECT_THAT(err.str(), HasSubstr("[###############...............] 1/2 a"));
  const uint64_t most = ~uint64_t{0};
  for (const uint64_t done : {uint64_t{3}, most / 2, most}) console.Progress(done, 2, "b");
  console.Progress(most, most, "c");
  console.Progress(most - 1, most, "d");
  EXPECT_THAT(err.str(), HasSubstr("[##############################] 2/2 b"));
}

TEST(ConsoleTest, WhateverIsSaidIsOneLineWithoutEscapes) {
  std::ostringstream out, err;
  Console console(&out, &err, {});
  console.Say("a\nb\033[2J");
  console.Remark("c\rd");
  console.Print(Table{{"\033[1m", "e"}, {"ü", "f"}});
  EXPECT_EQ(out.str(), "a\\x0ab\\x1b[2J\n\\x1b[1m  e\nü       f\n");
  EXPECT_EQ(err.str(), "c\\x0dd\n");
}

// The value is the same; a terminal that shows it obeys nothing in it.
TEST(ConsoleTest, JsonHasNoEscapesEither) {
  std::ostringstream out, err;
  Console console(&out, &err, {.json = true});
  const nlohmann::json value = {{"ü", "\033[2J\x7f\u0080\u009b\u2028\u202e\u2066\u2069"}};
  console.Print(value);
  EXPECT_EQ(nlohmann::json::parse(out.str()), value);
  EXPECT_THAT(out.str(), HasSubstr("\"\\u001b[2J\\u007f\\u0080\\u009b\\u2028\\u202e\\u2066\\u2069\""));
  EXPECT_THAT(out.str(), HasSubstr("\"\\u00fc\""));
}

constexpr char kGoodConfig[] =
    "realm = \"EXAMPLE.COM\"\n"
    "cluster = 1\n"
    "servers = [\"a:1\", \"b:2\", \"[::1]:3\"]\n"
    "kdb_command = \"ssh kdc1 'my kdb'\"\n"
    "[identity]\n"
    "certificate = \"admin.pem\"\n"
    "key = \"/keys/admin.key\"\n"
    "ca = \"ca.pem\"\n";

TEST(Config, ReadsAndResolves) {
  absl::StatusOr<AdminConfig> config = ParseConfig(kGoodConfig, "/etc/mpc-kdc/admin.toml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->realm, "EXAMPLE.COM");
  EXPECT_EQ(config->cluster, 1);
  EXPECT_THAT(config->triples, ElementsAre(ElementsAre("a:1", "b:2", "[::1]:3")));
  EXPECT_THAT(config->kdb_command, ElementsAre("ssh", "kdc1", "my kdb"));
  EXPECT_TRUE(config->kdb_quote_arguments);
  EXPECT_EQ(config->identity.certificate_file, "/etc/mpc-kdc/admin.pem");
  EXPECT_EQ(config->identity.key_file, "/keys/admin.key");
}

TEST(Config, ReadsTriples) {
  const auto read = [](const std::string& servers) {
    std::string text = kGoodConfig;
    const std::string old = "[\"a:1\", \"b:2\", \"[::1]:3\"]";
    text.replace(text.find(old), old.size(), servers);
    return ParseConfig(text, "x.toml");
  };
  absl::StatusOr<AdminConfig> config =
      read("[[\"a:1\", \"b:1\", \"c:1\"],\n [\"a:2\", \"b:2\", \"c:2\"]]");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->triples,
              ElementsAre(ElementsAre("a:1", "b:1", "c:1"), ElementsAre("a:2", "b:2", "c:2")));
  EXPECT_THAT(Message(read("[[\"a:1\", \"b:1\"]]").status()), HasSubstr("x.toml:3: servers wants"));
  EXPECT_THAT(Message(read("[]").status()), HasSubstr("or a list of such threes"));
  EXPECT_THAT(Message(read("[[\"a:1\", \"b:1\", \"c:1\"], [\"a:1\", \"b:2\", \"c:2\"]]").status()),
              HasSubstr("name one server twice: a:1"));
  std::string many = "[";
  for (int i = 0; i < 17; ++i) {
    absl::StrAppend(&many, "[\"a:", i, "\", \"b:", i, "\", \"c:", i, "\"],");
  }
  EXPECT_THAT(Message(read(many + "]").status()), HasSubstr("are more than 16 triples"));
}

TEST(Config, TheSampleIsGood) {
  absl::StatusOr<AdminConfig> config = LoadConfig(MPCKDC_SAMPLE_CONFIG);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_FALSE(config->kdb_quote_arguments);
}

TEST(Config, NamesFileLineAndKey) {
  auto why = [](std::string text) { return Message(ParseConfig(text, "x.toml").status()); };
  EXPECT_THAT(why(std::string(kGoodConfig) + "colour = 1\n"), HasSubstr("x.toml:9: unknown key"));
  EXPECT_THAT(why(std::string("serverz = 1\n") + kGoodConfig), HasSubstr("x.toml:1: unknown key"));
  EXPECT_THAT(why("realm = \n"), HasSubstr("x.toml:1:"));
  EXPECT_THAT(why(""), HasSubstr("realm is missing"));
  auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = kGoodConfig;
    text.replace(text.find(from), from.size(), to);
    return why(text);
  };
  EXPECT_THAT(replaced("cluster = 1", "cluster = \"one\""), HasSubstr("x.toml:2: cluster"));
  EXPECT_THAT(replaced("cluster = 1", "cluster = 65536"), HasSubstr("65535"));
  EXPECT_THAT(replaced("\"b:2\", ", ""), HasSubstr("x.toml:3: servers wants three"));
  EXPECT_THAT(replaced("\"b:2\"", "\"b\""), HasSubstr("\"b\" is not host:port"));
  EXPECT_THAT(replaced("\"b:2\"", "\"a:1\""), HasSubstr("twice"));
  EXPECT_THAT(replaced("'my kdb'", "'my kdb"), HasSubstr("is not closed"));
  EXPECT_THAT(replaced("ssh kdc1 'my kdb'", " "), HasSubstr("names no program"));
  EXPECT_THAT(replaced("ca = \"ca.pem\"\n", ""), HasSubstr("[identity] ca is missing"));
  const absl::Status none = LoadConfig("/nonexistent/admin.toml").status();
  EXPECT_EQ(ExitCodeOf(none), ExitCode::kUsage);
  EXPECT_THAT(AdviceOf(none), HasSubstr("--config"));
}

TEST(Options, ReadsCommandLines) {
  const Options options = *ParseOptions({"--json", "enroll", "alice", "--keytab=k", "--enctype",
                                         "aes128-gcm,aes256-cts", "--enctype=20", "--gate", "none",
                                         "--replace", "--class", "service"});
  EXPECT_EQ(options.command, "enroll");
  EXPECT_THAT(options.operands, ElementsAre("alice"));
  EXPECT_TRUE(options.json);
  EXPECT_TRUE(options.replace);
  EXPECT_EQ(options.keytab, "k");
  EXPECT_THAT(options.enctypes, ElementsAre(-24001, 18, 20));
  EXPECT_EQ(options.key_class, v1::KEY_CLASS_SERVICE);
  EXPECT_EQ(options.gate, v1::GATE_NONE);
  EXPECT_THAT(ParseOptions({"list", "--", "-odd"})->operands, ElementsAre("-odd"));
  EXPECT_EQ(ParseOptions({"audit", "--principal=x", "show", "a"})->command, "audit show");
}

TEST(Options, RefusesWithAReasonAndAdvice) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "no command given"},
      {{"enrol"}, "unknown command \"enrol\"; did you mean enroll?"},
      {{"audit", "prove", "f"}, "audit: unknown command \"prove\""},
      {{"audit", "show"}, "audit show: name a FILE"},
      {{"list", "--frob"}, "unknown option --frob"},
      {{"list", "--replace"}, "list has no option --replace"},
      {{"status", "alice"}, "one argument too many"},
      {{"policy"}, "name a PRINCIPAL"},
      {{"enroll", "--enctype", "des"}, "unknown enctype \"des\""},
      {{"enroll", "--enctype", "aes256-gcm,"}, "unknown enctype \"\""},
      {{"enroll", "--class", "tgs"}, "unknown class \"tgs\""},
      {{"policy", "alice", "--gate", "open"}, "unknown gate \"open\""},
  };
  for (const auto& [arguments, why] : cases) {
    const absl::Status s = ParseOptions(arguments).status();
    EXPECT_EQ(ExitCodeOf(s), ExitCode::kUsage) << why;
    EXPECT_THAT(Message(s), HasSubstr(why));
    EXPECT_THAT(AdviceOf(s), HasSubstr("--help"));
  }
}

TEST(Names, QualifiesPrincipals) {
  EXPECT_EQ(*QualifyPrincipal("alice", "R"), "alice@R");
  EXPECT_EQ(*QualifyPrincipal("alice@R", "R"), "alice@R");
  EXPECT_EQ(*QualifyPrincipal("a\\@b", "R"), "a\\@b@R");
  EXPECT_EQ(*QualifyPrincipal("krbtgt/R", "R"), "krbtgt/R@R");
  for (const char* bad : {"", "@R", "alice@S", "-x", "a\nb", "a\tb"}) {
    EXPECT_FALSE(QualifyPrincipal(bad, "R").ok()) << bad;
  }
  EXPECT_FALSE(QualifyPrincipal(std::string(2000, 'a'), "R").ok());
  EXPECT_EQ(KeyClassOf("krbtgt/R@R"), v1::KEY_CLASS_TGS);
  EXPECT_EQ(KeyClassOf("kadmin/admin@R"), v1::KEY_CLASS_SERVICE);
  for (const char* user : {"root/admin@R", "alice@R", "alice@R.ORG", "a\\/b.c@R", "a.b@R",
                           "host@R", "robot/one@R.ORG"}) {
    EXPECT_EQ(KeyClassOf(user), v1::KEY_CLASS_USER) << user;
  }
  for (const char* service : {"host/www@R", "HTTP/www.example.com@R", "x/y.z@R", "nfs/a/b@R"}) {
    EXPECT_EQ(KeyClassOf(service), v1::KEY_CLASS_SERVICE) << service;
  }
}

TEST(Names, HexIsStrict) {
  EXPECT_EQ(*FromHex("00ff"), std::string("\x00\xff", 2));
  EXPECT_FALSE(FromHex("0").ok());
  EXPECT_FALSE(FromHex("zz").ok());
}

// A database whose program answers `text`.
Kdb Answering(const std::string& text) {
  return Kdb([=](const auto&, const std::string&, bool) { return text; });
}

TEST(Kdb, ParsesPlans) {
  const Kdb kdb =
      Answering(R"({"principal":"alice@R","exists":true,"kvno_next":3,"more":[],)"
                R"("enctypes":[{"enctype":-24002,"salt_type":0,"salt":"52616c696365"}]})");
  const KdbPlan plan = *kdb.Plan("alice", true);
  EXPECT_EQ(plan.principal, "alice@R");
  EXPECT_EQ(plan.kvno_next, 3u);
  ASSERT_EQ(plan.keys.size(), 1u);
  EXPECT_EQ(plan.keys[0].enctype(), -24002);
  EXPECT_EQ(plan.keys[0].salt(), "Ralice");
  for (const char* bad :
       {"", "hello", "[]", "{}", R"({"principal":"a","exists":1,"kvno_next":1,"enctypes":[]})",
        R"({"principal":"a","exists":true,"kvno_next":0,"enctypes":[]})",
        R"({"principal":"a","exists":true,"kvno_next":1,"enctypes":[{}]})",
        R"({"principal":"a","exists":true,"kvno_next":1,"enctypes":[{"enctype":-24002,)"
        R"("salt_type":0,"salt":"xyz"}]})"}) {
    EXPECT_FALSE(Answering(bad).Plan("a", true).ok()) << bad;
  }
}

TEST(Kdb, ParsesLists) {
  const std::string line =
      R"({"principal":"a@R","kvno":1,"enctype":-24001,)"
      R"("handle":"00112233445566778899aabbccddeeff"})";
  EXPECT_EQ(Answering(line + "\n\n" + line + "\n").List()->size(), 2u);
  EXPECT_EQ(Answering("").List()->size(), 0u);
  std::set<std::string> keyless;
  EXPECT_EQ(Answering(line + "\n" + R"({"principal":"b@R","keyless":true})" "\n").List(&keyless)->size(),
            1u);
  EXPECT_THAT(keyless, testing::ElementsAre("b@R"));
  EXPECT_THAT(Message(Answering(line + "\n{}").List().status()), HasSubstr("line 2"));
  EXPECT_FALSE(Answering(R"({"principal":"a@R","kvno":1,"enctype":1,"handle":"00"})").List().ok());
}

// An object where there should be a list, and a number where there should be a name.
TEST(Kdb, RefusesAnImportsAnswersOfAnotherShape) {
  const auto policies = [](const char* answer) {
    const Kdb kdb = Answering(answer);
    return ImportKdb(&kdb).CopyPolicies();
  };
  EXPECT_THAT(*policies(R"({"different":["strict"]})"), testing::ElementsAre("strict"));
  for (const char* bad : {R"({"different":[1]})", R"({"different":"strict"})", "[]", ""}) {
    EXPECT_FALSE(policies(bad).ok()) << bad;
  }
  const auto seal = [](const char* answer) {
    const Kdb kdb = Answering(answer);
    SealRequest alice;
    alice.principal = "alice@R";
    return ImportKdb(&kdb).Seal({}, "transaction", {&alice, 1});
  };
  EXPECT_TRUE(seal(R"({"principals":[{"principal":"alice@R","keys":[]}],"packages":[]})" "\n").ok());
  for (const char* bad : {R"({"principals":{"a":1},"packages":[]})" "\n",
                          R"({"principals":[{"principal":"alice@R","keys":[]}],"packages":{}})" "\n",
                          "[]\n", "\n", ""}) {
    EXPECT_FALSE(seal(bad).ok()) << bad;
  }
}

TEST(Kdb, RunsTheCommandAndQuotesForSsh) {
  const auto run = [](const char* script, bool quote) {
    return Kdb(KdbCommand({"sh", "-c", script, "x"}, quote, absl::Seconds(9)));
  };
  const char kEcho[] = "printf '%s|' \"$@\" >&2; exit 9";
  EXPECT_THAT(Message(run(kEcho, false).Plan("a b", true).status()),
              HasSubstr("plan|a b|--create|"));
  EXPECT_THAT(Message(run(kEcho, true).Delete("a'b")), HasSubstr("'delete'|'a'\\''b'|"));
  EXPECT_THAT(Message(run("cat >&2; exit 9", false).SetHandles({"a", 2, {v1::KeyInfo()}, true})),
              HasSubstr(R"("keep_old":true)"));
}

TEST(Kdb, TellsFailuresApart) {
  auto fail = [](const std::string& script) {
    const Kdb kdb(KdbCommand({"sh", "-c", script, "x"}, false, absl::Seconds(9)));
    return kdb.List().status();
  };
  EXPECT_TRUE(absl::IsNotFound(fail("echo no principal >&2; exit 4")));
  EXPECT_EQ(ExitCodeOf(fail("exit 255")), ExitCode::kUnavailable);
  EXPECT_EQ(ExitCodeOf(fail("echo database locked >&2; exit 1")), ExitCode::kRefused);
  EXPECT_THAT(Message(fail("echo a >&2; echo database locked >&2; exit 1")),
              HasSubstr("database locked"));
  EXPECT_EQ(ExitCodeOf(fail("kill -9 $$")), ExitCode::kUnavailable);
  EXPECT_EQ(ExitCodeOf(fail("echo nonsense")), ExitCode::kInconsistent);
  const Kdb none(KdbCommand({"/nonexistent/mpc-kdb"}, false, absl::Seconds(9)));
  EXPECT_EQ(ExitCodeOf(none.List().status()), ExitCode::kUnavailable);
  EXPECT_THAT(AdviceOf(none.List().status()), HasSubstr("kdb_command"));
}

absl::StatusOr<SecretBytes> PasswordFrom(const std::string& input) {
  int fds[2];
  if (pipe(fds) != 0 || write(fds[1], input.data(), input.size()) < 0) std::abort();
  close(fds[1]);
  absl::StatusOr<SecretBytes> password = ReadPasswordLine(fds[0]);
  close(fds[0]);
  return password;
}

TEST(Password, IsTheFirstLine) {
  auto text = [](const SecretBytes& bytes) { return std::string(bytes.begin(), bytes.end()); };
  EXPECT_EQ(text(*PasswordFrom("secret\nmore\n")), "secret");
  EXPECT_EQ(text(*PasswordFrom("secret")), "secret");
  EXPECT_EQ(text(*PasswordFrom("se cret \r\n")), "se cret ");
  EXPECT_FALSE(PasswordFrom("").ok());
  EXPECT_FALSE(PasswordFrom("\n").ok());
  EXPECT_FALSE(PasswordFrom(std::string(kMaxPasswordBytes + 1, 'x') + "\n").ok());
  EXPECT_TRUE(PasswordFrom(std::string(kMaxPasswordBytes, 'x') + "\n").ok());
}

// Runs AskPassword(again) on a terminal of its own where somebody types `typed`; returns what the
// terminal showed. The child's exit status says whether it got "secret".
std::string OnTerminal(const std::string& typed, int* exit_code) {
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    const absl::StatusOr<SecretBytes> password = AskPassword("Password", /*again=*/true);
    const std::string wanted = "secret";
    const bool good = password.ok() && std::equal(password->begin(), password->end(),
                                                  wanted.begin(), wanted.end());
    _exit(good ? 0 : 1);
  }
  *exit_code = -1;
  if (child < 0) {
    ADD_FAILURE() << "no pseudo-terminal; is devpts mounted on /dev/pts?";
    return "";
  }
  std::string shown;
  char buffer[256];
  size_t lines = 0;
  for (ssize_t got = 1; got > 0;) {
    got = read(terminal, buffer, sizeof(buffer));  // EIO when the child is gone
    if (got > 0) shown.append(buffer, got);
    // A line each time it asks: what is typed earlier would be flushed.
    const size_t asked = std::count(shown.begin(), shown.end(), ':');
    for (; lines < asked; ++lines) {
      const std::vector<std::string> all = absl::StrSplit(typed, '|');
      if (lines >= all.size()) break;
      const std::string line = all[lines] + "\n";
      if (write(terminal, line.data(), line.size()) < 0) got = 0;
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  close(terminal);
  *exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return shown;
}

TEST(Password, IsAskedForTwiceWithoutEcho) {
  int exit_code = -1;
  const std::string shown = OnTerminal("secret|secret", &exit_code);
  EXPECT_EQ(exit_code, 0);
  EXPECT_THAT(shown, HasSubstr("Password: "));
  EXPECT_THAT(shown, HasSubstr("Password again: "));
  EXPECT_THAT(shown, testing::Not(HasSubstr("secret")));
  OnTerminal("secret|secreT", &exit_code);
  EXPECT_EQ(exit_code, 1);
  OnTerminal("\x03", &exit_code);  // ^C
  EXPECT_EQ(exit_code, 1);
}

TEST(TestLogin, TellsAWrongPasswordFromAnOutage) {
  EXPECT_EQ(JudgeKinit(0, "").code, ExitCode::kOk);
  const std::pair<const char*, ExitCode> cases[] = {
      {"kinit: Password incorrect while getting initial credentials", ExitCode::kWrongPassword},
      {"kinit: A service is not available that is required to process the request while getting "
       "initial credentials", ExitCode::kUnavailable},
      {"kinit: Cannot contact any KDC for realm 'EXAMPLE.COM' while", ExitCode::kUnavailable},
      {"kinit: Client 'x@R' not found in Kerberos database while", ExitCode::kRefused},
      {"something new", ExitCode::kFindings}};
  for (const auto& [text, code] : cases) EXPECT_EQ(JudgeKinit(1, text).code, code) << text;
}

}  // namespace
}  // namespace mpckdc::admin
