// SPDX-License-Identifier: Apache-2.0
//
// After an overload a KDC's socket is full of requests that nobody waits for any more. Their
// answers go to ports that this process is about to give up, and that the next one on this machine
// may get. So a run ends when the KDC has answered a request that was queued after all others.
#ifndef INTEGRATION_TESTS_STORM_CATCH_UP_H_
#define INTEGRATION_TESTS_STORM_CATCH_UP_H_

#include "absl/time/time.h"
#include "integration-tests/storm/users.h"
#include "integration-tests/storm/worker.h"

namespace mpckdc::storm {

// One login more, asked for again every second. False: no answer in this time, or none can be had.
bool WaitUntilCaughtUp(const LoadPlan& load, const User& user, absl::Duration at_most);

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_CATCH_UP_H_
