// SPDX-License-Identifier: Apache-2.0
//
// mpc-server --health: asks the server of this configuration how it is, with its own certificate.
// For the probes of containers, which cannot do TLS with a certificate themselves.
#ifndef MPC_SERVER_SERVICE_HEALTH_PROBE_H_
#define MPC_SERVER_SERVICE_HEALTH_PROBE_H_

#include <string>

#include "absl/status/status.h"
#include "mpc-server/service/config.h"

namespace mpckdc {

enum class Health {
  kAlive,   // it answers
  kServes,  // and it serves logins
};

// "alive" or "serves".
absl::StatusOr<Health> ParseHealth(const std::string& text);

// OK, or what is not as it should be.
absl::Status ProbeHealth(const Config& config, Health want);

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_HEALTH_PROBE_H_
