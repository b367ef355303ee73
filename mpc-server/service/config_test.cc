// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "mpc-server/base/table_reader.h"
#include "mpc-server/service/own_identity.h"

namespace mpckdc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kGood[] = R"(realm = "EXAMPLE.COM"
party = 1
cluster = 7
data_dir = "data"
[identity]
certificate = "/etc/mpc/cert.pem"
key = "key.pem"
ca = "ca.pem"
[listen]
clients = "127.0.0.1:7750"
peers = "[::1]:7760"
[peers]
p0 = "a:1"
p1 = "b:2"
p2 = "c:3"
[store]
key_file = "store.key"
)";

std::string With(absl::string_view from, absl::string_view to) {
  return absl::StrReplaceAll(kGood, {{from, to}});
}

std::string ErrorOf(const std::string& text) {
  absl::StatusOr<Config> config = ParseConfig(text, "dir/f.toml");
  EXPECT_TRUE(absl::IsInvalidArgument(config.status())) << text;
  return std::string(config.status().message());
}

TEST(ConfigTest, ReadsAMinimalFileWithDefaults) {
  absl::StatusOr<Config> config = ParseConfig(kGood, "dir/f.toml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->realm, "EXAMPLE.COM");
  EXPECT_EQ(config->party, 1);
  EXPECT_EQ(config->cluster, 7);
  EXPECT_EQ(config->identity.certificate, "/etc/mpc/cert.pem");
  EXPECT_EQ(config->identity.key, "dir/key.pem") << "relative to the configuration";
  EXPECT_EQ(config->peers.addresses[2], "c:3");
  EXPECT_EQ(config->peers.names[2], "p2");
  EXPECT_EQ(config->batch.window, absl::Milliseconds(100));
  EXPECT_FALSE(config->batch.fixed);
  EXPECT_EQ(config->audit.file, "dir/data/audit.log");
  EXPECT_EQ(config->audit.sync, AuditSync::kInterval);
  EXPECT_EQ(config->audit.keep_files, 0u) << "an audit log is not deleted unasked";
  EXPECT_EQ(config->store.map_size_gib, 64u);
  EXPECT_EQ(config->store.postgresql, "") << "LMDB";
}

TEST(ConfigTest, ReadsWhereTheDatabaseIs) {
  const std::string postgresql = "backend = \"postgresql\"\n";
  const auto config = ParseConfig(
      absl::StrCat(kGood, postgresql, "postgresql = \"host=a,b dbname=x\"\ncache_mib = 9\n"), "f");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->store.postgresql, "host=a,b dbname=x");
  EXPECT_EQ(config->store.cache_mib, 9u);
  EXPECT_THAT(ErrorOf(absl::StrCat(kGood, "backend = \"mysql\"\n")),
              HasSubstr("wants one of: lmdb, postgresql"));
  EXPECT_THAT(ErrorOf(absl::StrCat(kGood, postgresql)), HasSubstr("say where it is"));
  EXPECT_THAT(ErrorOf(absl::StrCat("triple = 1\n", kGood)), HasSubstr("goes with [store] backend"));
  EXPECT_THAT(ErrorOf(absl::StrCat("triple = 16\n", kGood)), HasSubstr("triple"));
  EXPECT_THAT(ErrorOf(absl::StrCat(kGood, "postgresql = \"dbname=x\"\n")), HasSubstr("goes with"));
  EXPECT_THAT(
      ErrorOf(absl::StrCat(kGood, postgresql, "postgresql = \"dbname=x\"\nmap_size_gib = 1\n")),
      HasSubstr("goes with backend = \"lmdb\""));
  EXPECT_THAT(ErrorOf(absl::StrCat(kGood, postgresql, "postgresql = \"host=x\"\n")),
              HasSubstr("dbname="));
  EXPECT_THAT(
      ErrorOf(absl::StrCat(kGood, postgresql, "postgresql = \"dbname=x password=secret\"\n")),
      AllOf(HasSubstr("passfile=FILE"), Not(HasSubstr("secret"))));
}

