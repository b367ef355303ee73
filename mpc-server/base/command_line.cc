// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/base/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <numeric>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace mpckdc::command_line {
namespace {

constexpr size_t kMaxLine = 79;
constexpr size_t kMaxLeft = 28;  // of a line of the help, before the text
constexpr char kCompletion[] = "--completion", kManOptions[] = "--man-options";

// ---- what the description holds ----

bool Visible(const CLI::App* app) { return !app->get_group().empty(); }

std::vector<const CLI::App*> CommandsOf(const CLI::App& app) {
  return app.get_subcommands(std::function<bool(const CLI::App*)>(Visible));
}

// The options to be shown; --help stands with the program's, not again with each command's.
std::vector<const CLI::Option*> OptionsOf(const CLI::App& app) {
  return app.get_options([&](const CLI::Option* option) {
    return !option->get_group().empty() && !option->get_positional() &&
           (app.get_parent() == nullptr || option != app.get_help_ptr());
  });
}

std::vector<const CLI::Option*> OperandsOf(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return option->get_positional(); });
}

bool TakesValue(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

const CLI::Option* FindOption(const CLI::App& app, const std::string& name) {
  if (const CLI::Option* option = app.get_option_no_throw(name); option != nullptr) return option;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (const CLI::Option* option = FindOption(*command, name); option != nullptr) return option;
  }
  return nullptr;
}

const CLI::App* FindCommand(const CLI::App& app, const std::string& name) {
  const std::vector<const CLI::App*> found =
      app.get_subcommands([&](const CLI::App* command) { return command->get_name() == name; });
  return found.empty() ? nullptr : found[0];
}

// "NAME:{a,b}" without the values, and the values.
std::string Placeholder(const CLI::Option& option) {
  return std::string(absl::string_view(option.get_type_name()).substr(
      0, option.get_type_name().find(":{")));
}

std::string Values(const CLI::Option& option) {
  const std::string text = option.get_type_name();
  const size_t begin = text.find(":{");
  if (begin == std::string::npos) return "";
  return absl::StrReplaceAll(text.substr(begin + 2, text.find('}') - begin - 2), {{",", " "}});
}

std::string Usage(const CLI::Option& operand) {
  const std::string name = absl::StrCat(operand.get_name(), operand.get_items_expected_max() > 1 ||
                                        operand.get_allow_extra_args() ? "..." : "");
  return operand.get_required() ? name : absl::StrCat("[", name, "]");
}

// "enroll [PRINCIPAL]"
std::string Usage(const CLI::App& command) {
  std::string text = command.get_name();
  if (!CommandsOf(command).empty()) {
    absl::StrAppend(&text, command.get_require_subcommand_min() > 0 ? " COMMAND" : " [COMMAND]");
  }
  for (const CLI::Option* operand : OperandsOf(command)) {
    absl::StrAppend(&text, " ", Usage(*operand));
  }
  return text;
}

std::string PathOf(const CLI::App& app) {
  if (app.get_parent() == nullptr) return app.get_name();
  return absl::StrCat(PathOf(*app.get_parent()), " ", app.get_name());
}

std::pair<std::string, std::string> SummaryAndMore(const CLI::App& app) {
  return absl::StrSplit(app.get_description(), absl::MaxSplits('\n', 1));
}

// ---- parsing ----

// CLI11 takes "[a,b]" for a list and "++" for a command's end. Here they are words like others, and
// pass it with a mark before them.
constexpr char kMark = '\x1f';

void MarkOddWords(absl::Span<std::string> words) {
  for (std::string& word : words) {
    const size_t at = absl::StartsWith(word, "--") ? word.find('=') + 1 : 0;
    const bool list = word.size() > at && word[at] == '[' && word.back() == ']';
    if (list || word == "++") word.insert(at, 1, kMark);
  }
}

absl::string_view Unmarked(absl::string_view word) {
  return absl::StripPrefix(word, absl::string_view(&kMark, 1));
}

