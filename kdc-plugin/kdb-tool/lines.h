// SPDX-License-Identifier: Apache-2.0
//
// What mpc-admin and these programs say to each other: JSON, one value a line, byte strings in
// hexadecimal.
#ifndef KDC_PLUGIN_KDB_TOOL_LINES_H_
#define KDC_PLUGIN_KDB_TOOL_LINES_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mpckdc::kdbtool {

inline constexpr size_t kHandleBytes = 16;

std::string ToHex(absl::string_view bytes);
bool FromHex(const nlohmann::json& value, std::string* bytes);
// A whole number from `min` to `max` that is a member of the object.
bool GetNumber(const nlohmann::json& object, const char* name, int64_t min, int64_t max,
               int64_t* out);
// A text, or "" if there is none.
std::string GetText(const nlohmann::json& object, const char* name);

// Standard input, and its lines.
absl::StatusOr<std::string> ReadInput();
absl::StatusOr<std::vector<nlohmann::json>> ReadLines();
// One line; names are bytes, and what is not UTF-8 is replaced rather than refused.
std::string Line(const nlohmann::json& value);
void PrintLine(const nlohmann::json& value);
// What became of one of many: {"error", "not_found"}.
nlohmann::json ErrorLine(const absl::Status& status);

}  // namespace mpckdc::kdbtool

#endif  // KDC_PLUGIN_KDB_TOOL_LINES_H_