TEST(ConfigTest, ReadsEverySetting) {
  absl::StatusOr<Config> config = ParseConfig(absl::StrCat(kGood, R"(create_key = true
map_size_gib = 2
[batch]
window_ms = 20
mode = "fixed"
max_jobs = 9
[policy]
max_renewable_life = "2d"
clock_skew = "90s"
refresh_every = "never"
delete_grace = "36h"
[quota]
principal_logins = "5/min burst 7"
kdc_opens = "unlimited"
kdc_checksums = "100000/min burst 1"
compared_per_hour = 12
[log]
level = "debug"
format = "json"
file = "/var/log/x"
[audit]
file = "/var/log/audit"
sync = "batch"
rotate_mib = 0
keep_files = 12
[metrics]
listen = "127.0.0.1:9"
[engine]
isa = "portable"
workers = 4
records = "tls"
randomness = "exchanged"
security = "semi-honest"
protocol = "replicated"
)"),
                                              "f");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->store.create_key);
  EXPECT_EQ(config->batch.window, absl::Milliseconds(20));
  EXPECT_TRUE(config->batch.fixed);
  EXPECT_EQ(config->policy.max_renewable_life, absl::Hours(48));
  EXPECT_EQ(config->policy.clock_skew, absl::Seconds(90));
  EXPECT_EQ(config->policy.refresh_every, absl::InfiniteDuration());
  EXPECT_EQ(config->policy.delete_grace, absl::Hours(36));
  EXPECT_EQ(config->quota[QuotaKind::kPrincipalLogins], (Rate{5, 7}));
  EXPECT_EQ(config->quota[QuotaKind::kPrincipalFailures],
            DefaultQuotaRates()[QuotaKind::kPrincipalFailures]);
  EXPECT_TRUE(config->quota[QuotaKind::kKdcOpens].unlimited());
  EXPECT_EQ(config->quota[QuotaKind::kKdcChecksums], (Rate{100000, 1}));
  EXPECT_EQ(config->compared, (ComparedRates{12, limits::kComparedPerDay}));
  EXPECT_TRUE(config->log.json);
  EXPECT_EQ(config->audit.file, "/var/log/audit");
  EXPECT_EQ(config->audit.sync, AuditSync::kBatch);
  EXPECT_EQ(config->audit.rotate_mib, 0u);
  EXPECT_EQ(config->audit.keep_files, 12u);
  EXPECT_EQ(config->metrics.listen, "127.0.0.1:9");
  EXPECT_EQ(config->engine.isa, "portable");
  EXPECT_EQ(config->engine.workers, 4);
  EXPECT_EQ(config->engine.records, "tls");
  EXPECT_TRUE(config->engine.exchanged_zeros);
  EXPECT_FALSE(config->engine.active);
  EXPECT_EQ(config->engine.protocol, "replicated");
}

TEST(ConfigTest, SecurityIsActiveUnlessToldOtherwise) {
  const auto active_with = [](const char* lines) {
    const auto config = ParseConfig(absl::StrCat(kGood, lines), "dir/f.toml");
    EXPECT_TRUE(config.ok()) << config.status();
    return config.ok() && config->engine.active;
  };
  EXPECT_TRUE(active_with(""));
  EXPECT_TRUE(active_with("[engine]\nworkers = 2\n"));
  EXPECT_TRUE(active_with("[engine]\nsecurity = \"active\"\n"));
  EXPECT_FALSE(active_with("[engine]\nsecurity = \"semi-honest\"\n"));
  EXPECT_THAT(ErrorOf(absl::StrCat(kGood, "[engine]\nsecurity = \"maybe\"\n")),
              HasSubstr("semi-honest"));
}

TEST(ConfigTest, TheProtocolIsTheServersChoiceUnlessToldOtherwise) {
  const auto with = [](const char* lines) {
    const auto config = ParseConfig(absl::StrCat(kGood, lines), "dir/f.toml");
    return config.ok() ? config->engine.protocol : std::string(config.status().message());
  };
  EXPECT_EQ(with(""), "auto");
  for (const char* protocol : {"auto", "replicated", "garbled"}) {
    EXPECT_EQ(with(absl::StrCat("[engine]\nprotocol = \"", protocol, "\"\n").c_str()), protocol);
  }
  const std::string wrong = with("[engine]\nprotocol = \"rounds\"\n");
  EXPECT_THAT(wrong, HasSubstr("dir/f.toml:"));
  EXPECT_THAT(wrong, HasSubstr("replicated"));
  const std::string shared = with("[engine]\nrandomness = \"exchanged\"\nprotocol = \"garbled\"\n");
  EXPECT_THAT(shared, HasSubstr("dir/f.toml:"));
  EXPECT_THAT(shared, HasSubstr("needs keys that two servers share"));
  EXPECT_EQ(with("[engine]\nrandomness = \"exchanged\"\nprotocol = \"replicated\"\n"),
            "replicated");
}

