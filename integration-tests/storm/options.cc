// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/options.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "integration-tests/storm/kerberos.h"
#include "mpc-server/base/command_line.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/base/version.h"

namespace mpckdc::storm {
namespace {

using command_line::AddFlag;
using command_line::Refuse;
using command_line::Setter;
using command_line::ToList;
using command_line::ToNumber;
using command_line::ToText;
using Text = absl::string_view;

constexpr double kLeastRate = 1e-6;  // logins per second

// "0.1", or "10%".
Setter ToShare(double* to) {
  return [to](Text text) -> absl::Status {
    Text number = text;
    const double factor = absl::ConsumeSuffix(&number, "%") ? 0.01 : 1;
    double share = 0;
    if (!absl::SimpleAtod(number, &share) || !(share >= 0) || share * factor > 1) {
      return Refuse(text, "a share from 0 to 1, or 0% to 100%");
    }
    *to = share * factor;
    return absl::OkStatus();
  };
}

Setter ToDuration(absl::Duration* to, absl::Duration least = absl::Milliseconds(1)) {
  return [to, least](Text text) -> absl::Status {
    if (!absl::ParseDuration(text, to) || *to < least || *to > limits::kMaxDuration) {
      return Refuse(text, "a duration with its unit, as 30s or 250ms");
    }
    return absl::OkStatus();
  };
}

Setter ToEnctype(int32_t* to) {
  return [to](Text text) {
    absl::StatusOr<int32_t> enctype = EnctypeByName(text);
    if (enctype.ok()) *to = *enctype;
    return enctype.status();
  };
}

Setter ToProcesses(std::vector<WatchedProcess>* to) {
  return [to](Text text) -> absl::Status {
    const std::pair<Text, Text> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
    WatchedProcess process{std::string(parts.first)};
    if (process.name.empty() || !absl::SimpleAtoi(parts.second, &process.pid) || process.pid <= 0) {
      return Bad("--pid \"", text, "\" is not NAME=PID, as kdc=1234");
    }
    to->push_back(std::move(process));
    return absl::OkStatus();
  };
}

// The first line of a file; "-" is standard input.
absl::Status ReadPassword(Text file, Options& o) {
  FILE* in = file == "-" ? stdin : fopen(std::string(file).c_str(), "re");
  if (in == nullptr) return Bad(file, ": ", strerror(errno));
  o.password.clear();
  for (int c = getc(in); c != EOF && c != '\n'; c = getc(in)) {
    o.password.push_back(static_cast<uint8_t>(c));
  }
  if (in != stdin) fclose(in);
  o.has_password = true;
  return absl::OkStatus();
}

// One group of options in help and manual.
struct Group {
  void Value(const char* name, const char* placeholder, const char* description, Setter set) {
    command_line::AddOption(app, name, placeholder, description, std::move(set)).group(title);
  }
  void Flag(const char* name, const char* description, bool* to) {
    AddFlag(app, name, description, to).group(title);
  }

