// SPDX-License-Identifier: Apache-2.0
//
// login-storm: loads a KDC with logins, or three mpc-servers with login jobs, checks what they
// answer and measures. See login-storm(8).
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "integration-tests/storm/jobs_mode.h"
#include "integration-tests/storm/options.h"
#include "integration-tests/storm/output.h"
#include "integration-tests/storm/report.h"
#include "integration-tests/storm/run.h"
#include "integration-tests/storm/schedule.h"
#include "integration-tests/storm/target.h"
#include "integration-tests/storm/users.h"
#include "kdc-plugin/client/mpc_client.h"

namespace mpckdc::storm {
namespace {

nlohmann::json SetupJson(const Options& o, size_t users) {
  return {{"kdc", o.kdc},
          {"realm", o.realm},
          {"enctype", EnctypeText(o.enctype)},
          {"users", users},
          {"transport", o.tcp ? "tcp" : "udp"},
          {"two_step", o.two_step},
          {"enc_pa_rep", o.enc_pa_rep},
          {"tgs", o.tgs},
          {"wrong_passwords", o.wrong_share},
          {"loop", o.rate > 0 ? "open" : "closed"},
          {"rate", o.rate},
          {"in_flight", o.in_flight},
          {"threads", o.threads},
          {"seed", o.seed},
          {"warm_up_s", absl::ToDoubleSeconds(o.warm_up)},
          {"resend_after_s", absl::ToDoubleSeconds(o.resend_after)},
          {"resends", o.resends},
          {"check", o.check}};
}

absl::StatusOr<RunPlan> MakeRunPlan(const Options& o, const Address& kdc) {
  absl::StatusOr<LoginPlan> login =
      MakeLoginPlan(o.realm, o.enctype, o.session_enctypes, o.service);
  if (!login.ok()) return login.status();
  RunPlan plan;
  plan.load.login = *std::move(login);
  plan.load.login.two_step = o.two_step;
  plan.load.login.ask_enc_pa_rep = o.enc_pa_rep;
  plan.load.login.tgs_requests = o.tgs;
  plan.load.kdc = kdc;
  plan.load.tcp = o.tcp;
  plan.load.open_loop = o.rate > 0;
  plan.load.in_flight = o.in_flight;
  plan.load.wrong_share = o.wrong_share;
  plan.load.check_every = o.check > 0 ? static_cast<uint32_t>(std::lround(1 / o.check)) : 0;
  plan.load.resend_after = o.resend_after;
  plan.load.resends = o.resends;
  plan.load.threads = o.threads;
  plan.load.seed = o.seed;
  plan.warm_up = o.warm_up;
  plan.count = o.count;
  plan.knee_p99 = o.knee_p99;
  plan.show_progress = isatty(STDERR_FILENO) == 1;
  const absl::Duration length = o.count > 0 ? limits::kMaxDuration : o.duration;
  plan.stages = o.ramp_to > 0 ? RampStages(o.rate, o.ramp_to, o.ramp_steps, length)
                              : std::vector<Stage>{{o.rate, length}};
  return plan;
}

absl::StatusOr<ExitStatus> RunLogins(const Options& o, const CpuMeter& cpu) {
  absl::StatusOr<std::vector<Threshold>> thresholds =
      ParseThresholds(o.fail_if, KnownMetrics(cpu.names()));
  if (!thresholds.ok()) return thresholds.status();
  absl::StatusOr<Address> kdc = ParseAddress(o.kdc);
  if (!kdc.ok()) return kdc.status();
  if (absl::Status s = MayLoad(*kdc, LookAtNetwork(), o.i_own_this_kdc); !s.ok()) return s;
  absl::StatusOr<std::vector<User>> users = UsersOfOptions(o);
  if (!users.ok()) return users.status();
  absl::StatusOr<RunPlan> plan = MakeRunPlan(o, *kdc);
  if (!plan.ok()) return plan.status();
  // A thread has users of its own.
  if (users->size() < static_cast<size_t>(o.threads)) {
    return absl::InvalidArgumentError(
        absl::StrCat(users->size(), " users for ", o.threads, " --threads: one each at least"));
  }
  absl::StatusOr<RunResult> result = Run(*plan, *users, cpu);
  if (!result.ok()) return result.status();
  FinishedRun finished;
  finished.text = ReportText(*result, cpu.names());
  finished.report = ReportJson(*result, cpu.names(), SetupJson(o, users->size()));
  finished.values = Measured(*result, cpu.names());
  return Conclude(o, std::move(finished), *thresholds);
}

// Keys, session keys and keystreams of a whole realm are in here.
void Harden() {
  char* warning = mpc_harden_process(/*allow_core_dumps=*/0);
  if (warning != nullptr) fprintf(stderr, "login-storm: %s\n", warning);
  mpc_text_free(warning);
}

absl::StatusOr<ExitStatus> RunMode(const Options& o) {
  absl::StatusOr<CpuMeter> cpu = CpuMeter::Watch(o.processes);
  if (!cpu.ok()) return cpu.status();
  return o.mode == Mode::kJobs ? RunJobs(o, *cpu) : RunLogins(o, *cpu);
}

int Main(int argc, char** argv) {
  // Debian's abseil looks for deadlocks at every lock; for a load generator that is dear.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  FindPlotScript();  // before Harden(), which closes /proc/self to ordinary users
  Harden();
  absl::StatusOr<Options> options = ParseOptions(argc, argv);
  if (options.ok() && options->mode == Mode::kHelp) {
    fputs(Usage().c_str(), stdout);
    return kFine;
  }
  if (options.ok() && options->mode == Mode::kVersion) {
    puts("login-storm (mpc-kdc) " MPCKDC_VERSION);
    return kFine;
  }
  absl::StatusOr<ExitStatus> status =
      options.ok() ? RunMode(*options) : absl::StatusOr<ExitStatus>(options.status());
  if (status.ok()) return *status;
  fprintf(stderr, "login-storm: %s\n", std::string(status.status().message()).c_str());
  return kNotRun;
}

}  // namespace
}  // namespace mpckdc::storm

int main(int argc, char** argv) { return mpckdc::storm::Main(argc, argv); }
