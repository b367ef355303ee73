// SPDX-License-Identifier: Apache-2.0
#include "kdc-plugin/kdb-tool/import_commands.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kdc-plugin/kdb-tool/import_session.h"
#include "kdc-plugin/kdb-tool/lines.h"
#include "kdc-plugin/kdb-tool/scratch_db.h"
#include "kdc-plugin/kdb-tool/scrub.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc::kdbtool {

const char kImportUsage[] =
    "       mpc-kdb [-r REALM] import-load --scratch FOLDER --dump FILE --stash FILE\n"
    "       mpc-kdb [-r REALM] import-scan --source KDC.CONF\n"
    "       mpc-kdb [-r REALM] import-policies --source KDC.CONF\n"
    "       mpc-kdb [-r REALM] import-seal --source KDC.CONF <JSON LINES\n"
    "       mpc-kdb [-r REALM] import-write --source KDC.CONF <JSON LINES\n"
    "       mpc-kdb [-r REALM] import-copy --source KDC.CONF <JSON LINES\n"
    "       mpc-kdb [-r REALM] import-rollback <JSON LINES\n"
    "       mpc-kdb [-r REALM] import-commit <JSON LINES\n"
    "       mpc-kdb [-r REALM] import-commit-rest\n"
    "       mpc-kdb [-r REALM] import-scrub [--scratch FOLDER] [--source KDC.CONF]\n"
    "               [--dump FILE] [--stash FILE]\n";

