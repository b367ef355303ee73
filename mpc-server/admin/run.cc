// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/admin/commands.h"
#include "mpc-server/admin/terminal.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc::admin {
namespace {

using Command = absl::StatusOr<ExitCode> (*)(Session&);

constexpr absl::Duration kKdbTimeout = absl::Seconds(120);  // a big realm's list, over ssh

const std::map<std::string, Command>& Commands() {
  static const std::map<std::string, Command> commands = {
      {"init-realm", InitRealmCommand}, {"enroll", EnrollCommand},   {"randkey", RandkeyCommand},
      {"delete", DeleteCommand},        {"list", ListCommand},       {"verify", VerifyCommand},
      {"policy", PolicyCommand},        {"status", StatusCommand},   {"doctor", DoctorCommand},
      {"test-login", TestLoginCommand}, {"readmit", ReadmitCommand}, {"gc", GcCommand},
      {"refresh", RefreshCommand},      {"catch-up", CatchUpCommand},
      {"top", TopCommand},              {"import-realm", ImportCommand},
      {"replace-party", ReplacePartyCommand}, {"rotate-krbtgt", RotateCommand},
  };
  return commands;
}

bool Colourful(int fd) { return isatty(fd) != 0 && std::getenv("NO_COLOR") == nullptr; }

int ReportError(const absl::Status& status, const std::string& command, Console& console) {
  const ExitCode code = ExitCodeOf(status);
  const std::string next = AdviceOf(status);
  console.Remark("mpc-admin", command.empty() ? "" : " ", command, ": ", status.message());
  console.Remark("  next: ", next);
  console.Print(nlohmann::json{
      {"error", std::string(status.message())}, {"next", next}, {"exit", static_cast<int>(code)}});
  return static_cast<int>(code);
}

absl::StatusOr<ExitCode> RunCommand(const Options& options, Environment& environment,
                                    Console& console) {
  if (absl::StartsWith(options.command, "audit ")) return AuditCommand(options, console);
  ASSIGN_OR_RETURN(
      AdminConfig config,
      LoadConfig(options.config.empty() ? environment.default_config : options.config));
  Session session(config, options, &environment, &console);
  return Commands().at(options.command)(session);
}

}  // namespace

int RunAdmin(absl::Span<const std::string> arguments, Environment& environment) {
  Console::Settings settings;
  settings.out_is_terminal = environment.out_is_terminal;
  settings.err_is_terminal = environment.err_is_terminal;
  settings.columns = environment.columns;
  absl::StatusOr<Options> options = ParseOptions(arguments);
  settings.quiet = options.ok() && options->quiet;
  // Who asked for JSON gets it also when something else on the command line is wrong.
  settings.json = options.ok() ? options->json : absl::c_linear_search(arguments, "--json");
  Console console(environment.out, environment.err, settings);
  if (!options.ok()) return ReportError(options.status(), "", console);
  if (options->answer.has_value()) {
    *environment.out << *options->answer;
    return 0;
  }
  absl::StatusOr<ExitCode> code = RunCommand(*options, environment, console);
  if (!code.ok()) return ReportError(code.status(), options->command, console);
  return static_cast<int>(*code);
}

Environment SystemEnvironment() {
  Environment environment;
  environment.out = &std::cout;
  environment.err = &std::cerr;
  environment.out_is_terminal = Colourful(STDOUT_FILENO);
  environment.err_is_terminal = isatty(STDERR_FILENO) != 0;
  environment.columns = TerminalColumns;
  const char* config = std::getenv("MPC_ADMIN_CONFIG");
  environment.default_config = config == nullptr ? kDefaultConfigFile : config;
  environment.dial = [](const AdminConfig& c, size_t triple) {
    return enroll::AdminServers::Dial(c.identity, c.realm, c.triples[triple]);
  };
  environment.kdb_program = [](const AdminConfig& c) {
    return KdbCommand(c.kdb_command, c.kdb_quote_arguments, kKdbTimeout);
  };
  environment.ask_password = AskPassword;
  environment.confirm = AskYes;
  environment.read_password = [] { return ReadPasswordLine(STDIN_FILENO); };
  return environment;
}

}  // namespace mpckdc::admin
