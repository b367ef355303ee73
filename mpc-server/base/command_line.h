// SPDX-License-Identifier: Apache-2.0
//
// A program describes its command line once, as a CLI::App of CLI11. From the description come the
// parser, the help, the option list of the manual page and the bash completion.
//
// What CLI11's class does not say by itself is written so: a command's description is one line for
// the list of commands, then, after a newline, whatever its own help adds. A placeholder
// "NAME:{a,b,c}" names the values that completion offers; one that begins with FILE or PROGRAM is
// completed as a file. An empty group hides an option or a command. Call fallthrough() on the
// program's App first, so that the program's options may stand behind a command too.
#ifndef MPC_SERVER_BASE_COMMAND_LINE_H_
#define MPC_SERVER_BASE_COMMAND_LINE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mpc-server/base/status_macros.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace mpckdc::command_line {

// Takes a value, or says what is wrong with it.
using Setter = std::function<absl::Status(absl::string_view)>;

// An option ("--gate"; `set` gets each value when it is repeated, so the last one wins) or an
// operand ("PRINCIPAL"). Of CLI::Option, required(), group(), excludes() and needs() serve.
CLI::Option& AddOption(CLI::App& app, const std::string& name, const std::string& placeholder,
                       const std::string& description, Setter set);
CLI::Option& AddFlag(CLI::App& app, const std::string& name, const std::string& description,
                     bool* to);
// An operand that may be repeated up to `most` times.
CLI::Option& AddOperands(CLI::App& app, const std::string& name, size_t most,
                         std::vector<std::string>* to);

// "\"x\" is not EXPECTED".
absl::Status Refuse(absl::string_view value, absl::string_view expected);

Setter ToText(std::string* to);  // any but the empty one

template <class T>
Setter ToNumber(T* to, std::type_identity_t<T> least, std::type_identity_t<T> most) {
  return [=](absl::string_view text) -> absl::Status {
    bool read = false;
    T value{};
    if constexpr (std::is_floating_point_v<T>) {
      read = absl::SimpleAtod(text, &value) && value >= least && value <= most;  // not for NaN
    } else {
      int64_t number = 0;
      read = absl::SimpleAtoi(text, &number) && number >= static_cast<int64_t>(least) &&
             number <= static_cast<int64_t>(most);
      value = static_cast<T>(number);
    }
    if (!read) return Refuse(text, absl::StrCat("a number from ", least, " to ", most));
    *to = value;
    return absl::OkStatus();
  };
}

// One of some names.
template <class T>
Setter ToChoice(T* to, std::vector<std::pair<std::string, T>> choices) {
  return [to, choices = std::move(choices)](absl::string_view text) -> absl::Status {
    std::string names;
    for (const auto& [name, value] : choices) {
      if (name == text) return *to = value, absl::OkStatus();
      absl::StrAppend(&names, names.empty() ? "" : ", ", name);
    }
    return Refuse(text, absl::StrCat("one of ", names));
  };
}

// A list with commas, each element by the setter that `one` makes for its place.
template <class T, class One>
Setter ToList(std::vector<T>* to, One one) {
  return [to, one](absl::string_view text) -> absl::Status {
    to->clear();
    for (absl::string_view element : absl::StrSplit(text, ',')) {
      T value{};
      RETURN_IF_ERROR(one(&value)(element));
      to->push_back(std::move(value));
    }
    return absl::OkStatus();
  };
}

// Reads `arguments` (without the program's name) into what the setters of `app` fill. A text is
// the answer to --help, --version, "help COMMAND" or the hidden --completion and --man-options:
// print it and end. An error names the option or command, and the nearest one when it is unknown.
absl::StatusOr<std::optional<std::string>> Parse(CLI::App& app,
                                                 absl::Span<const std::string> arguments);

// The command that Parse() found, as "audit verify"; "" for none.
std::string CommandOf(const CLI::App& app);

// For `app` or one of its commands.
std::string HelpText(const CLI::App& app);
// Macros of man(7) for all options.
std::string ManOptions(const CLI::App& app);
std::string BashCompletion(const CLI::App& app);

}  // namespace mpckdc::command_line

#endif  // MPC_SERVER_BASE_COMMAND_LINE_H_
