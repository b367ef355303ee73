// SPDX-License-Identifier: Apache-2.0
//
// What key is in a certificate, before OpenSSL decodes it. With a certificate OpenSSL decodes its
// key, whoever vouches for it or nobody, and an elliptic curve may come with the key, made so that
// one square root takes seconds:
//
//     a curve of the sender's, over the prime 8073 * 2^648 + 1     2,400 ms     641 bytes
//     a point of P-224 that is compressed                             10 ms     122 bytes
//     any other key                                                    1 ms
//
// (Of a certificate, by OpenSSL 3.0.19.)
#ifndef MPC_SERVER_BASE_KEY_OUTLINE_H_
#define MPC_SERVER_BASE_KEY_OUTLINE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace mpckdc {

// Of the contents of a certificate's outer SEQUENCE, in DER. OK: if its key is of an elliptic
// curve, that has a name, and the point is there in full.
absl::Status CheckCertificateKey(absl::string_view certificate);

}  // namespace mpckdc

#endif  // MPC_SERVER_BASE_KEY_OUTLINE_H_
