// SPDX-License-Identifier: Apache-2.0
//
// mpc-kdb: the KDC's database as mpc-admin needs it, on the KDC's host. README.md of kdc-plugin has
// the formats. It never talks to the MPC servers about new keys: mpc-admin does.
#include <stdio.h>
#include <unistd.h>

#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kdc-plugin/kdb-tool/import_commands.h"
#include "kdc-plugin/kdb-tool/kdb_session.h"
#include "kdc-plugin/kdb-tool/lines.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc::kdbtool {
namespace {

using nlohmann::json;

constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kNoSuchPrincipal = 4;
constexpr size_t kMaxKeys = 64;

constexpr char kUsageText[] =
    "usage: mpc-kdb [-r REALM] plan PRINCIPAL [--create]\n"
    "       mpc-kdb [-r REALM] set-handles PRINCIPAL <JSON\n"
    "       mpc-kdb [-r REALM] plan-many [--create] <JSON LINES\n"
    "       mpc-kdb [-r REALM] set-handles-many <JSON LINES\n"
    "       mpc-kdb [-r REALM] list\n"
    "       mpc-kdb [-r REALM] delete PRINCIPAL\n"
    "       mpc-kdb [-r REALM] tickets PRINCIPAL\n"
    "       mpc-kdb [-r REALM] purge PRINCIPAL <JSON\n";

absl::StatusOr<KeyForm> ParseKey(const json& object) {
  KeyForm key;
  int64_t enctype = 0, salt_type = 0;
  if (!GetNumber(object, "enctype", INT16_MIN, INT16_MAX, &enctype) ||
      !GetNumber(object, "salt_type", INT16_MIN, INT16_MAX, &salt_type) ||
      !object.contains("handle") || !FromHex(object["handle"], &key.handle) ||
      key.handle.size() != kHandleBytes || !object.contains("salt") ||
      !FromHex(object["salt"], &key.salt)) {
    return absl::InvalidArgumentError(
        "a key needs enctype, salt_type, salt (hex) and handle (32 hex digits)");
  }
  if (key.salt.size() > UINT16_MAX) return absl::InvalidArgumentError("a salt is too long");
  key.enctype = static_cast<int32_t>(enctype);
  key.salt_type = static_cast<int32_t>(salt_type);
  return key;
}

json ToJson(const Plan& plan) {
  json keys = json::array();
  for (const KeyForm& key : plan.keys) {
    keys.push_back(
        {{"enctype", key.enctype}, {"salt_type", key.salt_type}, {"salt", ToHex(key.salt)}});
  }
  return {{"principal", plan.principal},
          {"exists", plan.exists},
          {"kvno_next", plan.kvno_next},
          {"enctypes", keys}};
}

absl::Status RunPlan(KdbSession& session, const std::string& principal, bool create) {
  ASSIGN_OR_RETURN(Plan plan, session.MakePlan(principal, create));
  PrintLine(ToJson(plan));
  return absl::OkStatus();
}

absl::Status RunPlanMany(KdbSession& session, const std::string&, bool create) {
  ASSIGN_OR_RETURN(std::vector<json> names, ReadLines());
  for (const json& name : names) {
    if (!name.is_string()) return absl::InvalidArgumentError("expected a JSON string per line");
    absl::StatusOr<Plan> plan = session.MakePlan(name.get<std::string>(), create);
    PrintLine(plan.ok() ? ToJson(*plan) : ErrorLine(plan.status()));
  }
  return absl::OkStatus();
}

absl::StatusOr<Expected> ParseExpected(const json& object) {
  int64_t kvno = 0;
  if (!GetNumber(object, "kvno", 0, UINT16_MAX, &kvno) || !object.contains("exists") ||
      !object["exists"].is_boolean() || !object.contains("handles") ||
      !object["handles"].is_array()) {
    return absl::InvalidArgumentError("expected needs exists, kvno and handles");
  }
  Expected expected{object["exists"].get<bool>(), static_cast<uint32_t>(kvno), {}};
  for (const json& handle : object["handles"]) {
    std::string bytes;
    if (!FromHex(handle, &bytes) || bytes.size() != kHandleBytes) {
      return absl::InvalidArgumentError("an expected handle is not 32 hex digits");
    }
    expected.handles.insert(std::move(bytes));
  }
  return expected;
}

absl::StatusOr<NewHandles> ParseNewHandles(const json& request) {
  int64_t kvno = 0;
  if (!GetNumber(request, "kvno", 1, UINT16_MAX, &kvno) || !request.contains("keys") ||
      !request["keys"].is_array() || request["keys"].empty() ||
      request["keys"].size() > kMaxKeys) {
    return absl::InvalidArgumentError("expected JSON with kvno (1 to 65535) and keys");
  }
  NewHandles handles;
  handles.kvno = static_cast<uint32_t>(kvno);
  handles.keep_old = request.contains("keep_old") && request["keep_old"].is_boolean() &&
                     request["keep_old"].get<bool>();
  for (const json& entry : request["keys"]) {
    ASSIGN_OR_RETURN(KeyForm key, ParseKey(entry));
    handles.keys.push_back(std::move(key));
  }
  if (request.contains("expected")) {
    ASSIGN_OR_RETURN(handles.expected, ParseExpected(request["expected"]));
  }
  return handles;
}

absl::Status RunSetHandles(KdbSession& session, const std::string& principal, bool) {
  ASSIGN_OR_RETURN(std::string input, ReadInput());
  ASSIGN_OR_RETURN(NewHandles handles,
                   ParseNewHandles(json::parse(input, nullptr, /*allow_exceptions=*/false)));
  handles.principal = principal;
  return session.SetHandles(handles);
}

// Nothing is written unless all lines can be read.
absl::Status RunSetHandlesMany(KdbSession& session, const std::string&, bool) {
  ASSIGN_OR_RETURN(std::vector<json> lines, ReadLines());
  std::vector<NewHandles> principals;
  for (const json& line : lines) {
    ASSIGN_OR_RETURN(NewHandles handles, ParseNewHandles(line));
    if (!line.contains("principal") || !line["principal"].is_string()) {
      return absl::InvalidArgumentError("expected a principal in each line");
    }
    handles.principal = line["principal"].get<std::string>();
    principals.push_back(std::move(handles));
  }
  for (const absl::Status& status : session.SetHandlesOfMany(principals)) {
    PrintLine(status.ok() ? json::object() : ErrorLine(status));
  }
  return absl::OkStatus();
}

absl::Status RunDelete(KdbSession& session, const std::string& principal, bool) {
  return session.Delete(principal);
}

absl::Status RunTickets(KdbSession& session, const std::string& principal, bool) {
  ASSIGN_OR_RETURN(const TicketLives lives, session.ReadTicketLives(principal));
  PrintLine(
      json{{"principal", lives.principal}, {"changed", lives.changed}, {"longest", lives.longest}});
  return absl::OkStatus();
}

absl::Status RunPurge(KdbSession& session, const std::string& principal, bool) {
  ASSIGN_OR_RETURN(std::string input, ReadInput());
  const json request = json::parse(input, nullptr, /*allow_exceptions=*/false);
  int64_t kvno = 0;
  if (!GetNumber(request, "keep_from", 1, UINT16_MAX, &kvno)) {
    return absl::InvalidArgumentError("expected JSON with keep_from (1 to 65535)");
  }
  return session.Purge(principal, static_cast<uint32_t>(kvno));
}

absl::Status RunList(KdbSession& session, const std::string&, bool) {
  return session.List(
      [](const StoredHandle& h) {
        json line = {{"principal", h.principal},
                     {"kvno", h.kvno},
                     {"enctype", h.enctype},
                     {"handle", ToHex(h.handle)}};
        if (h.history) line["history"] = true;
        if (!h.renamed_from.empty()) line["renamed_from"] = h.renamed_from;
        if (!h.renamed_to.empty()) line["renamed_to"] = h.renamed_to;
        PrintLine(line);
      },
      [](const std::string& principal) {
        PrintLine(json{{"principal", principal}, {"keyless", true}});
      });
}

struct Command {
  const char* name;
  bool takes_principal;
  bool takes_create;  // --create, after the principal
  absl::Status (*run)(KdbSession& session, const std::string& principal, bool create);
};

constexpr Command kCommands[] = {
    {"plan", true, true, RunPlan},
    {"plan-many", false, true, RunPlanMany},
    {"set-handles", true, false, RunSetHandles},
    {"set-handles-many", false, false, RunSetHandlesMany},
    {"delete", true, false, RunDelete},
    {"list", false, false, RunList},
    {"tickets", true, false, RunTickets},
    {"purge", true, false, RunPurge},
};

// Null unless `arguments` are a command's.
const Command* Parse(const std::vector<std::string>& arguments, std::string* principal,
                     bool* create) {
  for (const Command& command : kCommands) {
    if (arguments.empty() || arguments[0] != command.name) continue;
    size_t next = 1;
    if (command.takes_principal && next < arguments.size()) *principal = arguments[next++];
    *create = command.takes_create && next < arguments.size() && arguments[next] == "--create";
    next += *create;
    const bool complete = !command.takes_principal || arguments.size() > 1;
    return complete && next == arguments.size() ? &command : nullptr;
  }
  return nullptr;
}

// The exit status that says what became of it; the reason goes to standard error.
int Report(absl::Status status) {
  std::cout.flush();
  if (status.ok() && !std::cout) status = absl::DataLossError("cannot write the answer");
  if (status.ok()) return 0;
  const bool usage = absl::IsInvalidArgument(status) && status.message().empty();
  if (usage) std::cerr << kUsageText << kImportUsage;
  if (!usage) std::cerr << "mpc-kdb: " << status.message() << "\n";
  if (usage) return kUsage;
  return absl::IsNotFound(status) ? kNoSuchPrincipal : kFailed;
}

int Main(std::vector<std::string> arguments) {
  std::string realm;
  if (arguments.size() >= 2 && arguments[0] == "-r") {
    realm = arguments[1];
    arguments.erase(arguments.begin(), arguments.begin() + 2);
  }
  if (!arguments.empty() && arguments[0] == "--help") {
    std::cout << kUsageText << kImportUsage;
    return 0;
  }
  if (!arguments.empty() && IsImportCommand(arguments[0])) {
    return Report(RunImportCommand(realm, arguments));
  }
  std::string principal;
  bool create = false;
  const Command* command = Parse(arguments, &principal, &create);
  if (command == nullptr) return Report(absl::InvalidArgumentError(""));
  absl::StatusOr<std::unique_ptr<KdbSession>> session = KdbSession::Open(realm);
  absl::Status status = session.status();
  if (status.ok()) status = command->run(**session, principal, create);
  return Report(std::move(status));
}

}  // namespace
}  // namespace mpckdc::kdbtool

int main(int argc, char** argv) {
  return mpckdc::kdbtool::Main(std::vector<std::string>(argv + 1, argv + argc));
}
