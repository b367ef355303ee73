// SPDX-License-Identifier: Apache-2.0
//
// Requests as a KDC reads them, replies as a KDC writes them, and what is no reply.
#include "integration-tests/storm/messages.h"

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "mpc-server/base/bytes.h"

namespace mpckdc::storm {
namespace {

constexpr char kRealm[] = "EXAMPLE.COM";
constexpr uint32_t kTill = 1800000000;
constexpr uint32_t kNonce = 0x7abcdef0;
constexpr int64_t kMicroseconds = 1790000000123456;
constexpr int32_t kEnctypes[] = {-24001, 18, 17};

std::string Text(const krb5_data& data) { return {data.data, data.length}; }

using Request = std::unique_ptr<krb5_kdc_req, FreedBy<krb5_free_kdc_req>>;
using ApRequest = std::unique_ptr<krb5_ap_req, FreedBy<krb5_free_ap_req>>;
using Authenticator = std::unique_ptr<krb5_authenticator, FreedBy<krb5_free_authenticator>>;

template <class Owner, class T = typename Owner::element_type>
Owner Read(krb5_error_code (*decode)(const krb5_data*, T**), const krb5_data& data) {
  T* value = nullptr;
  EXPECT_EQ(decode(&data, &value), 0);
  return Owner(value);
}

class MessagesTest : public testing::Test {
 protected:
  MessagesTest() {
    ticket_.server = server_.get();
    ticket_.enc_part.enctype = 18;
    ticket_.enc_part.ciphertext = AsData(AsBytes("sealed"));
    reply_.client = client_.get();
    reply_.ticket = &ticket_;
    reply_.enc_part.enctype = -24001;
    reply_.enc_part.kvno = 3;
    reply_.enc_part.ciphertext = AsData(AsBytes("reply"));
  }

  // libkrb5's decoder of requests leaves the realms of principals to its caller.
  static void ExpectName(krb5_const_principal have, const Principal& want) {
    EXPECT_TRUE(krb5_principal_compare_any_realm(nullptr, have, want.get()));
    EXPECT_EQ(have->type, want->type);
  }

  static void ExpectBody(const krb5_kdc_req& request, const Principal& server) {
    ExpectName(request.server, server);
    EXPECT_EQ(Text(request.server->realm), kRealm);
    EXPECT_EQ(static_cast<uint32_t>(request.till), kTill);
    EXPECT_EQ(static_cast<uint32_t>(request.nonce), kNonce);
    EXPECT_EQ(std::vector<int32_t>(request.ktype, request.ktype + request.nktypes),
              std::vector<int32_t>(std::begin(kEnctypes), std::end(kEnctypes)));
    EXPECT_EQ(request.kdc_options, 0);
  }

