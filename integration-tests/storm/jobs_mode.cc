// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/jobs_mode.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "integration-tests/storm/handles.h"
#include "integration-tests/storm/job_load.h"
#include "integration-tests/storm/report.h"
#include "integration-tests/storm/target.h"
#include "integration-tests/storm/worker.h"
#include "mpc-server/key/enctype.h"
#include "mpc-server/key/message_format.h"

namespace mpckdc::storm {
namespace {

using nlohmann::json;

constexpr absl::Duration kTick = absl::Milliseconds(10);
constexpr size_t kTimestampBytes = 28;  // PA-ENC-TS-ENC with microseconds of three bytes

struct Window {
  double seconds = 0;
  uint64_t ok = 0, ended = 0;
  CpuMeter::Reading cpu;
};

struct JobsResult {
  Window window;
  JobTally tally;
  Series series;
  size_t users = 0;
  int32_t krbtgt_enctype = 0;
};

MetricKinds JobMetrics(const std::vector<std::string>& process_names) {
  MetricKinds kinds = KnownMetrics(process_names);
  for (const char* name : {"lost", "loss", "resends", "late", "shed", "knee", "errors"}) {
    kinds.erase(name);
  }
  kinds["servers-cpu"] = MetricKind::kTime;
  return kinds;
}

// All watched processes and this one together, per login: the issue's measure.
MetricValues JobValues(const JobsResult& r, const std::vector<std::string>& names) {
  MetricValues values;
  AddLatencyMetrics(r.tally.login, values);
  AddCpuMetrics(r.window.cpu, names, r.window.ended, values);
  values["rate"] = static_cast<double>(r.window.ok) / r.window.seconds;
  values["failed"] = static_cast<double>(r.tally.failed);
  values["wrong"] = static_cast<double>(r.tally.wrong_answers);
  double sum = 0;
  for (const double seconds : r.window.cpu.others) sum += seconds;
  if (!names.empty() && r.window.ended > 0 && std::isfinite(sum)) {
    values["servers-cpu"] = sum / static_cast<double>(r.window.ended);
  }
  return values;
}

// Keystream blocks and tag or checksum blocks of one login (doc/enctype.md); under users' keys of 17
// to 20 those of CBC too. Their HMACs' compressions depend on the request's length.
json BlocksJson(const Options& o) {
  const Enctype& user = *FindEnctype(o.enctype);
  const size_t open = BlocksOf(kZeroBytes + kTimestampBytes);
  const size_t ticket = BlocksOf(kZeroBytes + o.ticket_bytes);
  const size_t reply = BlocksOf(kZeroBytes + o.reply_bytes);
  if (user.is_gcm()) return {{"keystream", open + ticket + reply}, {"tags", 4}};
  return {{"keystream", ticket}, {"tags", 1}, {"cbc", open + reply}};
}

json JobsJson(const Options& o, const JobsResult& r, const std::vector<std::string>& names) {
  const MetricValues values = JobValues(r, names);
  const auto value = [&](const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? json(nullptr) : json(found->second);
  };
  json per_1000 = json::object();
  for (const std::string& name : names) per_1000[name] = value("cpu." + name);
  return {
      {"version", kReportVersion},
      {"mode", "jobs"},
      {"setup",
       {{"servers", o.servers},
        {"realm", o.realm},
        {"enctype", EnctypeText(o.enctype)},
        {"krbtgt_enctype", EnctypeText(r.krbtgt_enctype)},
        {"users", r.users},
        {"clients", o.clients},
        {"in_flight", o.in_flight},
        {"ticket_bytes", o.ticket_bytes},
        {"reply_bytes", o.reply_bytes},
        {"check", o.check},
        {"warm_up_s", absl::ToDoubleSeconds(o.warm_up)}}},
      {"seconds", r.window.seconds},
      {"logins",
       {{"started", r.tally.started},
        {"ok", r.tally.ok},
        {"failed", r.tally.failed},
        {"wrong_answers", r.tally.wrong_answers},
        {"ok_per_s", value("rate")}}},
      {"oracle", {{"compared", r.tally.compared}, {"tickets_opened", r.tally.tickets_opened}}},
      {"blocks_per_login", BlocksJson(o)},
      {"verdicts", r.tally.verdicts},
      {"complaints", r.tally.complaints},
      {"latency_ms",
       {{"login", LatencyJson(r.tally.login)}, {"job", LatencyJson(r.tally.job)}}},
      {"cpu",
       {{"tool_seconds_per_login", value("tool-cpu")},
        {"servers_seconds_per_login", value("servers-cpu")},
        {"seconds_per_1000_logins", per_1000}}},
      {"histogram_ms", HistogramJson(r.tally.login)},
      {"series", SeriesJson(r.series)},
  };
}

std::string JobsText(const JobsResult& r, const std::vector<std::string>& names) {
  const MetricValues values = JobValues(r, names);
  std::string text = absl::StrFormat(
      "%.0f logins/s: %d login jobs went well of %d begun in %.2f s\n"
      "  failed %d, wrong answers %d; compared with the oracle %d, of these tickets opened by the "
      "servers %d\n",
      values.at("rate"), r.tally.ok, r.tally.started, r.window.seconds, r.tally.failed,
      r.tally.wrong_answers, r.tally.compared, r.tally.tickets_opened);
  for (const auto& [verdict, count] : r.tally.verdicts) {
    absl::StrAppendFormat(&text, "  verdict %s: %d\n", verdict, count);
  }
  for (const std::string& complaint : r.tally.complaints) {
    absl::StrAppend(&text, "  ", complaint, "\n");
  }
  absl::StrAppend(&text, LatencyLine("login", r.tally.login), LatencyLine("job", r.tally.job));
  const auto line = [&](const char* what, const std::string& name, double factor,
                        const char* unit) {
    if (const auto value = values.find(name); value != values.end()) {
      absl::StrAppendFormat(&text, "  CPU of %s %.4g %s\n", what, value->second * factor, unit);
    }
  };
  line("this program", "tool-cpu", 1e6, "us per login");
  for (const std::string& name : names) {
    line(name.c_str(), "cpu." + name, 1, "s per 1,000 logins");
  }
  line("all watched together", "servers-cpu", 1e6, "us per login");
  return text;
}

// Users whose keys the servers have.
absl::StatusOr<std::vector<User>> KnownUsers(const Options& o, const RealmHandles& handles) {
  absl::StatusOr<std::vector<User>> users = UsersOfOptions(o);
  if (!users.ok()) return users.status();
  for (const User& user : *users) {
    const std::string principal = absl::StrCat(user.principal, "@", o.realm);
    if (handles.users.count(principal) != 0) continue;
    return absl::NotFoundError(absl::StrCat(
        "--handles ", o.handles, " has no ", EnctypeText(o.enctype), " key of ", principal,
        "; enrol it, or name fewer users"));
  }
  return users;
}

// Warm-up, window, and the end of what is in flight.
class JobsRun {
 public:
  JobsRun(const Options& o, JobLoad& load, const CpuMeter& cpu)
      : o_(o), load_(load), cpu_(cpu), progress_(isatty(STDERR_FILENO) == 1) {}

