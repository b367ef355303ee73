// SPDX-License-Identifier: Apache-2.0
//
// One line of the audit log. doc/audit_log_format.md is the document; in short:
//
//   {"v":3,"seq":N,"prev":"64 hex digits","time":"...","realm":"...","party":P,"kind":"...",
//    the fields of the kind,"hash":"64 hex digits"}
//
// hash is the SHA-256 of the line's bytes before `,"hash":"`; prev is the hash of the line before,
// 64 zeros in the first. The order of the fields and the spelling are fixed: the bytes are what is
// hashed.
#ifndef MPC_SERVER_AUDIT_LINE_H_
#define MPC_SERVER_AUDIT_LINE_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace mpckdc::audit {

using Fields = nlohmann::ordered_json;

inline constexpr int kFormatVersion = 3;
inline constexpr int kOldestFormatVersion = 2;  // whose lines are read; its jobs have no `keys`
inline constexpr size_t kHashDigits = 64;
// Of `request`, the name of a client's request.
inline constexpr size_t kRequestDigits = 16;

// Whose log it is.
struct Owner {
  std::string realm;
  int party = 0;

  friend bool operator==(const Owner&, const Owner&) = default;
};

// A place in the chain: the last line's number and hash. Zero and zeros before the first line.
struct Head {
  uint64_t seq = 0;
  std::string hash = std::string(kHashDigits, '0');

  friend bool operator==(const Head&, const Head&) = default;
};

// SHA-256 in hexadecimal.
std::string HashText(absl::string_view bytes);

// Fields as a line spells them: `"name":value,...`. Made by MembersOf(), or put together from
// JsonText() where a line has thousands of them.
struct Members {
  std::string text;
};
// `fields` is an object or null and has none of the names above.
Members MembersOf(const Fields& fields);
// A JSON string with its quotes. What is not UTF-8 is replaced, what is not ASCII escaped.
std::string JsonText(absl::string_view text);

// The text of the line after `head`, with its newline; moves `head` on to it.
std::string EncodeLine(const Owner& owner, absl::Time time, absl::string_view kind,
                       const Members& members, Head* head);

// What every line has. The views point into the text that was parsed.
struct Line {
  uint64_t version = 0;
  uint64_t seq = 0;
  absl::string_view prev;
  absl::string_view hash;
  absl::string_view time;
  absl::string_view owner;  // `"realm":"...","party":P`
  absl::string_view kind;
  absl::string_view text;  // the whole line without its newline
};

// The spelling of `owner` in a line.
std::string OwnerText(const Owner& owner);

// nullopt: the text (without newline) has not the form of a line. The hash is not checked.
std::optional<Line> ParseLine(absl::string_view text);
// Whether the line's own hash is that of its bytes.
bool HashHolds(const Line& line);

absl::Time TimeOf(const Line& line);  // InfinitePast when it is no time
// All fields; discarded() when it is no JSON, or nested deeper than anything a server writes.
Fields FieldsOf(const Line& line);

// The value of a field, or a fallback when it is absent or of another type.
std::string TextField(const Fields& fields, const char* name);
uint64_t NumberField(const Fields& fields, const char* name);

}  // namespace mpckdc::audit

#endif  // MPC_SERVER_AUDIT_LINE_H_
