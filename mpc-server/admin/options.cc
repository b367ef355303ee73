// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/admin/options.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "mpc-server/admin/exit_code.h"
#include "mpc-server/admin/names.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/key/string_to_key.h"

namespace mpckdc::admin {
namespace {

struct CommandSpec {
  const char* name;
  const char* operand;  // shown in the usage line
  size_t min_operands;
  size_t max_operands;
  std::vector<const char*> options;  // beside those for every command
  const char* summary;
};

struct OptionSpec {
  const char* name;
  const char* value;  // nullptr: takes none
  const char* summary;
};

const std::vector<CommandSpec>& Commands() {
  static const auto* commands = new std::vector<CommandSpec>{
      {"init-realm", "", 0, 0, {}, "make the three servers ready for the realm; harmless again"},
      {"enroll",
       "[PRINCIPAL]",
       0,
       1,
       {"--password-stdin", "--keytab", "--all", "--replace", "--delete-old", "--no-create",
        "--enctype", "--class", "--gate"},
       "share a password's or keytab's keys between the servers"},
      {"randkey",
       "PRINCIPAL",
       1,
       1,
       {"--delete-old", "--no-create", "--enctype", "--class", "--gate"},
       "let the servers draw keys that nobody ever sees"},
      {"delete",
       "[PRINCIPAL]",
       0,
       1,
       {"--old", "--all", "--force"},
       "delete a principal and its keys, or keys no longer used"},
      {"list", "[PRINCIPAL]", 0, 1, {"--staged"}, "list the keys on the servers"},
      {"verify",
       "[PRINCIPAL]",
       0,
       1,
       {},
       "recompute on shares that each key's records belong together"},
      {"policy", "PRINCIPAL", 1, 1, {"--gate"}, "show or set what must precede a ticket"},
      {"status", "", 0, 0, {}, "show the three servers"},
      {"doctor", "", 0, 0, {"--fix"}, "look for everything that is wrong"},
      {"audit",
       "{verify FILE... | reconcile A B C | show FILE...}",
       1,
       limits::kMaxAuditFiles,
       {"--head", "--since", "--until", "--principal"},
       "check one server's audit log, compare three, or show what concerns a principal"},
      {"test-login",
       "PRINCIPAL",
       1,
       1,
       {"--password-stdin", "--kinit"},
       "log in by kinit into a private cache and say how long it took"},
  };
  return *commands;
}

constexpr OptionSpec kOptions[] = {
    {"--config", "FILE", "configuration (default /etc/mpc-kdc/admin.toml or $MPC_ADMIN_CONFIG)"},
    {"--json", nullptr, "print JSON instead of tables"},
    {"--quiet", nullptr, "no progress"},
    {"--help", nullptr, "explain; after a command, that command"},
    {"--version", nullptr, "print the version"},
    {"--password-stdin", nullptr, "read the password from the first line of standard input"},
    {"--keytab", "FILE", "take the keys from a keytab"},
    {"--all", nullptr, "every principal: of the keytab (enroll), of the servers (delete --old)"},
    {"--replace", nullptr, "give new keys to a principal that has protected ones"},
    {"--delete-old", nullptr, "then delete the replaced keys from the servers"},
    {"--no-create", nullptr, "do not add the principal to the KDC's database"},
    {"--enctype", "NAME,...", "only these enctypes (the default: the realm's); may be repeated"},
    {"--class", "CLASS", "user: logs in; service: gets tickets (the default: as the name says)"},
    {"--gate", "GATE", "timestamp, kdc-trusted or none"},
    {"--old", nullptr, "only keys that the KDC's database refers to no more"},
    {"--force", nullptr, "also a principal that the realm needs (krbtgt, kadmin)"},
    {"--staged", nullptr, "keys of unfinished transactions instead"},
    {"--fix", nullptr, "delete keys to which nothing refers"},
    {"--kinit", "PROGRAM", "the kinit to run"},
    {"--head", "HASH", "verify: a line's hash, noted elsewhere, that must be in the chain"},
    {"--since", "TIME", "reconcile, show: from then on, as 2026-11-21 or 2026-11-21T16:00:00Z (UTC)"},
    {"--until", "TIME", "reconcile, show: up to then"},
    {"--principal", "NAME", "show: only what concerns this principal"},
};

constexpr const char* kForEveryCommand[] = {"--config", "--json", "--quiet", "--help", "--version"};

const CommandSpec* FindCommand(const std::string& name) {
  for (const CommandSpec& command : Commands()) {
    if (name == command.name) return &command;
  }
  return nullptr;
}

const OptionSpec* FindOption(const std::string& name) {
  for (const OptionSpec& option : kOptions) {
    if (name == option.name) return &option;
  }
  return nullptr;
}

bool ForEveryCommand(const std::string& name) {
  return std::find(std::begin(kForEveryCommand), std::end(kForEveryCommand), name) !=
         std::end(kForEveryCommand);
}

absl::Status Usage(absl::string_view what, absl::string_view command = "") {
  return Advise(absl::InvalidArgumentError(what),
                absl::StrCat("see mpc-admin ", command, command.empty() ? "" : " ", "--help"));
}

absl::Status SetValue(const std::string& name, const std::string& value, Options* options) {
  if (value.empty()) return Usage(absl::StrCat(name, ": empty"));
  if (name == "--config") options->config = value;
  if (name == "--keytab") options->keytab = value;
  if (name == "--kinit") options->kinit = value;
  if (name == "--head") options->head = value;
  if (name == "--since") options->since = value;
  if (name == "--until") options->until = value;
  if (name == "--principal") options->principal = value;
  if (name == "--enctype") {
    for (absl::string_view one : absl::StrSplit(value, ',')) {
      absl::StatusOr<int32_t> enctype = enroll::EnctypeFromName(one);
      if (!enctype.ok()) return Usage(enctype.status().message());
      options->enctypes.push_back(*enctype);
    }
  }
  if (name == "--class") {
    absl::StatusOr<v1::KeyClass> key_class = KeyClassFromName(value);
    if (!key_class.ok()) return Usage(key_class.status().message());
    options->key_class = *key_class;
  }
  if (name == "--gate") {
    absl::StatusOr<v1::Gate> gate = GateFromName(value);
    if (!gate.ok()) return Usage(gate.status().message());
    options->gate = *gate;
  }
  return absl::OkStatus();
}

// --name, --name VALUE or --name=VALUE; moves *index over what it took.
absl::Status TakeOption(absl::Span<const std::string> arguments, size_t* index,
                        std::vector<std::string>* given, Options* options) {
  const std::string& argument = arguments[*index];
  const size_t equals = argument.find('=');
  const std::string name = argument == "-h" ? "--help" : argument.substr(0, equals);
  const OptionSpec* option = FindOption(name);
  if (option == nullptr) return Usage(absl::StrCat("unknown option ", name));
  given->push_back(name);
  if (option->value == nullptr) {
    if (equals != std::string::npos) return Usage(absl::StrCat(name, " takes no value"));
    options->flags.insert(name);
    return absl::OkStatus();
  }
  if (equals != std::string::npos) return SetValue(name, argument.substr(equals + 1), options);
  if (*index + 1 == arguments.size()) {
    return Usage(absl::StrCat(name, " needs a value: ", name, " ", option->value));
  }
  return SetValue(name, arguments[++*index], options);
}

absl::Status CheckAgainstCommand(const std::vector<std::string>& given, const Options& options) {
  const CommandSpec* command = FindCommand(options.command);
  if (command == nullptr) {
    return Usage(absl::StrCat("unknown command \"", options.command, "\""));
  }
  for (const std::string& name : given) {
    const bool known = ForEveryCommand(name) ||
                       std::any_of(command->options.begin(), command->options.end(),
                                   [&](const char* option) { return name == option; });
    if (!known) return Usage(absl::StrCat(options.command, " has no option ", name),
                             options.command);
  }
  if (options.operands.size() > command->max_operands) {
    return Usage(absl::StrCat(options.command, ": one argument too many: \"",
                              options.operands.back(), "\""),
                 options.command);
  }
  if (options.operands.size() < command->min_operands) {
    return Usage(absl::StrCat(options.command, ": name a ", command->operand), options.command);
  }
  return absl::OkStatus();
}

std::string OptionLine(const OptionSpec& option) {
  const std::string name =
      option.value == nullptr ? option.name : absl::StrCat(option.name, " ", option.value);
  return absl::StrCat("  ", name, std::string(name.size() < 20 ? 20 - name.size() : 1, ' '),
                      option.summary, "\n");
}

}  // namespace

absl::StatusOr<Options> ParseOptions(absl::Span<const std::string> arguments) {
  Options options;
  std::vector<std::string> given;
  bool only_operands = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (!only_operands && argument == "--") {
      only_operands = true;
    } else if (!only_operands && argument.size() > 1 && argument[0] == '-') {
      if (absl::Status s = TakeOption(arguments, &i, &given, &options); !s.ok()) return s;
    } else if (options.command.empty()) {
      options.command = argument;
    } else {
      options.operands.push_back(argument);
    }
  }
  options.help = options.Has("--help") || options.command == "help";
  options.version = options.Has("--version");
  if (options.help || options.version) return options;
  if (options.command.empty()) return Usage("no command given");
  if (absl::Status s = CheckAgainstCommand(given, options); !s.ok()) return s;
  return options;
}

