// SPDX-License-Identifier: Apache-2.0
//
// Signs share packages with the administrator's (or kadmind's) TLS identity: ECDSA P-256 or Ed25519,
// role admin.
#ifndef MPC_SERVER_PACKAGE_PACKAGE_SIGNER_H_
#define MPC_SERVER_PACKAGE_PACKAGE_SIGNER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct evp_pkey_st;

namespace mpckdc::enroll {

// A key and its certificate.
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

#endif  // MPC_SERVER_PACKAGE_PACKAGE_SIGNER_H_
