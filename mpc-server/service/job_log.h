// SPDX-License-Identifier: Apache-2.0
//
// Jobs that were not computed, or not for their client's good, in the server's log: who follows one
// login has its request's name from krb5kdc's log and finds it here. The name is what the KDC says:
// a number, so that it can bring nothing else into a log, and nothing is decided by it. The audit
// log has every job; this one has, of each verdict, limits::kRefusalLinesPerSecond of a second.
#ifndef MPC_SERVER_SERVICE_JOB_LOG_H_
#define MPC_SERVER_SERVICE_JOB_LOG_H_

#include <cstdint>
#include <string>

#include "mpc-server/job/job.h"

namespace mpckdc {

// As krb5kdc's log spells it, 16 digits; empty: none.
std::string RequestText(uint64_t request);

struct LoggedJob {
  std::string kdc;
  JobId id = 0;
  std::string what;  // "LOGIN", "a tag"
  uint64_t request = 0;
};

// Nothing of one that was computed and is good.
void LogJob(const LoggedJob& job, const Judgement& judgement);

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_JOB_LOG_H_
