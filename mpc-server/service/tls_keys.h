// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_SERVICE_TLS_KEYS_H_
#define MPC_SERVER_SERVICE_TLS_KEYS_H_

#include "absl/status/status.h"

namespace mpckdc {

// Keeps strangers from having TLS decode certificates that take seconds (base/key_outline.h), at the
// port for clients and at the one for peers: a handshake decodes all that are shown, some 100 KB, and
// looks for their issuers, before anybody is asked who vouches for them, and no timeout ends that.
//
// Neither OpenSSL nor gRPC asks anybody before that. But libssl calls libcrypto's d2i_X509() as any
// program does, by its name, so that a program's own function of that name takes its place
// (ld.so(8), the order in which symbols are looked up). tls_keys.cc has it: it looks at the
// certificate and calls libcrypto's. A certificate that is refused is one that cannot be decoded:
// the handshake ends with decode_error.
//
// OK: it is in place. Not so where libssl is part of the program, or calls another function: then
// the server says so, and starts.
absl::Status TlsLooksAtKeys();

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_TLS_KEYS_H_
