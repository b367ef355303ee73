// SPDX-License-Identifier: Apache-2.0
//
// mpc-server: one of the three servers that hold a Kerberos realm's keys as shares. Arguments and
// signals only; service/server.h is the server. Exit status: 0 stopped as asked, 1 could not start,
// 2 wrong arguments or configuration.
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/flags/usage_config.h"
#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/base/version.h"
#include "mpc-server/service/config.h"
#include "mpc-server/service/health_probe.h"
#include "mpc-server/service/log.h"
#include "mpc-server/service/sd_notify.h"
#include "mpc-server/service/server.h"
#include "mpc-server/service/tls13.h"
#include "mpc-server/service/tls_keys.h"

ABSL_FLAG(std::string, config, "", "the configuration file (TOML)");
ABSL_FLAG(bool, migrate, false,
          "bring the schema of [store] postgresql to this program's version, and exit");
ABSL_FLAG(std::string, migrate_as, "",
          "with --migrate: the connection string of the schema's owner, when [store] postgresql "
          "names a role that owns nothing; that role gets the rights it needs");
ABSL_FLAG(bool, check_config, false,
          "check the configuration and the files it names, print what is wrong, and exit");

ABSL_FLAG(std::string, health, "",
          "ask the server of this configuration, which runs on this machine: \"alive\", whether it "
          "answers; \"serves\", whether it serves logins; exit status 0: yes");

ABSL_FLAG(std::string, backup, "",
          "copy the share store into this folder, while the server runs, and exit");

namespace {

constexpr char kUsage[] =
    "holds one of three shares of a Kerberos realm's keys and computes with the two\n"
    "other servers on them.\n\n"
    "  mpc-server --config=FILE                 run in the foreground\n"
    "  mpc-server --config=FILE --check_config  check the configuration\n"
    "  mpc-server --config=FILE --backup=FOLDER copy the share store, also while it is in use\n"
    "  mpc-server --config=FILE --migrate       make or renew the schema in PostgreSQL\n"
    "  mpc-server --config=FILE --health=alive  does the running server answer; serves: logins\n"
    "  mpc-server --version\n\n"
    "Signals: TERM and INT stop it after the jobs under way; HUP opens the logs anew and\n"
    "reads the deny list, the certificate and the quotas again. (A renewed certificate is\n"
    "also found without it.)\n"
    "Option names may be written with '-' or '_'. See mpc-server(8).";

enum ExitCode { kStopped = 0, kFailed = 1, kUsageError = 2 };

// --check-config is --check_config.
void UseUnderscores(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string name(argv[i]);
    if (!absl::StartsWith(name, "--")) continue;
    for (char* c = argv[i] + 2; *c != '\0' && *c != '='; ++c) {
      if (*c == '-') *c = '_';
    }
  }
}

void SetUpFlags() {
  absl::SetProgramUsageMessage(kUsage);
  absl::FlagsUsageConfig usage;
  usage.contains_help_flags = [](absl::string_view file) {
    return absl::EndsWith(file, "mpc-server.cc");
  };
  usage.version_string = [] { return std::string("mpc-server " MPCKDC_VERSION "\n"); };
  absl::SetFlagsUsageConfig(usage);
}

int Fail(const absl::Status& status, ExitCode code) {
  fprintf(stderr, "mpc-server: %s\n", std::string(status.message()).c_str());
  return code;
}

// The signals are blocked before any thread starts: only this call sees them.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return signals;
}

void Notify(absl::string_view state) {
  if (absl::Status s = mpckdc::SdNotify(state); !s.ok()) {
    mpckdc::Log().warn("{}", mpckdc::Text(s));
  }
}

void ServeUntilStopped(mpckdc::Server& server, const sigset_t& signals) {
  Notify("READY=1");
  for (;;) {
    int number = 0;
    if (sigwait(&signals, &number) != 0) continue;
    if (number == SIGHUP) {
      server.Reload();
      continue;
    }
    mpckdc::Log().info("stopping ({})", number == SIGTERM ? "SIGTERM" : "SIGINT");
    Notify("STOPPING=1");
    server.Stop();
    return;
  }
}

