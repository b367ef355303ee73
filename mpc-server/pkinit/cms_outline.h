// SPDX-License-Identifier: Apache-2.0
//
// What is in a CMS message, before OpenSSL decodes it. With each certificate OpenSSL decodes its
// key, whoever vouches for it or nobody, and an elliptic curve may come with the key, made so that
// one square root takes seconds:
//
//     a curve of the sender's, over the prime 8073 * 2^648 + 1     2,400 ms     641 bytes
//     a point of P-224 that is compressed                             10 ms     122 bytes
//     any other key                                                    1 ms
//
// (Of a certificate, by OpenSSL 3.0.19.) 32 KiB of such certificates would be two minutes.
#ifndef MPC_SERVER_PKINIT_CMS_OUTLINE_H_
#define MPC_SERVER_PKINIT_CMS_OUTLINE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace mpckdc {

// OK: signed data with no more certificates than limits::kMaxProofCertificates, whose EC keys are
// points in full, of curves that have names. The message may be in BER, as CMS allows;
// certificates must be in DER.
absl::Status CheckOutline(absl::string_view cms);

}  // namespace mpckdc

#endif  // MPC_SERVER_PKINIT_CMS_OUTLINE_H_
