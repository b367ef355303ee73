// SPDX-License-Identifier: Apache-2.0
// A throw-away certificate authority for tests and benches; in a library of its own.
#ifndef MPC_SERVER_TESTING_CERTIFICATES_H_
#define MPC_SERVER_TESTING_CERTIFICATES_H_

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "mpc-server/wire/tls_channel.h"

namespace mpckdc {

// Lives in a directory of its own, which goes with it. EC P-256 keys.
class TestCa {
 public:
  TestCa();
  ~TestCa();
  TestCa(const TestCa&) = delete;
  TestCa& operator=(const TestCa&) = delete;

  const std::string& ca_file() const { return ca_file_; }
  struct Identity {
    std::string certificate_file;
    std::string key_file;
  };
  // A certificate with these URI names.
  Identity Issue(const std::string& name, const std::vector<std::string>& uris,
                 int valid_seconds = 3600);

 private:
  struct FreeKey {
    void operator()(EVP_PKEY* k) const { EVP_PKEY_free(k); }
  };
  struct FreeCertificate {
    void operator()(X509* c) const { X509_free(c); }
  };
  using Key = std::unique_ptr<EVP_PKEY, FreeKey>;
  using Certificate = std::unique_ptr<X509, FreeCertificate>;
  Certificate Make(EVP_PKEY* subject, const std::string& name,
                   const std::vector<std::string>& uris, int valid_seconds);

  std::string directory_, ca_file_;
  std::vector<std::string> files_;
  Key key_;
  Certificate certificate_;
  long serial_ = 1;
};

// Options of three parties on free loopback ports, certificates spiffe://TEST/mpc/peer/p{0,1,2}.
std::array<TlsPeerOptions, 3> TestPeerOptions(TestCa& ca);

// Connects three parties as `options` say; element i is party i's channel. Aborts on failure.
std::array<std::unique_ptr<PeerChannel>, 3> ConnectThree(
    const std::array<TlsPeerOptions, 3>& options);

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_CERTIFICATES_H_
