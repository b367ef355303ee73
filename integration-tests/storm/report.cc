// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/report.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mpckdc::storm {
namespace {

using nlohmann::json;

constexpr double kPercents[] = {50, 90, 99, 99.9};

double Ms(absl::Duration d) { return absl::ToDoubleMilliseconds(d); }
std::string PercentName(double percent) { return absl::StrCat("p", percent); }

double PerSecond(uint64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

json ErrorsJson(const Tally& tally) {
  json errors = json::object();
  for (const auto& [code, count] : tally.errors) {
    errors[ErrorName(code)] = {
        {"code", code}, {"expected", count.expected}, {"unexpected", count.unexpected}};
  }
  return errors;
}

json CpuJson(const StageResult& total, const std::vector<std::string>& names) {
  MetricValues values;
  AddCpuMetrics(total.cpu, names, total.ended, values);
  json per_1000 = json::object();
  for (const std::string& name : names) {
    const auto value = values.find("cpu." + name);
    per_1000[name] = value == values.end() ? json(nullptr) : json(value->second);
  }
  const auto own = values.find("tool-cpu");
  return {{"tool_seconds_per_login", own == values.end() ? json(nullptr) : json(own->second)},
          {"seconds_per_1000_logins", per_1000}};
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
  if (result.knee_per_s > 0) {
    absl::StrAppendFormat(&text, "knee: %.0f logins/s\n", result.knee_per_s);
  } else {
    text += "knee: below the first rate\n";
  }
  return text;
}

}  // namespace

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

json SeriesJson(const Series& series) {
  return {{"interval_s", absl::ToDoubleSeconds(limits::kSeriesInterval)},
          {"ok", series.ok},
          {"other", series.other}};
}

void AddLatencyMetrics(const LatencyHistogram& login, MetricValues& values) {
  if (login.count() == 0) return;
  for (const double percent : kPercents) {
    values[PercentName(percent)] = absl::ToDoubleSeconds(login.Percentile(percent));
  }
  values["mean"] = absl::ToDoubleSeconds(login.Mean());
  values["max"] = absl::ToDoubleSeconds(login.max());
}

void AddCpuMetrics(const CpuMeter::Reading& cpu, const std::vector<std::string>& names,
                   uint64_t logins, MetricValues& values) {
  if (logins == 0) return;
  values["tool-cpu"] = cpu.own / static_cast<double>(logins);
  for (size_t i = 0; i < names.size(); ++i) {
    if (!std::isfinite(cpu.others[i])) continue;
    values["cpu." + names[i]] = cpu.others[i] * 1000 / static_cast<double>(logins);
  }
}

MetricKinds KnownMetrics(const std::vector<std::string>& process_names) {
  MetricKinds kinds = {{"loss", MetricKind::kShare}, {"errors", MetricKind::kShare}};
  for (const char* name : {"mean", "max", "tool-cpu"}) kinds[name] = MetricKind::kTime;
  for (const char* name :
       {"rate", "lost", "resends", "late", "failed", "shed", "wrong", "knee"}) {
    kinds[name] = MetricKind::kNumber;
  }
  for (const double percent : kPercents) kinds[PercentName(percent)] = MetricKind::kTime;
  for (const std::string& name : process_names) kinds["cpu." + name] = MetricKind::kTime;
  return kinds;
}

MetricValues Measured(const RunResult& result, const std::vector<std::string>& process_names) {
  const StageResult& total = result.total;
  const Tally& tally = total.tally;
  MetricValues values;
  AddLatencyMetrics(tally.login, values);
  AddCpuMetrics(total.cpu, process_names, total.ended, values);
  values["rate"] = PerSecond(total.ok, total.seconds);
  values["lost"] = static_cast<double>(tally.lost);
  values["resends"] = static_cast<double>(tally.resends);
  values["late"] = static_cast<double>(tally.late);
  values["failed"] = static_cast<double>(tally.failed);
  values["shed"] = static_cast<double>(tally.shed);
  values["wrong"] = static_cast<double>(tally.wrong_answers);
  values["knee"] = result.knee_per_s;
  if (tally.started > 0) {
    const auto started = static_cast<double>(tally.started);
    values["loss"] = static_cast<double>(tally.lost) / started;
    values["errors"] =
        static_cast<double>(tally.failed + tally.wrong_answers + tally.lost) / started;
  }
  return values;
}

json ReportJson(const RunResult& result, const std::vector<std::string>& process_names,
                const json& setup) {
  const StageResult& total = result.total;
  const Tally& tally = total.tally;
  json report = {
      {"version", kReportVersion},
      {"mode", "logins"},
      {"setup", setup},
      {"seconds", total.seconds},
      {"logins",
       {{"started", tally.started},
        {"ok", tally.ok},
        {"refused", tally.refused},
        {"failed", tally.failed},
        {"wrong_answers", tally.wrong_answers},
        {"lost", tally.lost},
        {"shed", tally.shed},
        {"decrypted", tally.decrypted},
        {"ok_per_s", PerSecond(total.ok, total.seconds)}}},
      {"tickets", tally.tickets},
      {"resends", tally.resends},
      {"late", tally.late},
      {"unreachable", tally.unreachable},
      {"errors", ErrorsJson(tally)},
      {"complaints", tally.complaints},
      {"latency_ms",
       {{"login", LatencyJson(tally.login)},
        {"as_first", LatencyJson(tally.as_first)},
        {"as", LatencyJson(tally.as)},
        {"tgs", LatencyJson(tally.tgs)}}},
      {"cpu", CpuJson(total, process_names)},
      {"histogram_ms", HistogramJson(tally.login)},
      {"series", SeriesJson(result.series)},
  };
  if (result.is_ramp) {
    report["ramp"] = RampJson(result);
    report["knee_per_s"] = result.knee_per_s;
  }
  return report;
}

std::string ReportText(const RunResult& result, const std::vector<std::string>& process_names) {
  const StageResult& total = result.total;
  const Tally& t = total.tally;
  std::string text = absl::StrFormat(
      "%.0f logins/s: %d logins went well of %d begun in %.2f s; %d were decrypted\n",
      PerSecond(total.ok, total.seconds), t.ok, t.started, total.seconds, t.decrypted);
  absl::StrAppendFormat(&text,
                        "  refused (wrong password) %d, failed %d, wrong answers %d, lost %d, shed "
                        "%d; resends %d, late answers %d, unreachable %d; service tickets %d\n",
                        t.refused, t.failed, t.wrong_answers, t.lost, t.shed, t.resends, t.late,
                        t.unreachable, t.tickets);
  for (const auto& [code, count] : t.errors) {
    absl::StrAppendFormat(&text, "  error %d %s: %d expected, %d not\n", code, ErrorName(code),
                          count.expected, count.unexpected);
  }
  for (const std::string& complaint : t.complaints) {
    absl::StrAppend(&text, "  WRONG ", complaint, "\n");
  }
  absl::StrAppend(&text, LatencyLine("login", t.login));
  absl::StrAppend(&text, LatencyLine("AS, first", t.as_first), LatencyLine("AS", t.as),
                  LatencyLine("TGS", t.tgs));
  MetricValues cpu;
  AddCpuMetrics(total.cpu, process_names, total.ended, cpu);
  if (const auto own = cpu.find("tool-cpu"); own != cpu.end()) {
    absl::StrAppendFormat(&text, "  CPU of this program %.1f us per login\n", own->second * 1e6);
  }
  for (const std::string& name : process_names) {
    if (const auto value = cpu.find("cpu." + name); value != cpu.end()) {
      absl::StrAppendFormat(&text, "  CPU of %s %.4f s per 1,000 logins\n", name, value->second);
    }
  }
  if (result.is_ramp) text += RampText(result);
  return text;
}

}  // namespace mpckdc::storm
