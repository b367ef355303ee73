// SPDX-License-Identifier: Apache-2.0
// Throw-away authorities for clients, their certificates, and logins that are signed with these:
// good ones, and each of what is wrong with others.
#ifndef MPC_SERVER_TESTING_PKINIT_H_
#define MPC_SERVER_TESTING_PKINIT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "mpc-server/job/certificate_proof.h"
#include "mpc-server/pkinit/openssl_types.h"

namespace mpckdc {

// One element; contents may be elements again.
std::string Der(uint8_t tag, absl::string_view contents);
std::string DerNumber(int64_t value);
std::string DerPrincipal(const std::vector<std::string>& components);  // PrincipalName
// otherName of a subjectAltName: an id-pkinit-san, or a user principal name.
std::string PkinitSan(const std::string& realm, const std::vector<std::string>& components);
std::string UpnSan(const std::string& upn);
std::string DnsSan(const std::string& host);

inline constexpr char kPkinitClientEku[] = "1.3.6.1.5.2.3.4";
inline constexpr char kSmartCardEku[] = "1.3.6.1.4.1.311.20.2.2";

struct ClientCertOptions {
  std::vector<std::string> sans = {PkinitSan("EXAMPLE.COM", {"alice"})};
  std::string eku = kPkinitClientEku;         // empty: none
  std::string key_usage = "digitalSignature";  // empty: none
  absl::Duration starts = -absl::Hours(1), ends = absl::Hours(1);  // from now
  const EVP_MD* md = EVP_sha256();
  int rsa_bits = 0;  // 0: EC P-256
  bool is_ca = false;
};

struct ClientCert {
  X509Ptr certificate;
  PkeyPtr key;
};

// One authority, with the PEM files of a server that believes it.
class ClientAuthority {
 public:
  explicit ClientAuthority(const std::string& name = "clients", int rsa_bits = 0);
  // Below `issuer`.
  ClientAuthority(const ClientAuthority& issuer, const std::string& name);

  ClientCert Issue(const ClientCertOptions& options = {}) const;
  // A list of what is revoked, good from now on for so long.
  std::string CrlPem(const std::vector<const X509*>& revoked,
                     absl::Duration ends = absl::Hours(1)) const;
  X509* certificate() const { return own_.certificate.get(); }
  std::string pem() const;

 private:
  ClientCert own_;
};

struct LoginOptions {
  std::vector<std::string> client = {"alice"};
  std::vector<std::string> server = {"krbtgt", "EXAMPLE.COM"};
  std::string realm = "EXAMPLE.COM";
  absl::Time time = absl::Now();
  const EVP_MD* md = EVP_sha256();     // of the signature
  const EVP_MD* second = nullptr;      // of paChecksum2
  bool with_checksum = true;
  bool with_attributes = true;
  std::string content_type = "1.3.6.1.5.2.3.1";
  std::vector<X509*> also_sent{};      // beside the signer's
  std::string signed_body{};           // empty: the body that is sent
};

std::string RequestBodyDer(const LoginOptions& options);
std::string AuthPackDer(const LoginOptions& options, absl::string_view body);
std::string SignCms(absl::string_view content, const ClientCert& signer,
                    const LoginOptions& options = {});
std::string PaPkAsReq(absl::string_view cms);
CertificateProof SignLogin(const ClientCert& signer, const LoginOptions& options = {});

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_PKINIT_H_
