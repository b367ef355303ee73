// SPDX-License-Identifier: Apache-2.0
//
// Reads one TOML table key by key and remembers what was asked for, so that Finish() can name every
// key that nobody knows. Errors are collected as `FILE:LINE: message`.
#ifndef MPC_SERVER_BASE_TABLE_READER_H_
#define MPC_SERVER_BASE_TABLE_READER_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

// The library's parser is compiled into config.cc's translation units without exceptions.
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
// It asserts of some of what it reads that nothing wrong comes, and then reports it with its line
// all the same: "[#section]" would end the program.
#define TOML_ASSERT(expr) static_assert(true)
#include <toml++/toml.h>

namespace mpckdc {

// "250ms", "30s", "5m", "12h", "7d": a whole number and one unit.
absl::StatusOr<absl::Duration> ParseLife(absl::string_view text);

enum class Need { kRequired, kOptional };

struct ConfigErrors {
  std::string file;
  std::vector<std::string> lines;

  void Add(const toml::source_region& where, absl::string_view message);
};

class TableReader {
 public:
  // `table` null: the section is absent, required keys in it are reported at `parent`'s line.
  TableReader(const toml::table* table, std::string section, ConfigErrors* errors);

  void String(const char* key, Need need, std::string* out);
  void Choice(const char* key, absl::Span<const char* const> choices, std::string* out);
  void Integer(const char* key, Need need, int64_t low, int64_t high, int64_t* out);
  void Bool(const char* key, bool* out);
  void Life(const char* key, absl::Duration low, absl::Duration high, absl::Duration* out);
  // What `parse` makes of a string, a StatusOr of *out; *out as it is when the key is absent.
  template <class T, class Parse>
  void Parsed(const char* key, Parse parse, T* out) {
    std::string text;
    String(key, Need::kOptional, &text);
    if (text.empty()) return;
    auto value = parse(text);
    if (!value.ok()) return Complain(key, value.status().message());
    *out = *value;
  }
  void HostPort(const char* key, Need need, std::string* out);
  // A file name; a relative one is taken from `folder`.
  void File(const char* key, Need need, const std::string& folder, std::string* out);
  void Strings(const char* key, std::array<std::string, 3>* out);
  // Three texts, or a list of such threes: [["a", "b", "c"], ["d", "e", "f"]].
  void Triples(const char* key, std::vector<std::array<std::string, 3>>* out);
  TableReader Section(const char* key, Need need);

  // Reports every key that none of the calls above named.
  void Finish();
  // An error about `key`, at its line.
  void Complain(const char* key, absl::string_view message);
  bool Has(const char* key) const { return table_ != nullptr && table_->contains(key); }

 private:
  const toml::node* Find(const char* key, Need need);
  std::string Name(absl::string_view key) const;

  const toml::table* table_;
  std::string section_;
  ConfigErrors* errors_;
  std::vector<std::string> known_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_BASE_TABLE_READER_H_
