// SPDX-License-Identifier: Apache-2.0
// Which records protect a connection after its handshake, agreed by ALPN inside it, and the change
// from TLS's records to our own. Internal to wire/.
#ifndef MPC_SERVER_WIRE_RECORD_CHOICE_H_
#define MPC_SERVER_WIRE_RECORD_CHOICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "mpc-server/wire/tls_channel.h"
#include "mpc-server/wire/tls_link.h"

namespace mpckdc {

// Makes connections of `ctx` offer and accept what `records` says, the fastest first. Error: aead
// is asked for and this build or CPU does not have it.
absl::Status OfferRecords(PeerRecords records, SSL_CTX* ctx);

// After the handshake: what was agreed; an error when the peer agreed to nothing.
absl::StatusOr<PeerRecords> AgreedRecords(const SSL* ssl);

// After the last byte of the greeting: the link for frames. `client` and `server` are the parties.
absl::StatusOr<std::unique_ptr<Link>> StartRecords(std::unique_ptr<TlsLink> link, int client,
                                                   int server, bool we_are_client);

}  // namespace mpckdc

#endif  // MPC_SERVER_WIRE_RECORD_CHOICE_H_
