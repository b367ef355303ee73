// SPDX-License-Identifier: Apache-2.0
//
// What a run says at its end: text for people, JSON for programs, a plot; thresholds, and the exit
// status.
#ifndef INTEGRATION_TESTS_STORM_REPORT_H_
#define INTEGRATION_TESTS_STORM_REPORT_H_

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "integration-tests/storm/run.h"

namespace mpckdc::storm {

// --fail-if 'p99>250ms': what makes a run a failure.
//
//     threshold ::= metric op value        op ::= > | < | >= | <=
//     value     ::= number [ us | ms | s | % ]
//
// Each metric has a kind, and a value of another kind is an error: 'p99>250' is nobody's wish.
enum class MetricKind {
  kTime,    // seconds; the unit is required
  kNumber,  // no unit
  kShare,   // 0 to 1; '%' is required
};
struct Metric {
  MetricKind kind;
  double value = NAN;  // NaN: it was not measured (no login, no percentile)
};
using Metrics = std::map<std::string, Metric>;
// What may be used in this run, not measured yet.
Metrics KnownMetrics(const Options& options);

struct Threshold {
  std::string text;
  std::string metric;
  bool above = true;  // > or >=
  bool or_equal = false;
  double value = 0;
};
absl::StatusOr<Threshold> ParseThreshold(absl::string_view text, const Metrics& metrics);
// Why the run fails by this threshold: a sentence; nullopt when it does not. A metric that was not
// measured fails: a run without logins must not pass a limit on their latency.
std::optional<std::string> Exceeded(const Threshold& threshold, const Metrics& metrics);

// login-storm(8), EXIT STATUS.
enum ExitStatus { kFine = 0, kLimitExceeded = 1, kNotRun = 2, kWrongAnswers = 3 };

// Where --plot's script is: beside the program, where both the build and the installation put it.
std::string FindPlotScript();

// Prints, writes and draws what the options ask for, judges, and returns the exit status. `setup`:
// how the run was asked for, copied into the JSON report, as `more` is.
absl::StatusOr<ExitStatus> Conclude(const Options& options, const RunResult& result,
                                    const std::vector<Threshold>& thresholds,
                                    const nlohmann::json& setup, const nlohmann::json& more);

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_REPORT_H_
