// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/audit/line.h"

#include <algorithm>
#include <cassert>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/sha256.h"

namespace mpckdc::audit {
namespace {

constexpr absl::string_view kTimeFormat = "%Y-%m-%dT%H:%M:%E6SZ";
constexpr absl::string_view kKindField = ",\"kind\":\"";
constexpr absl::string_view kHashField = ",\"hash\":\"";
constexpr absl::string_view kEnd = "\"}";

// Names are bytes: what is not UTF-8 is replaced, and everything beyond ASCII is escaped.
std::string Dump(const Fields& value) {
  return value.dump(-1, ' ', true, Fields::error_handler_t::replace);
}

bool IsHash(absl::string_view text) {
  return text.size() == kHashDigits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

bool TakeHash(absl::string_view* text, absl::string_view* hash) {
  *hash = text->substr(0, kHashDigits);
  if (!IsHash(*hash)) return false;
  text->remove_prefix(kHashDigits);
  return true;
}

// A number as the writer spells it: no sign, no leading zero.
bool TakeNumber(absl::string_view* text, uint64_t* number) {
  const size_t digits = std::min(text->find_first_not_of("0123456789"), text->size());
  const absl::string_view taken = text->substr(0, digits);
  if (digits == 0 || taken[0] == '0' || !absl::SimpleAtoi(taken, number)) return false;
  text->remove_prefix(digits);
  return true;
}

// What is written deeper than any line of ours would be dumped with as many frames on the stack.
constexpr int kMostDepth = 32;

bool TooDeep(absl::string_view json) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (quoted) {
      i += c == '\\';
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMostDepth) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

}  // namespace

std::string HashText(absl::string_view bytes) {
  return absl::BytesToHexString(AsText(Sha256(bytes)));
}

Members MembersOf(const Fields& fields) {
  assert(fields.is_object() || fields.is_null());
  if (!fields.is_object() || fields.empty()) return {};
  const std::string text = Dump(fields);
  return {text.substr(1, text.size() - 2)};
}

std::string JsonText(absl::string_view text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return c >= ' ' && c <= '~' && c != '"' && c != '\\';
  });
  if (plain) return absl::StrCat("\"", text, "\"");
  return Dump(Fields(std::string(text)));
}

std::string OwnerText(const Owner& owner) {
  return MembersOf({{"realm", owner.realm}, {"party", owner.party}}).text;
}

std::string EncodeLine(const Owner& owner, absl::Time time, absl::string_view kind,
                       const Members& members, Head* head) {
  std::string line = absl::StrCat(
      "{\"v\":", kFormatVersion, ",\"seq\":", head->seq + 1, ",\"prev\":\"", head->hash,
      "\",\"time\":\"", absl::FormatTime(kTimeFormat, time, absl::UTCTimeZone()), "\",",
      OwnerText(owner), kKindField, kind, "\"");
  if (!members.text.empty()) absl::StrAppend(&line, ",", members.text);
  head->hash = HashText(line);
  ++head->seq;
  absl::StrAppend(&line, kHashField, head->hash, kEnd, "\n");
  return line;
}

std::optional<Line> ParseLine(absl::string_view text) {
  Line line;
  line.text = text;
  if (text.find('\n') != absl::string_view::npos) return std::nullopt;
  if (!absl::ConsumePrefix(&text, "{\"v\":") || !TakeNumber(&text, &line.version)) {
    return std::nullopt;
  }
  if (line.version < kOldestFormatVersion || line.version > kFormatVersion) return std::nullopt;
  if (!absl::ConsumePrefix(&text, ",\"seq\":") || !TakeNumber(&text, &line.seq)) {
    return std::nullopt;
  }
  if (!absl::ConsumePrefix(&text, ",\"prev\":\"") || !TakeHash(&text, &line.prev)) {
    return std::nullopt;
  }
  if (!absl::ConsumePrefix(&text, "\",\"time\":\"")) return std::nullopt;
  const size_t quote = text.find('"');
  if (quote == absl::string_view::npos) return std::nullopt;
  line.time = text.substr(0, quote);
  text.remove_prefix(quote);
  const size_t kind = text.find(kKindField);
  const bool owned = kind != absl::string_view::npos && kind >= 2;  // there is something before it
  if (!owned || !absl::ConsumePrefix(&text, "\",")) return std::nullopt;
  line.owner = text.substr(0, kind - 2);
  text.remove_prefix(kind - 2 + kKindField.size());
  line.kind = text.substr(0, text.find('"'));
  if (!absl::ConsumeSuffix(&text, kEnd) || text.size() < kHashDigits) return std::nullopt;
  line.hash = text.substr(text.size() - kHashDigits);
  text.remove_suffix(kHashDigits);
  if (!IsHash(line.hash) || !absl::EndsWith(text, kHashField)) return std::nullopt;
  return line;
}

bool HashHolds(const Line& line) {
  const size_t tail = kHashField.size() + kHashDigits + kEnd.size();
  return HashText(line.text.substr(0, line.text.size() - tail)) == line.hash;
}

absl::Time TimeOf(const Line& line) {
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(kTimeFormat, line.time, &time, &error)) return absl::InfinitePast();
  return time;
}

Fields FieldsOf(const Line& line) {
  if (TooDeep(line.text)) return Fields(Fields::value_t::discarded);
  return Fields::parse(line.text.begin(), line.text.end(), nullptr, /*allow_exceptions=*/false);
}

std::string TextField(const Fields& fields, const char* name) {
  if (!fields.is_object()) return "";
  const auto it = fields.find(name);
  return it != fields.end() && it->is_string() ? it->get<std::string>() : "";
}

uint64_t NumberField(const Fields& fields, const char* name) {
  if (!fields.is_object()) return 0;
  const auto it = fields.find(name);
  return it != fields.end() && it->is_number_unsigned() ? it->get<uint64_t>() : 0;
}

}  // namespace mpckdc::audit
