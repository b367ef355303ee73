// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/base/table_reader.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mpckdc {
namespace {

bool IsHostPort(absl::string_view text) {
  const size_t colon = text.rfind(':');
  uint32_t port = 0;
  return colon != absl::string_view::npos && colon > 0 &&
         absl::SimpleAtoi(text.substr(colon + 1), &port) && port <= 65535;
}

}  // namespace

void ConfigErrors::Add(const toml::source_region& where, absl::string_view message) {
  lines.push_back(absl::StrCat(file, ":", std::max<uint32_t>(1, where.begin.line), ": ", message));
}

absl::StatusOr<absl::Duration> ParseLife(absl::string_view text) {
  constexpr absl::string_view kWant = "wants a whole number and a unit: 250ms, 30s, 5m, 12h or 7d";
  size_t digits = 0;
  while (digits < text.size() && absl::ascii_isdigit(text[digits])) ++digits;
  int32_t number = 0;
  if (!absl::SimpleAtoi(text.substr(0, digits), &number)) {
    return absl::InvalidArgumentError(kWant);
  }
  const absl::string_view unit = text.substr(digits);
  if (unit == "ms") return absl::Milliseconds(number);
  if (unit == "s") return absl::Seconds(number);
  if (unit == "m") return absl::Minutes(number);
  if (unit == "h") return absl::Hours(number);
  if (unit == "d") return absl::Hours(24) * number;
  return absl::InvalidArgumentError(kWant);
}

TableReader::TableReader(const toml::table* table, std::string section, ConfigErrors* errors)
    : table_(table), section_(std::move(section)), errors_(errors) {}

std::string TableReader::Name(absl::string_view key) const {
  return section_.empty() ? std::string(key) : absl::StrCat("[", section_, "] ", key);
}

const toml::node* TableReader::Find(const char* key, Need need) {
  known_.push_back(key);
  const toml::node* node = table_ == nullptr ? nullptr : table_->get(key);
  if (node == nullptr && need == Need::kRequired) {
    errors_->Add(table_ == nullptr ? toml::source_region{} : table_->source(),
                 absl::StrCat(Name(key), " is missing: add it (deploy/config/mpc-server.toml "
                              "explains it)"));
  }
  return node;
}

void TableReader::Complain(const char* key, absl::string_view message) {
  const toml::node* node = table_ == nullptr ? nullptr : table_->get(key);
  const toml::source_region where = node != nullptr     ? node->source()
                                    : table_ != nullptr ? table_->source()
                                                        : toml::source_region{};
  errors_->Add(where, absl::StrCat(Name(key), " ", message));
}

void TableReader::String(const char* key, Need need, std::string* out) {
  const toml::node* node = Find(key, need);
  if (node == nullptr) return;
  const auto* value = node->as_string();
  if (value == nullptr) return Complain(key, "wants text in double quotes");
  if (value->get().empty()) return Complain(key, "must not be empty");
  *out = value->get();
}

void TableReader::Choice(const char* key, absl::Span<const char* const> choices,
                         std::string* out) {
  if (!Has(key)) {
    known_.push_back(key);
    return;
  }
  std::string value;
  String(key, Need::kOptional, &value);
  if (std::find(choices.begin(), choices.end(), value) == choices.end()) {
    return Complain(key, absl::StrCat("wants one of: ", absl::StrJoin(choices, ", ")));
  }
  *out = value;
}

void TableReader::Integer(const char* key, Need need, int64_t low, int64_t high, int64_t* out) {
  const toml::node* node = Find(key, need);
  if (node == nullptr) return;
  const auto* value = node->as_integer();
  if (value == nullptr || value->get() < low || value->get() > high) {
    return Complain(key, absl::StrCat("wants a whole number from ", low, " to ", high));
  }
  *out = value->get();
}

void TableReader::Bool(const char* key, bool* out) {
  const toml::node* node = Find(key, Need::kOptional);
  if (node == nullptr) return;
  const auto* value = node->as_boolean();
  if (value == nullptr) return Complain(key, "wants true or false, without quotes");
  *out = value->get();
}

void TableReader::Life(const char* key, absl::Duration low, absl::Duration high,
                       absl::Duration* out) {
  std::string text;
  String(key, Need::kOptional, &text);
  if (text.empty()) return;
  absl::StatusOr<absl::Duration> value = ParseLife(text);
  if (!value.ok()) return Complain(key, value.status().message());
  if (*value < low || *value > high) {
    return Complain(key, absl::StrCat("must be from ", absl::FormatDuration(low), " to ",
                                      absl::FormatDuration(high)));
  }
  *out = *value;
}

void TableReader::HostPort(const char* key, Need need, std::string* out) {
  std::string text;
  String(key, need, &text);
  if (text.empty()) return;
  if (!IsHostPort(text)) {
    return Complain(key, "wants \"host:port\", for example \"192.0.2.1:7750\" or \"[::1]:7750\"");
  }
  *out = text;
}

void TableReader::File(const char* key, Need need, const std::string& folder, std::string* out) {
  std::string text;
  String(key, need, &text);
  if (text.empty()) return;
  *out = text[0] == '/' ? text : absl::StrCat(folder, "/", text);
}

// nullopt: not three texts that say something.
static std::optional<std::array<std::string, 3>> ThreeTexts(const toml::array* values) {
  std::array<std::string, 3> found;
  if (values == nullptr || values->size() != found.size()) return std::nullopt;
  for (size_t i = 0; i < found.size(); ++i) {
    const auto* value = values->get(i)->as_string();
    if (value == nullptr || value->get().empty()) return std::nullopt;
    found[i] = value->get();
  }
  return found;
}

void TableReader::Strings(const char* key, std::array<std::string, 3>* out) {
  const toml::node* node = Find(key, Need::kOptional);
  if (node == nullptr) return;
  const auto found = ThreeTexts(node->as_array());
  if (!found.has_value()) return Complain(key, "wants three texts, for P0, P1 and P2");
  *out = *found;
}

void TableReader::Triples(const char* key, std::vector<std::array<std::string, 3>>* out) {
  const toml::node* node = Find(key, Need::kOptional);
  if (node == nullptr) return;
  const toml::array* all = node->as_array();
  std::vector<std::array<std::string, 3>> found;
  if (const auto one = ThreeTexts(all); one.has_value()) {
    found.push_back(*one);
  } else {
    for (size_t i = 0; all != nullptr && i < all->size(); ++i) {
      const auto triple = ThreeTexts(all->get(i)->as_array());
      if (!triple.has_value()) {
        found.clear();
        break;
      }
      found.push_back(*triple);
    }
  }
  if (found.empty()) {
    return Complain(key, "wants three texts, for P0, P1 and P2, or a list of such threes");
  }
  *out = std::move(found);
}

TableReader TableReader::Section(const char* key, Need need) {
  const toml::node* node = Find(key, Need::kOptional);
  const toml::table* table = node == nullptr ? nullptr : node->as_table();
  if (node == nullptr && need == Need::kRequired) {
    errors_->Add(toml::source_region{}, absl::StrCat("the section [", key, "] is missing"));
  }
  if (node != nullptr && table == nullptr) Complain(key, "is a section: write it as a table");
  return TableReader(table, key, errors_);
}

void TableReader::Finish() {
  if (table_ == nullptr) return;
  for (const auto& [key, node] : *table_) {
    const absl::string_view name(key.str().data(), key.str().size());
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    errors_->Add(node.source(), absl::StrCat("unknown key ", Name(name), "; known here: ",
                                             absl::StrJoin(known_, ", ")));
  }
}

}  // namespace mpckdc
