// SPDX-License-Identifier: Apache-2.0
//
// The Kerberos messages of a login (RFC 4120 section 5.4), as a client writes and reads them. Names
// are kept as DER: a user's is made once and copied into every request.
#ifndef INTEGRATION_TESTS_STORM_MESSAGES_H_
#define INTEGRATION_TESTS_STORM_MESSAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "integration-tests/storm/der.h"

namespace mpckdc::storm {

inline constexpr int kNamePrincipal = 1;        // NT-PRINCIPAL
inline constexpr int kNameService = 2;          // NT-SRV-INST

inline constexpr int kPreauthTgsRequest = 1;    // PA-TGS-REQ
inline constexpr int kPreauthTimestamp = 2;     // PA-ENC-TIMESTAMP
inline constexpr int kRequestEncPaRep = 149;    // PA-REQ-ENC-PA-REP (RFC 6806)

inline constexpr int kErrorPreauthFailed = 24;
inline constexpr int kErrorPreauthRequired = 25;

// PrincipalName, DER.
std::string EncodeName(int type, const std::vector<std::string>& components);
// The components in it, still DER: what tells names apart. The type is a hint that KDCs may change.
Bytes NameComponents(absl::string_view name);

// KDC-REQ-BODY, of both requests.
struct RequestBody {
  absl::string_view client_name;  // DER; empty in a TGS-REQ
  absl::string_view realm;
  absl::string_view server_name;  // DER
  uint32_t till = 0;              // seconds since 1970
  uint32_t nonce = 0;             // below 2^31
  absl::Span<const int32_t> enctypes;
};

struct EncryptedData {
  int32_t enctype = 0;
  Bytes cipher;
};

// Each returns what it wrote: the end of `buffer`, or nothing when that is too small.
Bytes EncodeBody(const RequestBody& body, absl::Span<uint8_t> buffer);

// PA-ENC-TS-ENC: what PA-ENC-TIMESTAMP has inside.
Bytes EncodeTimestamp(int64_t microseconds, absl::Span<uint8_t> buffer);

// AS-REQ. `preauth` with an empty cipher is left out; so is PA-REQ-ENC-PA-REP, which asks the KDC
// for a checksum of the request in the reply, unless `ask_enc_pa_rep`.
Bytes EncodeAsRequest(const RequestBody& body, const EncryptedData& preauth, bool ask_enc_pa_rep,
                      absl::Span<uint8_t> buffer);

struct Authenticator {
  absl::string_view client_name;  // DER
  absl::string_view realm;
  int32_t checksum_type = 0;
  Bytes checksum;                 // of the TGS-REQ's body
  int64_t microseconds = 0;
};
Bytes EncodeAuthenticator(const Authenticator& authenticator, absl::Span<uint8_t> buffer);

// TGS-REQ: `body` as EncodeBody wrote it, `ticket` the TGT's DER.
Bytes EncodeTgsRequest(Bytes body, Bytes ticket, const EncryptedData& authenticator,
                       absl::Span<uint8_t> buffer);

// AS-REP or TGS-REP. Views into the message.
struct Reply {
  bool is_tgs = false;
  absl::string_view client_realm;
  Bytes client_name;          // components
  Bytes ticket;               // DER
  absl::string_view ticket_realm;
  Bytes ticket_server;        // components
  EncryptedData enc_part;
};
// KRB-ERROR.
struct ErrorReply {
  int code = 0;
  Bytes client_name;          // components; empty when the KDC does not say for whom
  absl::string_view text;
};
// EncASRepPart or EncTGSRepPart. libkrb5 writes EncTGSRepPart for both; so either is taken.
struct ReplyPart {
  int32_t session_enctype = 0;
  Bytes session_key;
  uint32_t nonce = 0;
  uint32_t end_time = 0;
  absl::string_view server_realm;
  Bytes server_name;          // components
  bool has_request_checksum = false;  // the answer to PA-REQ-ENC-PA-REP
  int32_t request_checksum_type = 0;
  Bytes request_checksum;
};

bool IsError(Bytes message);
bool DecodeReply(Bytes message, Reply& reply);
bool DecodeError(Bytes message, ErrorReply& error);
bool DecodeReplyPart(Bytes plaintext, ReplyPart& part);

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_MESSAGES_H_