namespace {

using nlohmann::json;

constexpr size_t kMaxKeys = 64;
constexpr size_t kMaxHistory = 4096;

using Values = std::map<std::string, std::string>;  // of options

absl::Status WrongUsage() { return absl::InvalidArgumentError(""); }

// --NAME VALUE, of these names.
absl::StatusOr<Values> ParseValues(const std::vector<std::string>& arguments,
                                   const std::vector<std::string>& required,
                                   const std::vector<std::string>& optional = {}) {
  Values values;
  for (size_t i = 1; i + 1 < arguments.size(); i += 2) {
    if (!absl::StartsWith(arguments[i], "--")) return WrongUsage();
    values[arguments[i].substr(2)] = arguments[i + 1];
  }
  if (arguments.size() % 2 != 1) return WrongUsage();
  size_t known = 0;
  for (const std::string& name : required) {
    if (values.count(name) == 0) return WrongUsage();
    ++known;
  }
  for (const std::string& name : optional) known += values.count(name);
  return known == values.size() ? absl::StatusOr<Values>(std::move(values)) : WrongUsage();
}

using SessionPtr = std::unique_ptr<ImportSession>;

absl::StatusOr<ImportedKey> ParseKey(const json& object) {
  ImportedKey key;
  int64_t enctype = 0, salt_type = 0, kvno = 0;
  if (!GetNumber(object, "enctype", INT16_MIN, INT16_MAX, &enctype) ||
      !GetNumber(object, "salt_type", INT16_MIN, INT16_MAX, &salt_type) ||
      !GetNumber(object, "kvno", 0, UINT16_MAX, &kvno) || !object.contains("handle") ||
      !FromHex(object["handle"], &key.form.handle) || key.form.handle.size() != kHandleBytes ||
      !object.contains("salt") || !FromHex(object["salt"], &key.form.salt) ||
      key.form.salt.size() > UINT16_MAX) {
    return absl::InvalidArgumentError("a key needs enctype, kvno, salt_type, salt and handle");
  }
  key.form.enctype = static_cast<int32_t>(enctype);
  key.form.salt_type = static_cast<int32_t>(salt_type);
  key.kvno = static_cast<uint32_t>(kvno);
  return key;
}

absl::StatusOr<std::vector<ImportedKey>> ParseKeys(const json& list) {
  if (!list.is_array() || list.size() > kMaxKeys) {
    return absl::InvalidArgumentError("expected a list of keys");
  }
  std::vector<ImportedKey> keys;
  for (const json& one : list) {
    ASSIGN_OR_RETURN(ImportedKey key, ParseKey(one));
    keys.push_back(std::move(key));
  }
  return keys;
}

absl::StatusOr<ImportedPrincipal> ParsePrincipal(const json& line) {
  ImportedPrincipal principal;
  principal.principal = GetText(line, "principal");
  principal.old_tgs = line.is_object() && line.value("old_tgs", json(false)) == true;
  if (principal.principal.empty() || !line.contains("keys") || !line.contains("was") ||
      !FromHex(line["was"], &principal.was)) {
    return absl::InvalidArgumentError("expected principal, was and keys in each line");
  }
  ASSIGN_OR_RETURN(principal.keys, ParseKeys(line["keys"]));
  if (principal.keys.empty()) return absl::InvalidArgumentError("expected a key");
  if (!line.contains("history")) return principal;
  if (!line["history"].is_array() || line["history"].size() > kMaxHistory) {
    return absl::InvalidArgumentError("expected a list of old passwords");
  }
  for (const json& password : line["history"]) {
    ASSIGN_OR_RETURN(std::vector<ImportedKey> keys, ParseKeys(password));
    principal.history.push_back(std::move(keys));
  }
  return principal;
}

// Each of `many` under one lock of the database; prints what became of it.
template <class T, class Work>
absl::Status ForEach(ImportSession& session, const std::vector<T>& many, Work work) {
  RETURN_IF_ERROR(session.Lock());
  std::string answer;
  for (const T& one : many) {
    const absl::StatusOr<json> result = work(one);
    answer += Line(result.ok() ? *result : ErrorLine(result.status()));
  }
  RETURN_IF_ERROR(session.Unlock());
  RETURN_IF_ERROR(session.Remember());
  std::cout << answer;
  return absl::OkStatus();
}

absl::StatusOr<json> Empty(const absl::Status& status) {
  if (!status.ok()) return status;
  return json::object();
}

// ---- The commands ----

absl::Status Load(const std::string& realm, const std::vector<std::string>& arguments) {
  ASSIGN_OR_RETURN(Values values, ParseValues(arguments, {"scratch", "dump", "stash"}));
  std::string name = realm;
  if (name.empty()) {
    ASSIGN_OR_RETURN(std::unique_ptr<KdbSession> session, KdbSession::Open(""));
    name = session->params().realm;
  }
  ASSIGN_OR_RETURN(std::string profile,
                   LoadScratch(values["scratch"], values["dump"], values["stash"], name));
  PrintLine({{"source", profile}});
  return absl::OkStatus();
}

absl::Status Scan(const std::string& realm, const std::vector<std::string>& arguments) {
  ASSIGN_OR_RETURN(Values values, ParseValues(arguments, {"source"}));
  RETURN_IF_ERROR(UndoScrub(realm));
  ASSIGN_OR_RETURN(SessionPtr session, ImportSession::Open(realm, values["source"]));
  return session->Scan(PrintLine);
}

absl::Status Policies(const std::string& realm, const std::vector<std::string>& arguments) {
  ASSIGN_OR_RETURN(Values values, ParseValues(arguments, {"source"}));
  ASSIGN_OR_RETURN(SessionPtr session, ImportSession::Open(realm, values["source"]));
  ASSIGN_OR_RETURN(const json answer, session->CopyPolicies());
  PrintLine(answer);
  return absl::OkStatus();
}

absl::Status Write(const std::string& realm, const std::vector<std::string>& arguments) {
  ASSIGN_OR_RETURN(Values values, ParseValues(arguments, {"source"}));
  ASSIGN_OR_RETURN(std::vector<json> lines, ReadLines());
  std::vector<ImportedPrincipal> principals;
  for (const json& line : lines) {
    ASSIGN_OR_RETURN(ImportedPrincipal principal, ParsePrincipal(line));
    principals.push_back(std::move(principal));
  }
  ASSIGN_OR_RETURN(SessionPtr session, ImportSession::Open(realm, values["source"]));
  return ForEach(*session, principals, [&](const ImportedPrincipal& principal) {
    return Empty(session->Write(principal));
  });
}

absl::Status Copy(const std::string& realm, const std::vector<std::string>& arguments) {
  ASSIGN_OR_RETURN(Values values, ParseValues(arguments, {"source"}));
  ASSIGN_OR_RETURN(std::vector<json> lines, ReadLines());
  ASSIGN_OR_RETURN(SessionPtr session, ImportSession::Open(realm, values["source"]));
  if (session->converts()) {
    return absl::FailedPreconditionError("the database is the imported one: nothing to copy");
  }
  RETURN_IF_ERROR(session->source()->FetchMasterKeys());
  return ForEach(*session, lines, [&](const json& line) {
    const bool bare = line.is_object() && line.value("bare", json(false)) == true;
    return Empty(session->Copy(GetText(line, "principal"), bare));
  });
}

absl::Status Rollback(const std::string& realm, const std::vector<std::string>& arguments) {
  RETURN_IF_ERROR(ParseValues(arguments, {}).status());
  ASSIGN_OR_RETURN(std::vector<json> lines, ReadLines());
  ASSIGN_OR_RETURN(SessionPtr session, ImportSession::Open(realm, ""));
  std::vector<std::string> names;
  for (const json& line : lines) {
    if (line.is_string()) names.push_back(line.get<std::string>());
  }
  RETURN_IF_ERROR(session->Forget(names));
  return ForEach(*session, lines, [&](const json& line) {
    return session->Rollback(line.is_string() ? line.get<std::string>() : "");
  });
}

// The whole database, of which a source's names are no longer all.
absl::Status CommitRest(const std::string& realm, const std::vector<std::string>& arguments) {
  RETURN_IF_ERROR(ParseValues(arguments, {}).status());
  ASSIGN_OR_RETURN(SessionPtr session, ImportSession::Open(realm, ""));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, session->Uncommitted());
  RETURN_IF_ERROR(session->Lock());
  absl::Status first;
  for (const std::string& name : names) {
    const absl::Status s = session->Commit(name);
    if (first.ok() && !s.ok() && !absl::IsNotFound(s)) first = s;
  }
  RETURN_IF_ERROR(session->Unlock());
  RETURN_IF_ERROR(first);
  PrintLine({{"committed", names.size()}});
  return absl::OkStatus();
}

