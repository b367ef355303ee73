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

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "kdc-plugin/kdb-tool/kdb_session.h"

namespace mpckdc::kdbtool {
namespace {

using nlohmann::json;

constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kNoSuchPrincipal = 4;
constexpr size_t kMaxInputBytes = 1 << 20;
constexpr size_t kHandleBytes = 16;
constexpr size_t kMaxKeys = 64;

constexpr char kUsageText[] =
    "usage: mpc-kdb [-r REALM] plan PRINCIPAL [--create]\n"
    "       mpc-kdb [-r REALM] set-handles PRINCIPAL <JSON\n"
    "       mpc-kdb [-r REALM] list\n"
    "       mpc-kdb [-r REALM] delete PRINCIPAL\n";

std::string ToHex(const std::string& bytes) { return absl::BytesToHexString(bytes); }

bool FromHex(const json& value, std::string* bytes) {
  if (!value.is_string()) return false;
  const std::string text = value.get<std::string>();
  if (text.size() % 2 != 0) return false;
  for (char c : text) {
    if (!absl::ascii_isxdigit(static_cast<unsigned char>(c))) return false;
  }
  *bytes = absl::HexStringToBytes(text);
  return true;
}

bool GetNumber(const json& object, const char* name, int64_t min, int64_t max, int64_t* out) {
  if (!object.is_object() || !object.contains(name) || !object[name].is_number_integer()) {
    return false;
  }
  *out = object[name].get<int64_t>();
  return *out >= min && *out <= max;
}

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

absl::StatusOr<std::string> ReadInput() {
  std::string input;
  char buffer[4096];
  while (std::cin.read(buffer, sizeof(buffer)) || std::cin.gcount() > 0) {
    input.append(buffer, static_cast<size_t>(std::cin.gcount()));
    if (input.size() > kMaxInputBytes) return absl::InvalidArgumentError("the input is too long");
  }
  return input;
}

absl::Status RunPlan(KdbSession& session, const std::string& principal, bool create) {
  absl::StatusOr<Plan> plan = session.MakePlan(principal, create);
  if (!plan.ok()) return plan.status();
  json keys = json::array();
  for (const KeyForm& key : plan->keys) {
    keys.push_back(
        {{"enctype", key.enctype}, {"salt_type", key.salt_type}, {"salt", ToHex(key.salt)}});
  }
  std::cout << json{{"principal", plan->principal},
                    {"exists", plan->exists},
                    {"kvno_next", plan->kvno_next},
                    {"enctypes", keys}}
                   .dump()
            << "\n";
  return absl::OkStatus();
}

absl::Status RunSetHandles(KdbSession& session, const std::string& principal) {
  absl::StatusOr<std::string> input = ReadInput();
  if (!input.ok()) return input.status();
  const json request = json::parse(*input, nullptr, /*allow_exceptions=*/false);
  int64_t kvno = 0;
  if (!GetNumber(request, "kvno", 1, UINT16_MAX, &kvno) || !request.contains("keys") ||
      !request["keys"].is_array() || request["keys"].empty() ||
      request["keys"].size() > kMaxKeys) {
    return absl::InvalidArgumentError("expected JSON with kvno (1 to 65535) and keys");
  }
  const bool keep_old = request.contains("keep_old") && request["keep_old"].is_boolean() &&
                        request["keep_old"].get<bool>();
  std::vector<KeyForm> keys;
  for (const json& entry : request["keys"]) {
    absl::StatusOr<KeyForm> key = ParseKey(entry);
    if (!key.ok()) return key.status();
    keys.push_back(*std::move(key));
  }
  return session.SetHandles(principal, static_cast<uint32_t>(kvno), keep_old, keys);
}

absl::Status RunList(KdbSession& session) {
  absl::StatusOr<std::vector<StoredHandle>> found = session.List();
  if (!found.ok()) return found.status();
  for (const StoredHandle& h : *found) {
    std::cout << json{{"principal", h.principal},
                      {"kvno", h.kvno},
                      {"enctype", h.enctype},
                      {"handle", ToHex(h.handle)}}
                     .dump(-1, ' ', false, json::error_handler_t::replace)
              << "\n";
  }
  return absl::OkStatus();
}

int Main(std::vector<std::string> arguments) {
  std::string realm;
  if (arguments.size() >= 2 && arguments[0] == "-r") {
    realm = arguments[1];
    arguments.erase(arguments.begin(), arguments.begin() + 2);
  }
  const std::string command = arguments.empty() ? "" : arguments[0];
  const bool create = arguments.size() == 3 && arguments[2] == "--create" && command == "plan";
  const bool takes_principal = command == "plan" || command == "set-handles" || command == "delete";
  const size_t expected = takes_principal ? 2 : 1;
  if (command == "--help") {
    std::cout << kUsageText;
    return 0;
  }
  if ((!takes_principal && command != "list") || arguments.size() != expected + (create ? 1 : 0)) {
    std::cerr << kUsageText;
    return kUsage;
  }
  absl::StatusOr<std::unique_ptr<KdbSession>> session = KdbSession::Open(realm);
  absl::Status status = session.status();
  if (status.ok() && command == "plan") status = RunPlan(**session, arguments[1], create);
  if (status.ok() && command == "set-handles") status = RunSetHandles(**session, arguments[1]);
  if (status.ok() && command == "delete") status = (*session)->Delete(arguments[1]);
  if (status.ok() && command == "list") status = RunList(**session);
  std::cout.flush();
  if (status.ok() && !std::cout) status = absl::DataLossError("cannot write the answer");
  if (status.ok()) return 0;
  std::cerr << "mpc-kdb: " << status.message() << "\n";
  return absl::IsNotFound(status) ? kNoSuchPrincipal : kFailed;
}

}  // namespace
}  // namespace mpckdc::kdbtool

int main(int argc, char** argv) {
  return mpckdc::kdbtool::Main(std::vector<std::string>(argv + 1, argv + argc));
}
