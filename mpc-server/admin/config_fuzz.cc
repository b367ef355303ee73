// SPDX-License-Identifier: Apache-2.0
//
// What mpc-admin reads: its configuration, words for a shell, what mpc-kdb answers.
#include <string>

#include "absl/strings/str_join.h"
#include "mpc-server/admin/config.h"
#include "mpc-server/admin/import_kdb.h"
#include "mpc-server/admin/kdb.h"
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

// which (1) | what the program wrote
FuzzSeeds AnswerSeeds() {
  FuzzSeeds seeds;
  const auto add = [&seeds](char which, const std::string& text) { seeds.push_back(which + text); };
  const std::string plan =
      R"({"principal":"alice@R","exists":true,"kvno_next":3,"enctypes":[{"enctype":-24002,"salt_type":0,"salt":"616c"}]})";
  add('\0', plan);
  add('\1', plan + "\n{\"error\":\"no\",\"not_found\":true}\n");
  add('\2',
      R"({"principal":"alice@R","kvno":2,"enctype":18,"handle":"00112233445566778899aabbccddeeff"})"
      "\n"
      R"({"principal":"x@R","keyless":true})"
      "\n");
  add('\3', R"({"principal":"alice@R","changed":1800000000,"longest":604800})");
  add('\4', "{}\n{\"error\":\"e\",\"not_found\":false}");
  add('\5',
      R"({"converts":true})"
      "\n"
      R"({"principal":"alice@R","place":"protected","state":"old","kvno":2,"planned":[-24002],)"
      R"("weak":[[2,23]],"old":[],"history":1})"
      "\n");
  return seeds;
}

MPCKDC_FUZZ(kdb_answer, AnswerSeeds) {
  if (in.empty()) return;
  const std::string text(AsText(in.subspan(1)));
  const Kdb kdb([&](const auto&, const auto&, bool) { return text; });
  const ImportKdb import(&kdb);
  const std::vector<KdbNewKeys> two(2);
  switch (in[0] % 6) {
    case 0:
      return static_cast<void>(kdb.Plan("alice@R", false));
    case 1: {
      const auto plans = kdb.PlanMany({"alice@R", "bob@R"}, true);
      FUZZ_CHECK(!plans.ok() || plans->size() == 2);
      return;
    }
    case 2: {
      const auto keys = kdb.List();
      for (size_t i = 0; keys.ok() && i < keys->size(); ++i)
        FUZZ_CHECK((*keys)[i].handle().size() == 16);
      return;
    }
    case 3:
      return static_cast<void>(kdb.Tickets("alice@R"));
    case 4: {
      const auto done = kdb.SetHandlesOfMany(two);
      FUZZ_CHECK(!done.ok() || done->size() == 2);
      return;
    }
    default:
      return static_cast<void>(import.Scan());
  }
}

}  // namespace
}  // namespace mpckdc::admin
