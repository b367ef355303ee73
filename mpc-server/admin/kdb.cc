// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/admin/kdb.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "mpc-server/admin/exit_code.h"
#include "mpc-server/admin/names.h"
#include "mpc-server/admin/process.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/package/package.h"

namespace mpckdc::admin {
namespace {

using nlohmann::json;

// mpc-kdb's exit status, and ssh's own.
constexpr int kUsage = 2;
constexpr int kNoSuchPrincipal = 4;
constexpr int kSshFailed = 255;
constexpr int kNotExecutable = 126;
constexpr int kNoSuchProgram = 127;

template <class... Parts>
absl::Status Odd(const Parts&... what) {
  return absl::InternalError(absl::StrCat("the KDB command's answer: ", what...));
}

// One line of what the program said; its last line is nearest to the cause.
std::string Reason(const ProcessResult& result) {
  const std::string text(absl::StripAsciiWhitespace(result.errors));
  if (text.empty()) return absl::StrCat("exit status ", result.exit_code);
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  return lines.back().substr(0, 500);
}

absl::Status ToStatus(const ProcessResult& result, const std::string& program) {
  if (result.signal != 0) {
    return absl::UnavailableError(absl::StrCat(program, " was ended by signal ", result.signal));
  }
  const std::string text = absl::StrCat(program, ": ", Reason(result));
  switch (result.exit_code) {
    case 0:
      return absl::OkStatus();
    case kNoSuchPrincipal:
      return absl::NotFoundError(text);
    case kUsage:
      return Advise(absl::FailedPreconditionError(text),
                    "is that mpc-kdb of the same version as mpc-admin?");
    case kSshFailed:
    case kNotExecutable:
    case kNoSuchProgram:
      return Advise(absl::UnavailableError(text),
                    "try kdb_command of the configuration by hand, with the argument list");
    default:
      return Advise(absl::FailedPreconditionError(text),
                    "put right what mpc-kdb says on the KDC's host, then run the same again");
  }
}

// Typed members of a JSON object; `ok` tells whether all were there.
class Members {
 public:
  explicit Members(const json& object) : object_(object) {}

  std::string Text(const char* name) { return Find(name, "", &json::is_string); }
  std::string Bytes(const char* name) {
    const absl::StatusOr<std::string> bytes = FromHex(Text(name));
    ok_ &= bytes.ok();
    return bytes.value_or("");
  }
  template <class T>
  T Number(const char* name, T min = std::numeric_limits<T>::min()) {
    const int64_t number = Find(name, min, &json::is_number_integer);
    ok_ &= number >= min && number <= std::numeric_limits<T>::max();
    return static_cast<T>(number);
  }
  bool Flag(const char* name) { return Find(name, false, &json::is_boolean); }
  bool ok() const { return ok_; }

 private:
  json Find(const char* name, json otherwise, bool (json::*is_wanted)() const noexcept) {
    const auto found = object_.find(name);  // the end when it is no object
    const bool good = found != object_.end() && ((*found).*is_wanted)();
    ok_ &= good;
    return good ? *found : otherwise;
  }

  const json& object_;
  bool ok_ = true;
};

absl::StatusOr<KdbPlan> PlanOf(const json& object) {
  Members members(object);
  KdbPlan plan;
  plan.principal = members.Text("principal");
  plan.exists = members.Flag("exists");
  plan.kvno_next = members.Number<uint32_t>("kvno_next", 1);
  if (!members.ok() || !object.contains("enctypes") || !object["enctypes"].is_array()) {
    return Odd("no plan in JSON");
  }
  for (const json& entry : object["enctypes"]) {
    Members key(entry);
    v1::KeyInfo& planned = plan.keys.emplace_back();
    planned.set_enctype(key.Number<int32_t>("enctype"));
    planned.set_salt_type(key.Number<int32_t>("salt_type"));
    planned.set_salt(key.Bytes("salt"));
    if (!key.ok()) return Odd("an enctype of the plan is incomplete");
  }
  return plan;
}

// A line of plan-many or set-handles-many: what became of one principal.
absl::Status ErrorOf(const json& object) {
  if (!object.is_object() || !object.contains("error")) return absl::OkStatus();
  Members members(object);
  const std::string error = members.Text("error");
  const bool not_found = members.Flag("not_found");
  if (!members.ok()) return Odd("an error without a text");
  return not_found ? absl::NotFoundError(error) : absl::FailedPreconditionError(error);
}

// The answer's lines, of which there must be `expected`.
absl::StatusOr<std::vector<json>> LinesOf(const std::string& text, size_t expected) {
  std::vector<json> lines;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    lines.push_back(json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false));
    if (!lines.back().is_object()) return Odd("line ", lines.size(), " is no object");
  }
  if (lines.size() == expected) return lines;
  return Odd(lines.size(), " lines for ", expected, " principals");
}

json ToJson(const KdbNewKeys& fresh) {
  json request = {{"kvno", fresh.kvno}, {"keep_old", fresh.keep_old}, {"keys", json::array()}};
  for (const v1::KeyInfo& key : fresh.keys) {
    request["keys"].push_back({{"enctype", key.enctype()},
                               {"salt_type", key.salt_type()},
                               {"salt", Hex(key.salt())},
                               {"handle", Hex(key.handle())}});
  }
  if (fresh.expected.has_value()) {
    json handles = json::array();
    for (const std::string& handle : fresh.expected->handles) handles.push_back(Hex(handle));
    request["expected"] = {{"exists", fresh.expected->exists},
                           {"kvno", fresh.expected->kvno},
                           {"handles", std::move(handles)}};
  }
  return request;
}

