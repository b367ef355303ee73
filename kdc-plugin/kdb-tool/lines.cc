// SPDX-License-Identifier: Apache-2.0
#include "kdc-plugin/kdb-tool/lines.h"

#include <iostream>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc::kdbtool {
namespace {

using nlohmann::json;

constexpr size_t kMaxInputBytes = 64 << 20;
constexpr size_t kMaxPrincipals = 1 << 16;  // of one command

}  // namespace

std::string ToHex(absl::string_view bytes) { return absl::BytesToHexString(bytes); }

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

std::string GetText(const json& object, const char* name) {
  if (!object.is_object() || !object.contains(name) || !object[name].is_string()) return "";
  return object[name].get<std::string>();
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

absl::StatusOr<std::vector<json>> ReadLines() {
  ASSIGN_OR_RETURN(std::string input, ReadInput());
  std::vector<json> lines;
  for (absl::string_view line : absl::StrSplit(input, '\n', absl::SkipEmpty())) {
    lines.push_back(json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false));
    if (lines.size() > kMaxPrincipals) {
      return absl::InvalidArgumentError(
          absl::StrCat("at most ", kMaxPrincipals, " principals in one command"));
    }
  }
  return lines;
}

std::string Line(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

void PrintLine(const json& value) { std::cout << Line(value); }

json ErrorLine(const absl::Status& status) {
  return {{"error", std::string(status.message())}, {"not_found", absl::IsNotFound(status)}};
}

}  // namespace mpckdc::kdbtool
