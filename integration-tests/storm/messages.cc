// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/messages.h"

#include "integration-tests/storm/limits.h"

namespace mpckdc::storm {
namespace {

constexpr int kVersion = 5;
constexpr int kAsReq = 10, kAsRep = 11, kTgsReq = 12, kTgsRep = 13, kApReq = 14, kError = 30;
constexpr int kTicket = 1, kAuthenticator = 2, kEncAsRepPart = 25, kEncTgsRepPart = 26;
constexpr int64_t kMicro = 1'000'000;

Bytes AsBytes(absl::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

Bytes Finished(const DerWriter& w) { return w.ok() ? w.Written() : Bytes(); }

template <class Body>
void Field(DerWriter& w, int number, Body body) {
  w.In(DerContext(number), body);
}

void IntegerField(DerWriter& w, int number, int64_t value) {
  Field(w, number, [&] { w.Integer(value); });
}

void NameField(DerWriter& w, int number, absl::string_view name) {
  Field(w, number, [&] { w.Raw(AsBytes(name)); });
}

void RealmField(DerWriter& w, int number, absl::string_view realm) {
  Field(w, number, [&] { w.GeneralString(realm); });
}

// EncryptedData ::= SEQUENCE { etype [0], kvno [1] OPTIONAL, cipher [2] }
void WriteEncrypted(DerWriter& w, const EncryptedData& data) {
  w.In(kDerSequence, [&] {
    Field(w, 2, [&] { w.OctetString(data.cipher); });
    IntegerField(w, 0, data.enctype);
  });
}

// KDC-REQ-BODY ::= SEQUENCE { kdc-options [0], cname [1] OPTIONAL, realm [2], sname [3],
//                             from [4], till [5], rtime [6], nonce [7], etype [8] ... }
void WriteBody(DerWriter& w, const RequestBody& body) {
  w.In(kDerSequence, [&] {
    Field(w, 8, [&] {
      w.In(kDerSequence, [&] {
        for (size_t i = body.enctypes.size(); i > 0; --i) w.Integer(body.enctypes[i - 1]);
      });
    });
    IntegerField(w, 7, body.nonce);
    Field(w, 5, [&] { w.Time(body.till); });
    NameField(w, 3, body.server_name);
    RealmField(w, 2, body.realm);
    if (!body.client_name.empty()) NameField(w, 1, body.client_name);
    Field(w, 0, [&] { w.Flags(0); });
  });
}

// PA-DATA ::= SEQUENCE { padata-type [1], padata-value [2] OCTET STRING }
template <class Value>
void WritePreauth(DerWriter& w, int type, Value value) {
  w.In(kDerSequence, [&] {
    Field(w, 2, [&] { w.In(kDerOctetString, value); });
    IntegerField(w, 1, type);
  });
}

// KDC-REQ ::= SEQUENCE { pvno [1], msg-type [2], padata [3] OPTIONAL, req-body [4] }
template <class Preauths, class Body>
void WriteRequest(DerWriter& w, int type, bool has_preauth, Preauths preauths, Body body) {
  w.In(DerApplication(type), [&] {
    w.In(kDerSequence, [&] {
      Field(w, 4, body);
      if (has_preauth) Field(w, 3, [&] { w.In(kDerSequence, preauths); });
      IntegerField(w, 2, type);
      IntegerField(w, 1, kVersion);
    });
  });
}

// PrincipalName ::= SEQUENCE { name-type [0], name-string [1] SEQUENCE OF }
Bytes ReadName(DerReader r) {
  DerReader name = r.Enter(kDerSequence);
  name.Enter(DerContext(0));
  DerReader strings = name.Enter(DerContext(1));
  return strings.Whole(kDerSequence);
}

EncryptedData ReadEncrypted(DerReader r) {
  EncryptedData data;
  DerReader sequence = r.Enter(kDerSequence);
  data.enctype = static_cast<int32_t>(sequence.Enter(DerContext(0)).Integer());
  sequence.EnterIf(DerContext(1));
  data.cipher = sequence.Enter(DerContext(2)).OctetString();
  return data;
}

// Ticket ::= [APPLICATION 1] SEQUENCE { tkt-vno [0], realm [1], sname [2], enc-part [3] }
void ReadTicket(Bytes ticket, Reply& reply) {
  DerReader t = DerReader(ticket).Enter(DerApplication(kTicket)).Enter(kDerSequence);
  t.Enter(DerContext(0));
  reply.ticket_realm = t.Enter(DerContext(1)).GeneralString();
  reply.ticket_server = ReadName(t.Enter(DerContext(2)));
}

// METHOD-DATA in the encrypted part: SEQUENCE OF PA-DATA; a Checksum under PA-REQ-ENC-PA-REP.
void ReadEncryptedPreauth(DerReader list, ReplyPart& part) {
  while (list.ok() && !list.empty()) {
    DerReader preauth = list.Enter(kDerSequence);
    const int64_t type = preauth.Enter(DerContext(1)).Integer();
    const Bytes value = preauth.Enter(DerContext(2)).OctetString();
    if (type != kRequestEncPaRep) continue;
    DerReader checksum = DerReader(value).Enter(kDerSequence);
    part.request_checksum_type = static_cast<int32_t>(checksum.Enter(DerContext(0)).Integer());
    part.request_checksum = checksum.Enter(DerContext(1)).OctetString();
    part.has_request_checksum = !part.request_checksum.empty();
  }
}

}  // namespace

std::string EncodeName(int type, const std::vector<std::string>& components) {
  uint8_t buffer[limits::kMaxNameBytes];
  DerWriter w(absl::MakeSpan(buffer));
  w.In(kDerSequence, [&] {
    Field(w, 1, [&] {
      w.In(kDerSequence, [&] {
        for (size_t i = components.size(); i > 0; --i) w.GeneralString(components[i - 1]);
      });
    });
    IntegerField(w, 0, type);
  });
  const Bytes der = Finished(w);
  return std::string(der.begin(), der.end());
}

Bytes NameComponents(absl::string_view name) { return ReadName(DerReader(AsBytes(name))); }

Bytes EncodeBody(const RequestBody& body, absl::Span<uint8_t> buffer) {
  DerWriter w(buffer);
  WriteBody(w, body);
  return Finished(w);
}

Bytes EncodeTimestamp(int64_t microseconds, absl::Span<uint8_t> buffer) {
  DerWriter w(buffer);
  w.In(kDerSequence, [&] {
    IntegerField(w, 1, microseconds % kMicro);
    Field(w, 0, [&] { w.Time(static_cast<uint32_t>(microseconds / kMicro)); });
  });
  return Finished(w);
}

Bytes EncodeAsRequest(const RequestBody& body, const EncryptedData& preauth, bool ask_enc_pa_rep,
                      absl::Span<uint8_t> buffer) {
  DerWriter w(buffer);
  const bool has_timestamp = !preauth.cipher.empty();
  WriteRequest(
      w, kAsReq, has_timestamp || ask_enc_pa_rep,
      [&] {
        if (ask_enc_pa_rep) WritePreauth(w, kRequestEncPaRep, [] {});
        if (has_timestamp) {
          WritePreauth(w, kPreauthTimestamp, [&] { WriteEncrypted(w, preauth); });
        }
      },
      [&] { WriteBody(w, body); });
  return Finished(w);
}

// Authenticator ::= [APPLICATION 2] SEQUENCE { vno [0], crealm [1], cname [2], cksum [3],
//                                              cusec [4], ctime [5] ... }
Bytes EncodeAuthenticator(const Authenticator& a, absl::Span<uint8_t> buffer) {
  DerWriter w(buffer);
  w.In(DerApplication(kAuthenticator), [&] {
    w.In(kDerSequence, [&] {
      Field(w, 5, [&] { w.Time(static_cast<uint32_t>(a.microseconds / kMicro)); });
      IntegerField(w, 4, a.microseconds % kMicro);
      Field(w, 3, [&] {
        w.In(kDerSequence, [&] {
          Field(w, 1, [&] { w.OctetString(a.checksum); });
          IntegerField(w, 0, a.checksum_type);
        });
      });
      NameField(w, 2, a.client_name);
      RealmField(w, 1, a.realm);
      IntegerField(w, 0, kVersion);
    });
  });
  return Finished(w);
}

// AP-REQ ::= [APPLICATION 14] SEQUENCE { pvno [0], msg-type [1], ap-options [2], ticket [3],
//                                        authenticator [4] }
Bytes EncodeTgsRequest(Bytes body, Bytes ticket, const EncryptedData& authenticator,
                       absl::Span<uint8_t> buffer) {
  DerWriter w(buffer);
  const auto ap_request = [&] {
    w.In(DerApplication(kApReq), [&] {
      w.In(kDerSequence, [&] {
        Field(w, 4, [&] { WriteEncrypted(w, authenticator); });
        Field(w, 3, [&] { w.Raw(ticket); });
        Field(w, 2, [&] { w.Flags(0); });
        IntegerField(w, 1, kApReq);
        IntegerField(w, 0, kVersion);
      });
    });
  };
  WriteRequest(w, kTgsReq, true, [&] { WritePreauth(w, kPreauthTgsRequest, ap_request); },
               [&] { w.Raw(body); });
  return Finished(w);
}

bool IsError(Bytes message) { return !message.empty() && message[0] == DerApplication(kError); }

// KDC-REP ::= SEQUENCE { pvno [0], msg-type [1], padata [2] OPTIONAL, crealm [3], cname [4],
//                        ticket [5], enc-part [6] }
bool DecodeReply(Bytes message, Reply& reply) {
  DerReader top(message);
  reply.is_tgs = top.NextTag() == DerApplication(kTgsRep);
  const int type = reply.is_tgs ? kTgsRep : kAsRep;
  DerReader r = top.Enter(DerApplication(type)).Enter(kDerSequence);
  const bool version_fits = r.Enter(DerContext(0)).Integer() == kVersion;
  const bool type_fits = r.Enter(DerContext(1)).Integer() == type;
  r.EnterIf(DerContext(2));
  reply.client_realm = r.Enter(DerContext(3)).GeneralString();
  reply.client_name = ReadName(r.Enter(DerContext(4)));
  reply.ticket = r.Enter(DerContext(5)).Whole(DerApplication(kTicket));
  ReadTicket(reply.ticket, reply);
  reply.enc_part = ReadEncrypted(r.Enter(DerContext(6)));
  return top.Done() && r.Done() && version_fits && type_fits && !reply.client_name.empty() &&
         !reply.ticket_server.empty() && !reply.enc_part.cipher.empty();
}

// KRB-ERROR ::= [APPLICATION 30] SEQUENCE { pvno [0], msg-type [1], ctime [2], cusec [3],
//     stime [4], susec [5], error-code [6], crealm [7], cname [8], realm [9], sname [10],
//     e-text [11], ... }
bool DecodeError(Bytes message, ErrorReply& error) {
  DerReader top(message);
  DerReader r = top.Enter(DerApplication(kError)).Enter(kDerSequence);
  if (r.Enter(DerContext(0)).Integer() != kVersion || r.Enter(DerContext(1)).Integer() != kError) {
    return false;
  }
  for (int number = 2; number <= 3; ++number) r.EnterIf(DerContext(number));
  r.Enter(DerContext(4));
  r.Enter(DerContext(5));
  error.code = static_cast<int>(r.Enter(DerContext(6)).Integer());
  r.EnterIf(DerContext(7));
  if (std::optional<DerReader> name = r.EnterIf(DerContext(8))) error.client_name = ReadName(*name);
  r.EnterIf(DerContext(9));
  r.EnterIf(DerContext(10));
  if (std::optional<DerReader> text = r.EnterIf(DerContext(11))) {
    error.text = text->GeneralString();
  }
  r.EnterIf(DerContext(12));
  return top.Done() && r.Done();
}

// EncKDCRepPart ::= SEQUENCE { key [0], last-req [1], nonce [2], key-expiration [3], flags [4],
//     authtime [5], starttime [6], endtime [7], renew-till [8], srealm [9], sname [10], caddr [11],
//     encrypted-pa-data [12] }
bool DecodeReplyPart(Bytes plaintext, ReplyPart& part) {
  DerReader top(plaintext);
  const int type = top.NextTag() == DerApplication(kEncAsRepPart) ? kEncAsRepPart : kEncTgsRepPart;
  DerReader r = top.Enter(DerApplication(type)).Enter(kDerSequence);
  DerReader key = r.Enter(DerContext(0)).Enter(kDerSequence);
  part.session_enctype = static_cast<int32_t>(key.Enter(DerContext(0)).Integer());
  part.session_key = key.Enter(DerContext(1)).OctetString();
  r.Enter(DerContext(1));
  part.nonce = static_cast<uint32_t>(r.Enter(DerContext(2)).Integer());
  r.EnterIf(DerContext(3));
  r.Enter(DerContext(4));
  r.Enter(DerContext(5));
  r.EnterIf(DerContext(6));
  part.end_time = r.Enter(DerContext(7)).Time();
  r.EnterIf(DerContext(8));
  part.server_realm = r.Enter(DerContext(9)).GeneralString();
  part.server_name = ReadName(r.Enter(DerContext(10)));
  r.EnterIf(DerContext(11));
  if (std::optional<DerReader> list = r.EnterIf(DerContext(12))) {
    ReadEncryptedPreauth(list->Enter(kDerSequence), part);
  }
  // What libkrb5 decrypts of an enctype that pads may have bytes behind it; ours do not pad.
  return top.Done() && r.Done() && !part.session_key.empty() && !part.server_name.empty();
}

}  // namespace mpckdc::storm
