// SPDX-License-Identifier: Apache-2.0
//
// libk5crypto's krb5_k_* on keys that are made once: usage keys that were derived once stay with
// their krb5_key. So all of libk5crypto's enctypes work, ours too, by the code that clients run.
#ifndef INTEGRATION_TESTS_STORM_CRYPTO_H_
#define INTEGRATION_TESTS_STORM_CRYPTO_H_

#include <krb5/krb5.h>

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mpc-server/base/secret.h"

namespace mpckdc::storm {

using Bytes = absl::Span<const uint8_t>;

// libkrb5 takes pointers to mutable bytes also where it only reads.
krb5_data AsData(Bytes bytes);
Bytes View(const krb5_data& data);

// RFC 4120 section 7.5.1.
inline constexpr int kUsageTimestamp = 1;
inline constexpr int kUsageAsReply = 3;
inline constexpr int kUsageTgsChecksum = 6;
inline constexpr int kUsageTgsAuthenticator = 7;
inline constexpr int kUsageTgsReply = 8;
inline constexpr int kUsageAsRequest = 56;  // RFC 6806 section 11

// "aes128-gcm", "aes256-cts", ... as krb5 names them, or a number.
absl::StatusOr<int32_t> EnctypeByName(absl::string_view name);
std::string EnctypeText(int32_t enctype);
size_t EnctypeKeyBytes(int32_t enctype);
// The checksum type that goes with an enctype of ours or of 17 to 20.
int32_t ChecksumTypeOf(int32_t enctype);

// One key. Not for two threads at once: krb5_key derives and keeps usage keys as they are needed.
class Key {
 public:
  Key() = default;
  Key(Key&& other) noexcept { std::swap(key_, other.key_); }
  Key& operator=(Key&& other) noexcept {
    std::swap(key_, other.key_);
    return *this;
  }
  ~Key() { krb5_k_free_key(nullptr, key_); }

  static absl::StatusOr<Key> FromBytes(int32_t enctype, Bytes bytes);
  // With the principal's default salt.
  static absl::StatusOr<Key> FromPassword(int32_t enctype, Bytes password,
                                          krb5_const_principal principal);
  static absl::StatusOr<Key> Random(int32_t enctype);

  bool valid() const { return key_ != nullptr; }
  int32_t enctype() const { return krb5_k_key_enctype(nullptr, key_); }

  // Derives and keeps what a login needs, so that the first login costs what the others do.
  absl::Status Prepare();

  // Into `buffer`, of which the part that was written is returned; empty: libk5crypto refused.
  Bytes Encrypt(int usage, Bytes plaintext, absl::Span<uint8_t> buffer) const;
  // Into `buffer`, at least as large as the message. False: wrong key or altered message.
  bool Decrypt(int usage, Bytes message, absl::Span<uint8_t> buffer, Bytes& plaintext) const;
  // The enctype's own checksum type, and its checksum.
  bool Checksum(int usage, Bytes data, absl::Span<uint8_t> buffer, int32_t& type,
                Bytes& checksum) const;
  bool VerifyChecksum(int usage, Bytes data, int32_t type, Bytes checksum) const;

 private:
  explicit Key(krb5_key key) : key_(key) {}
  krb5_key key_ = nullptr;
};

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_CRYPTO_H_