// CLI11 wants a command before its own options; here any option of the program may stand first.
void PutCommandFirst(const CLI::App& program, const CLI::App& app,
                     absl::Span<std::string> arguments) {
  if (app.get_subcommands(nullptr).empty()) return;
  for (size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    if (!absl::StartsWith(arguments[i], "-")) {
      std::rotate(arguments.begin(), arguments.begin() + i, arguments.begin() + i + 1);
      const CLI::App* command = FindCommand(app, arguments[0]);
      if (command != nullptr) PutCommandFirst(program, *command, arguments.subspan(1));
      return;
    }
    const CLI::Option* option = FindOption(program, arguments[i]);
    if (option != nullptr && TakesValue(*option)) ++i;
  }
}

// Insertions, deletions and changes that make one of the other.
size_t Distance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

// "; did you mean ...?" when one is near.
std::string Nearest(const std::string& word, const std::vector<std::string>& known) {
  size_t least = word.size() / 3 + 2;
  std::string nearest;
  for (const std::string& each : known) {
    const bool begins = word.size() > 2 && absl::StartsWith(each, word);
    const size_t distance = begins ? 1 : Distance(word, each);
    if (distance < least) least = distance, nearest = each;
  }
  return nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?");
}

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* each = &app; each != nullptr; each = each->get_parent()) {
    for (const CLI::Option* option : OptionsOf(*each)) names.push_back(option->get_name());
  }
  return names;
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : CommandsOf(app)) names.push_back(command->get_name());
  return names;
}

const CLI::App& InnermostCommand(const CLI::App& app) {
  const std::vector<CLI::App*> given = app.get_subcommands();
  return given.empty() ? app : InnermostCommand(*given[0]);
}

// What Parse() could not place, or the lack of a command; "" when there is nothing to object to.
std::string Unplaced(const CLI::App& app) {
  const CLI::App& command = InnermostCommand(app);
  const std::string of = CommandOf(app), before = of.empty() ? "" : absl::StrCat(of, ": ");
  std::vector<std::string> left = app.remaining(/*recurse=*/true);
  std::erase(left, "--");
  for (std::string& word : left) word = std::string(Unmarked(word));
  for (const std::string& word : left) {
    if (!absl::StartsWith(word, "-")) continue;
    const std::string name = word.substr(0, word.find('='));
    if (!of.empty() && FindOption(app, name) != nullptr) {
      return absl::StrCat(of, " has no option ", name);
    }
    return absl::StrCat("unknown option ", name, Nearest(name, OptionNames(command)));
  }
  if (!left.empty() && !CommandsOf(command).empty()) {
    return absl::StrCat(before, "unknown command \"", left[0], "\"",
                        Nearest(left[0], CommandNames(command)));
  }
  if (!left.empty()) return absl::StrCat(before, "one argument too many: \"", left.back(), "\"");
  if (command.get_require_subcommand_min() > 0) {
    return absl::StrCat(before, "no command given; there are ",
                        absl::StrJoin(CommandNames(command), ", "));
  }
  return "";
}

// Our words for what CLI11 objects to.
std::string Objection(const CLI::App& app, const CLI::ParseError& error) {
  const std::string text = error.what(), name = text.substr(0, text.find_first_of(": "));
  const CLI::Option* option = FindOption(app, name);
  if (option == nullptr) return text;
  if (error.get_name() == "ArgumentMismatch") {
    return absl::StrCat(name, " needs a value: ", name, " ", Placeholder(*option));
  }
  if (error.get_name() == "RequiredError") {
    const std::string of = CommandOf(app);
    const char* const what = option->get_positional() ? "name a " : "needs ";
    return absl::StrCat(of, of.empty() ? "" : ": ", what, name);
  }
  return text;
}

// "--flag=value", and "--option=", for whose value CLI11 takes the next argument.
std::string OddValue(const CLI::App& app, absl::Span<const std::string> arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const CLI::Option* option = equals == argument.npos ? nullptr : FindOption(app, name);
    if (option == nullptr || !absl::StartsWith(name, "--")) continue;
    if (!TakesValue(*option)) return absl::StrCat(name, " takes no value");
    if (equals + 1 == argument.size()) return absl::StrCat(name, ": empty");
  }
  return "";
}

