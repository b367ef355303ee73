// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_SERVICE_TLS13_H_
#define MPC_SERVER_SERVICE_TLS13_H_

#include "absl/status/status.h"

namespace mpckdc {

// Makes TLS 1.3 the only version of this process, for gRPC too.
//
// gRPC 1.51 sets the range TLS 1.2 to 1.3 on each of its contexts and offers no public way to
// change it. So TLS 1.2 is switched off one level below: in OpenSSL's configuration of new
// contexts, given here from memory. It does not depend on OPENSSL_CONF or the system's openssl.cnf
// (both are loaded first and keep what they say about providers and engines), and a later call of
// SSL_CTX_set_min_proto_version does not undo it. Call before the first TLS context is made.
absl::Status RequireTls13();

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_TLS13_H_
