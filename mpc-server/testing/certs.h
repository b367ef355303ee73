// SPDX-License-Identifier: Apache-2.0
//
// A certificate authority in memory, and certificates good and bad. For tests.
#ifndef MPC_SERVER_TESTING_CERTS_H_
#define MPC_SERVER_TESTING_CERTS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"

typedef struct evp_pkey_st EVP_PKEY;
typedef struct x509_st X509;

namespace mpckdc {

struct TestCert {
  std::string certificate_pem;
  std::string key_pem;
  std::string der;
};

struct TestCertOptions {
  std::vector<std::string> uris = {"spiffe://EXAMPLE.COM/mpc/peer/p0"};
  absl::Duration starts = -absl::Hours(1);  // from now
  absl::Duration ends = absl::Hours(1);
};

class TestAuthority {
 public:
  TestAuthority();

  const std::string& ca_pem() const { return ca_.certificate_pem; }
  // Also valid for the host names localhost and 127.0.0.1.
  TestCert Issue(const TestCertOptions& options) const;
  // In realm EXAMPLE.COM.
  TestCert IssueRole(const std::string& role, const std::string& name) const;

 private:
  TestCert ca_;
  std::shared_ptr<EVP_PKEY> key_;
  std::shared_ptr<X509> certificate_;
};

// Writes FOLDER/NAME.pem and FOLDER/NAME.key (mode 0600).
void WriteCert(const std::string& folder, const std::string& name, const TestCert& cert);

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_CERTS_H_
