// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/crypto.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace mpckdc::storm {
namespace {

absl::Status CryptoError(absl::string_view what, krb5_error_code code) {
  return absl::InternalError(absl::StrCat(what, ": libk5crypto error ", code));
}

// Takes over what libk5crypto made, which is wiped.
absl::StatusOr<Key> TakeKey(krb5_keyblock& block, absl::string_view maker, krb5_error_code code) {
  if (code != 0) return CryptoError(maker, code);
  absl::StatusOr<Key> key = Key::FromBytes(block.enctype, {block.contents, block.length});
  krb5_free_keyblock_contents(nullptr, &block);
  return key;
}

}  // namespace

krb5_data AsData(Bytes bytes) {
  return {KV5M_DATA, static_cast<unsigned>(bytes.size()),
          const_cast<char*>(reinterpret_cast<const char*>(bytes.data()))};
}

Bytes View(const krb5_data& data) {
  return {reinterpret_cast<const uint8_t*>(data.data), data.length};
}

absl::StatusOr<int32_t> EnctypeByName(absl::string_view name) {
  int32_t number = 0;
  krb5_enctype enctype = 0;
  std::string text(name);
  if (absl::SimpleAtoi(name, &number)) {
    enctype = number;
  } else if (krb5_string_to_enctype(text.data(), &enctype) != 0) {
    enctype = 0;
  }
  if (!krb5_c_valid_enctype(enctype)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "libkrb5 knows no enctype \"", name, "\"; for example aes128-gcm, aes256-cts, 17"));
  }
  return enctype;
}

std::string EnctypeText(int32_t enctype) {
  char name[64];
  if (krb5_enctype_to_name(enctype, /*shortest=*/TRUE, name, sizeof name) != 0) {
    return absl::StrCat(enctype);
  }
  return name;
}

size_t EnctypeKeyBytes(int32_t enctype) {
  size_t bytes = 0, length = 0;
  return krb5_c_keylengths(nullptr, enctype, &bytes, &length) == 0 ? length : 0;
}

int32_t ChecksumTypeOf(int32_t enctype) {
  switch (enctype) {
    case ENCTYPE_AES128_CTS_HMAC_SHA1_96:
      return CKSUMTYPE_HMAC_SHA1_96_AES128;
    case ENCTYPE_AES256_CTS_HMAC_SHA1_96:
      return CKSUMTYPE_HMAC_SHA1_96_AES256;
    default:
      return enctype;  // the others have one number for both
  }
}

absl::StatusOr<Key> Key::FromBytes(int32_t enctype, Bytes bytes) {
  if (bytes.empty() || bytes.size() != EnctypeKeyBytes(enctype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a key of ", bytes.size(), " bytes, ", EnctypeText(enctype), " has ",
                     EnctypeKeyBytes(enctype)));
  }
  krb5_keyblock block = {};
  block.enctype = enctype;
  block.length = static_cast<unsigned>(bytes.size());
  block.contents = const_cast<krb5_octet*>(bytes.data());
  krb5_key key = nullptr;
  const krb5_error_code code = krb5_k_create_key(nullptr, &block, &key);
  if (code != 0) return CryptoError("krb5_k_create_key", code);
  return Key(key);
}

absl::StatusOr<Key> Key::FromPassword(int32_t enctype, Bytes password,
                                      krb5_const_principal principal) {
  const krb5_data password_data = AsData(password);
  krb5_data salt = {};
  krb5_keyblock block = {};
  krb5_error_code code = krb5_principal2salt(nullptr, principal, &salt);
  if (code == 0) code = krb5_c_string_to_key(nullptr, enctype, &password_data, &salt, &block);
  krb5_free_data_contents(nullptr, &salt);
  return TakeKey(block, "krb5_c_string_to_key", code);
}

absl::StatusOr<Key> Key::Random(int32_t enctype) {
  krb5_keyblock block = {};
  const krb5_error_code code = krb5_c_make_random_key(nullptr, enctype, &block);
  return TakeKey(block, "krb5_c_make_random_key", code);
}

absl::Status Key::Prepare() {
  const uint8_t some[16] = {};
  uint8_t cipher[128], plain[128];
  int32_t type = 0;
  Bytes checksum, opened;
  for (const int usage : {kUsageTimestamp, kUsageAsReply}) {
    const Bytes message = Encrypt(usage, some, absl::MakeSpan(cipher));
    // Decrypting makes the other direction's key schedule.
    if (message.empty() || !Decrypt(usage, message, absl::MakeSpan(plain), opened)) {
      return absl::InternalError(
          absl::StrCat("libk5crypto does not open its own message of ", EnctypeText(enctype())));
    }
  }
  if (!Checksum(kUsageAsRequest, some, absl::MakeSpan(cipher), type, checksum)) {
    return absl::InternalError(
        absl::StrCat("libk5crypto makes no checksum of ", EnctypeText(enctype())));
  }
  return absl::OkStatus();
}

Bytes Key::Encrypt(int usage, Bytes plaintext, absl::Span<uint8_t> buffer) const {
  size_t length = 0;
  if (krb5_c_encrypt_length(nullptr, enctype(), plaintext.size(), &length) != 0) return {};
  if (length > buffer.size()) return {};
  const krb5_data input = AsData(plaintext);
  krb5_enc_data output = {};
  output.ciphertext = AsData(buffer.subspan(0, length));
  if (krb5_k_encrypt(nullptr, key_, usage, nullptr, &input, &output) != 0) return {};
  return buffer.subspan(0, output.ciphertext.length);
}

bool Key::Decrypt(int usage, Bytes message, absl::Span<uint8_t> buffer, Bytes& plaintext) const {
  if (buffer.size() < message.size()) return false;
  krb5_enc_data input = {};
  input.enctype = enctype();
  input.ciphertext = AsData(message);
  krb5_data output = AsData(buffer.subspan(0, message.size()));
  if (krb5_k_decrypt(nullptr, key_, usage, nullptr, &input, &output) != 0) return false;
  plaintext = buffer.subspan(0, output.length);
  return true;
}

bool Key::Checksum(int usage, Bytes data, absl::Span<uint8_t> buffer, int32_t& type,
                   Bytes& checksum) const {
  const krb5_data input = AsData(data);
  krb5_checksum made = {};
  if (krb5_k_make_checksum(nullptr, /*cksumtype=*/0, key_, usage, &input, &made) != 0) return false;
  const bool fits = made.length <= buffer.size();
  if (fits) memcpy(buffer.data(), made.contents, made.length);
  type = made.checksum_type;
  checksum = buffer.subspan(0, fits ? made.length : 0);
  krb5_free_checksum_contents(nullptr, &made);
  return fits;
}

bool Key::VerifyChecksum(int usage, Bytes data, int32_t type, Bytes checksum) const {
  const krb5_data input = AsData(data);
  krb5_checksum given = {};
  given.checksum_type = type;
  given.length = static_cast<unsigned>(checksum.size());
  given.contents = const_cast<krb5_octet*>(checksum.data());
  krb5_boolean valid = FALSE;
  return krb5_k_verify_checksum(nullptr, key_, usage, &input, &given, &valid) == 0 && valid;
}

}  // namespace mpckdc::storm
