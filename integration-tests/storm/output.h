// SPDX-License-Identifier: Apache-2.0
//
// Where a report goes: text, JSON file, plot; thresholds, and the exit status.
#ifndef INTEGRATION_TESTS_STORM_OUTPUT_H_
#define INTEGRATION_TESTS_STORM_OUTPUT_H_

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "integration-tests/storm/options.h"

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
// Names that may be used in this run, with their kinds.
using MetricKinds = std::map<std::string, MetricKind>;
// What was measured; a metric without a value (no login, no percentile) is missing.
using MetricValues = std::map<std::string, double>;

struct Threshold {
  std::string text;
  std::string metric;
  bool above = true;  // > or >=
  bool or_equal = false;
  double value = 0;
};
absl::StatusOr<Threshold> ParseThreshold(absl::string_view text, const MetricKinds& metrics);
// Why the run fails by this threshold: a sentence; nullopt when it does not. A metric that was not
// measured fails: a run without logins must not pass a limit on their latency.
std::optional<std::string> Exceeded(const Threshold& threshold, const MetricValues& values);

// login-storm(8), EXIT STATUS.
enum ExitStatus { kFine = 0, kLimitExceeded = 1, kNotRun = 2, kWrongAnswers = 3 };

// Where --plot's script is: beside the program, where both the build and the installation put it.
std::string FindPlotScript();

// Prints, writes and draws what the options ask for, judges, and returns the exit status.
absl::StatusOr<ExitStatus> Conclude(const Options& options, std::string text, nlohmann::json report,
                                    const MetricValues& values,
                                    const std::vector<Threshold>& thresholds);

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_OUTPUT_H_
