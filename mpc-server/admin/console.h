// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_ADMIN_CONSOLE_H_
#define MPC_SERVER_ADMIN_CONSOLE_H_

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace mpckdc::admin {

enum class Colour { kNone, kGood, kWarning, kBad, kDim };

// A table whose columns are as wide as their widest cell.
class Table {
 public:
  explicit Table(std::vector<std::string> header) { AddRow(std::move(header)); }
  void AddRow(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  const std::vector<std::vector<std::string>>& rows() const { return rows_; }

 private:
  std::vector<std::vector<std::string>> rows_;
};

// Where results and remarks go. Results are tables or one JSON value on `out`; remarks, errors and
// progress go to `err`. Colours and progress only where the stream is a terminal.
class Console {
 public:
  struct Settings {
    bool json = false;
    bool quiet = false;
    bool out_is_terminal = false;
    bool err_is_terminal = false;
  };

  Console(std::ostream* out, std::ostream* err, Settings settings)
      : out_(*out), err_(*err), settings_(settings) {}

  bool json() const { return settings_.json; }
  void Print(const Table& table);
  void Print(const nlohmann::json& value);  // nothing without --json
  // Lines of text among results; nothing with --json.
  void Say(absl::string_view line, Colour colour = Colour::kNone);
  // A remark for whoever watches.
  void Remark(absl::string_view line);
  void Progress(size_t done, size_t total, absl::string_view what);
  void EndProgress();

 private:
  std::ostream& out_;
  std::ostream& err_;
  Settings settings_;
  bool progress_shown_ = false;
};

}  // namespace mpckdc::admin

#endif  // MPC_SERVER_ADMIN_CONSOLE_H_
