// SPDX-License-Identifier: Apache-2.0
//
// login-storm jobs: the three servers without a KDC.
#ifndef INTEGRATION_TESTS_STORM_JOBS_MODE_H_
#define INTEGRATION_TESTS_STORM_JOBS_MODE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "integration-tests/storm/cpu_meter.h"
#include "integration-tests/storm/options.h"
#include "integration-tests/storm/output.h"
#include "integration-tests/storm/users.h"

namespace mpckdc::storm {

absl::StatusOr<ExitStatus> RunJobs(const Options& options, const CpuMeter& cpu);

// The users that the options name, with their keys made; with progress on a terminal.
absl::StatusOr<std::vector<User>> UsersOfOptions(const Options& options);

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_JOBS_MODE_H_
