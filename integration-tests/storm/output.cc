// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/output.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
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
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "mpc-server/base/status_macros.h"

extern char** environ;

namespace mpckdc::storm {
namespace {

constexpr char kPython[] = "/usr/bin/python3";  // Debian's own, which has Debian's matplotlib

absl::Status WriteFile(const std::string& file, const std::string& text) {
  std::ofstream out(file, std::ios::trunc);
  out << text << "\n";
  out.close();
  if (out) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(file, " cannot be written: ", strerror(errno)));
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

absl::Status Bad(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("--fail-if \"", text, "\": ", why));
}

absl::Status Draw(std::string script, const std::string& report, const std::string& picture) {
  if (access(script.c_str(), R_OK) != 0) {
    return absl::NotFoundError(absl::StrCat("--plot: ", script, " is missing"));
  }
  std::error_code no_folder;  // then mkstemp() says why
  std::string file = std::filesystem::temp_directory_path(no_folder) / "login-storm-XXXXXX";
  const int fd = mkstemp(file.data());
  if (fd < 0) return absl::InternalError(absl::StrCat("--plot: ", strerror(errno)));
  close(fd);
  const absl::Cleanup remove = [&file] { unlink(file.c_str()); };
  RETURN_IF_ERROR(WriteFile(file, report));
  std::string python = kPython, in = file, out = picture;
  char* const argv[] = {python.data(), script.data(), in.data(), out.data(), nullptr};
  pid_t child = 0;
  int status = 0;
  if (posix_spawn(&child, kPython, nullptr, nullptr, argv, environ) != 0 ||
      waitpid(child, &status, 0) != child || status != 0) {
    return absl::InternalError(absl::StrCat(
        "--plot: ", script, " failed; it needs ", kPython, " and Debian's python3-matplotlib"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string FindPlotScript() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return program.parent_path() / "login-storm-plot";
}

absl::StatusOr<Threshold> ParseThreshold(absl::string_view text, const MetricKinds& metrics) {
  const size_t at = text.find_first_of("<>");
  if (at == absl::string_view::npos) return Bad(text, "no < or >; for example p99>250ms");
  Threshold t;
  t.text = std::string(text);
  t.metric = std::string(absl::StripAsciiWhitespace(text.substr(0, at)));
  const auto known = metrics.find(t.metric);
  if (known == metrics.end()) {
    return Bad(text, absl::StrCat("no metric \"", t.metric, "\" in this run; there are: ",
                                  absl::StrJoin(metrics, " ", [](std::string* out, const auto& m) {
                                    absl::StrAppend(out, m.first);
                                  })));
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
  if (given != known->second || !absl::SimpleAtod(value, &number) || !std::isfinite(number)) {
    return Bad(text, absl::StrCat(t.metric, " is compared with ",
                                  kWanted[static_cast<size_t>(known->second)]));
  }
  t.value = number * factor;
  return t;
}

std::optional<std::string> Exceeded(const Threshold& threshold, const MetricValues& values) {
  const auto value = values.find(threshold.metric);
  if (value == values.end()) {
    return absl::StrCat(threshold.text, ": ", threshold.metric, " was not measured");
  }
  const double measured = value->second, limit = threshold.value;
  if (!(threshold.above ? measured > limit : measured < limit) &&
      !(threshold.or_equal && measured == limit)) {
    return std::nullopt;
  }
  return absl::StrCat(threshold.text, ": ", threshold.metric, " is ", measured);
}

absl::StatusOr<ExitStatus> Conclude(const Options& options, std::string text, nlohmann::json report,
                                    const MetricValues& values,
                                    const std::vector<Threshold>& thresholds) {
  ExitStatus status = kFine;
  nlohmann::json limits = nlohmann::json::array();
  for (const Threshold& threshold : thresholds) {
    const std::optional<std::string> why = Exceeded(threshold, values);
    limits.push_back({{"limit", threshold.text}, {"exceeded", why.has_value()}});
    if (!why.has_value()) continue;
    status = kLimitExceeded;
    absl::StrAppend(&text, "FAILED ", *why, "\n");
  }
  report["limits"] = limits;
  if (values.at("wrong") > 0) status = kWrongAnswers;
  const std::string json = report.dump(2);
  if (options.json == "-") {
    printf("%s\n", json.c_str());
  } else {
    fputs(text.c_str(), stdout);
    if (!options.json.empty()) {
      RETURN_IF_ERROR(WriteFile(options.json, json));
    }
  }
  fflush(stdout);
  if (!options.plot.empty()) {
    RETURN_IF_ERROR(Draw(options.plot_script, json, options.plot));
  }
  return status;
}

}  // namespace mpckdc::storm
