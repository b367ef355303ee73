// SPDX-License-Identifier: Apache-2.0
//
// What a run says at its end: text for people, JSON for programs, and the metrics for --fail-if.
#ifndef INTEGRATION_TESTS_STORM_REPORT_H_
#define INTEGRATION_TESTS_STORM_REPORT_H_

#include <nlohmann/json.hpp>
#include <string>

#include "integration-tests/storm/output.h"
#include "integration-tests/storm/run.h"

namespace mpckdc::storm {

// Names for --fail-if: those of the mode's runs, and cpu.NAME for each name of --pid.
MetricKinds KnownMetrics(const Options& options);
// Those that this run has.
MetricValues Measured(const RunResult& result);

// `setup`: how the run was asked for, copied into the report.
nlohmann::json ReportJson(Mode mode, const RunResult& result, const MetricValues& values,
                          const nlohmann::json& setup);
std::string ReportText(Mode mode, const RunResult& result, const MetricValues& values);

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_REPORT_H_
