// SPDX-License-Identifier: Apache-2.0
//
// Our requests through libkrb5's decoders, libkrb5's replies through ours.
#include "integration-tests/storm/messages.h"

#include <krb5/krb5.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "integration-tests/storm/libkrb5_der.h"

namespace mpckdc::storm {
namespace {

constexpr char kRealm[] = "EXAMPLE.COM";
constexpr uint32_t kTill = 1800000000;
constexpr uint32_t kNonce = 0x7abcdef0;
constexpr int64_t kMicroseconds = 1790000000123456;

krb5_data Data(Bytes bytes) {
  return {KV5M_DATA, static_cast<unsigned>(bytes.size()),
          const_cast<char*>(reinterpret_cast<const char*>(bytes.data()))};
}

Bytes View(const krb5_data& data) {
  return {reinterpret_cast<const uint8_t*>(data.data), data.length};
}

std::string Text(const krb5_data& data) { return {data.data, data.length}; }
std::string Text(Bytes bytes) { return {bytes.begin(), bytes.end()}; }

// Owns what libkrb5 encoded.
class Encoded {
 public:
  ~Encoded() { krb5_free_data(nullptr, data_); }
  krb5_data** out() { return &data_; }
  Bytes bytes() const { return View(*data_); }

 private:
  krb5_data* data_ = nullptr;
};

class MessagesTest : public testing::Test {
 protected:
  MessagesTest() {
    EXPECT_EQ(krb5_init_context(&context_), 0);
    EXPECT_EQ(krb5_parse_name(context_, "alice/admin@EXAMPLE.COM", &client_), 0);
    EXPECT_EQ(krb5_parse_name(context_, "krbtgt/EXAMPLE.COM@EXAMPLE.COM", &server_), 0);
    body_.client_name = client_name_;
    body_.realm = kRealm;
    body_.server_name = server_name_;
    body_.till = kTill;
    body_.nonce = kNonce;
    body_.enctypes = enctypes_;
  }
  ~MessagesTest() override {
    krb5_free_principal(context_, client_);
    krb5_free_principal(context_, server_);
    krb5_free_context(context_);
  }

  // libkrb5's decoder leaves the realms of principals to its caller.
  void ExpectName(krb5_const_principal have, krb5_const_principal want) {
    EXPECT_TRUE(krb5_principal_compare_any_realm(context_, have, want));
  }

