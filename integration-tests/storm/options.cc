// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/options.h"

#include <getopt.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "integration-tests/storm/crypto.h"

namespace mpckdc::storm {
namespace {

using Text = absl::string_view;
using Setter = std::function<absl::Status(Text)>;

absl::Status Bad(Text what) { return absl::InvalidArgumentError(what); }

struct Option {
  const char* name;
  const char* value;  // what to call it; null: none
  const char* help;
  Setter set;
};

Setter ToText(std::string& to) {
  return [&to](Text text) {
    to = std::string(text);
    return absl::OkStatus();
  };
}

Setter ToTrue(bool& to, bool value = true) {
  return [&to, value](Text) {
    to = value;
    return absl::OkStatus();
  };
}

template <class Number>
Setter ToNumber(Number& to, double least, double most) {
  return [&to, least, most](Text text) -> absl::Status {
    int64_t number = 0;
    if (!absl::SimpleAtoi(text, &number) || static_cast<double>(number) < least ||
        static_cast<double>(number) > most) {
      return Bad(absl::StrCat("\"", text, "\" is no whole number from ", least, " to ", most));
    }
    to = static_cast<Number>(number);
    return absl::OkStatus();
  };
}

Setter ToRate(double& to) {
  return [&to](Text text) -> absl::Status {
    if (!absl::SimpleAtod(text, &to) || !(to > 0) || to > limits::kMaxRate) {
      return Bad(absl::StrCat("\"", text, "\" is no number of logins per second up to ",
                              limits::kMaxRate));
    }
    return absl::OkStatus();
  };
}

// "0.1", or "10%".
Setter ToShare(double& to) {
  return [&to](Text text) -> absl::Status {
    Text number = text;
    const double factor = absl::ConsumeSuffix(&number, "%") ? 0.01 : 1;
    double share = 0;
    if (!absl::SimpleAtod(number, &share) || !(share >= 0) || share * factor > 1) {
      return Bad(absl::StrCat("\"", text, "\" is no share from 0 to 1, or 0% to 100%"));
    }
    to = share * factor;
    return absl::OkStatus();
  };
}

Setter ToDuration(absl::Duration& to, absl::Duration least = absl::Milliseconds(1)) {
  return [&to, least](Text text) -> absl::Status {
    if (!absl::ParseDuration(text, &to) || to < least || to > limits::kMaxDuration) {
      return Bad(absl::StrCat("\"", text, "\" is no duration with its unit, as 30s or 250ms"));
    }
    return absl::OkStatus();
  };
}

Setter ToEnctype(int32_t& to) {
  return [&to](Text text) {
    absl::StatusOr<int32_t> enctype = EnctypeByName(text);
    if (enctype.ok()) to = *enctype;
    return enctype.status();
  };
}

Setter ToEnctypes(std::vector<int32_t>& to) {
  return [&to](Text text) -> absl::Status {
    to.clear();
    for (const Text name : absl::StrSplit(text, absl::ByAnyChar(" ,"), absl::SkipEmpty())) {
      absl::StatusOr<int32_t> enctype = EnctypeByName(name);
      if (!enctype.ok()) return enctype.status();
      to.push_back(*enctype);
    }
    return absl::OkStatus();
  };
}

// The first line of a file; "-" is standard input.
absl::Status ReadPassword(Text file, Options& o) {
  FILE* in = file == "-" ? stdin : fopen(std::string(file).c_str(), "re");
  if (in == nullptr) return Bad(absl::StrCat(file, ": ", strerror(errno)));
  for (int c = getc(in); c != EOF && c != '\n'; c = getc(in)) {
    o.password.push_back(static_cast<uint8_t>(c));
  }
  if (in != stdin) fclose(in);
  o.has_password = true;
  return absl::OkStatus();
}

std::vector<Option> TargetOptions(Options& o) {
  return {
      {"kdc", "ADDRESS:PORT", "the KDC; a number, not a name", ToText(o.kdc)},
      {"realm", "REALM", "its realm", ToText(o.realm)},
      {"tcp", nullptr, "TCP instead of UDP", ToTrue(o.tcp)},
      {"i-own-this-kdc", nullptr, "it is neither loopback nor in a test's network namespace",
       ToTrue(o.i_own_this_kdc)},
      {"users", "PATTERN", "users by number: user%06d", ToText(o.users)},
      {"first", "N", "the first number (0)", ToNumber(o.first, 0, 1e12)},
      {"number", "N", "how many users", ToNumber(o.number, 1, limits::kMaxUsers)},
      {"password-file", "FILE", "first line: the password of PATTERN's users; - is standard input",
       [&o](Text file) { return ReadPassword(file, o); }},
      {"keytab", "FILE", "users and keys from a keytab", ToText(o.keytab)},
      {"csv", "FILE", "users from lines name,password", ToText(o.csv)},
      {"enctype", "NAME", "of the users' keys: aes128-gcm, aes256-cts, 17", ToEnctype(o.enctype)},
  };
}

std::vector<Option> LoginOptions(Options& o) {
  return {
      {"wrong-passwords", "SHARE", "of logins with a wrong password (0)", ToShare(o.wrong_share)},
      {"two-step", nullptr, "first an AS-REQ without pre-authentication", ToTrue(o.two_step)},
      {"no-enc-pa-rep", nullptr, "do not ask for the request's checksum in the reply",
       ToTrue(o.enc_pa_rep, false)},
      {"tgs", "N", "service tickets after each login (0)",
       ToNumber(o.tgs, 0, limits::kMaxTgsPerLogin)},
      {"service", "NAME", "whose tickets", ToText(o.service)},
      {"session-enctypes", "LIST", "asked for besides that of the users (aes256-cts,aes128-cts)",
       ToEnctypes(o.session_enctypes)},
      {"in-flight", "N", "logins at a time: closed loop (16); with --rate at most (8192)",
       ToNumber(o.in_flight, 1, limits::kMaxInFlight)},
      {"rate", "R", "logins per second: open loop, Poisson", ToRate(o.rate)},
      {"ramp", "R", "from --rate to this in steps of --duration, until the KDC falls behind",
       ToRate(o.ramp_to)},
      {"ramp-steps", "N", "how many (10)", ToNumber(o.ramp_steps, 2, limits::kMaxRampSteps)},
      {"knee-p99", "TIME", "a step with a larger p99 is beyond the knee (250ms)",
       ToDuration(o.knee_p99)},
      {"duration", "TIME", "how long (10s)", ToDuration(o.duration)},
      {"count", "N", "how many logins, instead", ToNumber(o.count, 1, 1e12)},
      {"warm-up", "TIME", "before measuring (0)", ToDuration(o.warm_up, absl::ZeroDuration())},
      {"threads", "N", "of this program (1)", ToNumber(o.threads, 1, limits::kMaxThreads)},
      {"seed", "N", "of what is drawn (1)", ToNumber(o.seed, 0, 1e15)},
      {"resend-after", "TIME", "then doubling (1s)", ToDuration(o.resend_after)},
      {"resends", "N", "then it is lost (3)", ToNumber(o.resends, 0, limits::kMaxResends)},
      {"check", "SHARE", "of logins whose replies are decrypted and looked into (1)",
       ToShare(o.check)},
  };
}

std::vector<Option> OutputOptions(Options& o) {
  return {
      {"pid", "NAME=PID", "report this process's CPU per 1,000 logins; repeatable",
       [&o](Text text) {
         absl::StatusOr<WatchedProcess> process = ParseWatchedProcess(text);
         if (process.ok()) o.processes.push_back(*std::move(process));
         return process.status();
       }},
      {"fail-if", "LIMIT", "as p99>250ms: exit status 1; repeatable",
       [&o](Text text) {
         o.fail_if.emplace_back(text);
         return absl::OkStatus();
       }},
      {"json", "FILE", "the report; - is standard output", ToText(o.json)},
      {"plot", "FILE", "latency histogram and throughput over time, .svg or .png", ToText(o.plot)},
      {"help", nullptr, "this text", [&o](Text) { o.mode = Mode::kHelp; return absl::OkStatus(); }},
      {"version", nullptr, "the version",
       [&o](Text) { o.mode = Mode::kVersion; return absl::OkStatus(); }},
  };
}

std::vector<Option> JobsOptions(Options& o) {
  return {
      {"servers", "LIST", "jobs: the three servers, ADDRESS:PORT,...",
       [&o](Text text) -> absl::Status {
         o.servers = absl::StrSplit(text, ',', absl::SkipEmpty());
         if (o.servers.size() != 3) return Bad("three servers, with commas between");
         return absl::OkStatus();
       }},
      {"ca", "FILE", "jobs: the realm's certificate authority", ToText(o.ca)},
      {"certificate", "FILE", "jobs: a certificate of the role kdc", ToText(o.certificate)},
      {"key", "FILE", "jobs: its key", ToText(o.key)},
      {"handles", "FILE", "jobs: what mpc-admin list --json printed", ToText(o.handles)},
      {"clients", "N", "jobs: as how many KDC processes (1)", ToNumber(o.clients, 1, 64)},
      {"ticket-bytes", "N", "jobs: plaintext of a ticket (166)",
       ToNumber(o.ticket_bytes, 1, limits::kMaxPlaintextBytes)},
      {"reply-bytes", "N", "jobs: plaintext of a reply (272)",
       ToNumber(o.reply_bytes, 1, limits::kMaxPlaintextBytes)},
      {"timeout", "TIME", "jobs: of one job (2s)", ToDuration(o.timeout)},
  };
}

std::vector<Option> AllOptions(Options& o) {
  std::vector<Option> all;
  for (std::vector<Option> (*part)(Options&) :
       {TargetOptions, LoginOptions, OutputOptions, JobsOptions}) {
    for (Option& option : part(o)) all.push_back(std::move(option));
  }
  return all;
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
  if (o.rate > 0 || o.ramp_to > 0) return Bad("jobs has a closed loop only: --in-flight");
  if (o.check < limits::kMinJobsSample) return Bad("jobs compares at least 1 % with the oracle");
  return absl::OkStatus();
}

absl::Status CheckTogether(Options& o) {
  if (o.realm.empty()) return Bad("--realm REALM is missing");
  if (o.enctype == 0) return Bad("--enctype NAME is missing: of the users' keys");
  if (!o.users.empty() && !o.has_password) return Bad("--users needs --password-file");
  if (!o.plot.empty() && !absl::EndsWith(o.plot, ".svg") && !absl::EndsWith(o.plot, ".png")) {
    return Bad(absl::StrCat("--plot ", o.plot, ": a file .svg or .png"));
  }
  if (o.in_flight == 0) o.in_flight = o.rate > 0 ? limits::kDefaultOpenLoopInFlight : 16;
  if (o.in_flight < static_cast<size_t>(o.threads)) return Bad("fewer --in-flight than --threads");
  return o.mode == Mode::kJobs ? CheckJobs(o) : CheckLogins(o);
}

}  // namespace

std::string Usage() {
  Options unused;
  std::string text =
      "login-storm [OPTION]...       logs users in at a KDC, many at a time, and measures\n"
      "login-storm jobs [OPTION]...  gives login jobs to three mpc-servers as a KDC does\n\n";
  for (const Option& option : AllOptions(unused)) {
    const std::string name =
        absl::StrCat("--", option.name, option.value == nullptr ? "" : " ",
                     option.value == nullptr ? "" : option.value);
    absl::StrAppend(&text, "  ", name, std::string(name.size() < 26 ? 26 - name.size() : 1, ' '),
                    option.help, "\n");
  }
  return text + "\nSee login-storm(8).\n";
}

absl::StatusOr<Options> ParseOptions(int argc, char** argv) {
  Options o;
  o.session_enctypes = {ENCTYPE_AES256_CTS_HMAC_SHA1_96, ENCTYPE_AES128_CTS_HMAC_SHA1_96};
  if (argc > 1 && Text(argv[1]) == "jobs") {
    o.mode = Mode::kJobs;
    --argc;
    ++argv;
  }
  const std::vector<Option> options = AllOptions(o);
  std::vector<option> table;
  for (const Option& each : options) {
    const int argument = each.value == nullptr ? no_argument : required_argument;
    table.push_back({each.name, argument, nullptr, 0});
  }
  table.push_back({});
  opterr = 0;  // the texts are ours
  optind = 1;
  int which = 0;
  for (int c = 0; (c = getopt_long(argc, argv, ":", table.data(), &which)) != -1;) {
    if (c == ':') return Bad(absl::StrCat(argv[optind - 1], " needs a value"));
    if (c != 0) return Bad(absl::StrCat("no option ", argv[optind - 1], "; see --help"));
    const Option& given = options[static_cast<size_t>(which)];
    if (absl::Status s = given.set(optarg == nullptr ? "" : optarg); !s.ok()) {
      return Bad(absl::StrCat("--", given.name, ": ", s.message()));
    }
  }
  if (optind < argc) return Bad(absl::StrCat("\"", argv[optind], "\" is no option; see --help"));
  if (o.mode == Mode::kHelp || o.mode == Mode::kVersion) return o;
  if (absl::Status s = CheckTogether(o); !s.ok()) return s;
  return o;
}

}  // namespace mpckdc::storm
