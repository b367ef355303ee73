// SPDX-License-Identifier: Apache-2.0
//
// The login's checks see what is wrong: a KDC in miniature, on libkrb5's encoders, that can lie in
// one thing at a time.
#include "integration-tests/storm/login.h"

#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace mpckdc::storm {
namespace {

constexpr char kRealm[] = "EXAMPLE.COM";
constexpr int32_t kSessionEnctype = 18;

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

class MiniKdc {
 public:
  MiniKdc(const Key* key, const Key* other) : key_(key), other_(other) {}

  // An AS-REP to an AS-REQ.
  std::vector<uint8_t> Reply(Bytes request, const Story& story) {
    const krb5_data data = AsData(request);
    krb5_kdc_req* decoded = nullptr;
    EXPECT_EQ(decode_krb5_as_req(&data, &decoded), 0);
    const std::vector<uint8_t> part = Part(request, decoded->nonce + story.nonce_off_by, story);
    krb5_free_kdc_req(nullptr, decoded);
    std::vector<uint8_t> cipher(part.size() + 100);
    const Key& key = story.other_key ? *other_ : *key_;
    const Bytes sealed = key.Encrypt(kUsageAsReply, part, absl::MakeSpan(cipher));
    if (story.flip_cipher) cipher[sealed.size() / 2] ^= 1;
    return Envelope(sealed, story);
  }

  std::vector<uint8_t> Error(int code) {
    krb5_error error = {};
    error.error = static_cast<krb5_ui_4>(code);
    const Principal server = *TgsName(kRealm);
    error.server = server.get();
    return Take(Encode(encode_krb5_error, error));
  }

 private:
  // "name@REALM".
  static Principal Parse(const std::string& text) {
    const size_t at = text.find('@');
    return *ParseName(text.substr(0, at), text.substr(at + 1), KRB5_NT_PRINCIPAL);
  }

  static std::vector<uint8_t> Take(const Encoded& data) {
    return {data->data, data->data + data->length};
  }

  std::vector<uint8_t> Part(Bytes request, krb5_int32 nonce, const Story& story) {
    std::vector<krb5_octet> key_bytes(EnctypeKeyBytes(story.session_enctype), 7);
    krb5_keyblock session = {KV5M_KEYBLOCK, story.session_enctype,
                             static_cast<unsigned>(key_bytes.size()), key_bytes.data()};
    uint8_t mac[64];
    krb5_checksum checksum = {};
    Bytes made;
    EXPECT_TRUE(key_->Checksum(kUsageAsRequest, request, absl::MakeSpan(mac),
                               checksum.checksum_type, made));
    if (story.flip_checksum) mac[0] ^= 1;
    checksum.length = static_cast<unsigned>(made.size());
    checksum.contents = mac;
    std::vector<uint8_t> checksum_bytes = Take(Encode(encode_krb5_checksum, checksum));
    krb5_pa_data preauth = {KV5M_PA_DATA, KRB5_ENCPADATA_REQ_ENC_PA_REP,
                            static_cast<unsigned>(checksum_bytes.size()), checksum_bytes.data()};
    krb5_pa_data* preauths[] = {&preauth, nullptr};
    krb5_last_req_entry last_request = {};
    krb5_last_req_entry* last_requests[] = {&last_request, nullptr};
    const Principal server = Parse(story.inner_server);
    krb5_enc_kdc_rep_part part = {};
    part.msg_type = KRB5_AS_REP;
    part.session = &session;
    part.last_req = last_requests;
    part.nonce = nonce;
    part.times.authtime = 1790000000;
    part.times.endtime = 1790036000;
    part.server = server.get();
    part.enc_padata = story.has_checksum ? preauths : nullptr;
    return Take(Encode(encode_krb5_enc_kdc_rep_part, part));
  }

  std::vector<uint8_t> Envelope(Bytes sealed, const Story& story) {
    const Principal client = Parse(story.client), server = Parse(story.server);
    krb5_ticket ticket = {};
    char opaque[] = "opaque";
    ticket.server = server.get();
    ticket.enc_part.enctype = 18;
    ticket.enc_part.ciphertext = {KV5M_DATA, 6, opaque};
    krb5_kdc_rep reply = {};
    reply.msg_type = KRB5_AS_REP;
    reply.client = client.get();
    reply.ticket = &ticket;
    reply.enc_part.enctype = story.reply_enctype;
    reply.enc_part.ciphertext = AsData(sealed);
    return Take(Encode(encode_krb5_as_rep, reply));
  }

  const Key* key_;
  const Key* other_;
};

class LoginTest : public testing::Test {
 protected:
  LoginTest() : plan_(*MakeLoginPlan(kRealm, 17, {kSessionEnctype}, "host/www")) {
    user_.principal = "alice";
    user_.name = *ParseName("alice", kRealm, KRB5_NT_PRINCIPAL);
    user_.key = *Key::Random(17);
    EXPECT_TRUE(user_.key.Prepare().ok());
    other_ = *Key::Random(17);
    kdc_ = std::make_unique<MiniKdc>(&user_.key, &other_);
  }

  Login::Next Answer(const Story& story, bool check = true) {
    EXPECT_EQ(login_.Begin(plan_, user_, nullptr, check, 4711), Login::Next::kSend);
    const std::vector<uint8_t> reply = kdc_->Reply(login_.request(), story);
    return login_.OnReply(reply, 4712);
  }

  // Of a login whose first request gets this answer.
  Outcome OutcomeOf(const Key* wrong_key, std::vector<uint8_t> (*answer)(MiniKdc&, Bytes)) {
    login_.Begin(plan_, user_, wrong_key, true, 1);
    EXPECT_EQ(login_.OnReply(answer(*kdc_, login_.request()), 2), Login::Next::kDone);
    return login_.outcome();
  }

