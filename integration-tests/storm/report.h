// SPDX-License-Identifier: Apache-2.0
//
// What a run says at its end: text for people, JSON for programs, and the metrics for --fail-if.
#ifndef INTEGRATION_TESTS_STORM_REPORT_H_
#define INTEGRATION_TESTS_STORM_REPORT_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "integration-tests/storm/cpu_meter.h"
#include "integration-tests/storm/run.h"
#include "integration-tests/storm/threshold.h"

namespace mpckdc::storm {

// Names for --fail-if: those of the mode's runs, and cpu.NAME for each name of --pid.
MetricKinds KnownMetrics(Mode mode, const std::vector<std::string>& process_names);
// Those that this run has.
MetricValues Measured(const RunResult& result, const std::vector<std::string>& process_names);

// `setup`: how the run was asked for, copied into the report.
nlohmann::json ReportJson(Mode mode, const RunResult& result,
                          const std::vector<std::string>& process_names,
                          const nlohmann::json& setup);
std::string ReportText(Mode mode, const RunResult& result,
                       const std::vector<std::string>& process_names);

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_REPORT_H_
