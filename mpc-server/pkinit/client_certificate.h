// SPDX-License-Identifier: Apache-2.0
//
// What a client's certificate says about itself. That it is genuine is the verifier's business.
#ifndef MPC_SERVER_PKINIT_CLIENT_CERTIFICATE_H_
#define MPC_SERVER_PKINIT_CLIENT_CERTIFICATE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "mpc-server/pkinit/openssl_types.h"

namespace mpckdc {

// The extended key usage that a client's certificate must have: MIT krb5's pkinit_eku_checking.
enum class EkuRule : uint8_t {
  kPkinit,     // id-pkinit-KPClientAuth
  kSmartCard,  // that, or Microsoft's smart card logon
  kNone,       // whatever
};
absl::Status CheckUsage(X509* certificate, EkuRule rule);

// OK if an id-pkinit-san is `client`, or, if they count, a user principal name is, whose realm may
// be in lower case.
absl::Status CheckNames(X509* certificate, absl::string_view client, bool upn_counts);

// Its subject, for a sentence; at most some hundred characters.
std::string SubjectOf(X509* certificate);

}  // namespace mpckdc

#endif  // MPC_SERVER_PKINIT_CLIENT_CERTIFICATE_H_