TEST(ConfigTest, UnknownKeyIsNamedWithItsLine) {
  const std::string error = ErrorOf(With("key = \"key.pem\"", "kye = \"key.pem\""));
  EXPECT_THAT(error, HasSubstr("dir/f.toml:7: unknown key [identity] kye"));
  EXPECT_THAT(error, HasSubstr("known here: certificate, key, credential, ca, deny_list"));
  EXPECT_THAT(error, HasSubstr("[identity] key is missing"));
}

TEST(ConfigTest, UnknownSectionIsNamed) {
  EXPECT_THAT(ErrorOf(absl::StrCat(kGood, "[bacth]\nwindow_ms = 1\n")),
              HasSubstr("dir/f.toml:18: unknown key bacth"));
}

TEST(ConfigTest, WrongTypesAndRangesSayWhatIsWanted) {
  EXPECT_THAT(ErrorOf(With("party = 1", "party = \"1\"")),
              HasSubstr("f.toml:2: party wants a whole number from 0 to 2"));
  EXPECT_THAT(ErrorOf(With("party = 1", "party = 3")), HasSubstr("from 0 to 2"));
  EXPECT_THAT(ErrorOf(With("cluster = 7", "cluster = 70000")), HasSubstr("from 0 to 65535"));
  EXPECT_THAT(ErrorOf(With("\"a:1\"", "\"a\"")), HasSubstr("wants \"host:port\""));
  EXPECT_THAT(ErrorOf(With("\"a:1\"", "\"a:99999\"")), HasSubstr("wants \"host:port\""));
  EXPECT_THAT(ErrorOf(With("\"EXAMPLE.COM\"", "\"\"")), HasSubstr("must not be empty"));
  EXPECT_THAT(ErrorOf(absl::StrCat(kGood, "[policy]\nclock_skew = \"5 minutes\"\n")),
              HasSubstr("a whole number and a unit"));
  EXPECT_THAT(ErrorOf(absl::StrCat(kGood, "[policy]\nclock_skew = 300\n")),
              HasSubstr("double quotes"));
  for (const char* grace : {"0s", "367d", "soon"}) {
    const std::string error =
        ErrorOf(absl::StrCat(kGood, "[policy]\ndelete_grace = \"", grace, "\"\n"));
    EXPECT_THAT(error, HasSubstr("delete_grace")) << grace;
  }
  EXPECT_THAT(ErrorOf(absl::StrCat(kGood, "[batch]\nmode = \"fast\"\n")),
              HasSubstr("one of: work-conserving, fixed"));
}

TEST(ConfigTest, KeyFileAndCredentialExcludeEachOther) {
  EXPECT_THAT(ErrorOf(With("key_file = \"store.key\"", "")), HasSubstr("exactly one"));
  EXPECT_THAT(ErrorOf(absl::StrCat(kGood, "credential = \"c\"\n")), HasSubstr("exactly one"));
}

TEST(ConfigTest, ThePrivateKeyMayBeACredential) {
  const std::string credential = With("key = \"key.pem\"", "credential = \"peer-key\"");
  unsetenv("CREDENTIALS_DIRECTORY");
  absl::StatusOr<Config> config = ParseConfig(credential, "dir/f.toml");
  ASSERT_TRUE(config.ok()) << config.status() << ": a backup needs no private key";
  const absl::Status none = CheckOwnIdentity(*config, absl::Now()).status();
  EXPECT_THAT(std::string(none.message()), HasSubstr("LoadCredential="));
  setenv("CREDENTIALS_DIRECTORY", "/run/credentials/x", 1);
  config = ParseConfig(credential, "dir/f.toml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->identity.key, "/run/credentials/x/peer-key");
  EXPECT_THAT(ErrorOf(With("key = \"key.pem\"", "key = \"k\"\ncredential = \"c\"")),
              HasSubstr("exactly one"));
  unsetenv("CREDENTIALS_DIRECTORY");
}

TEST(ConfigTest, SyntaxErrorNamesItsLine) {
  EXPECT_THAT(ErrorOf(With("party = 1", "party = = 1")), HasSubstr("dir/f.toml:2: "));
  EXPECT_THAT(ErrorOf(With("party = 1", "part\xc3\xa9 = 1")), HasSubstr("dir/f.toml:2: "));
  // toml++ asserts that a section's name begins as one.
  EXPECT_THAT(ErrorOf(With("party = 1", "[#peers]")), HasSubstr("dir/f.toml:2: "));
}

TEST(ConfigTest, EveryMissingSectionIsReportedAtOnce) {
  const std::string error = ErrorOf("realm = \"A\"\n");
  for (const char* section : {"[identity]", "[listen]", "[peers]", "[store]"}) {
    EXPECT_THAT(error, HasSubstr(absl::StrCat("the section ", section, " is missing")));
  }
}

TEST(ConfigTest, MissingFileIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(LoadConfig("no-such-file.toml").status()));
}

