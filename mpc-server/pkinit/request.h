// SPDX-License-Identifier: Apache-2.0
//
// What a login by certificate consists of, in DER (RFC 4120 section 5.4.1, RFC 4556 section 3.2.1;
// fields that say nothing about who asks for what are left out):
//
//   PA-PK-AS-REQ    SEQUENCE { signedAuthPack [0] IMPLICIT OCTET STRING, ... }
//   AuthPack        SEQUENCE { pkAuthenticator [0] PKAuthenticator, ... }
//   PKAuthenticator SEQUENCE { cusec [0] INTEGER, ctime [1] KerberosTime, nonce [2] INTEGER,
//                              paChecksum [3] OCTET STRING OPTIONAL,
//                              freshnessToken [4] OCTET STRING OPTIONAL,
//                              paChecksum2 [5] PAChecksum2 OPTIONAL, ... }
//   PAChecksum2     SEQUENCE { checksum [0] OCTET STRING, algorithm [1] AlgorithmIdentifier }
//   KDC-REQ-BODY    SEQUENCE { kdc-options [0], cname [1] PrincipalName OPTIONAL, realm [2] Realm,
//                              sname [3] PrincipalName OPTIONAL, ... }
//
// The nonce need not be that of the body (RFC 4556).
#ifndef MPC_SERVER_PKINIT_REQUEST_H_
#define MPC_SERVER_PKINIT_REQUEST_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "mpc-server/base/der.h"

namespace mpckdc {

// The CMS message in the value of a PA-PK-AS-REQ.
std::optional<absl::string_view> SignedAuthPackOf(absl::string_view pa_pk_as_req);

struct AuthPack {
  absl::Time time;
  absl::string_view checksum;          // SHA-1 of the body; points into what was decoded
  absl::string_view second_checksum;   // empty: none
  absl::string_view second_algorithm;  // an object identifier's contents
};
std::optional<AuthPack> DecodeAuthPack(absl::string_view der);

// OK if the checksums in `pack` are those of `body`. The first must be there; a second one is
// looked at too.
absl::Status CheckBody(const AuthPack& pack, absl::string_view body);

struct RequestBody {
  std::string client, server;  // unparsed, with realm
};
std::optional<RequestBody> DecodeRequestBody(absl::string_view der);

// A PrincipalName, as krb5_unparse_name() writes it with this realm.
std::optional<std::string> UnparsedName(absl::string_view realm, absl::string_view principal_name);
// KRB5PrincipalName, the value of an id-pkinit-san (RFC 4556 section 3.2.2).
std::optional<std::string> UnparsedSan(absl::string_view der);

}  // namespace mpckdc

#endif  // MPC_SERVER_PKINIT_REQUEST_H_
