// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/report.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mpckdc::storm {
namespace {

using nlohmann::json;

constexpr int kReportVersion = 1;
constexpr double kPercents[] = {50, 90, 99, 99.9};
// By Login::Step.
constexpr struct {
  const char* key;
  const char* label;
} kExchanges[] = {{"as_first", "AS, first"}, {"as", "AS"}, {"tgs", "TGS"}};

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

}  // namespace

MetricKinds KnownMetrics(const Options& options) {
  MetricKinds kinds;
  for (const char* name : {"mean", "max", "tool-cpu"}) kinds[name] = MetricKind::kTime;
  for (const char* name : {"rate", "failed", "wrong"}) kinds[name] = MetricKind::kNumber;
  for (const double percent : kPercents) kinds[PercentName(percent)] = MetricKind::kTime;
  for (const auto& [name, pid] : options.processes) kinds["cpu." + name] = MetricKind::kTime;
  if (options.mode == Mode::kJobs) {
    kinds["servers-cpu"] = MetricKind::kTime;
    return kinds;
  }
  for (const char* name : {"lost", "resends", "late", "shed", "knee"}) {
    kinds[name] = MetricKind::kNumber;
  }
  for (const char* name : {"loss", "errors"}) kinds[name] = MetricKind::kShare;
  return kinds;
}

MetricValues Measured(const RunResult& result) {
  const StageResult& total = result.total;
  const Tally& tally = total.tally;
  MetricValues values;
  if (tally.login.count() > 0) {
    for (const double percent : kPercents) {
      values[PercentName(percent)] = absl::ToDoubleSeconds(tally.login.Percentile(percent));
    }
    values["mean"] = absl::ToDoubleSeconds(tally.login.Mean());
    values["max"] = absl::ToDoubleSeconds(tally.login.max());
  }
  if (const auto logins = static_cast<double>(total.ended); logins > 0) {
    values["tool-cpu"] = total.cpu.own / logins;
    double all = 0;
    for (const auto& [name, seconds] : total.cpu.others) {
      all += seconds;
      if (std::isfinite(seconds)) values["cpu." + name] = seconds * 1000 / logins;
    }
    if (!total.cpu.others.empty() && std::isfinite(all)) values["servers-cpu"] = all / logins;
  }
  values["rate"] = PerSecond(total.ok, total.seconds);
  values["knee"] = result.knee_per_s;
  for (const auto& [name, count] : {std::pair("lost", tally.lost), {"resends", tally.resends},
                                    {"late", tally.late}, {"failed", tally.failed},
                                    {"shed", tally.shed}, {"wrong", tally.wrong_answers}}) {
    values[name] = static_cast<double>(count);
  }
  if (const auto started = static_cast<double>(tally.started); started > 0) {
    values["loss"] = values["lost"] / started;
    values["errors"] = (values["failed"] + values["wrong"] + values["lost"]) / started;
  }
  return values;
}

json ReportJson(Mode mode, const RunResult& result, const MetricValues& values, const json& setup) {
  const StageResult& total = result.total;
  const Tally& tally = total.tally;
  const auto value = [&](const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? json(nullptr) : json(found->second);
  };
  json per_1000 = json::object();
  for (const auto& [name, seconds] : total.cpu.others) per_1000[name] = value("cpu." + name);
  json report = {
      {"version", kReportVersion},
      {"mode", mode == Mode::kJobs ? "jobs" : "logins"},
      {"setup", setup},
      {"seconds", total.seconds},
      {"logins",
       {{"started", tally.started},
        {"ok", tally.ok},
        {"failed", tally.failed},
        {"wrong_answers", tally.wrong_answers},
        {"ok_per_s", value("rate")}}},
      {"complaints", tally.complaints},
      {"latency_ms", {{"login", LatencyJson(tally.login)}}},
      {"cpu",
       {{"tool_seconds_per_login", value("tool-cpu")}, {"seconds_per_1000_logins", per_1000}}},
      {"histogram_ms", HistogramJson(tally.login)},
      {"series",
       {{"interval_s", absl::ToDoubleSeconds(limits::kSeriesInterval)},
        {"ok", result.series.ok},
        {"other", result.series.other}}},
  };
  if (mode == Mode::kJobs) {
    report["oracle"] = {{"compared", tally.checked}, {"tickets_opened", tally.tickets}};
    report["verdicts"] = tally.verdicts;
    report["latency_ms"]["job"] = LatencyJson(tally.exchanges[0]);
    report["cpu"]["servers_seconds_per_login"] = value("servers-cpu");
    return report;
  }
  report["logins"].update({{"refused", tally.refused},
                           {"lost", tally.lost},
                           {"shed", tally.shed},
                           {"decrypted", tally.checked}});
  report.update({{"tickets", tally.tickets},
                 {"resends", tally.resends},
                 {"late", tally.late},
                 {"unreachable", tally.unreachable},
                 {"errors", ErrorsJson(tally)}});
  for (size_t i = 0; i < tally.exchanges.size(); ++i) {
    report["latency_ms"][kExchanges[i].key] = LatencyJson(tally.exchanges[i]);
  }
  if (result.is_ramp) {
    report.update({{"ramp", RampJson(result)}, {"knee_per_s", result.knee_per_s}});
  }
  return report;
}

std::string ReportText(Mode mode, const RunResult& result, const MetricValues& values) {
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
    if (const auto value = values.find(name); value != values.end()) {
      absl::StrAppendFormat(&text, "  CPU of %s %.4g %s\n", what, value->second * factor, unit);
    }
  };
  line("this program", "tool-cpu", 1e6, "us per login");
  for (const auto& [name, seconds] : total.cpu.others) {
    line(name.c_str(), "cpu." + name, 1, "s per 1,000 logins");
  }
  if (jobs) line("all watched together", "servers-cpu", 1e6, "us per login");
  if (result.is_ramp) text += RampText(result);
  return text;
}

}  // namespace mpckdc::storm
