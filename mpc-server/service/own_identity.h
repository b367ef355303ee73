// SPDX-License-Identifier: Apache-2.0
//
// This server's certificate, key and authority: everything that can be wrong with them is found
// here, at the start, and said with the file's name.
#ifndef MPC_SERVER_SERVICE_OWN_IDENTITY_H_
#define MPC_SERVER_SERVICE_OWN_IDENTITY_H_

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpc-server/service/config.h"

namespace mpckdc {

struct OwnIdentity {
  absl::Time expires;
};

// The certificate has the role peer in the realm and the name configured for this party, is valid
// at `now`, comes from the authority, and belongs to the key; others cannot read the key.
absl::StatusOr<OwnIdentity> CheckOwnIdentity(const Config& config, absl::Time now);

// Mutual TLS for the gRPC port. The files are watched: a renewed certificate is used for new
// connections without a restart. RequireTls13() must have been called.
std::shared_ptr<grpc::ServerCredentials> ServiceCredentials(const Config::Identity& identity);

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_OWN_IDENTITY_H_