  Window Run() {
    For(o_.warm_up);
    load_.BeginMeasuring();
    if (o_.count > 0) load_.LimitTo(o_.count);
    const JobLoad::Live before = load_.Look();
    const CpuMeter::Reading cpu_before = cpu_.Read();
    const absl::Time begin = MonotonicNow();
    For(o_.count > 0 ? limits::kMaxDuration : o_.duration);
    Window window;
    const JobLoad::Live after = load_.Look();
    const CpuMeter::Reading cpu_after = cpu_.Read();
    window.seconds = absl::ToDoubleSeconds(MonotonicNow() - begin);
    window.ok = after.ok - before.ok;
    window.ended = after.ended - before.ended;
    window.cpu.own = cpu_after.own - cpu_before.own;
    for (size_t i = 0; i < cpu_after.others.size(); ++i) {
      window.cpu.others.push_back(cpu_after.others[i] - cpu_before.others[i]);
    }
    load_.StopBeginning();
    while (!load_.Idle()) absl::SleepFor(kTick);  // each job has a timeout
    if (progress_) fprintf(stderr, "\r\033[K");
    return window;
  }

 private:
  void For(absl::Duration length) {
    const absl::Time end = MonotonicNow() + length;
    absl::Time told = MonotonicNow();
    uint64_t told_ok = load_.Look().ok;
    while (MonotonicNow() < end && !load_.LimitReached()) {
      load_.Tick();
      absl::SleepFor(kTick);
      const absl::Time now = MonotonicNow();
      if (!progress_ || now - told < limits::kProgressInterval) continue;
      const JobLoad::Live live = load_.Look();
      fprintf(stderr, "\r\033[K%llu login jobs, %.0f/s, %llu in flight, %llu failed",
              static_cast<unsigned long long>(live.ok),
              static_cast<double>(live.ok - told_ok) / absl::ToDoubleSeconds(now - told),
              static_cast<unsigned long long>(live.in_flight),
              static_cast<unsigned long long>(live.failed));
      told = now;
      told_ok = live.ok;
    }
  }

