// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_ADMIN_CONSOLE_H_
#define MPC_SERVER_ADMIN_CONSOLE_H_

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace mpckdc::admin {

enum class Colour { kNone, kGood, kWarning, kBad, kDim };

// Rows of cells, the first row their header. Columns are shown as wide as their widest cell.
using Table = std::vector<std::vector<std::string>>;

// Where results and remarks go. Results are tables or one JSON value on `out`; remarks, errors and
// progress go to `err`. Colours and progress only where the stream is a terminal. Each is one line,
// whatever a server, a log or a database put into it (OnOneLine).
class Console {
 public:
  struct Settings {
    bool json = false;
    bool quiet = false;
    bool out_is_terminal = false;
    bool err_is_terminal = false;
    size_t (*columns)() = nullptr;  // of the terminal; 0, or none: unknown
  };

  Console(std::ostream* out, std::ostream* err, Settings settings)
      : out_(*out), err_(*err), settings_(settings) {}

  bool json() const { return settings_.json; }
  // Around what is shown again and again: on a terminal its first line is the topmost, below it is
  // nothing, and lines end where the terminal does. In a pipe it leaves at once.
  void BeginScreen();
  void EndScreen();
  void Print(const Table& table);
  void Print(const nlohmann::json& value);  // nothing without --json
  // A line of text, put together from its parts, among results; nothing with --json.
  template <class... Parts>
  void Say(Colour colour, const Parts&... parts) {
    SayLine(colour, absl::StrCat(parts...));
  }
  template <class... Parts>
  void Say(const Parts&... parts) {
    SayLine(Colour::kNone, absl::StrCat(parts...));
  }
  // A remark for whoever watches.
  template <class... Parts>
  void Remark(const Parts&... parts) {
    RemarkLine(absl::StrCat(parts...));
  }
  void Progress(size_t done, size_t total, absl::string_view what);
  void EndProgress();

 private:
  void SayLine(Colour colour, absl::string_view line);
  void RemarkLine(absl::string_view line);

  std::ostream& out_;
  std::ostream& err_;
  Settings settings_;
  bool progress_shown_ = false;
  size_t width_ = 0;  // of a screen's lines; 0: as long as they are
};

}  // namespace mpckdc::admin

#endif  // MPC_SERVER_ADMIN_CONSOLE_H_