// ---- texts ----

// `text` in lines of at most kMaxLine, each but the first behind `indent` blanks.
std::string Wrapped(absl::string_view text, size_t indent) {
  std::string out;
  size_t column = indent;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!out.empty()) absl::StrAppend(&out, "\n", std::string(indent, ' ')), column = indent;
    for (absl::string_view word : absl::StrSplit(line, ' ')) {
      if (column > indent && column + 1 + word.size() > kMaxLine) {
        absl::StrAppend(&out, "\n", std::string(indent, ' '));
        column = indent;
      }
      absl::StrAppend(&out, column > indent ? " " : "", word);
      column += word.size() + (column > indent ? 1 : 0);
    }
  }
  return out;
}

using Rows = std::vector<std::pair<std::string, std::string>>;

std::string Table(const std::string& title, const Rows& rows) {
  size_t width = 0;
  for (const auto& [left, right] : rows) {
    if (left.size() <= kMaxLeft) width = std::max(width, left.size());
  }
  std::string text = rows.empty() ? "" : absl::StrCat("\n", title, ":\n");
  for (const auto& [left, right] : rows) {
    const std::string gap = left.size() <= width ? std::string(width - left.size() + 2, ' ')
                                                 : absl::StrCat("\n", std::string(width + 4, ' '));
    absl::StrAppend(&text, "  ", left, gap, Wrapped(right, width + 4), "\n");
  }
  return text;
}

std::string OptionTables(const CLI::App& app) {
  const bool in_common = !CommandsOf(app).empty();
  std::vector<std::pair<std::string, Rows>> groups;
  for (const CLI::Option* option : OptionsOf(app)) {
    std::string group = option->get_group();
    if (group == "Options" && in_common) group = "Options of every command";
    auto at = absl::c_find_if(groups, [&](auto& g) { return g.first == group; });
    if (at == groups.end()) at = groups.insert(at, {group, {}});
    std::string left = absl::StrReplaceAll(option->get_name(false, true), {{",", ", "}});
    if (TakesValue(*option)) absl::StrAppend(&left, " ", Placeholder(*option));
    at->second.emplace_back(left, option->get_description());
  }
  std::string text;
  for (const auto& [title, rows] : groups) absl::StrAppend(&text, Table(title, rows));
  return text;
}

std::string Escaped(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}});
}

std::string Bold(absl::string_view text) { return absl::StrCat("\\fB", Escaped(text), "\\fR"); }

// Options in bold, and nothing that troff would read as a request.
std::string Roff(absl::string_view text) {
  std::string out;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    std::string joined;
    for (absl::string_view word : absl::StrSplit(line, ' ')) {
      size_t end = 0;
      while (absl::StartsWith(word, "--") && end < word.size() &&
             (word[end] == '-' || absl::ascii_islower(word[end]))) {
        ++end;
      }
      absl::StrAppend(&joined, joined.empty() ? "" : " ", end > 2 ? Bold(word.substr(0, end)) : "",
                      Escaped(word.substr(end > 2 ? end : 0)));
    }
    absl::StrAppend(&out, joined[0] == '.' || joined[0] == '\'' ? "\\&" : "", joined, "\n");
  }
  return out;
}

struct ManEntry {
  std::string group, head, text;
  std::vector<std::string> commands;
};

// An option that several commands have with one text stands once.
void CollectEntries(const CLI::App& app, const std::string& command,
                    std::vector<ManEntry>* entries) {
  for (const CLI::Option* option : OptionsOf(app)) {
    const std::vector<std::string> names = absl::StrSplit(option->get_name(false, true), ',');
    const std::string value =
        TakesValue(*option) ? absl::StrCat(" \\fI", Escaped(Placeholder(*option)), "\\fR") : "";
    const auto bold = [](std::string* out, const std::string& name) { out->append(Bold(name)); };
    ManEntry entry = {option->get_group(), absl::StrCat(absl::StrJoin(names, ", ", bold), value),
                      option->get_description(), {}};
    auto at = absl::c_find_if(*entries, [&](const ManEntry& e) {
      return e.head == entry.head && e.text == entry.text && e.group == entry.group;
    });
    if (at == entries->end()) at = entries->insert(at, entry);
    if (!command.empty()) at->commands.push_back(command);
  }
  for (const CLI::App* each : CommandsOf(app)) {
    const std::string path = absl::StrCat(command, command.empty() ? "" : " ", each->get_name());
    CollectEntries(*each, path, entries);
  }
}

