// SPDX-License-Identifier: Apache-2.0
//
// A login by certificate (PKINIT, RFC 4556) as a job carries it, and what a server found when it
// verified it by itself (pkinit/): the KDC's word counts for nothing in it.
//
//     the client's signature --> AuthPack: its clock, a nonce, its DH value
//                                    |
//                                    +--> SHA-1 of the KDC-REQ-BODY: who asks for which ticket
//
// Nothing in it is secret.
#ifndef MPC_SERVER_JOB_CERTIFICATE_PROOF_H_
#define MPC_SERVER_JOB_CERTIFICATE_PROOF_H_

#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "mpc-server/job/verdict.h"
#include "mpc-server/key/key_info.h"
#include "mpc-server/key/nonce.h"

namespace mpckdc {

struct CertificateProof {
  std::string pa_pk_as_req;  // the value of PA-PK-AS-REQ, as it came
  std::string request_body;  // KDC-REQ-BODY, as the client encoded it

  bool empty() const { return pa_pk_as_req.empty() && request_body.empty(); }
  friend bool operator==(const CertificateProof&, const CertificateProof&) = default;
};

// What does not depend on any key.
struct CertificateFinding {
  // OK: the signature is good, by a certificate that is good here and now and names `client`, and
  // covers the body.
  Judgement judgement = Refuse(Verdict::kRefused, "not verified");
  std::string client;  // of the body, unparsed, with realm
  std::string server;
  absl::Time time;     // of the client's clock when it signed
  Nonce id{};          // of what was signed: no two logins have it in common
};

// Verifies elsewhere than on the caller's thread, which does not wait.
class CertificateVerifier {
 public:
  using Done = absl::AnyInvocable<void(CertificateFinding)>;

  virtual ~CertificateVerifier() = default;
  // `kdc`: who waits in one line. Calls `done` once, perhaps before it returns, and holds no lock
  // meanwhile.
  virtual void Verify(const std::string& kdc, const CertificateProof& proof, absl::Time deadline,
                      Done done) = 0;
};

// Whether the finding proves that `client` asks, by the clock `now`, for a ticket for `server`.
Judgement CheckCertificate(const CertificateFinding& finding, absl::string_view client,
                           absl::string_view server, absl::Time now, absl::Duration clock_skew);

// What a login by certificate is known by to the replay cache, beside the finding's id: any key of
// the principal would do, so it is none of them.
Handle ReplayHandleOf(const PrincipalId& principal);

}  // namespace mpckdc

#endif  // MPC_SERVER_JOB_CERTIFICATE_PROOF_H_
