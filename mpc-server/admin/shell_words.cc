// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/admin/shell_words.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace mpckdc::admin {

absl::StatusOr<std::vector<std::string>> SplitShellWords(absl::string_view text) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = 0;  // that is open
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == 0 && absl::ascii_isspace(c)) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    const bool more = i + 1 < text.size();
    if (quote != 0 && c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (quote == 0 && c == '\\') {
      if (!more) return absl::InvalidArgumentError("a backslash ends the text");
      words.back() += text[++i];
    } else if (quote == '"' && c == '\\' && more &&
               absl::string_view("\\\"$`").find(text[i + 1]) != absl::string_view::npos) {
      words.back() += text[++i];
    } else {
      words.back() += c;
    }
  }
  if (quote == 0) return words;
  return absl::InvalidArgumentError(absl::StrCat("a ", std::string(1, quote), " is not closed"));
}

std::string QuoteForShell(absl::string_view word) {
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

}  // namespace mpckdc::admin