// ---- completion ----

void CollectValueCases(const CLI::App& app, std::vector<std::string>* names,
                       std::vector<std::string>* cases) {
  for (const CLI::Option* option : OptionsOf(app)) {
    const std::string name = option->get_name();
    if (!TakesValue(*option) || absl::c_linear_search(*names, name)) continue;
    names->push_back(name);
    const std::string values = Values(*option), placeholder = Placeholder(*option);
    const bool file =
        absl::StartsWith(placeholder, "FILE") || absl::StartsWith(placeholder, "PROGRAM");
    const std::string compgen = file ? "-f" : absl::StrCat("-W '", values, "'");
    cases->push_back(absl::StrCat("    ", name, ") mapfile -t COMPREPLY < <(compgen ", compgen,
                                  " -- \"$word\"); return ;;\n"));
  }
  for (const CLI::App* command : CommandsOf(app)) CollectValueCases(*command, names, cases);
}

// What may follow a command; inner commands stand first, because theirs are the longer patterns.
void AppendCommandCases(const CLI::App& app, const std::string& path, std::string* text) {
  for (const CLI::App* command : CommandsOf(app)) {
    AppendCommandCases(*command, absl::StrCat(path, " ", command->get_name()), text);
  }
  const bool files = absl::c_any_of(OperandsOf(app), [](const CLI::Option* operand) {
    return absl::StartsWith(operand->get_name(), "FILE");
  });
  absl::StrAppend(text, "    ", path.empty() ? "*" : absl::StrCat("'", path, "' | '", path, " '*"),
                  ") words='", absl::StrJoin(CommandNames(app), " "), "' options='",
                  absl::StrJoin(OptionNames(app), " "), "' files=", files ? "yes" : "", " ;;\n");
}

}  // namespace

absl::Status Refuse(absl::string_view value, absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat("\"", value, "\" is not ", expected));
}

Setter ToText(std::string* to) {
  return [to](absl::string_view text) {
    *to = std::string(text);
    return text.empty() ? absl::InvalidArgumentError("empty") : absl::OkStatus();
  };
}

CLI::Option& AddOption(CLI::App& app, const std::string& name, const std::string& placeholder,
                       const std::string& description, Setter set) {
  CLI::callback_t no_callback = [](const CLI::results_t&) { return true; };
  CLI::Option& option = *app.add_option(name, no_callback, description);
  option.type_name(placeholder)->take_all();
  // A check, not a callback: only a check may say why it refuses.
  option.check([set = std::move(set)](const std::string& value) {
    return std::string(set(Unmarked(value)).message());
  });
  return option;
}

CLI::Option& AddFlag(CLI::App& app, const std::string& name, const std::string& description,
                     bool* to) {
  return *app.add_flag(name, *to, description)->disable_flag_override();
}

CLI::Option& AddOperands(CLI::App& app, const std::string& name, size_t most,
                         std::vector<std::string>* to) {
  return *AddOption(app, name, "", "",
                   [to, most](absl::string_view text) {
                     to->emplace_back(text);
                     if (to->size() <= most) return absl::OkStatus();
                     return Refuse(text, absl::StrCat("one of at most ", most));
                   }).expected(1)->allow_extra_args();
}

