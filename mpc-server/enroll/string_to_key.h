// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_ENROLL_STRING_TO_KEY_H_
#define MPC_SERVER_ENROLL_STRING_TO_KEY_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mpc-server/enctype/enctype.h"
#include "mpc-server/secret/secret.h"

namespace mpckdc::enroll {

// RFC 3962 section 4: the count meant when the KDC sends no parameters.
inline constexpr uint32_t kDefaultIterations = 4096;
// A count above this is refused: it would only stop the caller for hours.
inline constexpr uint32_t kMaxIterations = 10'000'000;

// 16 or 32; 0 for an enctype that this project does not share.
size_t BaseKeyBytes(int32_t enctype);

// "aes128-gcm", "aes256-gcm", or the number.
std::string EnctypeName(int32_t enctype);

// Accepts the names above and the numbers.
absl::StatusOr<int32_t> EnctypeFromName(absl::string_view name);

// The base key of a password, RFC 3962 section 4: DK(PBKDF2-HMAC-SHA1(password, salt), "kerberos").
// The gcm enctypes share it with enctypes 17 and 18 (doc/enctype.md).
absl::StatusOr<SecretBytes> StringToKey(int32_t enctype, absl::Span<const uint8_t> password,
                                        absl::Span<const uint8_t> salt,
                                        uint32_t iterations = kDefaultIterations);

}  // namespace mpckdc::enroll

#endif  // MPC_SERVER_ENROLL_STRING_TO_KEY_H_
