// SPDX-License-Identifier: Apache-2.0
// Certificates that nobody signed, with keys that OpenSSL takes long to decode.
#ifndef MPC_SERVER_TESTING_SLOW_KEYS_H_
#define MPC_SERVER_TESTING_SLOW_KEYS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace mpckdc {

// Of a curve that comes with the key: y^2 = x^3 + x + 49 over p = 8073 * 2^648 + 1, with the point
// of x = 0, compressed. Its y is a square root of 49, and p - 1 is so even that OpenSSL squares
// some 200,000 times for it; it does so several times over.
std::string KeyOfItsOwnCurve();
// Of P-224, whose prime is even enough for some milliseconds.
std::string CompressedKey();
std::string CertificateOfKey(absl::string_view key_info);

// CMS of signed data with these certificates, in DER or, where lengths are not said, BER.
std::string CmsWith(const std::vector<std::string>& certificates, bool with_lengths = true);
// The same certificates where another kind of CMS has them: of who encrypted something.
std::string EnvelopedWith(const std::vector<std::string>& certificates);

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_SLOW_KEYS_H_
