// SPDX-License-Identifier: Apache-2.0
//
// login-storm: loads a KDC with logins, or three mpc-servers with login jobs, checks what they
// answer and measures. See login-storm(8).
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "integration-tests/storm/login.h"
#include "integration-tests/storm/login_log.h"
#include "integration-tests/storm/options.h"
#include "integration-tests/storm/report.h"
#include "integration-tests/storm/run.h"
#include "integration-tests/storm/target.h"
#include "integration-tests/storm/users.h"
#include "kdc-plugin/client/mpc_client.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/key/enctype.h"
#include "mpc-server/key/message_format.h"

namespace mpckdc::storm {
namespace {

using nlohmann::json;

constexpr size_t kTimestampBytes = 28;  // PA-ENC-TS-ENC with microseconds of three bytes

// Ctrl-C ends a run early: what is in flight is waited for, and the report is of what was until
// then. A second one ends the program.
std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void OnInterrupt(int signal) {
  interrupted = true;
  std::signal(signal, SIG_DFL);
}

absl::StatusOr<RunResult> RunUntilInterrupted(const Options& o, Load& load, Control& control) {
  control.interrupted = &interrupted;
  std::signal(SIGINT, OnInterrupt);
  return Run(o, load, control);
}

// How the run was asked for.
json Setup(const Options& o, size_t users, const json& more) {
  json setup = {{"realm", o.realm}, {"enctype", EnctypeText(o.enctype)},
                {"users", users},   {"in_flight", o.in_flight},
                {"check", o.check}, {"warm_up_s", absl::ToDoubleSeconds(o.warm_up)}};
  setup.update(more);
  return setup;
}

json LoginsSetup(const Options& o) {
  return {{"kdc", o.kdc},
          {"transport", o.tcp ? "tcp" : "udp"},
          {"two_step", o.two_step},
          {"enc_pa_rep", !o.no_enc_pa_rep},
          {"tgs", o.tgs},
          {"wrong_passwords", o.wrong_share},
          {"loop", o.rate > 0 ? "open" : "closed"},
          {"rate", o.rate},
          {"threads", o.threads},
          {"seed", o.seed},
          {"resend_after_s", absl::ToDoubleSeconds(o.resend_after)},
          {"resends", o.resends}};
}

json JobsSetup(const Options& o, int32_t krbtgt_enctype) {
  return {{"servers", o.servers},
          {"krbtgt_enctype", EnctypeText(krbtgt_enctype)},
          {"clients", o.clients},
          {"ticket_bytes", o.ticket_bytes},
          {"reply_bytes", o.reply_bytes}};
}

// Keystream blocks and tag or checksum blocks of one login (doc/enctype.md); under users' keys of
// enctypes 17 to 20 those of CBC too. Their HMACs' compressions depend on the request's length.
json BlocksJson(const Options& o) {
  const size_t open = BlocksOf(kZeroBytes + kTimestampBytes);
  const size_t ticket = BlocksOf(kZeroBytes + o.ticket_bytes);
  const size_t reply = BlocksOf(kZeroBytes + o.reply_bytes);
  if (FindEnctype(o.enctype)->is_gcm()) {
    return {{"keystream", open + ticket + reply}, {"tags", 4}};
  }
  return {{"keystream", ticket}, {"tags", 1}, {"cbc", open + reply}};
}

// Where the options say to send it: only if that may be loaded.
absl::StatusOr<Address> TargetOf(const Options& o, const std::string& text) {
  ASSIGN_OR_RETURN(Address address, ParseAddress(text));
  RETURN_IF_ERROR(MayLoad(address, LookAtNetwork(), o.i_own_this_kdc));
  return address;
}

// The users that the options name, with their keys made; with progress on a terminal.
absl::StatusOr<std::vector<User>> UsersOf(const Options& o) {
  const bool terminal = isatty(STDERR_FILENO) == 1;
  absl::StatusOr<std::vector<User>> users = MakeUsers(o, [&](size_t done, size_t all) {
    if (!terminal) return;
    fprintf(stderr, "\r\033[K%s",
            absl::StrCat(done, all > 0 ? absl::StrCat(" of ", all) : "", " keys").c_str());
  });
  if (terminal) fprintf(stderr, "\r\033[K");
  return users;
}

absl::StatusOr<ExitStatus> RunLogins(const Options& o, const std::vector<Threshold>& thresholds) {
  ASSIGN_OR_RETURN(Address kdc, TargetOf(o, o.kdc));
  ASSIGN_OR_RETURN(LoginPlan plan, MakeLoginPlan(o));
  ASSIGN_OR_RETURN(std::vector<User> users, UsersOf(o));
  // A thread has users of its own.
  if (users.size() < static_cast<size_t>(o.threads)) {
    return Bad(users.size(), " users for ", o.threads, " --threads: one each at least");
  }
  if (!o.log.empty()) RETURN_IF_ERROR(EmptyLoginLog(o.log));
  Control control;
  const auto load = StartLogins(o, std::move(plan), std::move(kdc), users, control);
  ASSIGN_OR_RETURN(RunResult result, RunUntilInterrupted(o, *load, control));
  return Conclude(o, result, thresholds, Setup(o, users.size(), LoginsSetup(o)), json::object());
}

// login-storm jobs: the three servers without a KDC.
absl::StatusOr<ExitStatus> RunJobs(const Options& o, const std::vector<Threshold>& thresholds) {
  for (const std::string& server : o.servers) {
    RETURN_IF_ERROR(TargetOf(o, server).status());
  }
  ASSIGN_OR_RETURN(RealmHandles handles, ReadHandles(o.handles, o.realm, o.enctype));
  ASSIGN_OR_RETURN(std::vector<User> users, UsersOf(o));
  for (const User& user : users) {
    const std::string principal = absl::StrCat(user.principal, "@", o.realm);
    if (handles.users.contains(principal)) continue;
    return Bad("--handles ", o.handles, " has no ", EnctypeText(o.enctype), " key of ", principal,
               "; enrol it, or name fewer users");
  }
  Control control;
  ASSIGN_OR_RETURN(const auto load, StartJobs(o, users, handles, control));
  ASSIGN_OR_RETURN(RunResult result, RunUntilInterrupted(o, *load, control));
  return Conclude(o, result, thresholds,
                  Setup(o, users.size(), JobsSetup(o, handles.krbtgt_enctype)),
                  {{"blocks_per_login", BlocksJson(o)}});
}

// Keys, session keys and keystreams of a whole realm are in here.
void Harden() {
  char* warning = mpc_harden_process(/*allow_core_dumps=*/0);
  if (warning != nullptr) fprintf(stderr, "login-storm: %s\n", warning);
  mpc_text_free(warning);
}

absl::StatusOr<ExitStatus> RunMode(const Options& o) {
  RETURN_IF_ERROR(CheckRunning(o.processes));
  std::vector<Threshold> thresholds;
  for (const std::string& text : o.fail_if) {
    ASSIGN_OR_RETURN(Threshold threshold, ParseThreshold(text, KnownMetrics(o)));
    thresholds.push_back(std::move(threshold));
  }
  return o.mode == Mode::kJobs ? RunJobs(o, thresholds) : RunLogins(o, thresholds);
}

int Main(int argc, char** argv) {
  // Debian's abseil looks for deadlocks at every lock; for a load generator that is dear.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const std::string plot_script = FindPlotScript();
  Harden();  // closes /proc/self to ordinary users
  absl::StatusOr<Options> options =
      ParseOptions(std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
  if (options.ok() && !options->answer.empty()) {
    fputs(options->answer.c_str(), stdout);
    return kFine;
  }
  if (options.ok()) options->plot_script = plot_script;
  absl::StatusOr<ExitStatus> status =
      options.ok() ? RunMode(*options) : absl::StatusOr<ExitStatus>(options.status());
  if (status.ok()) return *status;
  fprintf(stderr, "login-storm: %s\n", std::string(status.status().message()).c_str());
  return kNotRun;
}

}  // namespace
}  // namespace mpckdc::storm

int main(int argc, char** argv) { return mpckdc::storm::Main(argc, argv); }