std::string Line(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace

std::vector<std::string> HandlesOf(absl::Span<const v1::KeyInfo> keys) {
  std::vector<std::string> handles;
  for (const v1::KeyInfo& key : keys) handles.push_back(key.handle());
  return handles;
}

KdbProgram KdbCommand(std::vector<std::string> command, bool quote_arguments,
                      absl::Duration timeout) {
  return [=](const std::vector<std::string>& arguments, const std::string& input,
             bool undisturbed) -> absl::StatusOr<std::string> {
    ProcessRequest request = {.arguments = command,
                              .input = AsBytes(input),
                              .environment = {},
                              .timeout = timeout,
                              .undisturbed = undisturbed};
    for (const std::string& argument : arguments) {
      request.arguments.push_back(quote_arguments ? QuoteForShell(argument) : argument);
    }
    absl::StatusOr<ProcessResult> result = RunProcess(request);
    if (!result.ok()) {
      return Advise(
          absl::UnavailableError(absl::StrCat("KDB command: ", result.status().message())),
          "set kdb_command in the configuration to mpc-kdb on the KDC's host");
    }
    RETURN_IF_ERROR(ToStatus(*result, absl::StrJoin(command, " ")));
    return std::move(result->output);
  };
}

absl::StatusOr<KdbPlan> Kdb::Plan(const std::string& principal, bool create) const {
  std::vector<std::string> arguments = {"plan", principal};
  if (create) arguments.push_back("--create");
  ASSIGN_OR_RETURN(std::string output, run_(arguments, "", /*undisturbed=*/false));
  return PlanOf(json::parse(output, nullptr, /*allow_exceptions=*/false));
}

absl::StatusOr<Kdb::Plans> Kdb::PlanMany(absl::Span<const std::string> principals,
                                         bool create) const {
  std::string input;
  for (const std::string& principal : principals) input += Line(principal);
  std::vector<std::string> arguments = {"plan-many"};
  if (create) arguments.push_back("--create");
  ASSIGN_OR_RETURN(std::string output, run_(arguments, input, /*undisturbed=*/false));
  ASSIGN_OR_RETURN(std::vector<json> lines, LinesOf(output, principals.size()));
  Plans plans;
  for (const json& line : lines) {
    const absl::Status error = ErrorOf(line);
    plans.push_back(error.ok() ? PlanOf(line) : absl::StatusOr<KdbPlan>(error));
  }
  return plans;
}

// Ctrl-C in between would leave it open how far it came: mpc-kdb ends what it has begun.
absl::Status Kdb::SetHandles(const KdbNewKeys& keys) const {
  return run_({"set-handles", keys.principal}, Line(ToJson(keys)), /*undisturbed=*/true).status();
}

absl::StatusOr<std::vector<absl::Status>> Kdb::SetHandlesOfMany(
    absl::Span<const KdbNewKeys> principals) const {
  std::string input;
  for (const KdbNewKeys& one : principals) {
    json request = ToJson(one);
    request["principal"] = one.principal;
    input += Line(request);
  }
  ASSIGN_OR_RETURN(std::string output, run_({"set-handles-many"}, input, /*undisturbed=*/true));
  ASSIGN_OR_RETURN(std::vector<json> lines, LinesOf(output, principals.size()));
  std::vector<absl::Status> results;
  for (const json& line : lines) results.push_back(ErrorOf(line));
  return results;
}

absl::StatusOr<std::vector<v1::KeyInfo>> Kdb::List(std::set<std::string>* keyless) const {
  ASSIGN_OR_RETURN(std::string output, run_({"list"}, "", /*undisturbed=*/false));
  std::vector<v1::KeyInfo> keys;
  size_t number = 0;
  for (absl::string_view line : absl::StrSplit(output, '\n')) {
    ++number;
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    const json object = json::parse(line.begin(), line.end(), nullptr, false);
    Members members(object);
    if (object.is_object() && object.value("keyless", json(false)) == true) {
      if (keyless != nullptr) keyless->insert(members.Text("principal"));
      continue;
    }
    v1::KeyInfo& key = keys.emplace_back();
    key.set_principal(members.Text("principal"));
    key.set_kvno(members.Number<uint32_t>("kvno"));
    key.set_enctype(members.Number<int32_t>("enctype"));
    key.set_handle(members.Bytes("handle"));
    key.set_for_history(object.is_object() && object.value("history", json(false)) == true);
    if (object.contains("renamed_from")) key.set_renamed_from(members.Text("renamed_from"));
    if (object.contains("renamed_to")) key.set_renamed_to(members.Text("renamed_to"));
    if (!members.ok() || key.handle().size() != enroll::kHandleBytes) {
      return Odd("line ", number, " of the list is not a key");
    }
  }
  return keys;
}

absl::StatusOr<KdbTickets> Kdb::Tickets(const std::string& principal) const {
  ASSIGN_OR_RETURN(std::string output, run_({"tickets", principal}, "", /*undisturbed=*/false));
  const json object = json::parse(output, nullptr, /*allow_exceptions=*/false);
  Members members(object);
  KdbTickets tickets;
  tickets.principal = members.Text("principal");
  const auto changed = members.Number<uint32_t>("changed");
  const auto longest = members.Number<uint32_t>("longest");
  if (!members.ok()) return Odd("not what tickets prints");
  tickets.changed = changed == 0 ? absl::InfinitePast() : absl::FromUnixSeconds(changed);
  tickets.longest = longest == 0 ? absl::InfiniteDuration() : absl::Seconds(longest);
  return tickets;
}

absl::Status Kdb::Purge(const std::string& principal, uint32_t keep_from) const {
  return run_({"purge", principal}, Line({{"keep_from", keep_from}}), /*undisturbed=*/true)
      .status();
}

absl::Status Kdb::Delete(const std::string& principal) const {
  return run_({"delete", principal}, "", /*undisturbed=*/false).status();
}

}  // namespace mpckdc::admin
