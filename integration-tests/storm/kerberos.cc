// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/kerberos.h"

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "integration-tests/storm/limits.h"
#include "integration-tests/storm/options.h"
#include "mpc-server/base/bytes.h"

namespace mpckdc::storm {
namespace {

constexpr uint8_t kTgsRepTag = 0x6d, kErrorTag = 0x7e;  // APPLICATION 13, 30
constexpr int64_t kMicro = 1'000'000;

// Takes over what libk5crypto made, which is wiped.
absl::StatusOr<Key> TakeKey(krb5_keyblock& block, absl::string_view maker, krb5_error_code code) {
  if (code != 0) return Bad(maker, ": libk5crypto error ", code);
  absl::StatusOr<Key> key = Key::FromBytes(block.enctype, {block.contents, block.length});
  krb5_free_keyblock_contents(nullptr, &block);
  return key;
}

// Whether one DER element fills the message: libkrb5's decoders do not look at what follows.
bool IsOneElement(Bytes message) {
  ByteReader reader(message);
  reader.Uint(1);
  uint64_t length = reader.Uint(1);
  if (length > 0x84) return false;
  if (length >= 0x80) length = reader.Uint(length & 0x7f);
  return reader.ok() && reader.left() == length;
}

template <class Owner, class T = typename Owner::element_type>
Owner Decode(Decoder<T>* decode, Bytes message) {
  const krb5_data data = AsData(message);
  T* value = nullptr;
  return Owner(IsOneElement(message) && decode(&data, &value) == 0 ? value : nullptr);
}

}  // namespace

krb5_data AsData(Bytes bytes) {
  return {KV5M_DATA, static_cast<unsigned>(bytes.size()),
          const_cast<char*>(reinterpret_cast<const char*>(bytes.data()))};
}

Bytes View(const krb5_data& data) {
  return {reinterpret_cast<const uint8_t*>(data.data), data.length};
}

krb5_pa_data AsPreauth(int type, Bytes contents) {
  return {KV5M_PA_DATA, type, static_cast<unsigned>(contents.size()),
          const_cast<krb5_octet*>(contents.data())};
}

krb5_enc_data AsEncData(int32_t enctype, Bytes cipher) {
  return {KV5M_ENC_DATA, enctype, /*kvno=*/0, AsData(cipher)};
}

absl::StatusOr<int32_t> EnctypeByName(absl::string_view name) {
  krb5_enctype enctype = 0;
  std::string text(name);
  if (!absl::SimpleAtoi(name, &enctype) && krb5_string_to_enctype(text.data(), &enctype) != 0) {
    enctype = 0;
  }
  if (!krb5_c_valid_enctype(enctype)) {
    return Bad("libkrb5 knows no enctype \"", name, "\"; for example aes128-gcm, aes256-cts, 17");
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
  krb5_cksumtype type = 0;
  krb5int_c_mandatory_cksumtype(nullptr, enctype, &type);
  return type;
}

absl::StatusOr<Key> Key::FromBytes(int32_t enctype, Bytes bytes) {
  if (bytes.empty() || bytes.size() != EnctypeKeyBytes(enctype)) {
    return Bad("a key of ", bytes.size(), " bytes, ", EnctypeText(enctype), " has ",
               EnctypeKeyBytes(enctype));
  }
  const krb5_keyblock block = {KV5M_KEYBLOCK, enctype, static_cast<unsigned>(bytes.size()),
                               const_cast<krb5_octet*>(bytes.data())};
  krb5_key key = nullptr;
  const krb5_error_code code = krb5_k_create_key(nullptr, &block, &key);
  if (code != 0) return Bad("krb5_k_create_key: libk5crypto error ", code);
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
  for (const int usage : {kUsageTimestamp, kUsageAsReply}) {
    const Bytes message = Encrypt(usage, some, absl::MakeSpan(cipher));
    // Decrypting makes the other direction's key schedule.
    if (message.empty() || !Decrypt(usage, message, absl::MakeSpan(plain)).has_value()) {
      return Bad("libk5crypto does not open its own message of ", EnctypeText(enctype()));
    }
  }
  if (MakeChecksum(kUsageAsRequest, some) == nullptr) {
    return Bad("libk5crypto makes no checksum of ", EnctypeText(enctype()));
  }
  return absl::OkStatus();
}

Bytes Key::Encrypt(int usage, Bytes plaintext, absl::Span<uint8_t> buffer) const {
  size_t length = 0;
  if (krb5_c_encrypt_length(nullptr, enctype(), plaintext.size(), &length) != 0) return {};
  if (length > buffer.size()) return {};
  const krb5_data input = AsData(plaintext);
  krb5_enc_data output = AsEncData(enctype(), buffer.subspan(0, length));
  if (krb5_k_encrypt(nullptr, key_.get(), usage, nullptr, &input, &output) != 0) return {};
  return buffer.subspan(0, output.ciphertext.length);
}

std::optional<Bytes> Key::Decrypt(int usage, Bytes message, absl::Span<uint8_t> buffer) const {
  if (buffer.size() < message.size()) return std::nullopt;
  const krb5_enc_data input = AsEncData(enctype(), message);
  krb5_data output = AsData(buffer.subspan(0, message.size()));
  if (krb5_k_decrypt(nullptr, key_.get(), usage, nullptr, &input, &output) != 0)
    return std::nullopt;
  return buffer.subspan(0, output.length);
}

Checksum Key::MakeChecksum(int usage, Bytes data) const {
  const krb5_data input = AsData(data);
  Checksum made(static_cast<krb5_checksum*>(calloc(1, sizeof(krb5_checksum))));
  const krb5_error_code code =
      krb5_k_make_checksum(nullptr, /*cksumtype=*/0, key_.get(), usage, &input, made.get());
  return code == 0 ? std::move(made) : nullptr;
}

bool Key::VerifyChecksum(int usage, Bytes data, int32_t type, Bytes checksum) const {
  const krb5_data input = AsData(data);
  const krb5_checksum given = {KV5M_CHECKSUM, type, static_cast<unsigned>(checksum.size()),
                               const_cast<krb5_octet*>(checksum.data())};
  krb5_boolean valid = FALSE;
  return krb5_k_verify_checksum(nullptr, key_.get(), usage, &input, &given, &valid) == 0 && valid;
}

// ---- Messages ----

absl::StatusOr<Principal> ParseName(const std::string& name, const std::string& realm, int type) {
  krb5_principal parsed = nullptr;
  if (krb5_parse_name_flags(nullptr, name.c_str(), KRB5_PRINCIPAL_PARSE_NO_REALM, &parsed) != 0) {
    return Bad("\"", name, "\" is no principal's name without its realm");
  }
  Principal principal(parsed, FreedBy<krb5_free_principal>());
  principal->type = type;
  krb5_set_principal_realm(nullptr, parsed, realm.c_str());
  return principal;
}

absl::StatusOr<Principal> TgsName(const std::string& realm) {
  return ParseName(absl::StrCat("krbtgt/", realm), realm, KRB5_NT_SRV_INST);
}

krb5_kdc_req RequestBody(const Principal& client, const Principal& server,
                         absl::Span<const int32_t> enctypes, int64_t microseconds, uint32_t nonce) {
  krb5_kdc_req body = {};
  body.client = client.get();
  body.server = server.get();
  body.till = static_cast<krb5_timestamp>(microseconds / kMicro + kTicketSeconds);
  body.nonce = static_cast<krb5_int32>(nonce);
  body.nktypes = static_cast<int>(enctypes.size());
  body.ktype = const_cast<krb5_enctype*>(enctypes.data());
  return body;
}

Encoded EncodeTimestamp(int64_t microseconds) {
  return Encode(encode_krb5_pa_enc_ts, {static_cast<krb5_timestamp>(microseconds / kMicro),
                                        static_cast<krb5_int32>(microseconds % kMicro)});
}

Encoded EncodeAsRequest(krb5_kdc_req body, const krb5_enc_data& preauth, bool ask_enc_pa_rep) {
  const Encoded encrypted = Encode(encode_krb5_enc_data, preauth);
  if (encrypted == nullptr) return nullptr;
  krb5_pa_data timestamp = AsPreauth(KRB5_PADATA_ENC_TIMESTAMP, View(*encrypted));
  krb5_pa_data ask = AsPreauth(KRB5_ENCPADATA_REQ_ENC_PA_REP, {});
  krb5_pa_data* preauths[3] = {};
  krb5_pa_data** next = preauths;
  if (preauth.ciphertext.length > 0) *next++ = &timestamp;
  if (ask_enc_pa_rep) *next++ = &ask;
  body.msg_type = KRB5_AS_REQ;
  body.padata = next == preauths ? nullptr : preauths;
  return Encode(encode_krb5_as_req, body);
}

Encoded EncodeTgsRequest(krb5_kdc_req body, const Principal& client, krb5_ticket* tgt,
                         const Key& session, int64_t microseconds) {
  const Encoded encoded_body = Encode(encode_krb5_kdc_req_body, body);
  if (encoded_body == nullptr) return nullptr;
  const Checksum checksum = session.MakeChecksum(kUsageTgsChecksum, View(*encoded_body));
  if (checksum == nullptr) return nullptr;
  krb5_authenticator authenticator = {};
  authenticator.client = client.get();
  authenticator.checksum = checksum.get();
  authenticator.ctime = static_cast<krb5_timestamp>(microseconds / kMicro);
  authenticator.cusec = static_cast<krb5_int32>(microseconds % kMicro);
  const Encoded plain = Encode(encode_krb5_authenticator, authenticator);
  if (plain == nullptr) return nullptr;
  uint8_t cipher[limits::kMaxRequestBytes];
  krb5_ap_req ap = {};
  ap.ticket = tgt;
  ap.authenticator =
      AsEncData(session.enctype(),
                session.Encrypt(kUsageTgsAuthenticator, View(*plain), absl::MakeSpan(cipher)));
  const Encoded ap_request = Encode(encode_krb5_ap_req, ap);
  if (ap_request == nullptr || ap.authenticator.ciphertext.length == 0) return nullptr;
  krb5_pa_data preauth = AsPreauth(KRB5_PADATA_AP_REQ, View(*ap_request));
  krb5_pa_data* preauths[] = {&preauth, nullptr};
  body.msg_type = KRB5_TGS_REQ;
  body.padata = preauths;
  return Encode(encode_krb5_tgs_req, body);
}

Reply DecodeReply(Bytes message) {
  const bool is_tgs = !message.empty() && message[0] == kTgsRepTag;
  Reply reply = Decode<Reply>(is_tgs ? decode_krb5_tgs_rep : decode_krb5_as_rep, message);
  const unsigned type = is_tgs ? KRB5_TGS_REP : KRB5_AS_REP;
  return reply != nullptr && reply->msg_type == type ? std::move(reply) : nullptr;
}

ErrorReply DecodeError(Bytes message) { return Decode<ErrorReply>(decode_krb5_error, message); }

// What libkrb5 decrypts of an enctype that pads may have bytes behind it; ours do not pad.
ReplyPart DecodeReplyPart(Bytes plaintext) {
  return Decode<ReplyPart>(decode_krb5_enc_kdc_rep_part, plaintext);
}

bool IsError(Bytes message) { return !message.empty() && message[0] == kErrorTag; }

// libkrb5 exports no decoder of Checksum, but one of EncryptionKey, which is the same in DER:
// SEQUENCE { type [0] Int32, value [1] OCTET STRING }.
RequestChecksum FindRequestChecksum(const krb5_enc_kdc_rep_part& part) {
  for (krb5_pa_data** each = part.enc_padata; each != nullptr && *each != nullptr; ++each) {
    if ((*each)->pa_type != KRB5_ENCPADATA_REQ_ENC_PA_REP) continue;
    return Decode<RequestChecksum>(decode_krb5_encryption_key,
                                   {(*each)->contents, (*each)->length});
  }
  return nullptr;
}

}  // namespace mpckdc::storm
