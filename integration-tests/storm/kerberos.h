// SPDX-License-Identifier: Apache-2.0
//
// What a client does with libkrb5: keys, and the Kerberos messages of a login (RFC 4120 section
// 5.4), by libkrb5's own encoders and decoders, in its own structures.
//
// A key is libk5crypto's krb5_k_*, made once: usage keys that were derived once stay with their
// krb5_key. So all of libk5crypto's enctypes work, ours too, by the code that clients run.
#ifndef INTEGRATION_TESTS_STORM_KERBEROS_H_
#define INTEGRATION_TESTS_STORM_KERBEROS_H_

#include <krb5/krb5.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mpc-server/base/secret.h"

// libkrb5 exports its encoders and decoders, and has for many releases; their header (k5-int.h) is
// not installed.
template <class T>
using Encoder = krb5_error_code(const T*, krb5_data**);
template <class T>
using Decoder = krb5_error_code(const krb5_data*, T**);

extern "C" {
typedef struct _krb5_pa_enc_ts {
  krb5_timestamp patimestamp;
  krb5_int32 pausec;
} krb5_pa_enc_ts;

void krb5_free_kdc_rep(krb5_context, krb5_kdc_rep*);
void krb5_free_enc_kdc_rep_part(krb5_context, krb5_enc_kdc_rep_part*);
krb5_error_code krb5int_c_mandatory_cksumtype(krb5_context, krb5_enctype, krb5_cksumtype*);
Encoder<krb5_pa_enc_ts> encode_krb5_pa_enc_ts;
Encoder<krb5_enc_data> encode_krb5_enc_data;
Encoder<krb5_authenticator> encode_krb5_authenticator;
Encoder<krb5_ap_req> encode_krb5_ap_req;
Encoder<krb5_kdc_req> encode_krb5_as_req, encode_krb5_tgs_req, encode_krb5_kdc_req_body;
Decoder<krb5_kdc_rep> decode_krb5_as_rep, decode_krb5_tgs_rep;
Decoder<krb5_error> decode_krb5_error;
Decoder<krb5_enc_kdc_rep_part> decode_krb5_enc_kdc_rep_part;
Decoder<krb5_keyblock> decode_krb5_encryption_key;

// The KDC's side of them, for tests.
void krb5_free_kdc_req(krb5_context, krb5_kdc_req*);
void krb5_free_ap_req(krb5_context, krb5_ap_req*);
void krb5_free_enc_data(krb5_context, krb5_enc_data*);
Decoder<krb5_kdc_req> decode_krb5_as_req, decode_krb5_tgs_req;
Decoder<krb5_ap_req> decode_krb5_ap_req;
Decoder<krb5_authenticator> decode_krb5_authenticator;
Decoder<krb5_enc_data> decode_krb5_enc_data;
Encoder<krb5_kdc_rep> encode_krb5_as_rep, encode_krb5_tgs_rep;
Encoder<krb5_enc_kdc_rep_part> encode_krb5_enc_kdc_rep_part;
Encoder<krb5_error> encode_krb5_error;
Encoder<krb5_checksum> encode_krb5_checksum;
}

namespace mpckdc::storm {

using Bytes = absl::Span<const uint8_t>;

// libkrb5 takes pointers to mutable bytes also where it only reads.
krb5_data AsData(Bytes bytes);
Bytes View(const krb5_data& data);
krb5_pa_data AsPreauth(int type, Bytes contents);
krb5_enc_data AsEncData(int32_t enctype, Bytes cipher);

// What libkrb5 allocated, freed by its own function.
template <auto Free>
struct FreedBy {
  template <class T>
  void operator()(T* value) const { Free(nullptr, value); }
};
using Encoded = std::unique_ptr<krb5_data, FreedBy<krb5_free_data>>;
using Checksum = std::unique_ptr<krb5_checksum, FreedBy<krb5_free_checksum>>;
using Ticket = std::unique_ptr<krb5_ticket, FreedBy<krb5_free_ticket>>;
using Reply = std::unique_ptr<krb5_kdc_rep, FreedBy<krb5_free_kdc_rep>>;
using ReplyPart = std::unique_ptr<krb5_enc_kdc_rep_part, FreedBy<krb5_free_enc_kdc_rep_part>>;
using ErrorReply = std::unique_ptr<krb5_error, FreedBy<krb5_free_error>>;

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
  Key() = default;  // none

