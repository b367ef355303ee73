// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_ADMIN_SURVEY_H_
#define MPC_SERVER_ADMIN_SURVEY_H_

#include <array>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpc-server/admin/session.h"

namespace mpckdc::admin {

// One server's status and what was noticed while asking for it.
struct SurveyedServer {
  std::string address;
  std::string certificate;  // its name
  absl::Status error;       // not OK: no status
  v1::StatusReply status;
  absl::Duration round_trip;
  absl::Duration clock_difference;  // its clock minus ours, at the middle of the round trip
};

// Asks the three at once, in the order of the configuration; a server that does not answer is no
// error of the survey.
absl::StatusOr<std::array<SurveyedServer, 3>> SurveyServers(Session& session);

}  // namespace mpckdc::admin

#endif  // MPC_SERVER_ADMIN_SURVEY_H_
