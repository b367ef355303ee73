// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/admin/config.h"

#include <filesystem>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mpc-server/admin/exit_code.h"
#include "mpc-server/admin/process.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/table_reader.h"
#include "mpc-server/package/certificate.h"

namespace mpckdc::admin {
namespace {

std::string FolderOf(const std::string& file) {
  const std::string folder = std::filesystem::path(file).parent_path().string();
  return folder.empty() ? "." : folder;
}

void ReadIdentity(TableReader table, const std::string& folder,
                  enroll::AdminIdentity* identity) {
  table.File("certificate", Need::kRequired, folder, &identity->certificate_file);
  table.File("key", Need::kRequired, folder, &identity->key_file);
  table.File("ca", Need::kRequired, folder, &identity->ca_file);
  table.Finish();
}

absl::Status CheckServers(absl::Span<const AdminConfig::Triple> triples) {
  std::set<std::string> seen;
  for (const AdminConfig::Triple& triple : triples) {
    for (const std::string& server : triple) {
      const size_t colon = server.rfind(':');
      if (colon == std::string::npos || colon == 0 || colon + 1 == server.size()) {
        return absl::InvalidArgumentError(absl::StrCat("\"", server, "\" is not host:port"));
      }
      if (!seen.insert(server).second) {
        return absl::InvalidArgumentError(absl::StrCat("name one server twice: ", server));
      }
    }
  }
  return absl::OkStatus();
}

// Three texts, or a list of such threes.
void ReadServers(TableReader* table, std::vector<AdminConfig::Triple>* triples) {
  if (!table->Has("servers")) {
    table->Triples("servers", triples);
    return table->Complain("servers", "is missing");
  }
  table->Triples("servers", triples);
  if (triples->size() > limits::kMaxTriples) {
    return table->Complain("servers",
                           absl::StrCat("are more than ", limits::kMaxTriples, " triples"));
  }
  if (const absl::Status s = CheckServers(*triples); !s.ok()) {
    table->Complain("servers", s.message());
  }
}

void ReadKdbCommand(TableReader* table, AdminConfig* config) {
  table->Parsed("kdb_command", SplitShellWords, &config->kdb_command);
  if (config->kdb_command.empty()) return table->Complain("kdb_command", "names no program");
  config->kdb_quote_arguments =
      std::filesystem::path(config->kdb_command[0]).filename() == "ssh";
  table->Bool("kdb_quote_arguments", &config->kdb_quote_arguments);
}

}  // namespace

absl::StatusOr<AdminConfig> ParseConfig(absl::string_view text, const std::string& file) {
  const toml::parse_result parsed = toml::parse(std::string_view(text.data(), text.size()), file);
  ConfigErrors errors{file, {}};
  if (!parsed) {
    errors.Add(parsed.error().source(), std::string(parsed.error().description()));
    return absl::InvalidArgumentError(errors.lines[0]);
  }
  AdminConfig config;
  int64_t seconds = absl::ToInt64Seconds(config.timeout);
  TableReader table(&parsed.table(), "", &errors);
  table.String("realm", Need::kRequired, &config.realm);
  table.Integer("cluster", Need::kRequired, 0, 65535, &config.cluster);
  ReadServers(&table, &config.triples);
  ReadKdbCommand(&table, &config);
  table.String("kinit", Need::kOptional, &config.kinit);
  table.Integer("timeout", Need::kOptional, 1, 600, &seconds);
  config.timeout = absl::Seconds(seconds);
  ReadIdentity(table.Section("identity", Need::kRequired), FolderOf(file), &config.identity);
  table.Finish();
  if (!errors.lines.empty()) {
    return absl::InvalidArgumentError(absl::StrJoin(errors.lines, "; "));
  }
  return config;
}

absl::StatusOr<AdminConfig> LoadConfig(const std::string& file) {
  absl::StatusOr<std::string> text = enroll::ReadSmallFile(file);
  if (!text.ok()) {
    return Advise(absl::InvalidArgumentError(text.status().message()),
                  "write it after the sample deploy/config/mpc-admin.toml, or name another one "
                  "with --config FILE");
  }
  return Advise(ParseConfig(*text, file), "correct that; mpc-admin(8) lists the keys");
}

}  // namespace mpckdc::admin