absl::Status Commit(const std::string& realm, const std::vector<std::string>& arguments) {
  RETURN_IF_ERROR(ParseValues(arguments, {}).status());
  ASSIGN_OR_RETURN(std::vector<json> lines, ReadLines());
  ASSIGN_OR_RETURN(SessionPtr session, ImportSession::Open(realm, ""));
  return ForEach(*session, lines, [&](const json& line) {
    return Empty(session->Commit(line.is_string() ? line.get<std::string>() : ""));
  });
}

// In a process of its own, which has not loaded the module.
absl::Status Seal(const std::string& realm, const std::vector<std::string>& arguments) {
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  const std::string program = absl::StrCat(self, "-seal");
  std::vector<std::string> all = {program};
  if (!realm.empty()) all.insert(all.end(), {"-r", realm});
  all.insert(all.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& argument : all) argv.push_back(argument.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  return absl::FailedPreconditionError(
      absl::StrCat(program, " cannot be run: ", strerror(errno)));
}

absl::Status Scrub(const std::string& realm, const std::vector<std::string>& arguments) {
  ASSIGN_OR_RETURN(Values values,
                   ParseValues(arguments, {}, {"scratch", "source", "dump", "stash"}));
  ASSIGN_OR_RETURN(const json answer, ScrubRealm(realm, {values["scratch"], values["source"],
                                                         values["dump"], values["stash"]}));
  PrintLine(answer);
  return absl::OkStatus();
}

struct Command {
  const char* name;
  absl::Status (*run)(const std::string& realm, const std::vector<std::string>& arguments);
};

constexpr Command kCommands[] = {
    {"import-load", Load},         {"import-scan", Scan},     {"import-policies", Policies},
    {"import-seal", Seal},         {"import-write", Write},   {"import-copy", Copy},
    {"import-rollback", Rollback}, {"import-commit", Commit}, {"import-commit-rest", CommitRest},
    {"import-scrub", Scrub},
};

}  // namespace

bool IsImportCommand(absl::string_view command) {
  for (const Command& each : kCommands) {
    if (command == each.name) return true;
  }
  return false;
}

absl::Status RunImportCommand(const std::string& realm,
                              const std::vector<std::string>& arguments) {
  for (const Command& each : kCommands) {
    if (arguments[0] == each.name) return each.run(realm, arguments);
  }
  return WrongUsage();
}

}  // namespace mpckdc::kdbtool