absl::StatusOr<std::optional<std::string>> Parse(CLI::App& app,
                                                 absl::Span<const std::string> arguments) {
  std::vector<std::string> words(arguments.begin(), arguments.end());
  PutCommandFirst(app, app, absl::MakeSpan(words));
  if (!words.empty() && words[0] == "help" && FindCommand(app, "help") == nullptr) {
    std::rotate(words.begin(), words.begin() + 1, words.end());
    words.back() = "--help";
  }
  if (words.size() == 1 && words[0] == kCompletion) return BashCompletion(app);
  if (words.size() == 1 && words[0] == kManOptions) return ManOptions(app);
  if (std::string odd = OddValue(app, words); !odd.empty()) return absl::InvalidArgumentError(odd);
  MarkOddWords(absl::MakeSpan(words));
  std::reverse(words.begin(), words.end());  // as CLI11 wants them
  std::string objection;
  try {
    app.allow_extras()->parse(words);
  } catch (const CLI::CallForVersion& version) {
    return absl::StrCat(version.what(), "\n");
  } catch (const CLI::CallForHelp&) {
    return HelpText(InnermostCommand(app));
  } catch (const CLI::ParseError& error) {
    objection = Objection(app, error);
  }
  if (std::string unplaced = Unplaced(app); !unplaced.empty()) objection = unplaced;
  if (!objection.empty()) return absl::InvalidArgumentError(objection);
  return std::nullopt;
}

std::string CommandOf(const CLI::App& app) {
  const std::string path = PathOf(InnermostCommand(app));
  return path.size() > app.get_name().size() ? path.substr(app.get_name().size() + 1) : "";
}

std::string HelpText(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  const std::string above = parent == nullptr ? "" : absl::StrCat(PathOf(*parent), " ");
  const auto [summary, more] = SummaryAndMore(app);
  Rows commands;
  for (const CLI::App* command : CommandsOf(app)) {
    commands.emplace_back(Usage(*command), SummaryAndMore(*command).first);
  }
  std::string text = absl::StrCat("usage: ", above, Usage(app), " [OPTION]...\n\n",
                                  Wrapped(summary, 0), more.empty() ? "" : "\n\n",
                                  Wrapped(more, 0), "\n", Table("Commands", commands));
  for (const CLI::App* each = &app; each != nullptr; each = each->get_parent()) {
    absl::StrAppend(&text, OptionTables(*each));
  }
  const std::string footer = app.get_footer();
  return footer.empty() ? text : absl::StrCat(text, "\n", Wrapped(footer, 0), "\n");
}

std::string ManOptions(const CLI::App& app) {
  std::vector<ManEntry> entries;
  CollectEntries(app, "", &entries);
  std::string text, group = "Options";
  for (const ManEntry& entry : entries) {
    if (entry.group != group) absl::StrAppend(&text, ".SS ", group = entry.group, "\n");
    const std::string commands = absl::StrJoin(entry.commands, ", ");
    absl::StrAppend(&text, ".TP\n", entry.head, commands.empty() ? "" : " (", commands,
                    commands.empty() ? "\n" : ")\n", Roff(entry.text));
  }
  return text;
}

std::string BashCompletion(const CLI::App& app) {
  std::vector<std::string> names, value_cases;
  CollectValueCases(app, &names, &value_cases);
  std::string command_cases;
  AppendCommandCases(app, "", &command_cases);
  const std::string function = absl::StrCat("_", absl::StrReplaceAll(app.get_name(), {{"-", "_"}}));
  return absl::StrCat(
      function, "() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  local command='' words options files i\n"
      "  if [[ $word == = ]]; then\n    word=''\n"
      "  elif [[ $previous == = ]]; then\n    previous=${COMP_WORDS[COMP_CWORD-2]}\n  fi\n"
      "  case $previous in\n", absl::StrJoin(value_cases, ""), "  esac\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n    case ${COMP_WORDS[i]} in\n"
      "      ", names.empty() ? "=" : absl::StrJoin(names, " | "),
      ") ((i++)); [[ ${COMP_WORDS[i]} == = ]] && ((i++)) ;;\n"
      "      -*) ;;\n      *) command+=\" ${COMP_WORDS[i]}\" ;;\n    esac\n  done\n"
      "  case $command in\n", command_cases, "  esac\n"
      "  [[ $word == -* ]] && words=$options files=\n"
      "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\"\n"
      "    [[ -z $files ]] || compgen -f -- \"$word\")\n}\n"
      "complete -F ", function, " ", app.get_name(), "\n");
}

}  // namespace mpckdc::command_line
