// SPDX-License-Identifier: Apache-2.0
//
// Verifies logins by certificate, by this server's own anchors, rules and clock:
//
//   PA-PK-AS-REQ -> CMS SignedData: one signer, signed attributes, content id-pkinit-authData
//     certificate -> chain to an anchor, good now, not revoked; key usages; names the client
//     signature   -> AuthPack -> checksum of the KDC-REQ-BODY, which names client and server
//
// What it is given came from the network, through a KDC that may be anybody's. What it does for it
// is bounded (base/limits.h): bytes, certificates, the length of a chain.
#ifndef MPC_SERVER_PKINIT_VERIFIER_H_
#define MPC_SERVER_PKINIT_VERIFIER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpc-server/job/certificate_proof.h"
#include "mpc-server/pkinit/client_certificate.h"
#include "mpc-server/pkinit/openssl_types.h"

namespace mpckdc {

struct PkinitOptions {
  std::string anchors;  // PEM: self-signed certificates; empty: nobody logs in by certificate
  std::string pool;     // PEM: certificates between them and clients' that clients may leave out
  std::string crls;     // PEM; empty: nothing is revoked
  bool crls_required = true;  // with crls: of each issuer in a chain, and not past its next update
  EkuRule eku = EkuRule::kPkinit;
  bool allow_upn = false;
  // Signatures with SHA-1, and RSA keys of 1024 bits and more; without it, of 2048.
  bool allow_sha1 = false;
};

class PkinitVerifier {
 public:
  // An error names the file.
  static absl::StatusOr<std::unique_ptr<PkinitVerifier>> Load(const PkinitOptions& options);

  // Any thread, several at once.
  CertificateFinding Verify(const CertificateProof& proof, absl::Time now) const;

  int anchors() const { return anchors_; }

 private:
  explicit PkinitVerifier(const PkinitOptions& options) : options_(options) {}

  absl::StatusOr<CertificateFinding> Check(const CertificateProof& proof, absl::Time now) const;
  absl::StatusOr<std::string> SignedContent(absl::string_view der, absl::Time now,
                                            X509Ptr* signer) const;
  absl::Status CheckChain(X509* signer, STACK_OF(X509) * sent, absl::Time now) const;

  const PkinitOptions options_;
  StorePtr store_;      // anchors and lists of revoked certificates
  X509StackPtr pool_;
  int anchors_ = 0;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_PKINIT_VERIFIER_H_