  const Principal client_ = *ParseName("alice/admin", kRealm, KRB5_NT_PRINCIPAL);
  const Principal server_ = *TgsName(kRealm);
  const krb5_kdc_req body_ = RequestBody(client_, server_, kEnctypes, kTill, kNonce);
  krb5_ticket ticket_ = {};
  krb5_kdc_rep reply_ = {};
};

TEST_F(MessagesTest, Names) {
  const std::pair<const char*, std::vector<std::string>> cases[] = {
      {"host/www", {"host", "www"}}, {"a\\/b", {"a/b"}}, {"alice", {"alice"}}};
  for (const auto& [text, components] : cases) {
    const Principal name = *ParseName(text, kRealm, KRB5_NT_PRINCIPAL);
    ASSERT_EQ(static_cast<size_t>(name->length), components.size()) << text;
    for (int i = 0; i < name->length; ++i) EXPECT_EQ(Text(name->data[i]), components[i]);
    EXPECT_EQ(Text(name->realm), kRealm);
  }
  EXPECT_FALSE(ParseName("alice@OTHER", kRealm, KRB5_NT_PRINCIPAL).ok());
}

TEST_F(MessagesTest, AsRequest) {
  const uint8_t cipher[] = {1, 2, 3, 4, 5};
  const Request request =
      Read<Request>(decode_krb5_as_req, *EncodeAsRequest(body_, {-24001, cipher}, true));
  ExpectName(request->client, client_);
  ExpectBody(*request, server_);
  ASSERT_NE(request->padata, nullptr);
  ASSERT_NE(request->padata[0], nullptr);
  ASSERT_NE(request->padata[1], nullptr);
  EXPECT_EQ(request->padata[2], nullptr);
  EXPECT_EQ(request->padata[0]->pa_type, KRB5_PADATA_ENC_TIMESTAMP);
  EXPECT_EQ(request->padata[1]->pa_type, KRB5_ENCPADATA_REQ_ENC_PA_REP);
  EXPECT_EQ(request->padata[1]->length, 0u);
  krb5_enc_data* encrypted = nullptr;
  const krb5_data inside = AsData({request->padata[0]->contents, request->padata[0]->length});
  ASSERT_EQ(decode_krb5_enc_data(&inside, &encrypted), 0);
  EXPECT_EQ(encrypted->enctype, -24001);
  EXPECT_EQ(View(encrypted->ciphertext), Bytes(cipher));
  krb5_free_data_contents(nullptr, &encrypted->ciphertext);
  free(encrypted);
  const Request plain = Read<Request>(decode_krb5_as_req, *EncodeAsRequest(body_, {}, false));
  EXPECT_TRUE(plain->padata == nullptr || plain->padata[0] == nullptr);
}

// RFC 4120, PA-ENC-TS-ENC: SEQUENCE { patimestamp [0] KerberosTime, pausec [1] Microseconds }.
TEST_F(MessagesTest, Timestamp) {
  EXPECT_EQ(absl::BytesToHexString(Text(*EncodeTimestamp(kMicroseconds))),
            "301aa011180f" + absl::BytesToHexString("20260921141320Z") + "a105020301e240");
}

TEST_F(MessagesTest, TgsRequest) {
  const std::vector<uint8_t> session(32, 7);
  const Key key = *Key::FromBytes(18, session);
  const krb5_kdc_req body = RequestBody(nullptr, server_, kEnctypes, kTill, kNonce);
  const Encoded message = EncodeTgsRequest(body, client_, &ticket_, key, kMicroseconds);
  const Request request = Read<Request>(decode_krb5_tgs_req, *message);
  ExpectBody(*request, server_);
  EXPECT_EQ(request->client, nullptr);
  ASSERT_EQ(request->padata[0]->pa_type, KRB5_PADATA_AP_REQ);
  const ApRequest ap = Read<ApRequest>(
      decode_krb5_ap_req, AsData({request->padata[0]->contents, request->padata[0]->length}));
  EXPECT_EQ(Text(ap->ticket->enc_part.ciphertext), "sealed");
  std::vector<uint8_t> buffer(1000);
  Bytes plain;
  ASSERT_TRUE(key.Decrypt(kUsageTgsAuthenticator, View(ap->authenticator.ciphertext),
                          absl::MakeSpan(buffer), plain));
  const Authenticator read = Read<Authenticator>(decode_krb5_authenticator, AsData(plain));
  ExpectName(read->client, client_);
  EXPECT_EQ(Text(read->client->realm), kRealm);
  EXPECT_EQ(read->cusec, kMicroseconds % 1000000);
  EXPECT_EQ(read->ctime, kMicroseconds / 1000000);
  ASSERT_NE(read->checksum, nullptr);
  EXPECT_EQ(read->checksum->checksum_type, ChecksumTypeOf(18));
  EXPECT_TRUE(key.VerifyChecksum(kUsageTgsChecksum, View(*Encode(encode_krb5_kdc_req_body, body)),
                                 read->checksum->checksum_type,
                                 {read->checksum->contents, read->checksum->length}));
}

TEST_F(MessagesTest, AsAndTgsReplies) {
  for (const unsigned type : {KRB5_AS_REP, KRB5_TGS_REP}) {
    const auto encode = type == KRB5_AS_REP ? encode_krb5_as_rep : encode_krb5_tgs_rep;
    reply_.msg_type = type;
    const Encoded message = Encode(encode, reply_);
    EXPECT_FALSE(IsError(View(*message)));
    const Reply reply = DecodeReply(View(*message));
    ASSERT_NE(reply, nullptr);
    EXPECT_EQ(reply->msg_type, type);
    EXPECT_TRUE(krb5_principal_compare(nullptr, reply->client, client_.get()));
    EXPECT_TRUE(krb5_principal_compare(nullptr, reply->ticket->server, server_.get()));
    EXPECT_EQ(reply->enc_part.enctype, -24001);
    EXPECT_EQ(Text(reply->enc_part.ciphertext), "reply");
    EXPECT_EQ(Text(reply->ticket->enc_part.ciphertext), "sealed");
    // Which of the two it is, is said twice.
    reply_.msg_type = KRB5_AS_REP + KRB5_TGS_REP - type;
    EXPECT_EQ(DecodeReply(View(*Encode(encode, reply_))), nullptr);
  }
}

// A reply with any byte missing at its end is none, nor is one with a byte more.
TEST_F(MessagesTest, CutReplies) {
  reply_.msg_type = KRB5_AS_REP;
  std::string message = Text(*Encode(encode_krb5_as_rep, reply_));
  for (size_t size = 0; size < message.size(); ++size) {
    EXPECT_EQ(DecodeReply(AsBytes(message).first(size)), nullptr) << size;
  }
  EXPECT_EQ(DecodeReply(AsBytes(message + '\0')), nullptr);
  for (const char* bad : {"30", "3080", "3085010000000000", "028480000000", "1f0100"}) {
    EXPECT_EQ(DecodeReply(AsBytes(absl::HexStringToBytes(bad))), nullptr) << bad;
  }
}

TEST_F(MessagesTest, EncryptedPart) {
  krb5_octet key_bytes[16] = {42}, mac[] = {5, 6, 7, 8};
  krb5_keyblock key = {KV5M_KEYBLOCK, 17, 16, key_bytes};
  krb5_last_req_entry last_request = {};
  krb5_last_req_entry* last_requests[] = {&last_request, nullptr};
  const Encoded checksum = Encode(encode_krb5_checksum, krb5_checksum{KV5M_CHECKSUM, 16, 4, mac});
  krb5_pa_data preauth = {KV5M_PA_DATA, KRB5_ENCPADATA_REQ_ENC_PA_REP, checksum->length,
                          reinterpret_cast<krb5_octet*>(checksum->data)};
  krb5_pa_data* preauths[] = {&preauth, nullptr};
  krb5_enc_kdc_rep_part part = {};
  part.msg_type = KRB5_AS_REP;
  part.session = &key;
  part.last_req = last_requests;
  part.nonce = static_cast<krb5_int32>(kNonce);
  part.times.authtime = 1790000000;
  part.times.endtime = static_cast<krb5_timestamp>(kTill);
  part.server = server_.get();
  for (const bool has_checksum : {true, false}) {
    part.enc_padata = has_checksum ? preauths : nullptr;
    const ReplyPart read = DecodeReplyPart(View(*Encode(encode_krb5_enc_kdc_rep_part, part)));
    ASSERT_NE(read, nullptr);
    EXPECT_EQ(read->session->enctype, 17);
    EXPECT_EQ(Bytes(read->session->contents, read->session->length), Bytes(key_bytes));
    EXPECT_EQ(static_cast<uint32_t>(read->nonce), kNonce);
    EXPECT_EQ(static_cast<uint32_t>(read->times.endtime), kTill);
    EXPECT_TRUE(krb5_principal_compare(nullptr, read->server, server_.get()));
    const RequestChecksum found = FindRequestChecksum(*read);
    ASSERT_EQ(found != nullptr, has_checksum);
    if (!has_checksum) continue;
    EXPECT_EQ(found->enctype, 16);
    EXPECT_EQ(Bytes(found->contents, found->length), Bytes(mac));
  }
}

TEST_F(MessagesTest, Errors) {
  krb5_error error = {};
  error.error = 24;
  error.stime = 1790000000;
  error.server = server_.get();
  for (const krb5_principal client : {client_.get(), krb5_principal(nullptr)}) {
    error.client = client;
    const Encoded message = Encode(encode_krb5_error, error);
    ASSERT_TRUE(IsError(View(*message)));
    const ErrorReply read = DecodeError(View(*message));
    ASSERT_NE(read, nullptr);
    EXPECT_EQ(read->error, 24u);
    ASSERT_EQ(read->client != nullptr, client != nullptr);
    if (client != nullptr) {
      EXPECT_TRUE(krb5_principal_compare(nullptr, read->client, client));
    }
  }
}

}  // namespace
}  // namespace mpckdc::storm
