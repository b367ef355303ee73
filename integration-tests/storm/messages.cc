// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/messages.h"

#include "absl/strings/str_cat.h"
#include "integration-tests/storm/limits.h"

namespace mpckdc::storm {
namespace {

constexpr uint8_t kTgsRepTag = 0x6d, kErrorTag = 0x7e;  // APPLICATION 13, 30
constexpr int64_t kMicro = 1'000'000;

// Whether one DER element fills the message: libkrb5's decoders do not look at what follows.
bool IsOneElement(Bytes message) {
  if (message.size() < 2) return false;
  size_t header = 2, length = message[1];
  if (length >= 0x80) {
    header += length & 0x7f;
    if (header > 6 || message.size() < header) return false;
    length = 0;
    for (size_t i = 2; i < header; ++i) length = length << 8 | message[i];
  }
  return header + length == message.size();
}

template <class Owner, class T = typename Owner::element_type>
Owner Decode(krb5_error_code (*decode)(const krb5_data*, T**), Bytes message) {
  const krb5_data data = AsData(message);
  T* value = nullptr;
  return Owner(IsOneElement(message) && decode(&data, &value) == 0 ? value : nullptr);
}

krb5_pa_data Preauth(int type, const krb5_data* value) {
  krb5_pa_data data = {KV5M_PA_DATA, type, 0, nullptr};
  if (value != nullptr) {
    data.length = value->length;
    data.contents = reinterpret_cast<krb5_octet*>(value->data);
  }
  return data;
}

krb5_enc_data AsEncData(const EncryptedData& data) {
  krb5_enc_data enc = {};
  enc.enctype = data.enctype;
  enc.ciphertext = AsData(data.cipher);
  return enc;
}

}  // namespace

absl::StatusOr<Principal> ParseName(const std::string& name, const std::string& realm, int type) {
  krb5_principal parsed = nullptr;
  if (krb5_parse_name_flags(nullptr, name.c_str(), KRB5_PRINCIPAL_PARSE_NO_REALM, &parsed) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", name, "\" is no principal's name without its realm"));
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
                         absl::Span<const int32_t> enctypes, uint32_t till, uint32_t nonce) {
  krb5_kdc_req body = {};
  body.client = client.get();
  body.server = server.get();
  body.till = static_cast<krb5_timestamp>(till);
  body.nonce = static_cast<krb5_int32>(nonce);
  body.nktypes = static_cast<int>(enctypes.size());
  body.ktype = const_cast<krb5_enctype*>(enctypes.data());
  return body;
}

Encoded EncodeTimestamp(int64_t microseconds) {
  return Encode(encode_krb5_pa_enc_ts, {static_cast<krb5_timestamp>(microseconds / kMicro),
                                        static_cast<krb5_int32>(microseconds % kMicro)});
}

Encoded EncodeAsRequest(krb5_kdc_req body, const EncryptedData& preauth, bool ask_enc_pa_rep) {
  const Encoded encrypted = Encode(encode_krb5_enc_data, AsEncData(preauth));
  krb5_pa_data timestamp = Preauth(KRB5_PADATA_ENC_TIMESTAMP, encrypted.get());
  krb5_pa_data ask = Preauth(KRB5_ENCPADATA_REQ_ENC_PA_REP, nullptr);
  krb5_pa_data* preauths[3] = {};
  krb5_pa_data** next = preauths;
  if (!preauth.cipher.empty()) *next++ = &timestamp;
  if (ask_enc_pa_rep) *next++ = &ask;
  body.msg_type = KRB5_AS_REQ;
  body.padata = next == preauths ? nullptr : preauths;
  return Encode(encode_krb5_as_req, body);
}

Encoded EncodeTgsRequest(krb5_kdc_req body, const Principal& client, krb5_ticket* tgt,
                         const Key& session, int64_t microseconds) {
  uint8_t mac[64], cipher[limits::kMaxRequestBytes];
  Bytes checksum;
  krb5_checksum body_checksum = {};
  const Encoded encoded_body = Encode(encode_krb5_kdc_req_body, body);
  if (encoded_body == nullptr ||
      !session.Checksum(kUsageTgsChecksum, View(*encoded_body), absl::MakeSpan(mac),
                        body_checksum.checksum_type, checksum)) {
    return nullptr;
  }
  body_checksum.length = static_cast<unsigned>(checksum.size());
  body_checksum.contents = mac;
  krb5_authenticator authenticator = {};
  authenticator.client = client.get();
  authenticator.checksum = &body_checksum;
  authenticator.ctime = static_cast<krb5_timestamp>(microseconds / kMicro);
  authenticator.cusec = static_cast<krb5_int32>(microseconds % kMicro);
  const Encoded plain = Encode(encode_krb5_authenticator, authenticator);
  if (plain == nullptr) return nullptr;
  krb5_ap_req ap = {};
  ap.ticket = tgt;
  ap.authenticator =
      AsEncData({session.enctype(), session.Encrypt(kUsageTgsAuthenticator, View(*plain),
                                                    absl::MakeSpan(cipher))});
  const Encoded ap_request = Encode(encode_krb5_ap_req, ap);
  if (ap_request == nullptr || ap.authenticator.ciphertext.length == 0) return nullptr;
  krb5_pa_data preauth = Preauth(KRB5_PADATA_AP_REQ, ap_request.get());
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
