// SPDX-License-Identifier: Apache-2.0
//
// This server's certificate, key and authority: everything that can be wrong with them is found
// here, at the start and when they are renewed, and said with the file's name.
#ifndef MPC_SERVER_SERVICE_OWN_IDENTITY_H_
#define MPC_SERVER_SERVICE_OWN_IDENTITY_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/package/package_open.h"
#include "mpc-server/service/config.h"

namespace mpckdc {

struct OwnIdentity {
  std::string certificate, ca;  // PEM, as they were read
  SecretBytes key;
  std::string fingerprint;       // of the certificate
  absl::Time expires;            // the certificate,
  absl::Time authority_expires;  // and the first of those that vouch for it
  Authority authority;
};

// Reads each file once. The certificate has the role peer in the realm and the name configured for
// this party, is valid at `now`, comes from the authority, and belongs to the key; others cannot
// read the key.
absl::StatusOr<OwnIdentity> CheckOwnIdentity(const Config& config, absl::Time now);

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_OWN_IDENTITY_H_
