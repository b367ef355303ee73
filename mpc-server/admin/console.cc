// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/admin/console.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "mpc-server/base/one_line.h"

namespace mpckdc::admin {
namespace {

constexpr size_t kBarWidth = 30;
constexpr size_t kProgressNameWidth = 40;

// What begins each Colour.
constexpr const char* kStart[] = {"", "\033[32m", "\033[33m", "\033[31m", "\033[2m"};

// Of UTF-8 whose characters take one column each.
absl::string_view FirstColumns(absl::string_view line, size_t width) {
  size_t characters = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(line[i]) & 0xC0) != 0x80;
    if (begins && characters++ == width) return line.substr(0, i);
  }
  return line;
}

}  // namespace

void Console::Print(const Table& given) {
  Table table = given;
  std::vector<size_t> widths;
  for (std::vector<std::string>& row : table) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = OnOneLine(row[i]);
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  for (const std::vector<std::string>& row : table) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - row[i].size() + 2, ' ');
    }
    SayLine(&row == &table.front() ? Colour::kDim : Colour::kNone, line);
  }
}

void Console::Print(const nlohmann::json& value) {
  if (!settings_.json) return;
  // Names are bytes: what is not UTF-8 is replaced rather than refused. And what is not ASCII is
  // escaped, for a terminal obeys some of it.
  out_ << value.dump(2, ' ', true, nlohmann::json::error_handler_t::replace) << "\n";
}

void Console::BeginScreen() {
  if (!settings_.out_is_terminal || settings_.json) return;
  out_ << "\033[H\033[J";
  if (settings_.columns != nullptr) width_ = settings_.columns();
}

void Console::EndScreen() {
  width_ = 0;
  out_ << std::flush;
}

void Console::SayLine(Colour colour, absl::string_view said) {
  if (settings_.json) return;
  const std::string whole = OnOneLine(said);
  absl::string_view line = whole;
  if (width_ > 0) line = FirstColumns(line, width_);
  const bool coloured = settings_.out_is_terminal && colour != Colour::kNone;
  out_ << (coloured ? kStart[static_cast<int>(colour)] : "") << line << (coloured ? "\033[0m" : "")
       << "\n";
}

void Console::RemarkLine(absl::string_view line) {
  EndProgress();
  err_ << OnOneLine(line) << "\n";
}

void Console::Progress(size_t done, size_t total, absl::string_view what) {
  if (settings_.quiet || !settings_.err_is_terminal || total == 0) return;
  done = std::min(done, total);  // two numbers of servers, of which one may lie
  const auto filled = static_cast<size_t>(static_cast<double>(kBarWidth) *
                                          static_cast<double>(done) / static_cast<double>(total));
  err_ << absl::StreamFormat("\r[%s%s] %d/%d %-*s", std::string(filled, '#'),
                             std::string(kBarWidth - filled, '.'), done, total,
                             static_cast<int>(kProgressNameWidth),
                             what.substr(0, kProgressNameWidth))
       << std::flush;
  progress_shown_ = true;
}

void Console::EndProgress() {
  if (progress_shown_) err_ << "\n";
  progress_shown_ = false;
}

}  // namespace mpckdc::admin
