// SPDX-License-Identifier: Apache-2.0
// Certificates of the peer connections: loading our own, judging the other side's. Internal to
// transport/.
#ifndef MPC_SERVER_WIRE_TLS_IDENTITY_H_
#define MPC_SERVER_WIRE_TLS_IDENTITY_H_

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "mpc-server/wire/tls_channel.h"

namespace mpckdc {

struct FreeSslCtx {
  void operator()(SSL_CTX* c) const { SSL_CTX_free(c); }
};
struct FreeSsl {
  void operator()(SSL* s) const { SSL_free(s); }
};
using SslCtx = std::unique_ptr<SSL_CTX, FreeSslCtx>;
using SslPtr = std::unique_ptr<SSL, FreeSsl>;

// TLS 1.3 only, peer certificate required, no tickets, no session reuse.
absl::StatusOr<SslCtx> MakePeerSslCtx(const TlsPeerOptions& options);

// After the handshake: exactly one URI SAN, spiffe://REALM/mpc/peer/NAME with the name configured
// for `party`; not denied. Returns the certificate's fingerprint.
absl::StatusOr<CertificateFingerprint> CheckPeerCertificate(const TlsPeerOptions& options,
                                                            int party, SSL* ssl);
// Whether a certificate of `party` that was good is denied by now.
absl::Status CheckNotDenied(const TlsPeerOptions& options, int party,
                            const CertificateFingerprint& fingerprint);

// The newest entry of OpenSSL's error queue as text (the others are its causes, deeper in the
// library); clears the queue.
std::string TakeSslError();

}  // namespace mpckdc

#endif  // MPC_SERVER_WIRE_TLS_IDENTITY_H_
