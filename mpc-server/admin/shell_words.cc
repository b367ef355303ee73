// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/admin/shell_words.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace mpckdc::admin {
namespace {

// Reads one word from the front of `text`.
class WordReader {
 public:
  explicit WordReader(absl::string_view text) : rest_(text) {}

  bool SkipBlanks() {
    while (!rest_.empty() && absl::ascii_isspace(rest_.front())) rest_.remove_prefix(1);
    return !rest_.empty();
  }

  absl::StatusOr<std::string> Word() {
    std::string word;
    while (!rest_.empty() && !absl::ascii_isspace(rest_.front())) {
      const char c = Take();
      absl::Status s = absl::OkStatus();
      if (c == '\'') {
        s = SingleQuoted(&word);
      } else if (c == '"') {
        s = DoubleQuoted(&word);
      } else if (c == '\\') {
        s = Escaped(&word);
      } else {
        word += c;
      }
      if (!s.ok()) return s;
    }
    return word;
  }

 private:
  char Take() {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }

  absl::Status Escaped(std::string* word) {
    if (rest_.empty()) return absl::InvalidArgumentError("a backslash ends the text");
    *word += Take();
    return absl::OkStatus();
  }

  absl::Status SingleQuoted(std::string* word) {
    while (!rest_.empty()) {
      const char c = Take();
      if (c == '\'') return absl::OkStatus();
      *word += c;
    }
    return absl::InvalidArgumentError("a ' is not closed");
  }

  absl::Status DoubleQuoted(std::string* word) {
    while (!rest_.empty()) {
      const char c = Take();
      if (c == '"') return absl::OkStatus();
      const bool escapes = c == '\\' && !rest_.empty() &&
                           absl::string_view("\\\"$`").find(rest_.front()) != rest_.npos;
      *word += escapes ? Take() : c;
    }
    return absl::InvalidArgumentError("a \" is not closed");
  }

  absl::string_view rest_;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> SplitShellWords(absl::string_view text) {
  std::vector<std::string> words;
  WordReader reader(text);
  while (reader.SkipBlanks()) {
    absl::StatusOr<std::string> word = reader.Word();
    if (!word.ok()) return word.status();
    words.push_back(*std::move(word));
  }
  return words;
}

std::string QuoteForShell(absl::string_view word) {
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

}  // namespace mpckdc::admin
