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
// `algorithm` is the object's bytes in hex: OpenSSL reads SM2's keys as any curve's.
inline constexpr char kAnyCurve[] = "2a8648ce3d0201", kSm2[] = "2a811ccf5501822d";
std::string KeyOfItsOwnCurve(absl::string_view algorithm = kAnyCurve);
// Of P-224, whose prime is even enough for some milliseconds.
std::string CompressedKey();
std::string FullKey();  // a quick one: of P-256, the generator, in full
std::string CertificateOfKey(absl::string_view key_info);
// Of a quick key, with one extension: so many distribution points with as many names in the issuer's,
// which OpenSSL writes out for each point that is told relative to it.
std::string CertificateOfPoints(int points, int names, bool relative = true);

// CMS of signed data with these certificates, in DER or, where lengths are not said, BER.
std::string CmsWith(const std::vector<std::string>& certificates, bool with_lengths = true);
// The same, where some readers of BER find none and OpenSSL finds them: their tag has two bytes, or
// what is before them seems to end early.
std::string CmsWithLongTag(const std::vector<std::string>& certificates);
std::string CmsWithFalseEnd(const std::vector<std::string>& certificates);
// The same certificates where another kind of CMS has them: of who encrypted something.
std::string EnvelopedWith(const std::vector<std::string>& certificates);

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_SLOW_KEYS_H_
