// SPDX-License-Identifier: Apache-2.0
//
// Requests as a KDC reads them, replies as a KDC writes them, and what is no reply. The login's
// checks see what is wrong: a KDC in miniature, on libkrb5's encoders, that can lie in one thing at
// a time.
#include "integration-tests/storm/login.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "mpc-server/base/bytes.h"

namespace mpckdc::storm {
namespace {

constexpr char kRealm[] = "EXAMPLE.COM";
constexpr int32_t kSessionEnctype = 18;
constexpr uint32_t kNonce = 0x7abcdef0;
constexpr int64_t kMicroseconds = 1790000000123456;
constexpr uint32_t kTill = 1790000000 + kTicketSeconds;
constexpr int32_t kEnctypes[] = {-24001, 18, 17};

std::string Text(const krb5_data& data) { return {data.data, data.length}; }

using Request = std::unique_ptr<krb5_kdc_req, FreedBy<krb5_free_kdc_req>>;
using ApRequest = std::unique_ptr<krb5_ap_req, FreedBy<krb5_free_ap_req>>;
using EncData = std::unique_ptr<krb5_enc_data, FreedBy<krb5_free_enc_data>>;
using Authenticator = std::unique_ptr<krb5_authenticator, FreedBy<krb5_free_authenticator>>;

template <class Owner, class T = typename Owner::element_type>
Owner Read(Decoder<T>* decode, Bytes message) {
  const krb5_data data = AsData(message);
  T* value = nullptr;
  EXPECT_EQ(decode(&data, &value), 0);
  return Owner(value);
}

Bytes Contents(const krb5_pa_data* preauth) { return {preauth->contents, preauth->length}; }

// What the session key opens in a TGS-REQ; null when it does not.
Authenticator OpenAuthenticator(const krb5_kdc_req& request, const Key& session) {
  EXPECT_EQ(request.padata[0]->pa_type, KRB5_PADATA_AP_REQ);
  const ApRequest ap = Read<ApRequest>(decode_krb5_ap_req, Contents(request.padata[0]));
  EXPECT_EQ(Text(ap->ticket->enc_part.ciphertext), "sealed");
  std::vector<uint8_t> buffer(1000);
  const std::optional<Bytes> plain = session.Decrypt(
      kUsageTgsAuthenticator, View(ap->authenticator.ciphertext), absl::MakeSpan(buffer));
  if (!plain.has_value()) return nullptr;
  return Read<Authenticator>(decode_krb5_authenticator, *plain);
}

// What a KDC says inside a reply. `checksum`: encoded, or empty.
Encoded EncodePart(int32_t enctype, std::vector<uint8_t> key, krb5_int32 nonce,
                   const Principal& server, Bytes checksum) {
  krb5_keyblock session = {KV5M_KEYBLOCK, enctype, static_cast<unsigned>(key.size()), key.data()};
  krb5_pa_data preauth = AsPreauth(KRB5_ENCPADATA_REQ_ENC_PA_REP, checksum);
  krb5_pa_data* preauths[] = {&preauth, nullptr};
  krb5_last_req_entry last_request = {};
  krb5_last_req_entry* last_requests[] = {&last_request, nullptr};
  krb5_enc_kdc_rep_part part = {};
  part.msg_type = KRB5_AS_REP;
  part.session = &session;
  part.last_req = last_requests;
  part.nonce = nonce;
  part.times.authtime = 1790000000;
  part.times.endtime = static_cast<krb5_timestamp>(kTill);
  part.server = server.get();
  part.enc_padata = checksum.empty() ? nullptr : preauths;
  return Encode(encode_krb5_enc_kdc_rep_part, part);
}

// A reply around it, with a ticket that nobody opens.
struct Envelope {
  Envelope(const Principal& client, const Principal& server, int32_t enctype, Bytes cipher) {
    ticket.server = server.get();
    ticket.enc_part = {KV5M_ENC_DATA, 18, 0, AsData(AsBytes("sealed"))};
    reply.msg_type = KRB5_AS_REP;
    reply.client = client.get();
    reply.ticket = &ticket;
    reply.enc_part = {KV5M_ENC_DATA, enctype, 3, AsData(cipher)};
  }
  krb5_ticket ticket = {};
  krb5_kdc_rep reply = {};
};

Encoded EncodeError(int code, const Principal& server, krb5_principal client = nullptr) {
  krb5_error error = {};
  error.error = static_cast<krb5_ui_4>(code);
  error.stime = 1790000000;
  error.server = server.get();
  error.client = client;
  return Encode(encode_krb5_error, error);
}

class MessagesTest : public testing::Test {
 protected:
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
  const krb5_kdc_req body_ = RequestBody(client_, server_, kEnctypes, kMicroseconds, kNonce);
  Envelope envelope_{client_, server_, -24001, AsBytes("reply")};
  krb5_kdc_rep& reply_ = envelope_.reply;
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
  const Request request = Read<Request>(
      decode_krb5_as_req, View(*EncodeAsRequest(body_, AsEncData(-24001, cipher), true)));
  ExpectName(request->client, client_);
  ExpectBody(*request, server_);
  ASSERT_NE(request->padata, nullptr);
  ASSERT_NE(request->padata[0], nullptr);
  ASSERT_NE(request->padata[1], nullptr);
  EXPECT_EQ(request->padata[2], nullptr);
  EXPECT_EQ(request->padata[0]->pa_type, KRB5_PADATA_ENC_TIMESTAMP);
  EXPECT_EQ(request->padata[1]->pa_type, KRB5_ENCPADATA_REQ_ENC_PA_REP);
  EXPECT_EQ(request->padata[1]->length, 0u);
  const EncData encrypted = Read<EncData>(decode_krb5_enc_data, Contents(request->padata[0]));
  EXPECT_EQ(encrypted->enctype, -24001);
  EXPECT_EQ(View(encrypted->ciphertext), Bytes(cipher));
  const Request plain = Read<Request>(decode_krb5_as_req, View(*EncodeAsRequest(body_, {}, false)));
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
  const krb5_kdc_req body = RequestBody(nullptr, server_, kEnctypes, kMicroseconds, kNonce);
  const Encoded message = EncodeTgsRequest(body, client_, &envelope_.ticket, key, kMicroseconds);
  const Request request = Read<Request>(decode_krb5_tgs_req, View(*message));
  ExpectBody(*request, server_);
  EXPECT_EQ(request->client, nullptr);
  const Authenticator read = OpenAuthenticator(*request, key);
  ASSERT_NE(read, nullptr);
  ExpectName(read->client, client_);
  EXPECT_EQ(Text(read->client->realm), kRealm);
  EXPECT_EQ(read->cusec, kMicroseconds % 1000000);
  EXPECT_EQ(read->ctime, kMicroseconds / 1000000);
  ASSERT_NE(read->checksum, nullptr);
  EXPECT_EQ(read->checksum->checksum_type, CKSUMTYPE_HMAC_SHA1_96_AES256);
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
  const std::vector<uint8_t> key = {42, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  krb5_octet mac[] = {5, 6, 7, 8};
  const Encoded checksum = Encode(encode_krb5_checksum, krb5_checksum{KV5M_CHECKSUM, 16, 4, mac});
  for (const bool has_checksum : {true, false}) {
    const Encoded part = EncodePart(17, key, static_cast<krb5_int32>(kNonce), server_,
                                    has_checksum ? View(*checksum) : Bytes());
    const ReplyPart read = DecodeReplyPart(View(*part));
    ASSERT_NE(read, nullptr);
    EXPECT_EQ(read->session->enctype, 17);
    EXPECT_EQ(Bytes(read->session->contents, read->session->length), Bytes(key));
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
  for (const krb5_principal client : {client_.get(), krb5_principal(nullptr)}) {
    const Encoded message = EncodeError(24, server_, client);
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

// What a reply says; a test changes one of it.
struct Story {
  std::string client = "alice@EXAMPLE.COM";
  std::string server = "krbtgt/EXAMPLE.COM@EXAMPLE.COM";        // of the ticket
  std::string inner_server = "krbtgt/EXAMPLE.COM@EXAMPLE.COM";  // in the encrypted part
  int nonce_off_by = 0;
  int32_t session_enctype = kSessionEnctype;
  int32_t reply_enctype = 17;
  bool other_key = false;
  bool flip_cipher = false;
  bool has_checksum = true;
  bool flip_checksum = false;
};

// A user and a KDC in miniature.
class LoginTest : public testing::Test {
 protected:
  using Message = std::vector<uint8_t>;

  LoginTest() {
    Options options;
    options.realm = kRealm;
    options.enctype = 17;
    options.session_enctypes = {kSessionEnctype};
    options.service = "host/www";
    plan_ = *MakeLoginPlan(options);
    user_.principal = "alice";
    user_.name = *ParseName("alice", kRealm, KRB5_NT_PRINCIPAL);
    user_.key = *Key::Random(17);
    EXPECT_TRUE(user_.key.Prepare().ok());
    other_ = *Key::Random(17);
  }

  // An AS-REP to the AS-REQ that the login has just made.
  Message Reply(const Story& story) {
    const Bytes request = login_.request();
    const Checksum checksum = user_.key.MakeChecksum(kUsageAsRequest, request);
    if (story.flip_checksum) checksum->contents[0] ^= 1;
    const Encoded encoded = Encode(encode_krb5_checksum, *checksum);
    const Encoded part =
        EncodePart(story.session_enctype, Message(EnctypeKeyBytes(story.session_enctype), 7),
                   Read<Request>(decode_krb5_as_req, request)->nonce + story.nonce_off_by,
                   Parse(story.inner_server), story.has_checksum ? View(*encoded) : Bytes());
    Message cipher(part->length + 100);
    const Key& key = story.other_key ? other_ : user_.key;
    const Bytes sealed = key.Encrypt(kUsageAsReply, View(*part), absl::MakeSpan(cipher));
    if (story.flip_cipher) cipher[sealed.size() / 2] ^= 1;
    const Principal client = Parse(story.client), server = Parse(story.server);
    const Envelope envelope(client, server, story.reply_enctype, sealed);
    return Take(Encode(encode_krb5_as_rep, envelope.reply));
  }

  Message Error(int code) { return Take(EncodeError(code, *TgsName(kRealm))); }

  Login::Next Answer(const Story& story, bool check = true) {
    EXPECT_EQ(login_.Begin(plan_, user_, nullptr, check, 4711), Login::Next::kSend);
    return login_.OnReply(Reply(story), 4712);
  }

  // Of a login whose first request gets this answer.
  Outcome OutcomeOf(const Key* wrong_key, const std::function<Message()>& answer) {
    login_.Begin(plan_, user_, wrong_key, true, 1);
    EXPECT_EQ(login_.OnReply(answer(), 2), Login::Next::kDone);
    return login_.result().outcome;
  }

  LoginPlan plan_;
  User user_;
  Key other_;
  Login login_;

 private:
  // "name@REALM".
  static Principal Parse(const std::string& text) {
    const size_t at = text.find('@');
    return *ParseName(text.substr(0, at), text.substr(at + 1), KRB5_NT_PRINCIPAL);
  }

  static Message Take(const Encoded& data) { return {data->data, data->data + data->length}; }
};

TEST_F(LoginTest, ATrueStory) {
  EXPECT_EQ(Answer(Story()), Login::Next::kDone);
  EXPECT_EQ(login_.result().outcome, Outcome::kOk) << login_.result().complaint;
  EXPECT_TRUE(login_.result().decrypted);
}

TEST_F(LoginTest, EveryLieIsSeen) {
  const std::pair<const char*, Story> lies[] = {
      {"another service", {.server = "krbtgt/OTHER@EXAMPLE.COM"}},
      {"another service", {.server = "krbtgt/EXAMPLE.COM@OTHER"}},
      {"another service than it says", {.inner_server = "kadmin/admin@EXAMPLE.COM"}},
      {"not asked for", {.session_enctype = 20}},
      {"instead of", {.reply_enctype = 18}},
      {"does not open", {.other_key = true}},
      {"does not open", {.flip_cipher = true}},
      {"without the checksum", {.has_checksum = false}},
      {"wrong checksum", {.flip_checksum = true}},
  };
  for (const auto& [text, story] : lies) {
    EXPECT_EQ(Answer(story), Login::Next::kDone);
    EXPECT_EQ(login_.result().outcome, Outcome::kWrongAnswer) << text;
    EXPECT_NE(login_.result().complaint.find(text), std::string::npos) << login_.result().complaint;
  }
}

// What cannot be seen without decrypting is not, where only a sample is decrypted: --check is about
// just this.
TEST_F(LoginTest, WithoutDecryptingOnlyTheEnvelope) {
  Story story;
  story.nonce_off_by = 1;
  EXPECT_EQ(Answer(story, /*check=*/false), Login::Next::kDone);
  EXPECT_EQ(login_.result().outcome, Outcome::kOk);
  EXPECT_FALSE(login_.result().decrypted);
  story.server = "krbtgt/OTHER@EXAMPLE.COM";
  Answer(story, /*check=*/false);
  EXPECT_EQ(login_.result().outcome, Outcome::kWrongAnswer);
}

TEST_F(LoginTest, AnswersToOthersAreNotOurs) {
  for (const Story& story : {Story{.client = "bob@EXAMPLE.COM"}, Story{.client = "alice@OTHER"},
                             Story{.nonce_off_by = 1}}) {
    EXPECT_EQ(Answer(story), Login::Next::kNotOurs);
  }
  EXPECT_NE(login_.result().complaint.find("nonce"), std::string::npos);
}

TEST_F(LoginTest, NoKerberosMessage) {
  const auto answer = [] { return Message{0x30, 0x03, 0x02, 0x01, 0x05}; };
  EXPECT_EQ(OutcomeOf(nullptr, answer), Outcome::kWrongAnswer);
}

TEST_F(LoginTest, WrongPasswords) {
  const auto refusal = [this] { return Error(kErrorPreauthFailed); };
  const auto outage = [this] { return Error(29); };
  const auto ticket = [this] { return Reply(Story()); };
  EXPECT_EQ(OutcomeOf(&other_, refusal), Outcome::kRefused);
  // Another error is none that a wrong password explains.
  EXPECT_EQ(OutcomeOf(&other_, outage), Outcome::kError);
  EXPECT_EQ(login_.result().error_code, 29);
  // And a ticket is the worst.
  EXPECT_EQ(OutcomeOf(&other_, ticket), Outcome::kWrongAnswer);
  // A right password that is called wrong.
  EXPECT_EQ(OutcomeOf(nullptr, refusal), Outcome::kError);
  // No pre-authentication was asked for.
  plan_.two_step = true;
  EXPECT_EQ(OutcomeOf(nullptr, ticket), Outcome::kWrongAnswer);
}

TEST_F(LoginTest, TwoSteps) {
  plan_.two_step = true;
  login_.Begin(plan_, user_, nullptr, true, 1);
  EXPECT_EQ(login_.step(), Login::Step::kAsFirst);
  EXPECT_EQ(login_.OnReply(Error(kErrorPreauthRequired), 2), Login::Next::kSend);
  EXPECT_EQ(login_.step(), Login::Step::kAs);
  EXPECT_EQ(login_.OnReply(Reply(Story()), 3), Login::Next::kDone);
  EXPECT_EQ(login_.result().outcome, Outcome::kOk) << login_.result().complaint;
}

// The TGS-REQ's authenticator opens with the session key.
TEST_F(LoginTest, ThenATgsRequest) {
  plan_.tgs_requests = 1;
  EXPECT_EQ(Answer(Story(), /*check=*/false), Login::Next::kSend);
  EXPECT_EQ(login_.step(), Login::Step::kTgs);
  const Key key = *Key::FromBytes(kSessionEnctype, Message(32, 7));
  EXPECT_NE(OpenAuthenticator(*Read<Request>(decode_krb5_tgs_req, login_.request()), key), nullptr);
}

}  // namespace
}  // namespace mpckdc::storm
