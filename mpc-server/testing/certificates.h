// SPDX-License-Identifier: Apache-2.0
// Throw-away certificate authorities for tests and benches; in a library of its own.
#ifndef MPC_SERVER_TESTING_CERTIFICATES_H_
#define MPC_SERVER_TESTING_CERTIFICATES_H_

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "mpc-server/wire/tls_channel.h"

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

// In memory, and certificates good and bad. EC P-256 keys.
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

// One whose files are in a directory of its own, which goes with it.
class TestCa {
 public:
  TestCa();
  ~TestCa();
  TestCa(const TestCa&) = delete;
  TestCa& operator=(const TestCa&) = delete;

  std::string ca_file() const { return directory_ + "/ca.pem"; }
  struct Identity {
    std::string certificate_file;
    std::string key_file;
  };
  // A certificate with these URI names.
  Identity Issue(const std::string& name, const std::vector<std::string>& uris,
                 absl::Duration ends = absl::Hours(1));

 private:
  const TestAuthority authority_;
  std::string directory_;
  int issued_ = 0;
};

// Options of three parties on free loopback ports, certificates spiffe://TEST/mpc/peer/p{0,1,2}.
std::array<TlsPeerOptions, 3> TestPeerOptions(TestCa& ca);

// Connects three parties as `options` say; element i is party i's channel. Aborts on failure.
std::array<std::unique_ptr<PeerChannel>, 3> ConnectThree(
    const std::array<TlsPeerOptions, 3>& options);

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_CERTIFICATES_H_
