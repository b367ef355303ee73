// SPDX-License-Identifier: Apache-2.0
//
// Where a report goes: text, JSON file, plot; and the exit status.
#ifndef INTEGRATION_TESTS_STORM_OUTPUT_H_
#define INTEGRATION_TESTS_STORM_OUTPUT_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "integration-tests/storm/options.h"
#include "integration-tests/storm/threshold.h"

namespace mpckdc::storm {

// login-storm(8), EXIT STATUS.
enum ExitStatus { kFine = 0, kLimitExceeded = 1, kNotRun = 2, kWrongAnswers = 3 };

absl::StatusOr<std::vector<Threshold>> ParseThresholds(const std::vector<std::string>& texts,
                                                       const MetricKinds& metrics);

// Notes where --plot's script is: beside the program, where both the build and the installation put
// it. Once, at the beginning of main().
void FindPlotScript();

struct FinishedRun {
  std::string text;
  nlohmann::json report;
  MetricValues values;
};
// Prints, writes and draws what the options ask for, judges, and returns the exit status.
absl::StatusOr<ExitStatus> Conclude(const Options& options, FinishedRun run,
                                    const std::vector<Threshold>& thresholds);

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_OUTPUT_H_
