// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/key/string_to_key.h"

#include <openssl/evp.h>

#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/key/derivation.h"

namespace mpckdc {
namespace {

constexpr uint8_t kKerberos[] = {'k', 'e', 'r', 'b', 'e', 'r', 'o', 's'};

struct Alias {
  absl::string_view name;
  int32_t enctype;
};

// Other names of krb5's that are in use.
constexpr Alias kAliases[] = {
    {"aes256-gcm-gmac", kEnctypeAes256Gcm},  {"aes128-gcm-gmac", kEnctypeAes128Gcm},
    {"aes256-cts", kEnctypeAes256Sha1},      {"aes128-cts", kEnctypeAes128Sha1},
    {"aes256-sha1", kEnctypeAes256Sha1},     {"aes128-sha1", kEnctypeAes128Sha1},
    {"aes256-sha2", kEnctypeAes256Sha384},   {"aes128-sha2", kEnctypeAes128Sha256},
};

const EVP_MD* PasswordHash(const Enctype& enctype) {
  if (enctype.family != EnctypeFamily::kRfc8009) return EVP_sha1();
  return enctype.hash == HashKind::kSha384 ? EVP_sha384() : EVP_sha256();
}

// RFC 8009 section 4: an enctype's keys differ from another's of the same password.
std::vector<uint8_t> FullSalt(const Enctype& enctype, absl::Span<const uint8_t> salt) {
  std::vector<uint8_t> full;
  if (enctype.family == EnctypeFamily::kRfc8009) {
    full.assign(enctype.name.begin(), enctype.name.end());
    full.push_back(0);
  }
  full.insert(full.end(), salt.begin(), salt.end());
  return full;
}

absl::Status CheckInput(size_t password_bytes, size_t salt_bytes, uint32_t iterations) {
  if (iterations == 0 || iterations > kMaxIterations) {
    return absl::InvalidArgumentError(
        absl::StrCat("iteration count ", iterations, " is not within 1 to ", kMaxIterations));
  }
  constexpr size_t kMaxInput = std::numeric_limits<int>::max();
  if (password_bytes > kMaxInput || salt_bytes > kMaxInput) {
    return absl::InvalidArgumentError("password or salt too long");
  }
  return absl::OkStatus();
}

}  // namespace

size_t BaseKeyBytes(int32_t enctype) {
  const Enctype* found = FindEnctype(enctype);
  return found == nullptr ? 0 : found->key_bytes;
}

std::string EnctypeName(int32_t enctype) {
  const Enctype* found = FindEnctype(enctype);
  return found == nullptr ? absl::StrCat(enctype) : std::string(found->name);
}

std::string EnctypeNames() {
  std::vector<absl::string_view> names;
  for (const Enctype& enctype : kEnctypes) names.push_back(enctype.name);
  return absl::StrJoin(names, ", ");
}

absl::StatusOr<int32_t> EnctypeFromName(absl::string_view name) {
  for (const Enctype& enctype : kEnctypes) {
    if (name == enctype.name) return enctype.number;
  }
  for (const Alias& alias : kAliases) {
    if (name == alias.name) return alias.enctype;
  }
  int32_t number = 0;
  if (absl::SimpleAtoi(name, &number) && FindEnctype(number) != nullptr) return number;
  return absl::InvalidArgumentError(
      absl::StrCat("unknown enctype \"", name, "\": expected one of ", EnctypeNames()));
}

uint32_t DefaultIterations(int32_t enctype) {
  const Enctype* found = FindEnctype(enctype);
  return found != nullptr && found->family == EnctypeFamily::kRfc8009 ? 32768 : 4096;
}

absl::StatusOr<SecretBytes> StringToKey(int32_t enctype, absl::Span<const uint8_t> password,
                                        absl::Span<const uint8_t> salt,
                                        std::optional<uint32_t> iterations) {
  const Enctype* found = FindEnctype(enctype);
  if (found == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("no string-to-key for enctype ", enctype));
  }
  const uint32_t count = iterations.value_or(DefaultIterations(enctype));
  const std::vector<uint8_t> full_salt = FullSalt(*found, salt);
  RETURN_IF_ERROR(CheckInput(password.size(), full_salt.size(), count));
  SecretBytes stretched(found->key_bytes);
  if (PKCS5_PBKDF2_HMAC(reinterpret_cast<const char*>(password.data()),
                        static_cast<int>(password.size()), full_salt.data(),
                        static_cast<int>(full_salt.size()), static_cast<int>(count),
                        PasswordHash(*found), static_cast<int>(stretched.size()),
                        stretched.data()) != 1) {
    return absl::InternalError("PBKDF2 failed");
  }
  if (found->family != EnctypeFamily::kRfc8009) return Rfc3961Dk(stretched, kKerberos);
  return Rfc8009Kdf(found->hash, stretched, kKerberos, found->key_bytes);
}

}  // namespace mpckdc