  krb5_context context_ = nullptr;
  krb5_principal client_ = nullptr, server_ = nullptr;
  const std::string client_name_ = EncodeName(kNamePrincipal, {"alice", "admin"});
  const std::string server_name_ = EncodeName(kNameService, {"krbtgt", kRealm});
  const std::vector<int32_t> enctypes_ = {-24001, 18, 17};
  RequestBody body_;
  std::vector<uint8_t> buffer_ = std::vector<uint8_t>(4096);
};

TEST_F(MessagesTest, AsRequestAsLibkrb5ReadsIt) {
  const uint8_t cipher[] = {1, 2, 3, 4, 5};
  const Bytes message =
      EncodeAsRequest(body_, {-24001, cipher}, true, absl::MakeSpan(buffer_));
  ASSERT_FALSE(message.empty());
  const krb5_data data = Data(message);
  krb5_kdc_req* request = nullptr;
  ASSERT_EQ(decode_krb5_as_req(&data, &request), 0);
  ExpectName(request->client, client_);
  ExpectName(request->server, server_);
  EXPECT_EQ(Text(request->server->realm), kRealm);
  EXPECT_EQ(static_cast<uint32_t>(request->till), kTill);
  EXPECT_EQ(static_cast<uint32_t>(request->nonce), kNonce);
  ASSERT_EQ(request->nktypes, 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(request->ktype[i], enctypes_[i]);
  EXPECT_EQ(request->kdc_options, 0);
  ASSERT_NE(request->padata, nullptr);
  ASSERT_NE(request->padata[0], nullptr);
  ASSERT_NE(request->padata[1], nullptr);
  EXPECT_EQ(request->padata[2], nullptr);
  EXPECT_EQ(request->padata[0]->pa_type, KRB5_PADATA_ENC_TIMESTAMP);
  EXPECT_EQ(request->padata[1]->pa_type, KRB5_ENCPADATA_REQ_ENC_PA_REP);
  EXPECT_EQ(request->padata[1]->length, 0u);
  const krb5_data inside =
      Data({request->padata[0]->contents, request->padata[0]->length});
  krb5_enc_data* encrypted = nullptr;
  ASSERT_EQ(decode_krb5_enc_data(&inside, &encrypted), 0);
  EXPECT_EQ(encrypted->enctype, -24001);
  EXPECT_EQ(Text(encrypted->ciphertext), Text(Bytes(cipher)));
  krb5_free_data_contents(context_, &encrypted->ciphertext);
  free(encrypted);
  krb5_free_kdc_req(context_, request);
}

TEST_F(MessagesTest, AsRequestWithoutPreauth) {
  const krb5_data data = Data(EncodeAsRequest(body_, {}, false, absl::MakeSpan(buffer_)));
  krb5_kdc_req* request = nullptr;
  ASSERT_EQ(decode_krb5_as_req(&data, &request), 0);
  EXPECT_TRUE(request->padata == nullptr || request->padata[0] == nullptr);
  krb5_free_kdc_req(context_, request);
}

// Byte by byte: libkrb5's encoder of the same body.
TEST_F(MessagesTest, BodyIsLibkrb5sByteByByte) {
  krb5_kdc_req request = {};
  std::vector<krb5_enctype> enctypes(enctypes_.begin(), enctypes_.end());
  request.client = client_;
  request.server = server_;
  request.server->type = KRB5_NT_SRV_INST;
  request.till = static_cast<krb5_timestamp>(kTill);
  request.nonce = static_cast<krb5_int32>(kNonce);
  request.nktypes = 3;
  request.ktype = enctypes.data();
  Encoded theirs;
  ASSERT_EQ(encode_krb5_kdc_req_body(&request, theirs.out()), 0);
  EXPECT_EQ(Text(EncodeBody(body_, absl::MakeSpan(buffer_))), Text(theirs.bytes()));
}

TEST_F(MessagesTest, TgsRequestAsLibkrb5ReadsIt) {
  krb5_ticket ticket = {};
  ticket.server = server_;
  char cipher[] = "sealed";
  ticket.enc_part.enctype = 18;
  ticket.enc_part.ciphertext = {KV5M_DATA, 6, cipher};
  Encoded tgt;
  ASSERT_EQ(encode_krb5_ticket(&ticket, tgt.out()), 0);
  body_.client_name = "";
  std::vector<uint8_t> body_buffer(1024), authenticator_buffer(1024);
  const Bytes body = EncodeBody(body_, absl::MakeSpan(body_buffer));
  const uint8_t checksum[] = {9, 8, 7};
  const Bytes authenticator =
      EncodeAuthenticator({client_name_, kRealm, 16, checksum, kMicroseconds},
                          absl::MakeSpan(authenticator_buffer));
  const Bytes message =
      EncodeTgsRequest(body, tgt.bytes(), {18, authenticator}, absl::MakeSpan(buffer_));
  const krb5_data data = Data(message);
  krb5_kdc_req* request = nullptr;
  ASSERT_EQ(decode_krb5_tgs_req(&data, &request), 0);
  ExpectName(request->server, server_);
  ASSERT_EQ(request->padata[0]->pa_type, KRB5_PADATA_AP_REQ);
  const krb5_data ap_data = Data({request->padata[0]->contents, request->padata[0]->length});
  krb5_ap_req* ap = nullptr;
  ASSERT_EQ(decode_krb5_ap_req(&ap_data, &ap), 0);
  EXPECT_EQ(Text(ap->ticket->enc_part.ciphertext), "sealed");
  krb5_authenticator* read = nullptr;
  ASSERT_EQ(decode_krb5_authenticator(&ap->authenticator.ciphertext, &read), 0);
  ExpectName(read->client, client_);
  EXPECT_EQ(read->cusec, kMicroseconds % 1000000);
  EXPECT_EQ(read->ctime, kMicroseconds / 1000000);
  ASSERT_NE(read->checksum, nullptr);
  EXPECT_EQ(read->checksum->checksum_type, 16);
  EXPECT_EQ(read->checksum->length, 3u);
  krb5_free_authenticator(context_, read);
  krb5_free_ap_req(context_, ap);
  krb5_free_kdc_req(context_, request);
}

class RepliesTest : public MessagesTest {
 protected:
  RepliesTest() {
    ticket_.server = server_;
    ticket_.enc_part.enctype = 18;
    ticket_.enc_part.ciphertext = {KV5M_DATA, 6, ticket_cipher_};
    reply_.msg_type = KRB5_AS_REP;
    reply_.client = client_;
    reply_.ticket = &ticket_;
    reply_.enc_part.enctype = -24001;
    reply_.enc_part.kvno = 3;
    reply_.enc_part.ciphertext = {KV5M_DATA, 5, reply_cipher_};
  }
  char ticket_cipher_[7] = "sealed";
  char reply_cipher_[6] = "reply";
  krb5_ticket ticket_ = {};
  krb5_kdc_rep reply_ = {};
};

TEST_F(RepliesTest, AsAndTgsReplies) {
  for (const bool is_tgs : {false, true}) {
    Encoded message;
    reply_.msg_type = is_tgs ? KRB5_TGS_REP : KRB5_AS_REP;
    ASSERT_EQ(is_tgs ? encode_krb5_tgs_rep(&reply_, message.out())
                     : encode_krb5_as_rep(&reply_, message.out()), 0);
    EXPECT_FALSE(IsError(message.bytes()));
    Reply reply;
    ASSERT_TRUE(DecodeReply(message.bytes(), reply));
    EXPECT_EQ(reply.is_tgs, is_tgs);
    EXPECT_EQ(reply.client_realm, kRealm);
    EXPECT_EQ(Text(reply.client_name), Text(NameComponents(client_name_)));
    EXPECT_EQ(reply.ticket_realm, kRealm);
    EXPECT_EQ(Text(reply.ticket_server), Text(NameComponents(server_name_)));
    EXPECT_EQ(reply.enc_part.enctype, -24001);
    EXPECT_EQ(Text(reply.enc_part.cipher), "reply");
    Encoded ticket;
    ASSERT_EQ(encode_krb5_ticket(&ticket_, ticket.out()), 0);
    EXPECT_EQ(Text(reply.ticket), Text(ticket.bytes()));
  }
}

// A reply with any byte missing at its end is none.
TEST_F(RepliesTest, CutReplies) {
  Encoded message;
  ASSERT_EQ(encode_krb5_as_rep(&reply_, message.out()), 0);
  for (size_t size = 0; size < message.bytes().size(); ++size) {
    Reply reply;
    EXPECT_FALSE(DecodeReply(message.bytes().subspan(0, size), reply)) << size;
  }
}

TEST_F(RepliesTest, EncryptedPart) {
  krb5_octet key_bytes[16] = {42};
  krb5_keyblock key = {KV5M_KEYBLOCK, 17, 16, key_bytes};
  krb5_last_req_entry last_request = {};
  krb5_last_req_entry* last_requests[] = {&last_request, nullptr};
  krb5_octet mac[] = {5, 6, 7, 8};
  krb5_checksum checksum = {KV5M_CHECKSUM, 16, 4, mac};
  Encoded encoded_checksum;
  ASSERT_EQ(encode_krb5_checksum(&checksum, encoded_checksum.out()), 0);
  krb5_pa_data preauth = {KV5M_PA_DATA, KRB5_ENCPADATA_REQ_ENC_PA_REP,
                          static_cast<unsigned>(encoded_checksum.bytes().size()),
                          const_cast<krb5_octet*>(encoded_checksum.bytes().data())};
  krb5_pa_data* preauths[] = {&preauth, nullptr};
  krb5_enc_kdc_rep_part part = {};
  part.msg_type = KRB5_AS_REP;
  part.session = &key;
  part.last_req = last_requests;
  part.nonce = static_cast<krb5_int32>(kNonce);
  part.times.authtime = 1790000000;
  part.times.endtime = static_cast<krb5_timestamp>(kTill);
  part.server = server_;
  part.enc_padata = preauths;
  Encoded message;
  ASSERT_EQ(encode_krb5_enc_kdc_rep_part(&part, message.out()), 0);
  ReplyPart read;
  ASSERT_TRUE(DecodeReplyPart(message.bytes(), read));
  EXPECT_EQ(read.session_enctype, 17);
  EXPECT_EQ(Text(read.session_key), Text(Bytes(key_bytes)));
  EXPECT_EQ(read.nonce, kNonce);
  EXPECT_EQ(read.end_time, kTill);
  EXPECT_EQ(read.server_realm, kRealm);
  EXPECT_EQ(Text(read.server_name), Text(NameComponents(server_name_)));
  ASSERT_TRUE(read.has_request_checksum);
  EXPECT_EQ(read.request_checksum_type, 16);
  EXPECT_EQ(Text(read.request_checksum), Text(Bytes(mac)));
}

TEST_F(RepliesTest, Errors) {
  char reason[] = "PREAUTH_FAILED";
  krb5_error error = {};
  error.error = 24;
  error.stime = 1790000000;
  error.server = server_;
  error.text = {KV5M_DATA, sizeof reason - 1, reason};
  for (const bool with_client : {false, true}) {
    error.client = with_client ? client_ : nullptr;
    Encoded message;
    ASSERT_EQ(encode_krb5_error(&error, message.out()), 0);
    ASSERT_TRUE(IsError(message.bytes()));
    ErrorReply read;
    ASSERT_TRUE(DecodeError(message.bytes(), read));
    EXPECT_EQ(read.code, 24);
    EXPECT_EQ(read.text, reason);
    EXPECT_EQ(Text(read.client_name), with_client ? Text(NameComponents(client_name_)) : "");
  }
}

}  // namespace
}  // namespace mpckdc::storm
