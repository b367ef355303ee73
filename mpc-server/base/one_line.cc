// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/base/one_line.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace mpckdc {
namespace {

constexpr char32_t kInvalid = 0xFFFFFFFF;

// The first character of `text` and how many bytes it has; one invalid byte otherwise. RFC 3629.
char32_t First(absl::string_view text, size_t* bytes) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = at(0);
  *bytes = 1;
  if (lead < 0x80) return lead;
  const size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < size) return kInvalid;
  char32_t character = lead & (0xFF >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    if ((at(i) & 0xC0) != 0x80) return kInvalid;
    character = character << 6 | (at(i) & 0x3F);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (character < kLeast[size] || character > 0x10FFFF) return kInvalid;
  *bytes = size;
  return character;
}

// C0 and C1 (a terminal takes U+009B for an escape sequence's begin), the line and paragraph
// separators, and what turns the direction of text.
bool IsHarmful(char32_t c) {
  const auto in = [c](char32_t first, char32_t last) { return first <= c && c <= last; };
  return c == kInvalid || c < 0x20 || in(0x7F, 0x9F) || in(0x2028, 0x202E) || in(0x2066, 0x2069) ||
         in(0xD800, 0xDFFF);
}

}  // namespace

std::string OnOneLine(absl::string_view text) {
  std::string line;
  while (!text.empty()) {
    size_t bytes;
    const bool harmful = IsHarmful(First(text, &bytes));
    for (const char c : text.substr(0, bytes)) {
      if (harmful) {
        absl::StrAppend(&line, "\\x", absl::Hex(static_cast<uint8_t>(c), absl::kZeroPad2));
      } else {
        line += c;
      }
    }
    text.remove_prefix(bytes);
  }
  return line;
}

}  // namespace mpckdc