// Before anything else: --check-config reads keys, too.
struct Hardening {
  bool no_core_dumps = mpckdc::DisableCoreDumps();
  std::string trace_warning = mpckdc::RemoveGrpcTrace();

  void Tell() const {
    if (!no_core_dumps) mpckdc::Log().warn("core dumps could not be turned off");
    if (!trace_warning.empty()) mpckdc::Log().warn("{}", trace_warning);
  }
};

int Run(const mpckdc::Config& config, const Hardening& hardening) {
  // Debian's abseil has its detector of deadlocks, for debugging, turned on: each lock would take
  // one of the whole process and remember an order.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const sigset_t signals = BlockSignals();
  umask(077);
  if (absl::Status s = mpckdc::RequireTls13(); !s.ok()) return Fail(s, kFailed);
  absl::Status log = mpckdc::StartLog({config.log.level, config.log.json, config.log.file});
  if (!log.ok()) return Fail(log, kFailed);
  hardening.Tell();
  if (absl::Status s = mpckdc::TlsLooksAtKeys(); !s.ok()) mpckdc::Log().warn("{}", mpckdc::Text(s));
  auto server = mpckdc::Server::Start(config);
  if (!server.ok()) {
    mpckdc::Log().error("cannot start: {}", mpckdc::Text(server.status()));
    if (!config.log.file.empty()) Fail(server.status(), kFailed);
    return kFailed;
  }
  ServeUntilStopped(**server, signals);
  return kStopped;
}

int RunProbe(const mpckdc::Config& config, const std::string& text) {
  const auto want = mpckdc::ParseHealth(text);
  if (!want.ok()) return Fail(want.status(), kUsageError);
  if (absl::Status s = mpckdc::RequireTls13(); !s.ok()) return Fail(s, kFailed);
  if (absl::Status s = mpckdc::ProbeHealth(config, *want); !s.ok()) return Fail(s, kFailed);
  printf("%s\n", text.c_str());
  return kStopped;
}

int RunMigrations(const mpckdc::Config& config) {
  const auto done = mpckdc::Server::Migrate(config, absl::GetFlag(FLAGS_migrate_as));
  if (!done.ok()) return Fail(done.status(), kFailed);
  printf("%s\n", done->c_str());
  return kStopped;
}

}  // namespace

int main(int argc, char** argv) {
  const Hardening hardening;
  UseUnderscores(argc, argv);
  SetUpFlags();
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  const std::string path = absl::GetFlag(FLAGS_config);
  if (rest.size() != 1 || path.empty()) {
    fprintf(stderr, "mpc-server: give --config=FILE and nothing else; --help says more\n");
    return kUsageError;
  }
  absl::StatusOr<mpckdc::Config> config = mpckdc::LoadConfig(path);
  if (!config.ok()) return Fail(config.status(), kUsageError);
  if (absl::GetFlag(FLAGS_check_config)) {
    if (absl::Status s = mpckdc::Server::Check(*config); !s.ok()) return Fail(s, kUsageError);
    printf("%s: good\n", path.c_str());
    return kStopped;
  }
  if (const std::string text = absl::GetFlag(FLAGS_health); !text.empty()) {
    return RunProbe(*config, text);
  }
  if (const std::string folder = absl::GetFlag(FLAGS_backup); !folder.empty()) {
    if (absl::Status s = mpckdc::Server::Backup(*config, folder); !s.ok()) return Fail(s, kFailed);
    printf("copied to %s; it opens with the key file of now, which is not in it\n", folder.c_str());
    return kStopped;
  }
  if (absl::GetFlag(FLAGS_migrate)) return RunMigrations(*config);
  return Run(*config, hardening);
}
