// SPDX-License-Identifier: Apache-2.0
// What every command has: bad input, errors, help; and test-login.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "mpc-server/testing/admin_run_fixture.h"

namespace mpckdc::admin {
namespace {

using nlohmann::json;
using testing::HasSubstr;

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