TEST(ConfigTest, SampleIsValid) {
  absl::StatusOr<Config> config = LoadConfig(MPCKDC_SAMPLE_CONFIG);
  EXPECT_TRUE(config.ok()) << config.status();
}

TEST(ConfigTest, WhoseCertificatesClientsMayLogInWith) {
  EXPECT_EQ(ParseConfig(kGood, "f")->pkinit.anchors, "") << "nobody's";
  const auto config = ParseConfig(
      absl::StrCat(kGood, "[pkinit]\nanchors = \"a.pem\"\neku_checking = \"scLogin\"\n",
                   "crls_required = false\nallow_upn = true\n"),
      "dir/f.toml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->pkinit.anchors, "dir/a.pem");
  EXPECT_EQ(config->pkinit.eku, EkuRule::kSmartCard);
  EXPECT_FALSE(config->pkinit.crls_required);
  EXPECT_TRUE(config->pkinit.allow_upn);
  EXPECT_FALSE(config->pkinit.allow_sha1);
  EXPECT_THAT(ErrorOf(absl::StrCat(kGood, "[pkinit]\ncrls = \"c.pem\"\n")),
              HasSubstr("dir/f.toml:19: [pkinit] crls goes with anchors"));
  EXPECT_THAT(
      ErrorOf(absl::StrCat(kGood, "[pkinit]\nanchors = \"a\"\neku_checking = \"any\"\n")),
      HasSubstr("wants one of: kpClientAuth, scLogin, none"));
}

TEST(ConfigTest, QuotasSayWhatIsWanted) {
  for (const char* bad : {"60", "60/min", "60/min burst", "60/min burst 0", "0/min burst 5",
                          "-1/min burst 5", "60/h burst 5", "60/min burst 5 tokens", "none",
                          "60/min burst 1000000001", "6.5/min burst 5"}) {
    EXPECT_FALSE(ParseRate(bad).ok()) << bad;
    EXPECT_THAT(ErrorOf(absl::StrCat(kGood, "[quota]\nkdc_logins = \"", bad, "\"\n")),
                HasSubstr("dir/f.toml:19: [quota] kdc_logins wants \"unlimited\" or a rate like"));
  }
  EXPECT_THAT(ErrorOf(absl::StrCat(kGood, "[quota]\nlogins = \"unlimited\"\n")),
              HasSubstr("dir/f.toml:19: unknown key [quota] logins; known here: principal_logins"));
  EXPECT_THAT(ErrorOf(absl::StrCat(kGood, "[quota]\nkdc_logins = 60\n")),
              HasSubstr("double quotes"));
  EXPECT_THAT(ErrorOf(absl::StrCat(kGood, "[quota]\ncompared_per_day = -1\n")),
              HasSubstr("dir/f.toml:19: [quota] compared_per_day"));
}

TEST(ConfigTest, QuotasOfAServerWithoutASection) {
  const QuotaRates rates = ParseConfig(kGood, "f")->quota;
  EXPECT_EQ(rates.Text(),
            "principal_logins 60/min burst 120; principal_failures 22/min burst 36; "
            "principal_reissues 60/min burst 120; kdc_logins unlimited; kdc_opens unlimited; "
            "kdc_checksums unlimited; unproved_failures 600/min burst 600; "
            "known_failures 1/min burst 3; source_failures 60/min burst 120; "
            "anonymous_logins 60/min burst 120");
  EXPECT_EQ(*ParseRate("60/min burst 120"), rates[QuotaKind::kPrincipalLogins]);
}

TEST(ConfigTest, Lives) {
  EXPECT_EQ(*ParseLife("250ms"), absl::Milliseconds(250));
  EXPECT_EQ(*ParseLife("7d"), absl::Hours(168));
  for (const char* bad : {"", "7", "d", "-1s", "1.5s", "7 d", "99999999999s", "7w"}) {
    EXPECT_FALSE(ParseLife(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace mpckdc
