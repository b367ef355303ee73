// SPDX-License-Identifier: Apache-2.0
//
// What mpc-admin reads: its configuration, and words for a shell.
#include <string>

#include "absl/strings/str_join.h"
#include "mpc-server/admin/config.h"
#include "mpc-server/admin/process.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/testing/fuzz.h"

namespace mpckdc::admin {
namespace {

FuzzSeeds ConfigSeeds() {
  const std::string identity = "[identity]\ncertificate = \"c\"\nkey = \"k\"\nca = \"/a\"\n";
  return {"realm = \"R\"\ncluster = 1\nservers = [\"a:1\", \"b:2\", \"c:3\"]\n" + identity,
          "realm = \"R\"\ncluster = 1\nservers = [[\"a:1\", \"b:2\", \"c:3\"], [\"d:1\", \"e:2\", "
          "\"f:3\"]]\n"
          "kdb_command = \"ssh kdc 'mpc-kdb' \\\\x\"\nkdb_quote_arguments = true\ntimeout = "
          "60\nkinit = \"kinit\"\n" +
              identity};
}

MPCKDC_FUZZ(admin_config, ConfigSeeds) {
  const auto config = ParseConfig(AsText(in), "/etc/x.toml");
  if (!config.ok()) return;
  FUZZ_CHECK(!config->realm.empty() && !config->triples.empty() && !config->kdb_command.empty());
  for (const AdminConfig::Triple& triple : config->triples) {
    for (const std::string& server : triple) FUZZ_CHECK(server.find(':') != std::string::npos);
  }
}

FuzzSeeds WordSeeds() { return {"a 'b c' \"d\\\"e\" \\f", "''", "a'", "mpc-kdb --realm R"}; }

// Words that are quoted are read back as they were.
MPCKDC_FUZZ(shell_words, WordSeeds) {
  const auto words = SplitShellWords(AsText(in));
  if (!words.ok()) return;
  const auto quoted = [](std::string* out, const std::string& word) {
    *out += QuoteForShell(word);
  };
  const auto again = SplitShellWords(absl::StrJoin(*words, " ", quoted));
  FUZZ_CHECK(again.ok() && *again == *words);
}

}  // namespace
}  // namespace mpckdc::admin
