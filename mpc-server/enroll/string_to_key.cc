// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/enroll/string_to_key.h"

#include <openssl/evp.h>

#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/enroll/usage_keys.h"

namespace mpckdc::enroll {

size_t BaseKeyBytes(int32_t enctype) {
  switch (enctype) {
    case kEnctypeAes128Gcm:
      return 16;
    case kEnctypeAes256Gcm:
      return 32;
    default:
      return 0;
  }
}

std::string EnctypeName(int32_t enctype) {
  switch (enctype) {
    case kEnctypeAes128Gcm:
      return "aes128-gcm";
    case kEnctypeAes256Gcm:
      return "aes256-gcm";
    default:
      return absl::StrCat(enctype);
  }
}

absl::StatusOr<int32_t> EnctypeFromName(absl::string_view name) {
  int32_t enctype = 0;
  if (name == "aes128-gcm") return kEnctypeAes128Gcm;
  if (name == "aes256-gcm") return kEnctypeAes256Gcm;
  if (absl::SimpleAtoi(name, &enctype) && BaseKeyBytes(enctype) != 0) return enctype;
  return absl::InvalidArgumentError(
      absl::StrCat("unknown enctype \"", name, "\": expected aes128-gcm or aes256-gcm"));
}

absl::StatusOr<SecretBytes> StringToKey(int32_t enctype, absl::Span<const uint8_t> password,
                                        absl::Span<const uint8_t> salt, uint32_t iterations) {
  const size_t key_bytes = BaseKeyBytes(enctype);
  if (key_bytes == 0) {
    return absl::InvalidArgumentError(absl::StrCat("no string-to-key for enctype ", enctype));
  }
  if (iterations == 0 || iterations > kMaxIterations) {
    return absl::InvalidArgumentError(
        absl::StrCat("iteration count ", iterations, " is not within 1 to ", kMaxIterations));
  }
  constexpr size_t kMaxInput = std::numeric_limits<int>::max();
  if (password.size() > kMaxInput || salt.size() > kMaxInput) {
    return absl::InvalidArgumentError("password or salt too long");
  }
  SecretBytes stretched(key_bytes);
  if (PKCS5_PBKDF2_HMAC(reinterpret_cast<const char*>(password.data()),
                        static_cast<int>(password.size()), salt.data(),
                        static_cast<int>(salt.size()), static_cast<int>(iterations), EVP_sha1(),
                        static_cast<int>(key_bytes), stretched.data()) != 1) {
    return absl::InternalError("PBKDF2 failed");
  }
  static constexpr uint8_t kKerberos[] = {'k', 'e', 'r', 'b', 'e', 'r', 'o', 's'};
  return DeriveKey(stretched, kKerberos);
}

}  // namespace mpckdc::enroll
