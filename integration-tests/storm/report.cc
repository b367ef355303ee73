// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/report.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "integration-tests/storm/limits.h"
#include "mpc-server/base/status_macros.h"

extern char** environ;

namespace mpckdc::storm {
namespace {

using nlohmann::json;

constexpr int kReportVersion = 1;
constexpr char kPython[] = "/usr/bin/python3";  // Debian's own, which has Debian's matplotlib
constexpr double kPercents[] = {50, 90, 99, 99.9};
// By Login::Step.
constexpr struct {
  const char* key;
  const char* label;
} kExchanges[] = {{"as_first", "AS, first"}, {"as", "AS"}, {"tgs", "TGS"}};

// The counters of a tally: where they are in the JSON report, and their names for --fail-if.
constexpr struct {
  const char* pointer;
  uint64_t Tally::*count;
  bool of_jobs = false;  // and not of logins only
  const char* metric = nullptr;
} kCounters[] = {{"/logins/started", &Tally::started, true},
                 {"/logins/ok", &Tally::ok, true},
                 {"/logins/failed", &Tally::failed, true, "failed"},
                 {"/logins/wrong_answers", &Tally::wrong_answers, true, "wrong"},
                 {"/logins/refused", &Tally::refused},
                 {"/logins/lost", &Tally::lost, false, "lost"},
                 {"/logins/shed", &Tally::shed, false, "shed"},
                 {"/logins/decrypted", &Tally::checked},
                 {"/tickets", &Tally::tickets},
                 {"/resends", &Tally::resends, false, "resends"},
                 {"/late", &Tally::late, false, "late"},
                 {"/unreachable", &Tally::unreachable}};

double Ms(absl::Duration d) { return absl::ToDoubleMilliseconds(d); }
std::string PercentName(double percent) { return absl::StrCat("p", percent); }

double PerSecond(uint64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

json RampJson(const RunResult& result) {
  json steps = json::array();
  for (const StageResult& stage : result.stages) {
    steps.push_back({{"rate", stage.rate},
                     {"offered_per_s", PerSecond(stage.offered, stage.seconds)},
                     {"ok_per_s", PerSecond(stage.ok, stage.seconds)},
                     {"p50_ms", Ms(stage.tally.login.Percentile(50))},
                     {"p99_ms", Ms(stage.tally.login.Percentile(99))},
                     {"lost", stage.tally.lost},
                     {"shed", stage.tally.shed},
                     {"failed", stage.tally.failed},
                     {"kept_up", stage.kept}});
  }
  return steps;
}

std::string RampText(const RunResult& result) {
  std::string text = absl::StrFormat("\n%10s %12s %10s %10s %10s %6s %6s\n", "rate", "answered/s",
                                     "p50 ms", "p99 ms", "p99.9 ms", "lost", "shed");
  for (const StageResult& stage : result.stages) {
    absl::StrAppendFormat(
        &text, "%10.0f %12.0f %10.2f %10.2f %10.2f %6d %6d%s\n", stage.rate,
        PerSecond(stage.ok, stage.seconds), Ms(stage.tally.login.Percentile(50)),
        Ms(stage.tally.login.Percentile(99)), Ms(stage.tally.login.Percentile(99.9)),
        stage.tally.lost, stage.tally.shed, stage.kept ? "" : "  beyond the knee");
  }
  return text + (result.knee_per_s > 0 ? absl::StrFormat("knee: %.0f logins/s\n", result.knee_per_s)
                                       : "knee: below the first rate\n");
}

json LatencyJson(const LatencyHistogram& histogram) {
  json latency = {{"count", histogram.count()}};
  if (histogram.count() == 0) return latency;
  latency["mean"] = Ms(histogram.Mean());
  for (const double percent : kPercents) {
    latency[PercentName(percent)] = Ms(histogram.Percentile(percent));
  }
  latency["max"] = Ms(histogram.max());
  return latency;
}

std::string LatencyLine(const std::string& name, const LatencyHistogram& histogram) {
  if (histogram.count() == 0) return "";
  std::string line = absl::StrFormat("  %-14s", name);
  for (const double percent : kPercents) {
    absl::StrAppendFormat(&line, "  %s %.2f ms", PercentName(percent),
                          Ms(histogram.Percentile(percent)));
  }
  absl::StrAppendFormat(&line, "  max %.2f ms\n", Ms(histogram.max()));
  return line;
}

json HistogramJson(const LatencyHistogram& histogram) {
  json bins = json::array();
  for (const LatencyHistogram::Bin& bin : histogram.NonEmptyBins()) {
    bins.push_back({Ms(bin.from), Ms(bin.to), bin.count});
  }
  return bins;
}

// NaN, which JSON has as null, where nothing was measured.
double Share(double part, uint64_t whole) {
  return whole > 0 ? part / static_cast<double>(whole) : NAN;
}

// All metrics of a run of this mode, and no others.
Metrics Measure(Mode mode, const RunResult& result) {
  const StageResult& total = result.total;
  const Tally& t = total.tally;
  const bool jobs = mode == Mode::kJobs;
  Metrics metrics;
  const auto latency = [&](const std::string& name, absl::Duration value) {
    metrics[name] = {MetricKind::kTime, t.login.count() > 0 ? absl::ToDoubleSeconds(value) : NAN};
  };
  latency("mean", t.login.Mean());
  latency("max", t.login.max());
  for (const double percent : kPercents) latency(PercentName(percent), t.login.Percentile(percent));
  metrics["tool-cpu"] = {MetricKind::kTime, Share(total.cpu.own, total.ended)};
  double all = total.cpu.others.empty() ? NAN : 0;
  for (const auto& [name, seconds] : total.cpu.others) {
    metrics["cpu." + name] = {MetricKind::kTime, Share(seconds * 1000, total.ended)};
    all += seconds;
  }
  metrics["rate"] = {MetricKind::kNumber, PerSecond(total.ok, total.seconds)};
  for (const auto& counter : kCounters) {
    if (counter.metric == nullptr || (jobs && !counter.of_jobs)) continue;
    metrics[counter.metric] = {MetricKind::kNumber, static_cast<double>(t.*counter.count)};
  }
  if (jobs) {
    metrics["servers-cpu"] = {MetricKind::kTime, Share(all, total.ended)};
    return metrics;
  }
  const auto lost = static_cast<double>(t.lost);
  metrics["knee"] = {MetricKind::kNumber, result.knee_per_s};
  metrics["loss"] = {MetricKind::kShare, Share(lost, t.started)};
  metrics["errors"] = {MetricKind::kShare,
                       Share(static_cast<double>(t.failed + t.wrong_answers) + lost, t.started)};
  return metrics;
}

// `setup`: how the run was asked for, copied into the report.
json ReportJson(Mode mode, const RunResult& result, const Metrics& metrics, const json& setup) {
  const StageResult& total = result.total;
  const Tally& tally = total.tally;
  const bool jobs = mode == Mode::kJobs;
  json per_1000 = json::object();
  for (const auto& [name, _] : total.cpu.others) per_1000[name] = metrics.at("cpu." + name).value;
  json report = {
      {"version", kReportVersion},
      {"mode", jobs ? "jobs" : "logins"},
      {"setup", setup},
      {"seconds", total.seconds},
      {"logins", {{"ok_per_s", metrics.at("rate").value}}},
      {"complaints", tally.complaints},
      {"latency_ms", {{"login", LatencyJson(tally.login)}}},
      {"cpu",
       {{"tool_seconds_per_login", metrics.at("tool-cpu").value},
        {"seconds_per_1000_logins", per_1000}}},
      {"histogram_ms", HistogramJson(tally.login)},
      {"series",
       {{"interval_s", absl::ToDoubleSeconds(limits::kSeriesInterval)},
        {"ok", result.series.ok},
        {"other", result.series.other}}},
  };
  for (const auto& counter : kCounters) {
    if (jobs && !counter.of_jobs) continue;
    report[json::json_pointer(counter.pointer)] = tally.*counter.count;
  }
  if (jobs) {
    report["oracle"] = {{"compared", tally.checked}, {"tickets_opened", tally.tickets}};
    report["verdicts"] = tally.verdicts;
    report["latency_ms"]["job"] = LatencyJson(tally.exchanges[0]);
    report["cpu"]["servers_seconds_per_login"] = metrics.at("servers-cpu").value;
    return report;
  }
  report["errors"] = json::object();
  for (const auto& [code, count] : tally.errors) {
    report["errors"][ErrorName(code)] = {
        {"code", code}, {"expected", count.expected}, {"unexpected", count.unexpected}};
  }
  for (size_t i = 0; i < tally.exchanges.size(); ++i) {
    report["latency_ms"][kExchanges[i].key] = LatencyJson(tally.exchanges[i]);
  }
  if (result.is_ramp) {
    report.update({{"ramp", RampJson(result)}, {"knee_per_s", result.knee_per_s}});
  }
  return report;
}

std::string ReportText(Mode mode, const RunResult& result, const Metrics& metrics) {
  const StageResult& total = result.total;
  const Tally& t = total.tally;
  const bool jobs = mode == Mode::kJobs;
  std::string text = absl::StrFormat("%.0f logins/s: %d %s went well of %d begun in %.2f s",
                                     PerSecond(total.ok, total.seconds), t.ok,
                                     jobs ? "login jobs" : "logins", t.started, total.seconds);
  if (jobs) {
    absl::StrAppendFormat(&text,
                          "\n  failed %d, wrong answers %d; compared with the oracle %d, of these "
                          "tickets opened by the servers %d\n",
                          t.failed, t.wrong_answers, t.checked, t.tickets);
  } else {
    absl::StrAppendFormat(&text,
                          "; %d were decrypted\n"
                          "  refused (wrong password) %d, failed %d, wrong answers %d, lost %d, "
                          "shed %d; resends %d, late answers %d, unreachable %d; service tickets "
                          "%d\n",
                          t.checked, t.refused, t.failed, t.wrong_answers, t.lost, t.shed,
                          t.resends, t.late, t.unreachable, t.tickets);
  }
  for (const auto& [verdict, count] : t.verdicts) {
    absl::StrAppendFormat(&text, "  verdict %s: %d\n", verdict, count);
  }
  for (const auto& [code, count] : t.errors) {
    absl::StrAppendFormat(&text, "  error %d %s: %d expected, %d not\n", code, ErrorName(code),
                          count.expected, count.unexpected);
  }
  for (const std::string& complaint : t.complaints) {
    absl::StrAppend(&text, jobs ? "  " : "  WRONG ", complaint, "\n");
  }
  absl::StrAppend(&text, LatencyLine("login", t.login));
  for (size_t i = 0; i < t.exchanges.size(); ++i) {
    absl::StrAppend(&text, LatencyLine(jobs ? "job" : kExchanges[i].label, t.exchanges[i]));
  }
  const auto line = [&](const char* what, const std::string& name, double factor,
                        const char* unit) {
    const double value = metrics.at(name).value;
    if (std::isnan(value)) return;
    absl::StrAppendFormat(&text, "  CPU of %s %.4g %s\n", what, value * factor, unit);
  };
  line("this program", "tool-cpu", 1e6, "us per login");
  for (const auto& [name, seconds] : total.cpu.others) {
    line(name.c_str(), "cpu." + name, 1, "s per 1,000 logins");
  }
  if (jobs) line("all watched together", "servers-cpu", 1e6, "us per login");
  if (result.is_ramp) text += RampText(result);
  return text;
}

absl::Status WriteFile(const std::string& file, const std::string& text) {
  std::ofstream out(file, std::ios::trunc);
  out << text << "\n";
  out.close();
  if (out) return absl::OkStatus();
  return Bad(file, " cannot be written: ", strerror(errno));
}

struct Unit {
  absl::string_view name;
  MetricKind kind;
  double factor;
};

// "ms" and "us" before "s", which ends them.
constexpr Unit kUnits[] = {{"us", MetricKind::kTime, 1e-6},
                           {"ms", MetricKind::kTime, 1e-3},
                           {"s", MetricKind::kTime, 1},
                           {"%", MetricKind::kShare, 1e-2}};

// By MetricKind.
constexpr absl::string_view kWanted[] = {"a time with its unit: us, ms or s",
                                         "a number without a unit", "a share in %"};

absl::Status Draw(std::string script, const std::string& report, const std::string& picture) {
  if (access(script.c_str(), R_OK) != 0) return Bad("--plot: ", script, " is missing");
  std::error_code no_folder;  // then mkstemp() says why
  std::string file = std::filesystem::temp_directory_path(no_folder) / "login-storm-XXXXXX";
  const int fd = mkstemp(file.data());
  if (fd < 0) return Bad("--plot: ", strerror(errno));
  close(fd);
  const absl::Cleanup remove = [&file] { unlink(file.c_str()); };
  RETURN_IF_ERROR(WriteFile(file, report));
  std::string python = kPython, in = file, out = picture;
  char* const argv[] = {python.data(), script.data(), in.data(), out.data(), nullptr};
  pid_t child = 0;
  int status = 0;
  if (posix_spawn(&child, kPython, nullptr, nullptr, argv, environ) != 0 ||
      waitpid(child, &status, 0) != child || status != 0) {
    return Bad("--plot: ", script, " failed; it needs ", kPython,
               " and Debian's python3-matplotlib");
  }
  return absl::OkStatus();
}

}  // namespace

Metrics KnownMetrics(const Options& options) {
  RunResult none;
  for (const auto& [name, pid] : options.processes) none.total.cpu.others.emplace_back(name, 0);
  return Measure(options.mode, none);
}

std::string FindPlotScript() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return program.parent_path() / "login-storm-plot";
}

absl::StatusOr<Threshold> ParseThreshold(absl::string_view text, const Metrics& metrics) {
  const std::string option = absl::StrCat("--fail-if \"", text, "\": ");
  const size_t at = text.find_first_of("<>");
  if (at == absl::string_view::npos) return Bad(option, "no < or >; for example p99>250ms");
  Threshold t;
  t.text = std::string(text);
  t.metric = std::string(absl::StripAsciiWhitespace(text.substr(0, at)));
  const auto known = metrics.find(t.metric);
  if (known == metrics.end()) {
    return Bad(option, "no metric \"", t.metric, "\" in this run; there are: ",
               absl::StrJoin(metrics, " ", [](std::string* out, const auto& m) {
                 absl::StrAppend(out, m.first);
               }));
  }
  t.above = text[at] == '>';
  t.or_equal = at + 1 < text.size() && text[at + 1] == '=';
  absl::string_view value = absl::StripAsciiWhitespace(text.substr(at + (t.or_equal ? 2 : 1)));
  MetricKind given = MetricKind::kNumber;
  double factor = 1;
  for (const Unit& unit : kUnits) {
    if (!absl::ConsumeSuffix(&value, unit.name)) continue;
    given = unit.kind;
    factor = unit.factor;
    break;
  }
  double number = 0;
  if (given != known->second.kind || !absl::SimpleAtod(value, &number) || !std::isfinite(number)) {
    return Bad(option, t.metric, " is compared with ",
               kWanted[static_cast<size_t>(known->second.kind)]);
  }
  t.value = number * factor;
  return t;
}

std::optional<std::string> Exceeded(const Threshold& threshold, const Metrics& metrics) {
  const auto metric = metrics.find(threshold.metric);
  if (metric == metrics.end() || std::isnan(metric->second.value)) {
    return absl::StrCat(threshold.text, ": ", threshold.metric, " was not measured");
  }
  const double measured = metric->second.value, limit = threshold.value;
  if (!(threshold.above ? measured > limit : measured < limit) &&
      !(threshold.or_equal && measured == limit)) {
    return std::nullopt;
  }
  return absl::StrCat(threshold.text, ": ", threshold.metric, " is ", measured);
}

absl::StatusOr<ExitStatus> Conclude(const Options& options, const RunResult& result,
                                    const std::vector<Threshold>& thresholds, const json& setup,
                                    const json& more) {
  const Metrics metrics = Measure(options.mode, result);
  std::string text = ReportText(options.mode, result, metrics);
  json report = ReportJson(options.mode, result, metrics, setup);
  report.update(more);
  ExitStatus status = kFine;
  json limits = json::array();
  for (const Threshold& threshold : thresholds) {
    const std::optional<std::string> why = Exceeded(threshold, metrics);
    limits.push_back({{"limit", threshold.text}, {"exceeded", why.has_value()}});
    if (!why.has_value()) continue;
    status = kLimitExceeded;
    absl::StrAppend(&text, "FAILED ", *why, "\n");
  }
  report["limits"] = limits;
  if (result.total.tally.wrong_answers > 0) status = kWrongAnswers;
  const std::string written = report.dump(2);
  if (options.json == "-") {
    printf("%s\n", written.c_str());
  } else {
    fputs(text.c_str(), stdout);
    if (!options.json.empty()) {
      RETURN_IF_ERROR(WriteFile(options.json, written));
    }
  }
  fflush(stdout);
  if (!options.plot.empty()) {
    RETURN_IF_ERROR(Draw(options.plot_script, written, options.plot));
  }
  return status;
}

}  // namespace mpckdc::storm
