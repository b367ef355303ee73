// SPDX-License-Identifier: Apache-2.0
//
// Certificates of this project: spiffe://REALM/mpc/ROLE/NAME names who holds one.
#ifndef MPC_SERVER_PACKAGE_CERTIFICATE_H_
#define MPC_SERVER_PACKAGE_CERTIFICATE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace mpckdc::enroll {

// spiffe://REALM/mpc/ROLE/NAME, a certificate's only URI name.
struct RoleName {
  std::string realm;
  std::string role;  // "kdc", "admin" or "peer"
  std::string name;
};

absl::StatusOr<RoleName> ParseRoleName(absl::string_view uri);

struct CertificateFacts {
  std::string uri;  // empty when the certificate has none, or more than one
  int uri_count = 0;
  absl::Time not_before;
  absl::Time not_after;
  std::string der;
};

// The first certificate in the text.
absl::StatusOr<CertificateFacts> ParseCertificate(absl::string_view pem);
absl::StatusOr<CertificateFacts> ReadCertificate(const std::string& file);

// That the certificate has `role` in `realm` and is valid at `now`; `who` starts the error text.
absl::Status CheckCertificate(const CertificateFacts& facts, absl::string_view who,
                              absl::string_view realm, absl::string_view role, absl::Time now);

// A whole small file; at most 1 MiB.
absl::StatusOr<std::string> ReadSmallFile(const std::string& file);

}  // namespace mpckdc::enroll

#endif  // MPC_SERVER_PACKAGE_CERTIFICATE_H_
