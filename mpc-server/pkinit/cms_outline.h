// SPDX-License-Identifier: Apache-2.0
//
// What is in a CMS message, before OpenSSL decodes it: of 32 KiB of certificates that take long
// (base/key_outline.h) it would make two minutes.
#ifndef MPC_SERVER_PKINIT_CMS_OUTLINE_H_
#define MPC_SERVER_PKINIT_CMS_OUTLINE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace mpckdc {

// OK: signed data with no more certificates than limits::kMaxProofCertificates, none of which takes
// long. The message may be in BER, as CMS allows; certificates must be in DER.
absl::Status CheckOutline(absl::string_view cms);

}  // namespace mpckdc

#endif  // MPC_SERVER_PKINIT_CMS_OUTLINE_H_
