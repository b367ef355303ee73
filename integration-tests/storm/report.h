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

inline constexpr int kReportVersion = 1;

// Names for --fail-if: those of every run, and cpu.NAME for each name of --pid.
MetricKinds KnownMetrics(const std::vector<std::string>& process_names);
// Those that this run has.
MetricValues Measured(const RunResult& result, const std::vector<std::string>& process_names);

// `setup`: how the run was asked for, copied into the report.
nlohmann::json ReportJson(const RunResult& result, const std::vector<std::string>& process_names,
                          const nlohmann::json& setup);
std::string ReportText(const RunResult& result, const std::vector<std::string>& process_names);

// Parts that login-storm jobs reports alike.
nlohmann::json LatencyJson(const LatencyHistogram& histogram);
std::string LatencyLine(const std::string& name, const LatencyHistogram& histogram);
nlohmann::json HistogramJson(const LatencyHistogram& histogram);
nlohmann::json SeriesJson(const Series& series);
void AddLatencyMetrics(const LatencyHistogram& login, MetricValues& values);
// Adds the CPU times per login of this program and of the watched processes.
void AddCpuMetrics(const CpuMeter::Reading& cpu, const std::vector<std::string>& names,
                   uint64_t logins, MetricValues& values);

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_REPORT_H_