  CLI::App& app;
  const char* title;
};

void AddTarget(Group g, Options& o) {
  g.Value("--kdc", "ADDRESS:PORT", "the KDC; a number, not a name", ToText(&o.kdc));
  g.Value("--realm", "REALM", "its realm", ToText(&o.realm));
  g.Flag("--tcp", "TCP instead of UDP", &o.tcp);
  g.Flag("--i-own-this-kdc", "it is neither loopback nor in a test's network namespace",
         &o.i_own_this_kdc);
  g.Value("--users", "PATTERN", "users by number: user%06d", ToText(&o.users));
  g.Value("--first", "N", "the first number (0)", ToNumber(&o.first, 0, 1'000'000'000'000));
  g.Value("--number", "N", "how many users", ToNumber(&o.number, 1, limits::kMaxUsers));
  g.Value("--password-file", "FILE",
          "first line: the password of PATTERN's users; - is standard input",
          [&o](Text file) { return ReadPassword(file, o); });
  g.Value("--keytab", "FILE", "users and keys from a keytab", ToText(&o.keytab));
  g.Value("--csv", "FILE", "users from lines name,password", ToText(&o.csv));
  g.Value("--enctype", "NAME", "enctype of the users' keys: aes128-gcm, aes256-cts, 17",
          ToEnctype(&o.enctype));
}

void AddLogin(Group g, Options& o) {
  g.Value("--wrong-passwords", "SHARE", "share of logins with a wrong password (0)",
          ToShare(&o.wrong_share));
  g.Flag("--two-step", "first an AS-REQ without pre-authentication", &o.two_step);
  g.Flag("--no-enc-pa-rep", "do not ask for the request's checksum in the reply",
         &o.no_enc_pa_rep);
  g.Value("--tgs", "N", "service tickets after each login (0)",
          ToNumber(&o.tgs, 0, limits::kMaxTgsPerLogin));
  g.Value("--service", "NAME", "whose tickets", ToText(&o.service));
  g.Value("--session-enctypes", "LIST",
          "asked for besides that of the users (aes256-cts,aes128-cts)",
          ToList(&o.session_enctypes, ToEnctype));
  g.Value("--resend-after", "TIME", "then doubling (1s)", ToDuration(&o.resend_after));
  g.Value("--resends", "N", "then it is lost (3)", ToNumber(&o.resends, 0, limits::kMaxResends));
  g.Flag("--again-when-unavailable", "so also after the answer that the service is unavailable",
         &o.again_when_unavailable);
  g.Value("--check", "SHARE", "share of logins whose replies are decrypted and looked into (1)",
          ToShare(&o.check));
}

void AddPace(Group g, Options& o) {
  g.Value("--in-flight", "N", "logins at a time: closed loop (16); with --rate at most (8192)",
          ToNumber(&o.in_flight, 1, limits::kMaxInFlight));
  g.Value("--rate", "R", "logins per second: open loop, Poisson",
          ToNumber(&o.rate, kLeastRate, limits::kMaxRate));
  g.Value("--ramp", "R", "from --rate to this in steps of --duration, until the KDC falls behind",
          ToNumber(&o.ramp_to, kLeastRate, limits::kMaxRate));
  g.Value("--ramp-steps", "N", "how many (10)",
          ToNumber(&o.ramp_steps, 2, limits::kMaxRampSteps));
  g.Value("--knee-p99", "TIME", "a step with a larger p99 is beyond the knee (250ms)",
          ToDuration(&o.knee_p99));
  g.Value("--duration", "TIME", "how long (10s)", ToDuration(&o.duration));
  g.Value("--count", "N", "how many logins, instead", ToNumber(&o.count, 1, 1'000'000'000'000));
  g.Value("--warm-up", "TIME", "before measuring (0)",
          ToDuration(&o.warm_up, absl::ZeroDuration()));
  g.Value("--threads", "N", "threads of this program (1)",
          ToNumber(&o.threads, 1, limits::kMaxThreads));
  g.Value("--seed", "N", "seed of all that is drawn (1)",
          ToNumber(&o.seed, 0, 1'000'000'000'000'000));
}

void AddOutput(Group g, Options& o) {
  g.Value("--pid", "NAME=PID", "report this process's CPU per 1,000 logins; repeatable",
          ToProcesses(&o.processes));
  g.Value("--fail-if", "LIMIT", "as p99>250ms: exit status 1; repeatable", [&o](Text text) {
    o.fail_if.emplace_back(text);
    return absl::OkStatus();
  });
  g.Value("--json", "FILE", "the report; - is standard output", ToText(&o.json));
  g.Value("--log", "FILE", "a line for each login that ends", ToText(&o.log));
  g.Value("--plot", "FILE", "latency histogram and throughput over time, .svg or .png",
          ToText(&o.plot));
}

void AddJobs(Group g, Options& o) {
  g.Value("--servers", "LIST", "the three servers, ADDRESS:PORT,...", ToList(&o.servers, ToText));
  g.Value("--ca", "FILE", "the realm's certificate authority", ToText(&o.ca));
  g.Value("--certificate", "FILE", "a certificate of the role kdc", ToText(&o.certificate));
  g.Value("--key", "FILE", "its key", ToText(&o.key));
  g.Value("--handles", "FILE", "what mpc-admin list --json printed", ToText(&o.handles));
  g.Value("--clients", "N", "as how many KDC processes (1)", ToNumber(&o.clients, 1, 64));
  g.Value("--ticket-bytes", "N", "plaintext of a ticket (166)",
          ToNumber(&o.ticket_bytes, 1, limits::kMaxPlaintextBytes));
  g.Value("--reply-bytes", "N", "plaintext of a reply (272)",
          ToNumber(&o.reply_bytes, 1, limits::kMaxPlaintextBytes));
  g.Value("--timeout", "TIME", "how long one job may take (2s)", ToDuration(&o.timeout));
}

absl::Status CheckLogins(const Options& o) {
  if (o.kdc.empty()) return Bad("--kdc ADDRESS:PORT is missing: whom to load");
  if (o.tgs > 0 && o.service.empty()) return Bad("--tgs needs --service NAME: whose tickets");
  if (o.ramp_to > 0 && o.rate == 0) return Bad("--ramp needs --rate, where it begins");
  if (o.ramp_to > 0 && o.ramp_to <= o.rate) return Bad("--ramp must be above --rate");
  if (o.ramp_to > 0 && o.count > 0) return Bad("--ramp and --count do not go together");
  return absl::OkStatus();
}

absl::Status CheckJobs(const Options& o) {
  if (o.servers.empty() || o.ca.empty() || o.certificate.empty() || o.key.empty() ||
      o.handles.empty()) {
    return Bad("jobs needs --servers, --ca, --certificate, --key and --handles");
  }
  if (!o.log.empty()) return Bad("--log is of logins, not of jobs");
  if (o.servers.size() != 3) return Bad("--servers: three servers, with commas between");
  if (o.rate > 0 || o.ramp_to > 0) return Bad("jobs has a closed loop only: --in-flight");
  if (o.check < limits::kMinJobsSample) return Bad("jobs compares at least 1 % with the oracle");
  return absl::OkStatus();
}

absl::Status CheckTogether(Options& o) {
  if (o.realm.empty()) return Bad("--realm REALM is missing");
  if (o.enctype == 0) return Bad("--enctype NAME is missing: of the users' keys");
  if (!o.users.empty() && !o.has_password) return Bad("--users needs --password-file");
  if (!o.plot.empty() && !absl::EndsWith(o.plot, ".svg") && !absl::EndsWith(o.plot, ".png")) {
    return Bad("--plot ", o.plot, ": a file .svg or .png");
  }
  if (o.in_flight == 0) o.in_flight = o.rate > 0 ? limits::kDefaultOpenLoopInFlight : 16;
  if (o.in_flight < static_cast<size_t>(o.threads)) return Bad("fewer --in-flight than --threads");
  return o.mode == Mode::kJobs ? CheckJobs(o) : CheckLogins(o);
}

}  // namespace

absl::StatusOr<Options> ParseOptions(absl::Span<const std::string> arguments) {
  Options o;
  o.session_enctypes = {ENCTYPE_AES256_CTS_HMAC_SHA1_96, ENCTYPE_AES128_CTS_HMAC_SHA1_96};
  CLI::App app(
      "logs users in at a KDC, many at a time, and measures\n"
      "Or gives login jobs to three mpc-servers as a KDC does. See login-storm(8).",
      "login-storm");
  app.fallthrough();
  app.set_version_flag("--version", "login-storm (mpc-kdc) " MPCKDC_VERSION);
  app.add_subcommand("jobs", "give login jobs to three mpc-servers as a KDC does");
  AddTarget({app, "Whom to load, and who logs in"}, o);
  AddLogin({app, "What a login is"}, o);
  AddPace({app, "How fast and how long"}, o);
  AddOutput({app, "Output"}, o);
  AddJobs({app, "login-storm jobs"}, o);
  ASSIGN_OR_RETURN(std::optional<std::string> answer, command_line::Parse(app, arguments));
  o.answer = answer.value_or("");
  if (!o.answer.empty()) return o;
  if (command_line::CommandOf(app) == "jobs") o.mode = Mode::kJobs;
  RETURN_IF_ERROR(CheckTogether(o));
  return o;
}

}  // namespace mpckdc::storm
