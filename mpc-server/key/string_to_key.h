// SPDX-License-Identifier: Apache-2.0
//
// Enctypes by name, and base keys of passwords.
#ifndef MPC_SERVER_KEY_STRING_TO_KEY_H_
#define MPC_SERVER_KEY_STRING_TO_KEY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/key/enctype.h"

namespace mpckdc {

// A count above this is refused: it would only stop the caller for hours.
inline constexpr uint32_t kMaxIterations = 10'000'000;

// 16 or 32; 0 for an enctype that this project does not share.
size_t BaseKeyBytes(int32_t enctype);

// "aes256-gcm", "aes256-cts-hmac-sha1-96", ..., or the number.
std::string EnctypeName(int32_t enctype);

// Accepts the names above, krb5's aliases of them and the numbers.
absl::StatusOr<int32_t> EnctypeFromName(absl::string_view name);

// All of them, for texts.
std::string EnctypeNames();

// The count meant when the KDC sends no parameters: 4096 (RFC 3962 section 4, and the gcm
// enctypes), 32768 (RFC 8009 section 4).
uint32_t DefaultIterations(int32_t enctype);

// The base key of a password.
//   17, 18  DK(PBKDF2-HMAC-SHA1(password, salt), "kerberos"); the gcm enctypes share it
//   19, 20  KDF-HMAC-SHA2(PBKDF2-HMAC-SHA2(password, enctype's name | 00 | salt), "kerberos")
// The default count without `iterations`.
absl::StatusOr<SecretBytes> StringToKey(int32_t enctype, absl::Span<const uint8_t> password,
                                        absl::Span<const uint8_t> salt,
                                        std::optional<uint32_t> iterations = std::nullopt);

}  // namespace mpckdc

#endif  // MPC_SERVER_KEY_STRING_TO_KEY_H_