  const Options& o_;
  JobLoad& load_;
  const CpuMeter& cpu_;
  const bool progress_;
};

JobPlan MakeJobPlan(const Options& o) {
  JobPlan plan;
  plan.realm = o.realm;
  for (int i = 0; i < MPC_SERVERS; ++i) plan.servers[i] = o.servers[i];
  plan.ca = o.ca;
  plan.certificate = o.certificate;
  plan.key = o.key;
  plan.clients = o.clients;
  plan.in_flight = o.in_flight;
  plan.ticket_bytes = o.ticket_bytes;
  plan.reply_bytes = o.reply_bytes;
  plan.check_every = static_cast<uint32_t>(1 / o.check);  // rounded down: not fewer than asked for
  plan.timeout = o.timeout;
  return plan;
}

}  // namespace

absl::StatusOr<ExitStatus> RunJobs(const Options& o, const CpuMeter& cpu) {
  absl::StatusOr<std::vector<Threshold>> thresholds =
      ParseThresholds(o.fail_if, JobMetrics(cpu.names()));
  if (!thresholds.ok()) return thresholds.status();
  const NetworkView network = LookAtNetwork();
  for (const std::string& server : o.servers) {
    absl::StatusOr<Address> address = ParseAddress(server);
    if (!address.ok()) return address.status();
    if (absl::Status s = MayLoad(*address, network, o.i_own_this_kdc); !s.ok()) return s;
  }
  absl::StatusOr<RealmHandles> handles = ReadHandles(o.handles, o.realm, o.enctype);
  if (!handles.ok()) return handles.status();
  absl::StatusOr<std::vector<User>> users = KnownUsers(o, *handles);
  if (!users.ok()) return users.status();
  JobsResult result;
  result.users = users->size();
  result.krbtgt_enctype = handles->krbtgt_enctype;
  JobLoad load(MakeJobPlan(o), &*users, &*handles);
  if (absl::Status s = load.Start(); !s.ok()) return s;
  result.window = JobsRun(o, load, cpu).Run();
  result.tally = load.TakeTally();
  result.series = load.TakeSeries();
  FinishedRun finished;
  finished.text = JobsText(result, cpu.names());
  finished.report = JobsJson(o, result, cpu.names());
  finished.values = JobValues(result, cpu.names());
  return Conclude(o, std::move(finished), *thresholds);
}

absl::StatusOr<std::vector<User>> UsersOfOptions(const Options& o) {
  UserSource source;
  source.realm = o.realm;
  source.enctype = o.enctype;
  source.pattern = o.users;
  source.keytab = o.keytab;
  source.csv = o.csv;
  source.first = o.first;
  source.number = o.number;
  source.password = o.password;
  source.threads = o.threads;
  const bool terminal = isatty(STDERR_FILENO) == 1;
  absl::StatusOr<std::vector<User>> users = MakeUsers(source, [&](size_t done, size_t all) {
    if (!terminal) return;
    fprintf(stderr, "\r\033[K%s",
            absl::StrCat(done, all > 0 ? absl::StrCat(" of ", all) : "", " keys").c_str());
  });
  if (terminal) fprintf(stderr, "\r\033[K");
  return users;
}

}  // namespace mpckdc::storm
