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
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mpc-server/base/secret.h"

// libkrb5 exports its encoders and decoders, and has for many releases; their header (k5-int.h) is
// not installed.
extern "C" {
typedef struct _krb5_pa_enc_ts {
  krb5_timestamp patimestamp;
  krb5_int32 pausec;
} krb5_pa_enc_ts;

void krb5_free_kdc_rep(krb5_context, krb5_kdc_rep*);
void krb5_free_enc_kdc_rep_part(krb5_context, krb5_enc_kdc_rep_part*);
krb5_error_code encode_krb5_pa_enc_ts(const krb5_pa_enc_ts*, krb5_data**);
krb5_error_code encode_krb5_enc_data(const krb5_enc_data*, krb5_data**);
krb5_error_code encode_krb5_authenticator(const krb5_authenticator*, krb5_data**);
krb5_error_code encode_krb5_ap_req(const krb5_ap_req*, krb5_data**);
krb5_error_code encode_krb5_as_req(const krb5_kdc_req*, krb5_data**);
krb5_error_code encode_krb5_tgs_req(const krb5_kdc_req*, krb5_data**);
krb5_error_code encode_krb5_kdc_req_body(const krb5_kdc_req*, krb5_data**);
krb5_error_code decode_krb5_as_rep(const krb5_data*, krb5_kdc_rep**);
krb5_error_code decode_krb5_tgs_rep(const krb5_data*, krb5_kdc_rep**);
krb5_error_code decode_krb5_error(const krb5_data*, krb5_error**);
krb5_error_code decode_krb5_enc_kdc_rep_part(const krb5_data*, krb5_enc_kdc_rep_part**);
krb5_error_code decode_krb5_encryption_key(const krb5_data*, krb5_keyblock**);

// The KDC's side of them, for tests.
void krb5_free_kdc_req(krb5_context, krb5_kdc_req*);
void krb5_free_ap_req(krb5_context, krb5_ap_req*);
krb5_error_code decode_krb5_as_req(const krb5_data*, krb5_kdc_req**);
krb5_error_code decode_krb5_tgs_req(const krb5_data*, krb5_kdc_req**);
krb5_error_code decode_krb5_ap_req(const krb5_data*, krb5_ap_req**);
krb5_error_code decode_krb5_authenticator(const krb5_data*, krb5_authenticator**);
krb5_error_code decode_krb5_enc_data(const krb5_data*, krb5_enc_data**);
krb5_error_code encode_krb5_as_rep(const krb5_kdc_rep*, krb5_data**);
krb5_error_code encode_krb5_tgs_rep(const krb5_kdc_rep*, krb5_data**);
krb5_error_code encode_krb5_enc_kdc_rep_part(const krb5_enc_kdc_rep_part*, krb5_data**);
krb5_error_code encode_krb5_error(const krb5_error*, krb5_data**);
krb5_error_code encode_krb5_checksum(const krb5_checksum*, krb5_data**);
}

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

// ---- Messages ----

inline constexpr int kErrorPreauthFailed = 24;
inline constexpr int kErrorPreauthRequired = 25;

// What libkrb5 allocated, freed by its own function.
template <auto Free>
struct FreedBy {
  template <class T>
  void operator()(T* value) const { Free(nullptr, value); }
};
using Encoded = std::unique_ptr<krb5_data, FreedBy<krb5_free_data>>;
using Ticket = std::unique_ptr<krb5_ticket, FreedBy<krb5_free_ticket>>;
using Reply = std::unique_ptr<krb5_kdc_rep, FreedBy<krb5_free_kdc_rep>>;
using ReplyPart = std::unique_ptr<krb5_enc_kdc_rep_part, FreedBy<krb5_free_enc_kdc_rep_part>>;
using ErrorReply = std::unique_ptr<krb5_error, FreedBy<krb5_free_error>>;
// Null where libkrb5 says no.
template <class T>
Encoded Encode(krb5_error_code (*encode)(const T*, krb5_data**), const T& value) {
  krb5_data* data = nullptr;
  return Encoded(encode(&value, &data) == 0 ? data : nullptr);
}
// Made once, and read by all logins of a user or of a run.
using Principal = std::shared_ptr<krb5_principal_data>;

// "a/b" is two components; a backslash takes the next character as it is. `type`: KRB5_NT_...
absl::StatusOr<Principal> ParseName(const std::string& name, const std::string& realm, int type);

absl::StatusOr<Principal> TgsName(const std::string& realm);  // krbtgt/REALM

// KDC-REQ-BODY of both requests; the names must outlive it. No `client` in a TGS-REQ.
krb5_kdc_req RequestBody(const Principal& client, const Principal& server,
                         absl::Span<const int32_t> enctypes, uint32_t till, uint32_t nonce);

struct EncryptedData {
  int32_t enctype = 0;
  Bytes cipher;
};

// PA-ENC-TS-ENC: what PA-ENC-TIMESTAMP has inside.
Encoded EncodeTimestamp(int64_t microseconds);
// AS-REQ. `preauth` with an empty cipher is left out; so is PA-REQ-ENC-PA-REP, which asks the KDC
// for a checksum of the request in the reply, unless `ask_enc_pa_rep`.
Encoded EncodeAsRequest(krb5_kdc_req body, const EncryptedData& preauth, bool ask_enc_pa_rep);
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
