// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_ENROLL_PEER_CREDENTIALS_H_
#define MPC_SERVER_ENROLL_PEER_CREDENTIALS_H_

#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mpckdc::enroll {

struct AdminIdentity;

// Mutual TLS. A server is accepted when its certificate comes from our CA, is for the host that was
// dialled, and has the role peer in the realm; this is decided in the handshake, before a request
// is sent. Our own certificate must have the role `own_role` and be valid now.
//
// For one channel only. With one object for several channels that connect at once, gRPC 1.51 lets
// the second start its handshake before the certificates have reached it, and fails the call with
// "Failed to create security handshaker".
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> PeerCredentials(
    const AdminIdentity& identity, const std::string& realm,
    absl::string_view own_role = "admin");

}  // namespace mpckdc::enroll

#endif  // MPC_SERVER_ENROLL_PEER_CREDENTIALS_H_
