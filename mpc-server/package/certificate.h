// SPDX-License-Identifier: Apache-2.0
//
// Certificates of this project: spiffe://REALM/mpc/ROLE/NAME names who holds one. And what is
// signed with an administrator's: share packages.
#ifndef MPC_SERVER_PACKAGE_CERTIFICATE_H_
#define MPC_SERVER_PACKAGE_CERTIFICATE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "mpc-server/base/secret.h"

struct evp_pkey_st;

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

// That the PEM private key, which has no password, is the first certificate's.
absl::Status CheckKeyBelongs(absl::string_view certificate_pem, absl::string_view key_pem);

// A whole file in locked memory; more than `max_bytes` is an InvalidArgument.
absl::StatusOr<SecretBytes> ReadWholeFile(const std::string& file, size_t max_bytes);
// A whole small file; at most 1 MiB.
absl::StatusOr<std::string> ReadSmallFile(const std::string& file);

// Signs share packages with the administrator's (or kadmind's) TLS identity, a key and its
// certificate: ECDSA P-256 or Ed25519, role admin.
class PackageSigner {
 public:
  // Errors name the file and say what is wrong with it: unreadable, another key type, a key that
  // is not the certificate's.
  static absl::StatusOr<PackageSigner> FromPemFiles(const std::string& certificate_file,
                                                    const std::string& key_file);
  static absl::StatusOr<PackageSigner> FromPem(absl::string_view certificate_pem,
                                               absl::string_view key_pem);

  // Over "mpc-kdc share package v1\0" | sealed.
  absl::StatusOr<std::string> Sign(absl::string_view sealed) const;

  const std::string& certificate_der() const { return certificate_der_; }

 private:
  PackageSigner(std::shared_ptr<evp_pkey_st> key, std::string certificate_der);

  std::shared_ptr<evp_pkey_st> key_;
  std::string certificate_der_;
};

// The check that servers make, without the certificate's chain and role.
absl::Status VerifyPackageSignature(absl::string_view certificate_der, absl::string_view sealed,
                                    absl::string_view signature);

}  // namespace mpckdc::enroll

#endif  // MPC_SERVER_PACKAGE_CERTIFICATE_H_