std::string HelpText() {
  std::string text =
      "usage: mpc-admin COMMAND [OPTION]... [PRINCIPAL]\n\n"
      "Administers the keys that three MPC servers hold in shares for a Kerberos realm.\n\n";
  for (const CommandSpec& command : Commands()) {
    const std::string usage = absl::StrCat(command.name, " ", command.operand);
    absl::StrAppend(&text, "  ", usage, std::string(24 - std::min<size_t>(23, usage.size()), ' '),
                    command.summary, "\n");
  }
  absl::StrAppend(&text, "\nOptions of every command:\n");
  for (const char* name : kForEveryCommand) absl::StrAppend(&text, OptionLine(*FindOption(name)));
  absl::StrAppend(&text,
                  "\nExit status: 0 done, 1 something wrong was found, 2 bad command line or\n"
                  "configuration, 3 a server, the KDB command or the KDC did not answer, 4\n"
                  "refused, 5 inconsistent (run mpc-admin doctor), 6 wrong password. See mpc-admin(8).\n");
  return text;
}

std::string HelpText(const std::string& name) {
  const CommandSpec* command = FindCommand(name);
  if (command == nullptr) return "";
  std::string text = absl::StrCat("usage: mpc-admin ", command->name, " [OPTION]... ",
                                  command->operand, "\n\n  ", command->summary, "\n\n");
  for (const char* option : command->options) {
    absl::StrAppend(&text, OptionLine(*FindOption(option)));
  }
  for (const char* option : kForEveryCommand) {
    absl::StrAppend(&text, OptionLine(*FindOption(option)));
  }
  return text;
}

}  // namespace mpckdc::admin
