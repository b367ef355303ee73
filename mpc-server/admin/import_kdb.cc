// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/admin/import_kdb.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "mpc-server/admin/names.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc::admin {
namespace {

using nlohmann::json;

template <class... Parts>
absl::Status Odd(const Parts&... what) {
  return absl::InternalError(absl::StrCat("the KDB command's answer: ", what...));
}

json Parse(absl::string_view text) {
  return json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

std::string Line(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

// A number of the object that T holds.
template <class T>
bool Get(const json& object, const char* name, T* out) {
  if (!object.is_object() || !object.contains(name) || !object[name].is_number_integer()) {
    return false;
  }
  const int64_t number = object[name].get<int64_t>();
  if (number < static_cast<int64_t>(std::numeric_limits<T>::min()) ||
      (sizeof(T) < sizeof(int64_t) &&
       number > static_cast<int64_t>(std::numeric_limits<T>::max()))) {
    return false;
  }
  *out = static_cast<T>(number);
  return true;
}

bool Get(const json& object, const char* name, std::string* out) {
  if (!object.is_object() || !object.contains(name) || !object[name].is_string()) return false;
  *out = object[name].get<std::string>();
  return true;
}

bool GetBytes(const json& object, const char* name, std::string* out) {
  std::string hex;
  if (!Get(object, name, &hex)) return false;
  absl::StatusOr<std::string> bytes = FromHex(hex);
  if (!bytes.ok()) return false;
  *out = *std::move(bytes);
  return true;
}

template <class T>
bool Choose(const std::string& text, absl::Span<const std::pair<const char*, T>> names, T* out) {
  for (const auto& [name, value] : names) {
    if (text != name) continue;
    *out = value;
    return true;
  }
  return false;
}

constexpr std::pair<const char*, Place> kPlaces[] = {
    {"master", Place::kMaster}, {"history", Place::kHistory},     {"krbtgt", Place::kKrbtgt},
    {"kadmin", Place::kKadmin}, {"protected", Place::kProtected}, {"local", Place::kLocal}};
constexpr std::pair<const char*, ImportState> kStates[] = {{"old", ImportState::kOld},
                                                           {"imported", ImportState::kImported},
                                                           {"changed", ImportState::kChanged},
                                                           {"present", ImportState::kPresent},
                                                           {"gone", ImportState::kGone}};

bool HasList(const json& object, const char* name) {
  return object.is_object() && object.contains(name) && object[name].is_array();
}

bool GetKeys(const json& object, const char* name, std::vector<ScannedKey>* out) {
  if (!HasList(object, name)) return false;
  for (const json& one : object[name]) {
    if (!one.is_array() || one.size() != 2 || !one[0].is_number_integer() ||
        !one[1].is_number_integer()) {
      return false;
    }
    out->push_back({one[0].get<uint32_t>(), one[1].get<int32_t>()});
  }
  return true;
}

absl::StatusOr<Scanned> ParseScanned(const json& object) {
  Scanned one;
  std::string place, state;
  bool good = Get(object, "principal", &one.principal) && Get(object, "place", &place) &&
              Get(object, "state", &state) && Get(object, "kvno", &one.kvno) &&
              Get(object, "history", &one.history) && HasList(object, "planned") &&
              GetKeys(object, "weak", &one.weak) &&
              GetKeys(object, "old", &one.old) &&
              Choose<Place>(place, kPlaces, &one.place) &&
              Choose<ImportState>(state, kStates, &one.state);
  for (size_t i = 0; good && i < object["planned"].size(); ++i) {
    good = object["planned"][i].is_number_integer();
    if (good) one.planned.push_back(object["planned"][i].get<int32_t>());
  }
  return good ? absl::StatusOr<Scanned>(std::move(one)) : Odd("not a principal: ", Line(object));
}

absl::Status ErrorOf(const json& object) {
  std::string error;
  if (!Get(object, "error", &error)) return absl::OkStatus();
  const bool not_found = object.value("not_found", json(false)) == true;
  return not_found ? absl::NotFoundError(error) : absl::FailedPreconditionError(error);
}

absl::StatusOr<std::vector<json>> LinesOf(const std::string& text, size_t expected) {
  std::vector<json> lines;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    lines.push_back(Parse(line));
    if (!lines.back().is_object()) return Odd("line ", lines.size(), " is no object");
  }
  if (lines.size() == expected) return lines;
  return Odd(lines.size(), " lines for ", expected, " principals");
}

ImportKdb::Results ResultsOf(const absl::StatusOr<std::string>& output, size_t expected) {
  if (!output.ok()) return output.status();
  ASSIGN_OR_RETURN(const std::vector<json> lines, LinesOf(*output, expected));
  std::vector<absl::Status> results;
  for (const json& line : lines) results.push_back(ErrorOf(line));
  return results;
}

// ---- What was sealed ----

absl::Status ParseKeys(const json& list, const SealRequest& request, const std::string& principal,
                       std::vector<v1::KeyInfo>* out) {
  if (!list.is_array()) return Odd("no list of keys");
  for (const json& object : list) {
    v1::KeyInfo& key = out->emplace_back();
    uint32_t kvno = 0;
    int32_t enctype = 0, salt_type = 0;
    std::string salt, handle;
    if (!Get(object, "kvno", &kvno) || !Get(object, "enctype", &enctype) ||
        !Get(object, "salt_type", &salt_type) || !GetBytes(object, "salt", &salt) ||
        !GetBytes(object, "handle", &handle) || handle.size() != enroll::kHandleBytes) {
      return Odd("a sealed key is incomplete");
    }
    key.set_principal(principal);
    key.set_handle(handle);
    key.set_kvno(kvno);
    key.set_enctype(enctype);
    key.set_salt_type(salt_type);
    key.set_salt(salt);
    key.set_key_class(request.key_class);
    key.set_gate(request.gate);
  }
  return absl::OkStatus();
}

absl::StatusOr<SealedPrincipal> ParseSealed(const json& object, const SealRequest& request) {
  SealedPrincipal sealed;
  if (!Get(object, "principal", &sealed.principal)) return Odd("a principal without a name");
  sealed.status = ErrorOf(object);
  if (!sealed.status.ok()) return sealed;
  if (sealed.principal != request.principal) return Odd("keys of ", sealed.principal);
  if (!object.contains("keys")) return Odd("a principal without keys");
  RETURN_IF_ERROR(ParseKeys(object["keys"], request, sealed.principal, &sealed.keys));
  if (HasList(object, "history")) {
    for (const json& password : object["history"]) {
      RETURN_IF_ERROR(ParseKeys(password, request, sealed.principal, &sealed.past));
    }
  }
  sealed.line = object;
  if (request.key_class == v1::KEY_CLASS_TGS_OLD) sealed.line["old_tgs"] = true;
  return sealed;
}

// The packages' keys are the principals', one after the other.
absl::Status ParsePackages(const json& list, absl::string_view bytes, SealedKeys* sealed) {
  std::vector<v1::KeyInfo> all;
  for (const SealedPrincipal& one : sealed->principals) {
    all.insert(all.end(), one.keys.begin(), one.keys.end());
    all.insert(all.end(), one.past.begin(), one.past.end());
  }
  size_t next = 0;
  for (const json& object : list) {
    auto& [keys, packages] = sealed->packages.emplace_back();
    size_t count = 0;
    if (!Get(object, "keys", &count) || count > all.size() - next || !object.contains("bytes") ||
        !object["bytes"].is_array() || object["bytes"].size() != packages.size()) {
      return Odd("a package is not what it says");
    }
    keys.assign(all.begin() + static_cast<ptrdiff_t>(next),
                all.begin() + static_cast<ptrdiff_t>(next + count));
    next += count;
    for (size_t party = 0; party < packages.size(); ++party) {
      if (!object["bytes"][party].is_number_unsigned()) return Odd("a package without a size");
      const size_t size = object["bytes"][party].get<size_t>();
      if (size > bytes.size()) return Odd("a package is cut off");
      packages[party] = std::string(bytes.substr(0, size));
      bytes.remove_prefix(size);
    }
  }
  return next == all.size() && bytes.empty() ? absl::OkStatus() : Odd("packages are missing");
}

}  // namespace

absl::Status ImportKdb::Load(const std::string& scratch, const std::string& dump,
                             const std::string& stash) {
  ASSIGN_OR_RETURN(const std::string output,
                   kdb_.Run({"import-load", "--scratch", scratch, "--dump", dump, "--stash", stash},
                            "", /*undisturbed=*/false));
  if (!Get(Parse(output), "source", &profile_)) return Odd("no source");
  return absl::OkStatus();
}

absl::StatusOr<ImportScan> ImportKdb::Scan() const {
  ASSIGN_OR_RETURN(const std::string output,
                   kdb_.Run(Command("import-scan"), "", /*undisturbed=*/false));
  ImportScan scan;
  bool first = true;
  for (absl::string_view line : absl::StrSplit(output, '\n', absl::SkipEmpty())) {
    const json object = Parse(line);
    std::string mode;
    if (first) {
      if (!Get(object, "mode", &mode)) return Odd("no mode");
      scan.converts = mode == "convert";
      first = false;
      continue;
    }
    ASSIGN_OR_RETURN(Scanned one, ParseScanned(object));
    scan.principals.push_back(std::move(one));
  }
  return scan;
}

absl::StatusOr<std::vector<std::string>> ImportKdb::CopyPolicies() const {
  ASSIGN_OR_RETURN(const std::string output,
                   kdb_.Run(Command("import-policies"), "", /*undisturbed=*/true));
  const json object = Parse(output);
  if (!HasList(object, "different")) return Odd("no policies");
  std::vector<std::string> names;
  for (const json& name : object["different"]) {
    if (!name.is_string()) return Odd("a policy's name is no text");
    names.push_back(name.get<std::string>());
  }
  return names;
}

absl::StatusOr<SealedKeys> ImportKdb::Seal(const enroll::PackageTarget& target,
                                           const std::string& transaction,
                                           absl::Span<const SealRequest> requests) const {
  json first = {
      {"realm", target.realm}, {"epoch", target.epoch}, {"transaction", Hex(transaction)}};
  for (const std::string& key : target.package_keys) first["package_keys"].push_back(Hex(key));
  std::string input = Line(first);
  for (const SealRequest& request : requests) {
    input += Line({{"principal", request.principal},
                   {"class", static_cast<int>(request.key_class)},
                   {"gate", static_cast<int>(request.gate)}});
  }
  ASSIGN_OR_RETURN(const std::string output,
                   kdb_.Run(Command("import-seal"), input, /*undisturbed=*/false));
  const size_t end = output.find('\n');
  if (end == std::string::npos) return Odd("nothing sealed");
  const json header = Parse(absl::string_view(output).substr(0, end));
  if (!HasList(header, "principals") || !HasList(header, "packages") ||
      header["principals"].size() != requests.size()) {
    return Odd("not what was to be sealed");
  }
  SealedKeys sealed;
  for (size_t i = 0; i < requests.size(); ++i) {
    ASSIGN_OR_RETURN(SealedPrincipal one, ParseSealed(header["principals"][i], requests[i]));
    sealed.principals.push_back(std::move(one));
  }
  RETURN_IF_ERROR(
      ParsePackages(header["packages"], absl::string_view(output).substr(end + 1), &sealed));
  return sealed;
}

ImportKdb::Results ImportKdb::Write(absl::Span<const SealedPrincipal> principals) const {
  std::string input;
  for (const SealedPrincipal& one : principals) input += Line(one.line);
  return ResultsOf(kdb_.Run(Command("import-write"), input, /*undisturbed=*/true),
                   principals.size());
}

ImportKdb::Results ImportKdb::Copy(absl::Span<const ToCopy> principals) const {
  std::string input;
  for (const ToCopy& one : principals) {
    input += Line({{"principal", one.principal}, {"bare", one.bare}});
  }
  return ResultsOf(kdb_.Run(Command("import-copy"), input, /*undisturbed=*/true),
                   principals.size());
}

ImportKdb::Results ImportKdb::Commit(absl::Span<const std::string> principals) const {
  std::string input;
  for (const std::string& one : principals) input += Line(one);
  return ResultsOf(kdb_.Run({"import-commit"}, input, /*undisturbed=*/true), principals.size());
}

absl::Status ImportKdb::CommitRest() const {
  return kdb_.Run({"import-commit-rest"}, "", /*undisturbed=*/true).status();
}

absl::StatusOr<std::vector<absl::StatusOr<std::vector<std::string>>>> ImportKdb::Rollback(
    absl::Span<const std::string> principals) const {
  std::string input;
  for (const std::string& one : principals) input += Line(one);
  ASSIGN_OR_RETURN(const std::string output,
                   kdb_.Run({"import-rollback"}, input, /*undisturbed=*/true));
  ASSIGN_OR_RETURN(const std::vector<json> lines, LinesOf(output, principals.size()));
  std::vector<absl::StatusOr<std::vector<std::string>>> results;
  for (const json& line : lines) {
    const absl::Status error = ErrorOf(line);
    if (!error.ok()) {
      results.emplace_back(error);
      continue;
    }
    if (!HasList(line, "handles")) return Odd("no handles");
    std::vector<std::string> handles;
    for (const json& hex : line["handles"]) {
      if (!hex.is_string()) return Odd("a handle is no text");
      ASSIGN_OR_RETURN(std::string handle, FromHex(hex.get<std::string>()));
      handles.push_back(std::move(handle));
    }
    results.emplace_back(std::move(handles));
  }
  return results;
}

absl::StatusOr<json> ImportKdb::Scrub(const std::string& scratch, const std::string& source,
                                      const std::string& dump, const std::string& stash) const {
  std::vector<std::string> arguments = {"import-scrub"};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) arguments.insert(arguments.end(), {name, value});
  };
  add("--scratch", scratch);
  add("--source", source);
  add("--dump", dump);
  add("--stash", stash);
  ASSIGN_OR_RETURN(const std::string output, kdb_.Run(arguments, "", /*undisturbed=*/true));
  const json answer = Parse(output);
  if (!answer.is_object() || !answer.contains("overwritten") || !answer.contains("left")) {
    return Odd("not what import-scrub prints");
  }
  return answer;
}

}  // namespace mpckdc::admin
