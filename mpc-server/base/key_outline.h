// SPDX-License-Identifier: Apache-2.0
//
// What is in a certificate, before OpenSSL decodes it and looks for who vouches for it. With it
// OpenSSL decodes its key, which may be of an elliptic curve that comes with the key, made so that
// one square root takes seconds; and looking for an issuer, it writes out where lists of what is
// revoked are found. Where that is told relative to the issuer's name, it makes a copy of all that
// name for each place:
//
//     a curve of the sender's, over the prime 8073 * 2^648 + 1      2,400 ms      641 bytes
//     1,500 names of the issuer, 1,500 places relative to them      2,200 ms   19,644 bytes, 265 MB
//     a point of P-224 that is compressed                              10 ms      122 bytes
//     any other key                                                     1 ms
//
// (Of a certificate, by OpenSSL 3.0.19.)
#ifndef MPC_SERVER_BASE_KEY_OUTLINE_H_
#define MPC_SERVER_BASE_KEY_OUTLINE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace mpckdc {

// Of the contents of a certificate's outer SEQUENCE, in DER. OK: if its key is of an elliptic
// curve, that has a name, and the point is there in full; and no distribution point of a list is
// relative to a name (RFC 5280 says that an authority should make none).
absl::Status CheckCertificate(absl::string_view certificate);

}  // namespace mpckdc

#endif  // MPC_SERVER_BASE_KEY_OUTLINE_H_