  LoginPlan plan_;
  User user_;
  Key other_;
  std::unique_ptr<MiniKdc> kdc_;
  Login login_;
};

TEST_F(LoginTest, ATrueStory) {
  EXPECT_EQ(Answer(Story()), Login::Next::kDone);
  EXPECT_EQ(login_.outcome(), Outcome::kOk) << login_.complaint();
  EXPECT_TRUE(login_.decrypted());
}

TEST_F(LoginTest, EveryLieIsSeen) {
  const std::pair<const char*, std::function<void(Story&)>> lies[] = {
      {"another service", [](Story& s) { s.server = "krbtgt/OTHER@EXAMPLE.COM"; }},
      {"another service", [](Story& s) { s.server = "krbtgt/EXAMPLE.COM@OTHER"; }},
      {"another service than it says",
       [](Story& s) { s.inner_server = "kadmin/admin@EXAMPLE.COM"; }},
      {"not asked for", [](Story& s) { s.session_enctype = 20; }},
      {"instead of", [](Story& s) { s.reply_enctype = 18; }},
      {"does not open", [](Story& s) { s.other_key = true; }},
      {"does not open", [](Story& s) { s.flip_cipher = true; }},
      {"without the checksum", [](Story& s) { s.has_checksum = false; }},
      {"wrong checksum", [](Story& s) { s.flip_checksum = true; }},
  };
  for (const auto& [text, lie] : lies) {
    Story story;
    lie(story);
    EXPECT_EQ(Answer(story), Login::Next::kDone);
    EXPECT_EQ(login_.outcome(), Outcome::kWrongAnswer) << text;
    EXPECT_NE(login_.complaint().find(text), std::string::npos) << login_.complaint();
  }
}

// What cannot be seen without decrypting is not, where only a sample is decrypted: --check is about
// just this.
TEST_F(LoginTest, WithoutDecryptingOnlyTheEnvelope) {
  Story story;
  story.nonce_off_by = 1;
  EXPECT_EQ(Answer(story, /*check=*/false), Login::Next::kDone);
  EXPECT_EQ(login_.outcome(), Outcome::kOk);
  EXPECT_FALSE(login_.decrypted());
  story.server = "krbtgt/OTHER@EXAMPLE.COM";
  Answer(story, /*check=*/false);
  EXPECT_EQ(login_.outcome(), Outcome::kWrongAnswer);
}

TEST_F(LoginTest, AnswersToOthersAreNotOurs) {
  for (const Story& story : {Story{.client = "bob@EXAMPLE.COM"}, Story{.client = "alice@OTHER"},
                             Story{.nonce_off_by = 1}}) {
    EXPECT_EQ(Answer(story), Login::Next::kNotOurs);
  }
  EXPECT_NE(login_.complaint().find("nonce"), std::string::npos);
}

TEST_F(LoginTest, NoKerberosMessage) {
  EXPECT_EQ(OutcomeOf(nullptr,
                      [](MiniKdc&, Bytes) {
                        return std::vector<uint8_t>{0x30, 0x03, 0x02, 0x01, 0x05};
                      }),
            Outcome::kWrongAnswer);
}

TEST_F(LoginTest, WrongPasswords) {
  const auto refusal = [](MiniKdc& kdc, Bytes) { return kdc.Error(kErrorPreauthFailed); };
  const auto outage = [](MiniKdc& kdc, Bytes) { return kdc.Error(29); };
  const auto ticket = [](MiniKdc& kdc, Bytes request) { return kdc.Reply(request, Story()); };
  EXPECT_EQ(OutcomeOf(&other_, refusal), Outcome::kRefused);
  // Another error is none that a wrong password explains.
  EXPECT_EQ(OutcomeOf(&other_, outage), Outcome::kError);
  EXPECT_EQ(login_.error_code(), 29);
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
  EXPECT_EQ(login_.OnReply(kdc_->Error(kErrorPreauthRequired), 2), Login::Next::kSend);
  EXPECT_EQ(login_.step(), Login::Step::kAs);
  EXPECT_EQ(login_.OnReply(kdc_->Reply(login_.request(), Story()), 3), Login::Next::kDone);
  EXPECT_EQ(login_.outcome(), Outcome::kOk) << login_.complaint();
}

// The TGS-REQ's authenticator opens with the session key, its checksum is that of the body.
TEST_F(LoginTest, ThenATgsRequest) {
  plan_.tgs_requests = 1;
  EXPECT_EQ(Answer(Story(), /*check=*/false), Login::Next::kSend);
  EXPECT_EQ(login_.step(), Login::Step::kTgs);
  const krb5_data data = AsData(login_.request());
  krb5_kdc_req* request = nullptr;
  ASSERT_EQ(decode_krb5_tgs_req(&data, &request), 0);
  const krb5_data ap_data = AsData({request->padata[0]->contents, request->padata[0]->length});
  krb5_ap_req* ap = nullptr;
  ASSERT_EQ(decode_krb5_ap_req(&ap_data, &ap), 0);
  const std::vector<uint8_t> session(32, 7);
  const Key key = *Key::FromBytes(kSessionEnctype, session);
  std::vector<uint8_t> buffer(1000);
  Bytes plain;
  EXPECT_TRUE(key.Decrypt(kUsageTgsAuthenticator, View(ap->authenticator.ciphertext),
                          absl::MakeSpan(buffer), plain));
  EXPECT_FALSE(plain.empty());
  krb5_free_ap_req(nullptr, ap);
  krb5_free_kdc_req(nullptr, request);
}

}  // namespace
}  // namespace mpckdc::storm