  static absl::StatusOr<Key> FromBytes(int32_t enctype, Bytes bytes);
  // With the principal's default salt.
  static absl::StatusOr<Key> FromPassword(int32_t enctype, Bytes password,
                                          krb5_const_principal principal);
  static absl::StatusOr<Key> Random(int32_t enctype);

  int32_t enctype() const { return krb5_k_key_enctype(nullptr, key_.get()); }

  // Derives and keeps what a login needs, so that the first login costs what the others do.
  absl::Status Prepare();

  // Into `buffer`, of which the part that was written is returned; empty: libk5crypto refused.
  Bytes Encrypt(int usage, Bytes plaintext, absl::Span<uint8_t> buffer) const;
  // Into `buffer`, at least as large as the message. nullopt: wrong key or altered message.
  std::optional<Bytes> Decrypt(int usage, Bytes message, absl::Span<uint8_t> buffer) const;
  // Of the enctype's own checksum type.
  Checksum MakeChecksum(int usage, Bytes data) const;
  bool VerifyChecksum(int usage, Bytes data, int32_t type, Bytes checksum) const;

 private:
  explicit Key(krb5_key key) : key_(key) {}
  std::unique_ptr<krb5_key_st, FreedBy<krb5_k_free_key>> key_;
};

// ---- Messages ----

inline constexpr int kErrorPreauthFailed = 24;
inline constexpr int kErrorPreauthRequired = 25;
inline constexpr int kErrorServiceUnavailable = 29;

// Null where libkrb5 says no.
template <class T>
Encoded Encode(Encoder<T>* encode, const T& value) {
  krb5_data* data = nullptr;
  return Encoded(encode(&value, &data) == 0 ? data : nullptr);
}
// Made once, and read by all logins of a user or of a run.
using Principal = std::shared_ptr<krb5_principal_data>;

// "a/b" is two components; a backslash takes the next character as it is. `type`: KRB5_NT_...
absl::StatusOr<Principal> ParseName(const std::string& name, const std::string& realm, int type);

absl::StatusOr<Principal> TgsName(const std::string& realm);  // krbtgt/REALM

inline constexpr int64_t kTicketSeconds = 36000;

// KDC-REQ-BODY of both requests at this time; the names must outlive it. No `client` in a TGS-REQ.
krb5_kdc_req RequestBody(const Principal& client, const Principal& server,
                         absl::Span<const int32_t> enctypes, int64_t microseconds, uint32_t nonce);

// PA-ENC-TS-ENC: what PA-ENC-TIMESTAMP has inside.
Encoded EncodeTimestamp(int64_t microseconds);
// AS-REQ. `preauth` with an empty cipher is left out; so is PA-REQ-ENC-PA-REP, which asks the KDC
// for a checksum of the request in the reply, unless `ask_enc_pa_rep`.
Encoded EncodeAsRequest(krb5_kdc_req body, const krb5_enc_data& preauth, bool ask_enc_pa_rep);
// TGS-REQ with an authenticator under the session key itself, without a subkey. Null: libk5crypto
// refused.
Encoded EncodeTgsRequest(krb5_kdc_req body, const Principal& client, krb5_ticket* tgt,
                         const Key& session, int64_t microseconds);

// Null when the bytes are not just one such message.
Reply DecodeReply(Bytes message);  // AS-REP or TGS-REP: msg_type says which
ErrorReply DecodeError(Bytes message);
// EncASRepPart or EncTGSRepPart. libkrb5 writes EncTGSRepPart for both; so either is taken.
ReplyPart DecodeReplyPart(Bytes plaintext);
bool IsError(Bytes message);

// The KDC's answer to PA-REQ-ENC-PA-REP, a checksum: `enctype` is its type. Null: there is none.
using RequestChecksum = std::unique_ptr<krb5_keyblock, FreedBy<krb5_free_keyblock>>;
RequestChecksum FindRequestChecksum(const krb5_enc_kdc_rep_part& part);

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_KERBEROS_H_
