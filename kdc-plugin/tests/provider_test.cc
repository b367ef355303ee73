// SPDX-License-Identifier: Apache-2.0
//
// The provider behind krb5's own entry points, against fake servers. What it seals is opened with
// libk5crypto's implementation of the enctype under the whole key, and the other way round.
#include <krb5/krb5.h>
#include <krb5/remote_key_plugin.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kdc-plugin/tests/fake_realm.h"

extern "C" {
#include "kdc-plugin/provider/provider.h"
}

namespace mpckdc::test {
namespace {

using ::testing::HasSubstr;

// A host with one request at a time, whose waits block the thread. In a slice (a host's run through
// many requests) what is put off is begun when the request waits.
bool in_slice = false;
struct Token {
  std::mutex mutex;
  std::condition_variable changed;
  bool woken = false;
};
void* request_pointer = nullptr;
void** RequestSlot() { return &request_pointer; }
void* BeginWait() { return new Token; }
void Wait(void* token) {
  auto* t = static_cast<Token*>(token);
  if (in_slice) krb5_c_remote_key_flush();
  {
    std::unique_lock<std::mutex> lock(t->mutex);
    t->changed.wait(lock, [&] { return t->woken; });
  }
  delete t;
}
void Wake(void* token) {
  auto* t = static_cast<Token*>(token);
  std::lock_guard<std::mutex> lock(t->mutex);
  t->woken = true;
  t->changed.notify_all();
}
krb5_boolean FlushLater() { return in_slice; }
const krb5_remote_key_host kHost = {BeginWait, Wait, Wake, RequestSlot, FlushLater};

krb5_data View(const std::string& s) {
  return {KV5M_DATA, static_cast<unsigned>(s.size()), const_cast<char*>(s.data())};
}

class ProviderTest : public ::testing::Test {
 protected:
  ProviderTest()
      : user_base_(32, 'u'),
        tgs_base_(32, 't'),
        user_handle_(realm_.AddKey("alice@EXAMPLE.COM", user_base_, v1::KEY_CLASS_USER)),
        tgs_handle_(
            realm_.AddKey("krbtgt/EXAMPLE.COM@EXAMPLE.COM", tgs_base_, v1::KEY_CLASS_TGS)) {
    if (krb5_init_secure_context(&context_) != 0) abort();
    // One process, one realm of servers: each test starts the provider anew.
    mpc_options options = realm_.Options(3000);
    options.log = +[](int, const char* text) { log_ += std::string(text) + "\n"; };
    const krb5_error_code code = provider_register(context_, &options);
    EXPECT_EQ(code, 0);
    krb5_c_set_remote_key_host(&kHost);
    user_ = Reference(user_handle_);
    tgs_ = Reference(tgs_handle_);
  }
  ~ProviderTest() override {
    EndRequest();
    in_slice = false;
    provider_unregister();
    krb5_c_set_remote_key_host(nullptr);
    krb5_free_keyblock_contents(context_, &user_);
    krb5_free_keyblock_contents(context_, &tgs_);
    krb5_free_context(context_);
  }

  void EndRequest() {
    if (request_pointer != nullptr) krb5_c_remote_key_request_done(request_pointer);
    request_pointer = nullptr;
  }

  krb5_keyblock Reference(const std::string& handle, krb5_enctype enctype = -24002) {
    krb5_keyblock key = {};
    const krb5_data data = View(handle);
    EXPECT_EQ(krb5_c_make_remote_key(context_, enctype, &data, &key), 0);
    return key;
  }
  static krb5_keyblock Local(const std::string& base, krb5_enctype enctype = -24002) {
    return {KV5M_KEYBLOCK, enctype, static_cast<unsigned>(base.size()),
            reinterpret_cast<krb5_octet*>(const_cast<char*>(base.data()))};
  }

  krb5_error_code Encrypt(const krb5_keyblock& key, int usage, const std::string& plain,
                          std::string* out) {
    size_t length = 0;
    EXPECT_EQ(krb5_c_encrypt_key_length(context_, &key, plain.size(), &length), 0);
    out->assign(length, '\0');
    krb5_enc_data cipher = {0, key.enctype, 0, View(*out)};
    const krb5_data input = View(plain);
    const krb5_error_code code = krb5_c_encrypt(context_, &key, usage, nullptr, &input, &cipher);
    out->resize(code == 0 ? cipher.ciphertext.length : 0);
    return code;
  }
  krb5_error_code Decrypt(const krb5_keyblock& key, int usage, const std::string& message,
                          std::string* out) {
    out->assign(message.size(), '\0');
    krb5_enc_data cipher = {0, key.enctype, 0, View(message)};
    krb5_data plain = View(*out);
    const krb5_error_code code = krb5_c_decrypt(context_, &key, usage, nullptr, &cipher, &plain);
    out->resize(code == 0 ? plain.length : 0);
    return code;
  }
  std::string Sealed(const std::string& base, int usage, const std::string& plain,
                     krb5_enctype enctype = -24002) {
    std::string message;
    EXPECT_EQ(Encrypt(Local(base, enctype), usage, plain, &message), 0);
    return message;
  }
  static krb5_cksumtype ChecksumType(krb5_enctype enctype) {
    if (enctype == kEnctypeAes128Sha1) return CKSUMTYPE_HMAC_SHA1_96_AES128;
    if (enctype == kEnctypeAes256Sha1) return CKSUMTYPE_HMAC_SHA1_96_AES256;
    return enctype;
  }
  std::string Checksum(const krb5_keyblock& key, int usage, const std::string& data,
                       krb5_error_code* code) {
    krb5_checksum sum = {};
    const krb5_data input = View(data);
    *code = krb5_c_make_checksum(context_, 0, &key, usage, &input, &sum);
    EXPECT_EQ(sum.checksum_type, *code == 0 ? ChecksumType(key.enctype) : 0);
    std::string out(reinterpret_cast<char*>(sum.contents), *code == 0 ? sum.length : 0);
    krb5_free_checksum_contents(context_, &sum);
    return out;
  }
  krb5_error_code Verify(const krb5_keyblock& key, int usage, const std::string& data,
                         const std::string& checksum, bool* valid) {
    krb5_checksum sum = {KV5M_CHECKSUM, ChecksumType(key.enctype),
                         static_cast<unsigned>(checksum.size()),
                         reinterpret_cast<krb5_octet*>(const_cast<char*>(checksum.data()))};
    const krb5_data input = View(data);
    krb5_boolean result = 0;
    const krb5_error_code code =
        krb5_c_verify_checksum(context_, &key, usage, &input, &sum, &result);
    *valid = result;
    return code;
  }

  void HintAs(const std::string& preauth, size_t ticket, size_t reply,
              const std::string& as_req = "", bool finish_with_reply = false) {
    HintAs(user_, preauth, ticket, reply, as_req, finish_with_reply);
  }
  void HintAs(const krb5_keyblock& client, const std::string& preauth, size_t ticket, size_t reply,
              const std::string& as_req, bool finish_with_reply) {
    const krb5_data cipher = View(preauth), request = View(as_req);
    const krb5_remote_key_as_hint hint = {
        &client, preauth.empty() ? nullptr : &cipher, &tgs_,
        ticket, reply, as_req.empty() ? nullptr : &request, finish_with_reply};
    krb5_c_remote_key_hint_as(context_, &hint);
  }

  std::string Message(krb5_error_code code) {
    const char* text = krb5_get_error_message(context_, code);
    std::string copy = text;
    krb5_free_error_message(context_, text);
    return copy;
  }

  FakeRealm realm_;
  std::string user_base_, tgs_base_, user_handle_, tgs_handle_;
  krb5_context context_ = nullptr;
  krb5_keyblock user_ = {}, tgs_ = {};
  static std::string log_;
};
std::string ProviderTest::log_;

TEST_F(ProviderTest, ALoginIsOneJob) {
  const std::string preauth = Sealed(user_base_, 1, "a timestamp");
  HintAs(preauth, 100, 200, "the request");
  std::string plain, ticket, reply, opened;
  ASSERT_EQ(Decrypt(user_, 1, preauth, &plain), 0);
  EXPECT_EQ(plain, "a timestamp");
  ASSERT_EQ(Encrypt(tgs_, 2, "ticket part", &ticket), 0);
  ASSERT_EQ(Encrypt(user_, 3, std::string(200, 'r'), &reply), 0);
  krb5_error_code code;
  const std::string checksum = Checksum(user_, 56, "the request", &code);
  ASSERT_EQ(code, 0);
  EXPECT_EQ(realm_.oracle->jobs(), 1);
  EXPECT_EQ(ticket[12], 33) << "a TGT has its header";
  EXPECT_EQ(Decrypt(Local(tgs_base_), 2, ticket, &opened), 0);
  EXPECT_EQ(opened, "ticket part");
  EXPECT_EQ(Decrypt(Local(user_base_), 3, reply, &opened), 0);
  EXPECT_EQ(opened, std::string(200, 'r'));
  bool valid = false;
  EXPECT_EQ(Verify(Local(user_base_), 56, "the request", checksum, &valid), 0);
  EXPECT_TRUE(valid);
}

TEST_F(ProviderTest, InASliceNothingIsSentBeforeItsEnd) {
  const std::string preauth = Sealed(user_base_, 1, "a timestamp");
  std::string plain, ticket, reply, opened;
  in_slice = true;
  HintAs(preauth, 100, 200);
  // This one is sent at once, so whatever the hint had sent would have come first.
  in_slice = false;
  ASSERT_EQ(Decrypt(user_, 1, Sealed(user_base_, 1, "another"), &plain), 0);
  EXPECT_EQ(plain, "another");
  EXPECT_EQ(realm_.oracle->jobs(), 1);
  in_slice = true;
  ASSERT_EQ(Decrypt(user_, 1, preauth, &plain), 0);
  EXPECT_EQ(plain, "a timestamp");
  ASSERT_EQ(Encrypt(tgs_, 2, "ticket part", &ticket), 0);
  ASSERT_EQ(Encrypt(user_, 3, "the reply", &reply), 0);
  EXPECT_EQ(realm_.oracle->jobs(), 2);
  EXPECT_EQ(Decrypt(Local(tgs_base_), 2, ticket, &opened), 0);
  EXPECT_EQ(opened, "ticket part");
  EXPECT_EQ(Decrypt(Local(user_base_), 3, reply, &opened), 0);
  EXPECT_EQ(opened, "the reply");
}

TEST_F(ProviderTest, ATicketIsFinishedWithItsReply) {
  const std::string preauth = Sealed(user_base_, 1, "a timestamp");
  std::string plain, ticket, reply, opened;
  in_slice = true;
  HintAs(preauth, 100, 200, "", true);
  ASSERT_EQ(Decrypt(user_, 1, preauth, &plain), 0);
  ASSERT_EQ(Encrypt(tgs_, 2, "ticket part", &ticket), 0);
  EXPECT_EQ(ticket.substr(ticket.size() - 16), std::string(16, '\0')) << "its tag was waited for";
  EXPECT_EQ(Decrypt(Local(tgs_base_), 2, ticket, &opened), KRB5KRB_AP_ERR_BAD_INTEGRITY);
  ASSERT_EQ(Encrypt(user_, 3, "the reply", &reply), 0);
  EXPECT_EQ(Decrypt(Local(tgs_base_), 2, ticket, &opened), 0);
  EXPECT_EQ(opened, "ticket part");
  EXPECT_EQ(Decrypt(Local(user_base_), 3, reply, &opened), 0);
  EXPECT_EQ(opened, "the reply");
}

TEST_F(ProviderTest, AnUnforeseenReplyFinishesTheTicketToo) {
  const std::string preauth = Sealed(user_base_, 1, "a timestamp");
  std::string plain, ticket, reply, opened;
  HintAs(preauth, 100, 10, "", true);
  ASSERT_EQ(Decrypt(user_, 1, preauth, &plain), 0);
  ASSERT_EQ(Encrypt(tgs_, 2, "ticket part", &ticket), 0);
  ASSERT_EQ(Encrypt(user_, 3, std::string(50, 'r'), &reply), 0);
  EXPECT_EQ(Decrypt(Local(tgs_base_), 2, ticket, &opened), 0);
  EXPECT_EQ(opened, "ticket part");
}

TEST_F(ProviderTest, ATicketWithoutAReplyIsLeftAlone) {
  const std::string preauth = Sealed(user_base_, 1, "a timestamp");
  std::string plain, ticket;
  HintAs(preauth, 100, 200, "", true);
  ASSERT_EQ(Decrypt(user_, 1, preauth, &plain), 0);
  ASSERT_EQ(Encrypt(tgs_, 2, "ticket part", &ticket), 0);
  const std::string unfinished = ticket;
  EndRequest();
  // The tag has come when a later job has been answered.
  ASSERT_EQ(Decrypt(user_, 1, Sealed(user_base_, 1, "the next"), &plain), 0);
  EXPECT_EQ(ticket, unfinished);
}

TEST_F(ProviderTest, ARequestThatEndsBeforeItsSliceSendsNothing) {
  in_slice = true;
  HintAs(Sealed(user_base_, 1, "given up"), 100, 200, "the request");
  EndRequest();
  krb5_c_remote_key_flush();
  std::string plain;
  ASSERT_EQ(Decrypt(user_, 1, Sealed(user_base_, 1, "the next"), &plain), 0);
  EXPECT_EQ(plain, "the next");
  EXPECT_EQ(realm_.oracle->jobs(), 1);
}

TEST_F(ProviderTest, WhatWasNotForeseenGetsItsOwnJob) {
  const std::string preauth = Sealed(user_base_, 1, "a timestamp");
  HintAs(preauth, 10, 10);
  std::string plain, ticket, reply, opened;
  ASSERT_EQ(Decrypt(user_, 1, preauth, &plain), 0);
  ASSERT_EQ(Encrypt(tgs_, 2, std::string(50, 't'), &ticket), 0);  // longer than the hint said
  ASSERT_EQ(Encrypt(user_, 3, std::string(50, 'r'), &reply), 0);
  krb5_error_code code;
  EXPECT_EQ(Checksum(user_, 56, "the request", &code).size(), 28u);  // not announced
  EXPECT_EQ(code, 0);
  EXPECT_EQ(realm_.oracle->jobs(), 4);
  EXPECT_EQ(Decrypt(Local(tgs_base_), 2, ticket, &opened), 0);
  EXPECT_EQ(opened, std::string(50, 't'));
}

TEST_F(ProviderTest, WithoutHintsEverythingWorks) {
  const std::string preauth = Sealed(user_base_, 1, "a timestamp");
  std::string plain, ticket, reply;
  ASSERT_EQ(Decrypt(user_, 1, preauth, &plain), 0);
  ASSERT_EQ(Encrypt(tgs_, 2, "ticket", &ticket), 0);
  ASSERT_EQ(Encrypt(user_, 3, "reply", &reply), 0);
  EXPECT_EQ(realm_.oracle->jobs(), 3);
}

TEST_F(ProviderTest, ASecondKeyOfTheClientMayBeTheRightOne) {
  const std::string preauth = Sealed(user_base_, 1, "a timestamp");
  const std::string other = realm_.AddKey("alice@EXAMPLE.COM", std::string(32, 'o'),
                                          v1::KEY_CLASS_USER);
  krb5_keyblock wrong = Reference(other);
  const krb5_data cipher = View(preauth);
  const krb5_remote_key_as_hint hint = {&wrong, &cipher, &tgs_, 100, 100, nullptr, 0};
  krb5_c_remote_key_hint_as(context_, &hint);
  std::string plain, ticket;
  EXPECT_EQ(Decrypt(wrong, 1, preauth, &plain), KRB5KRB_AP_ERR_BAD_INTEGRITY);
  EXPECT_EQ(Decrypt(user_, 1, preauth, &plain), 0);
  EXPECT_EQ(Encrypt(tgs_, 2, "ticket", &ticket), 0);
  krb5_free_keyblock_contents(context_, &wrong);
}

TEST_F(ProviderTest, LoginWithoutPreauthIsOneJobToo) {
  realm_.oracle->SetGate(user_handle_, v1::GATE_NONE);
  HintAs("", 100, 100, "the request");
  EXPECT_EQ(realm_.oracle->jobs(), 0) << "nothing is sent before it is needed";
  std::string ticket, reply;
  ASSERT_EQ(Encrypt(tgs_, 2, "ticket", &ticket), 0);
  ASSERT_EQ(Encrypt(user_, 3, "reply", &reply), 0);
  EXPECT_EQ(realm_.oracle->jobs(), 1);
}

TEST_F(ProviderTest, ALocalReplyKeyNeedsAClientThatTheServersKnow) {
  const std::string service =
      realm_.AddKey("host/www@EXAMPLE.COM", std::string(16, 's'), v1::KEY_CLASS_USER,
                    v1::GATE_KDC_TRUSTED);
  const std::string own_key(32, 'l');
  const krb5_keyblock local = Local(own_key);
  const krb5_remote_key_as_hint hint = {&local, nullptr, &tgs_, 100, 0, nullptr, 0};
  std::string ticket;
  krb5_c_remote_key_hint_as(context_, &hint);
  EXPECT_EQ(Encrypt(tgs_, 2, "ticket", &ticket), KRB5KDC_ERR_POLICY);
  EndRequest();
  provider_note_client(reinterpret_cast<const uint8_t*>(service.data()));
  krb5_c_remote_key_hint_as(context_, &hint);
  EXPECT_EQ(Encrypt(tgs_, 2, "ticket", &ticket), 0);
  EXPECT_EQ(realm_.oracle->jobs(), 1);
}

TEST_F(ProviderTest, ARepetitionAfterAnOutageIsNoAttack) {
  const std::string preauth = Sealed(user_base_, 1, "a timestamp");
  std::string plain;
  for (auto& party : realm_.parties) {
    party->behaviour.job = [](v1::JobAnswer& a) { a.set_verdict(v1::VERDICT_UNAVAILABLE); };
  }
  EXPECT_EQ(Decrypt(user_, 1, preauth, &plain), KRB5KDC_ERR_SVC_UNAVAILABLE);
  for (auto& party : realm_.parties) party->behaviour.job = nullptr;
  EXPECT_EQ(Decrypt(user_, 1, preauth, &plain), KRB5KDC_ERR_SVC_UNAVAILABLE);
}

// This process is a new one to whom the client repeats what an old one has asked the servers.
TEST_F(ProviderTest, ARepetitionAfterARestartIsNoAttack) {
  const std::string preauth = Sealed(user_base_, 1, "a timestamp");
  std::string plain;
  EXPECT_EQ(Decrypt(user_, 1, preauth, &plain), 0);
  EndRequest();
  plain.clear();
  const krb5_error_code code = Decrypt(user_, 1, preauth, &plain);
  EXPECT_EQ(code, KRB5KDC_ERR_SVC_UNAVAILABLE);
  EXPECT_THAT(Message(code), HasSubstr("verified this request before"));
  EXPECT_EQ(plain, "") << "a replay opens nothing";
}

// Neither a wrong password nor a replay, and the log says which quota.
TEST_F(ProviderTest, AQuotaIsAnOutageThatNamesItself) {
  const std::string preauth = Sealed(user_base_, 1, "a timestamp");
  std::string plain;
  for (auto& party : realm_.parties) {
    party->behaviour.job = [](v1::JobAnswer& a) {
      a.set_verdict(v1::VERDICT_QUOTA);
      a.set_detail("quota principal_logins (60/min burst 120) of alice is used up");
    };
  }
  HintAs(preauth, 100, 100);
  const krb5_error_code code = Decrypt(user_, 1, preauth, &plain);
  EXPECT_EQ(code, KRB5KDC_ERR_SVC_UNAVAILABLE);
  EXPECT_THAT(Message(code),
              HasSubstr("QUOTA: quota principal_logins (60/min burst 120) of alice"));
  EXPECT_THAT(Message(code), HasSubstr("see [quota] in that server's mpc-server.toml"));
}

TEST_F(ProviderTest, GateIsTheServersDecision) {
  HintAs("", 100, 100);
  std::string ticket;
  const krb5_error_code code = Encrypt(tgs_, 2, "ticket", &ticket);
  EXPECT_EQ(code, KRB5KDC_ERR_POLICY);
  EXPECT_THAT(Message(code), HasSubstr("pre-authentication required"));
}

TEST_F(ProviderTest, TgsOpensAndReissuesInOneJob) {
  const std::string preauth = Sealed(user_base_, 1, "a timestamp");
  HintAs(preauth, 100, 100);
  std::string plain, tgt, renewed;
  ASSERT_EQ(Decrypt(user_, 1, preauth, &plain), 0);
  ASSERT_EQ(Encrypt(tgs_, 2, "the TGT", &tgt), 0);
  EndRequest();
  const krb5_data cipher = View(tgt);
  const krb5_remote_key_tgs_hint hint = {&tgs_, &cipher, &tgs_, 100};
  krb5_c_remote_key_hint_tgs(context_, &hint);
  ASSERT_EQ(Decrypt(tgs_, 2, tgt, &plain), 0);
  EXPECT_EQ(plain, "the TGT");
  ASSERT_EQ(Encrypt(tgs_, 2, "a renewed TGT", &renewed), 0);
  EXPECT_EQ(realm_.oracle->jobs(), 2);
  EXPECT_EQ(renewed.substr(12, 34), tgt.substr(12, 34)) << "origin is inherited";
}

TEST_F(ProviderTest, TgsWithUnknownTargetReissuesLater) {
  const std::string preauth = Sealed(user_base_, 1, "a timestamp");
  HintAs(preauth, 100, 100);
  std::string plain, tgt, renewed;
  ASSERT_EQ(Decrypt(user_, 1, preauth, &plain), 0);
  ASSERT_EQ(Encrypt(tgs_, 2, "the TGT", &tgt), 0);
  EndRequest();
  ASSERT_EQ(Decrypt(tgs_, 2, tgt, &plain), 0);
  ASSERT_EQ(Encrypt(tgs_, 2, "a renewed TGT", &renewed), 0);
  EXPECT_EQ(renewed.substr(12, 34), tgt.substr(12, 34));
}

TEST_F(ProviderTest, NoTicketForNobody) {
  std::string ticket;
  const krb5_error_code code = Encrypt(tgs_, 2, "ticket", &ticket);
  EXPECT_EQ(code, KRB5KDC_ERR_POLICY);
  EXPECT_THAT(Message(code), HasSubstr("mpc-admin enroll"));
  EXPECT_EQ(realm_.oracle->jobs(), 0);
}

TEST_F(ProviderTest, PacChecksums) {
  krb5_error_code code;
  const std::string sum = Checksum(tgs_, 17, "PAC", &code);
  ASSERT_EQ(code, 0);
  bool valid = false;
  EXPECT_EQ(Verify(Local(tgs_base_), 17, "PAC", sum, &valid), 0);
  EXPECT_TRUE(valid);
  EXPECT_EQ(Verify(tgs_, 17, "PAC", sum, &valid), 0);
  EXPECT_TRUE(valid);
  EXPECT_EQ(Verify(tgs_, 17, "other", sum, &valid), 0);
  EXPECT_FALSE(valid);
}

TEST_F(ProviderTest, OtherUsagesAreNotInTheTable) {
  std::string out;
  EXPECT_EQ(Encrypt(tgs_, 5, "data", &out), KRB5KDC_ERR_POLICY);
  EXPECT_EQ(Decrypt(user_, 4, Sealed(user_base_, 4, "data"), &out), KRB5KDC_ERR_POLICY);
  krb5_error_code code;
  Checksum(user_, 6, "data", &code);
  EXPECT_EQ(code, KRB5KDC_ERR_POLICY);
  const std::string seed = "constant";
  std::string prf(64, '\0');
  const krb5_data input = View(seed);
  krb5_data output = View(prf);
  EXPECT_NE(krb5_c_prf(context_, &user_, const_cast<krb5_data*>(&input), &output), 0);
  EXPECT_EQ(realm_.oracle->jobs(), 0);
}

TEST_F(ProviderTest, ErrorsOfTheServers) {
  struct Case {
    v1::Verdict verdict;
    krb5_error_code code;
  };
  for (const Case& c : {Case{v1::VERDICT_BAD_TAG, KRB5KRB_AP_ERR_BAD_INTEGRITY},
                        Case{v1::VERDICT_CLOCK_SKEW, KRB5KRB_AP_ERR_SKEW},
                        Case{v1::VERDICT_REPLAY, KRB5KDC_ERR_SVC_UNAVAILABLE},
                        Case{v1::VERDICT_REFUSED, KRB5KDC_ERR_POLICY},
                        Case{v1::VERDICT_UNKNOWN_HANDLE, KRB5KDC_ERR_SVC_UNAVAILABLE},
                        Case{v1::VERDICT_QUOTA, KRB5KDC_ERR_SVC_UNAVAILABLE},
                        Case{v1::VERDICT_UNAVAILABLE, KRB5KDC_ERR_SVC_UNAVAILABLE}}) {
    for (auto& party : realm_.parties) {
      party->behaviour.job = [v = c.verdict](v1::JobAnswer& a) { a.set_verdict(v); };
    }
    std::string plain;
    EXPECT_EQ(Decrypt(user_, 1, Sealed(user_base_, 1, "t"), &plain), c.code)
        << v1::Verdict_Name(c.verdict);
  }
  for (auto& party : realm_.parties) party->behaviour.job = nullptr;
  realm_.parties[0]->behaviour.tag = [](v1::TagAnswer& a) {
    a.set_verdict(v1::VERDICT_UNAVAILABLE);
  };
  const std::string preauth = Sealed(user_base_, 1, "a timestamp");
  HintAs(preauth, 100, 100);
  std::string plain, ticket;
  ASSERT_EQ(Decrypt(user_, 1, preauth, &plain), 0);
  EXPECT_EQ(Encrypt(tgs_, 2, "ticket", &ticket), KRB5KDC_ERR_SVC_UNAVAILABLE);
}

TEST_F(ProviderTest, AWrongPasswordOpensNothing) {
  const std::string preauth = Sealed(std::string(32, 'w'), 1, "a timestamp");
  HintAs(preauth, 100, 100);
  std::string plain;
  EXPECT_EQ(Decrypt(user_, 1, preauth, &plain), KRB5KRB_AP_ERR_BAD_INTEGRITY);
}

TEST_F(ProviderTest, ARequestMayEndBeforeItsJob) {
  for (auto& party : realm_.parties) party->behaviour.delay_ms = 100;
  HintAs(Sealed(user_base_, 1, "a timestamp"), 100, 100);
  EndRequest();
}

// A client and a service whose keys are of 17 to 20; krbtgt's is of GCM.
class CtsProviderTest : public ProviderTest, public ::testing::WithParamInterface<int32_t> {
 protected:
  CtsProviderTest()
      : enctype_(GetParam()),
        bob_base_(FindEnctype(enctype_)->key_bytes, 'b'),
        web_base_(FindEnctype(enctype_)->key_bytes, 'w'),
        bob_handle_(realm_.AddKey(enctype_, "bob@EXAMPLE.COM", bob_base_, v1::KEY_CLASS_USER)),
        web_handle_(realm_.AddKey(enctype_, "HTTP/web@EXAMPLE.COM", web_base_,
                                  v1::KEY_CLASS_SERVICE)) {
    bob_ = Reference(bob_handle_, enctype_);
    web_ = Reference(web_handle_, enctype_);
  }
  ~CtsProviderTest() override {
    EndRequest();
    krb5_free_keyblock_contents(context_, &bob_);
    krb5_free_keyblock_contents(context_, &web_);
  }

  std::string Preauth() { return Sealed(bob_base_, 1, "a timestamp", enctype_); }
  // A TGT under krbtgt's GCM key, by a login that is over.
  std::string Tgt() {
    std::string plain, tgt;
    EXPECT_EQ(Decrypt(bob_, 1, Preauth(), &plain), 0);
    EXPECT_EQ(Encrypt(tgs_, 2, "the TGT", &tgt), 0);
    EndRequest();
    return tgt;
  }
  void ExpectOpens(const std::string& base, int usage, const std::string& message,
                   const std::string& text) {
    std::string opened;
    EXPECT_EQ(Decrypt(Local(base, enctype_), usage, message, &opened), 0);
    EXPECT_EQ(opened, text);
  }

  const krb5_enctype enctype_;
  std::string bob_base_, web_base_, bob_handle_, web_handle_;
  krb5_keyblock bob_ = {}, web_ = {};
};

// Pre-authentication, ticket and checksum in the job of the hint, the reply when it exists; the
// ticket's tag leaves with the reply's job.
TEST_P(CtsProviderTest, ALoginIsTwoJobs) {
  const std::string preauth = Preauth(), text(279, 'r');
  std::string plain, ticket, reply, opened;
  in_slice = true;
  HintAs(bob_, preauth, 100, text.size(), "the request", true);
  ASSERT_EQ(Decrypt(bob_, 1, preauth, &plain), 0);
  EXPECT_EQ(plain, "a timestamp");
  krb5_error_code code;
  const std::string checksum = Checksum(bob_, 56, "the request", &code);
  ASSERT_EQ(code, 0);
  ASSERT_EQ(Encrypt(tgs_, 2, "ticket part", &ticket), 0);
  EXPECT_EQ(ticket.substr(ticket.size() - 16), std::string(16, '\0')) << "its tag was waited for";
  EXPECT_EQ(realm_.oracle->jobs(), 1);
  ASSERT_EQ(Encrypt(bob_, 3, text, &reply), 0);
  EXPECT_EQ(realm_.oracle->jobs(), 2);
  for (const auto& party : realm_.parties) EXPECT_EQ(party->behaviour.mixed_messages, 1);
  EXPECT_EQ(Decrypt(Local(tgs_base_), 2, ticket, &opened), 0);
  EXPECT_EQ(opened, "ticket part");
  ExpectOpens(bob_base_, 3, reply, text);
  bool valid = false;
  EXPECT_EQ(Verify(Local(bob_base_, enctype_), 56, "the request", checksum, &valid), 0);
  EXPECT_TRUE(valid);
}

TEST_P(CtsProviderTest, WithoutHintsEverythingWorks) {
  std::string plain, ticket, reply;
  ASSERT_EQ(Decrypt(bob_, 1, Preauth(), &plain), 0);
  ASSERT_EQ(Encrypt(tgs_, 2, "ticket", &ticket), 0);
  ASSERT_EQ(Encrypt(bob_, 3, "reply", &reply), 0);
  krb5_error_code code;
  const std::string checksum = Checksum(bob_, 56, "the request", &code);  // not announced
  EXPECT_EQ(code, 0);
  EXPECT_EQ(checksum.size(), FindEnctype(enctype_)->mac_bytes);
  EXPECT_EQ(realm_.oracle->jobs(), 4);
  ExpectOpens(bob_base_, 3, reply, "reply");
}

TEST_P(CtsProviderTest, ALoginThatNeedsNoPreauth) {
  realm_.oracle->SetGate(bob_handle_, v1::GATE_NONE);
  HintAs(bob_, "", 100, 100, "the request", false);
  EXPECT_EQ(realm_.oracle->jobs(), 0) << "nothing is sent before it is needed";
  std::string ticket, reply;
  ASSERT_EQ(Encrypt(tgs_, 2, "ticket", &ticket), 0);
  ASSERT_EQ(Encrypt(bob_, 3, "reply", &reply), 0);
  EXPECT_EQ(realm_.oracle->jobs(), 2);
  ExpectOpens(bob_base_, 3, reply, "reply");
  EndRequest();
  // The reply alone: the ticket's key is local.
  ASSERT_EQ(Encrypt(bob_, 3, "reply", &reply), 0);
  ExpectOpens(bob_base_, 3, reply, "reply");
}

// A client that proves itself by one key and asks for the reply under another.
TEST_P(CtsProviderTest, TheGrantOfAnotherKeyPaysForTheHint) {
  std::atomic<int> refused{0};
  realm_.parties[0]->behaviour.job = [&](v1::JobAnswer& a) {
    refused += a.verdict() != v1::VERDICT_OK;
  };
  const std::string other =
      realm_.AddKey("bob@EXAMPLE.COM", std::string(32, 'o'), v1::KEY_CLASS_USER);
  krb5_keyblock gcm = Reference(other);
  std::string plain, ticket, reply, opened;
  ASSERT_EQ(Decrypt(bob_, 1, Preauth(), &plain), 0);
  HintAs(gcm, "", 100, 100, "the request", false);
  ASSERT_EQ(Encrypt(tgs_, 2, "ticket", &ticket), 0);
  ASSERT_EQ(Encrypt(gcm, 3, "reply", &reply), 0);
  krb5_error_code code;
  EXPECT_EQ(Checksum(gcm, 56, "the request", &code).size(), 28u);
  EXPECT_EQ(code, 0);
  EXPECT_EQ(realm_.oracle->jobs(), 2);
  EXPECT_EQ(refused, 0);
  EXPECT_EQ(Decrypt(Local(std::string(32, 'o')), 3, reply, &opened), 0);
  EXPECT_EQ(opened, "reply");
  krb5_free_keyblock_contents(context_, &gcm);
  realm_.parties[0]->behaviour.job = nullptr;
}

TEST_P(CtsProviderTest, OnlyAWrongKeyIsAWrongPassword) {
  std::string plain;
  const std::string wrong =
      Sealed(std::string(bob_base_.size(), 'x'), 1, "a timestamp", enctype_);
  HintAs(bob_, wrong, 100, 100, "", false);
  EXPECT_EQ(Decrypt(bob_, 1, wrong, &plain), KRB5KRB_AP_ERR_BAD_INTEGRITY);
  EndRequest();
  std::string altered = Preauth();
  altered[altered.size() / 2] ^= 1;
  EXPECT_EQ(Decrypt(bob_, 1, altered, &plain), KRB5KRB_AP_ERR_BAD_INTEGRITY);
  EndRequest();
  realm_.parties[1]->behaviour.job = [](v1::JobAnswer& a) { a.set_verdict(v1::VERDICT_BAD_TAG); };
  EXPECT_EQ(Decrypt(bob_, 1, Preauth(), &plain), KRB5KDC_ERR_SVC_UNAVAILABLE);
  realm_.parties[1]->behaviour.job = [](v1::JobAnswer& a) {
    a.mutable_opens(0)->mutable_plaintext_share()->append("x");
  };
  EXPECT_EQ(Decrypt(bob_, 1, Preauth(), &plain), KRB5KDC_ERR_SVC_UNAVAILABLE);
  EXPECT_EQ(plain, "");
}

TEST_P(CtsProviderTest, AnOutageOfTheReplyLeavesNothing) {
  const std::string preauth = Preauth();
  std::string plain, ticket, reply;
  HintAs(bob_, preauth, 100, 100, "", true);
  ASSERT_EQ(Decrypt(bob_, 1, preauth, &plain), 0);
  ASSERT_EQ(Encrypt(tgs_, 2, "ticket part", &ticket), 0);
  realm_.parties[2]->behaviour.job = [](v1::JobAnswer& a) {
    a.mutable_seals(0)->mutable_message_share()->pop_back();
  };
  EXPECT_EQ(Encrypt(bob_, 3, "the reply", &reply), KRB5KDC_ERR_SVC_UNAVAILABLE);
  EXPECT_EQ(reply, "");
}

TEST_P(CtsProviderTest, MessagesThatAreTooShortAreNotSent) {
  std::string plain;
  const size_t around = kConfounderBytes + FindEnctype(enctype_)->mac_bytes;
  const krb5_error_code code = Decrypt(web_, 2, std::string(around - 1, 'm'), &plain);
  EXPECT_EQ(code, KRB5_BAD_MSIZE);
  EXPECT_EQ(realm_.oracle->jobs(), 0);
  bool valid = true;
  const std::string tag(FindEnctype(enctype_)->mac_bytes - 1, 't');
  EXPECT_EQ(Verify(web_, 17, "PAC", tag, &valid), KRB5_BAD_MSIZE);
  EXPECT_FALSE(valid);
  EXPECT_EQ(realm_.oracle->jobs(), 0);
  EXPECT_EQ(Decrypt(web_, 2, std::string(around, 'm'), &plain), KRB5KRB_AP_ERR_BAD_INTEGRITY);
}

// What kadmin/changepw's tickets are: made by AS.
TEST_P(CtsProviderTest, ATicketUnderAServiceKeyByAs) {
  const std::string preauth = Preauth();
  const krb5_data cipher = View(preauth);
  const krb5_remote_key_as_hint hint = {&bob_, &cipher, &web_, 100, 100, nullptr, 1};
  krb5_c_remote_key_hint_as(context_, &hint);
  std::string plain, ticket, reply;
  ASSERT_EQ(Decrypt(bob_, 1, preauth, &plain), 0);
  ASSERT_EQ(Encrypt(web_, 2, "the ticket", &ticket), 0);
  ASSERT_EQ(Encrypt(bob_, 3, "the reply", &reply), 0);
  EXPECT_EQ(realm_.oracle->jobs(), 3);
  ExpectOpens(web_base_, 2, ticket, "the ticket");
  ExpectOpens(bob_base_, 3, reply, "the reply");
}

TEST_P(CtsProviderTest, ATicketUnderAServiceKeyByTgs) {
  const std::string tgt = Tgt();
  const int before = realm_.oracle->jobs();
  const krb5_data cipher = View(tgt);
  const krb5_remote_key_tgs_hint hint = {&tgs_, &cipher, &web_, 100};
  krb5_c_remote_key_hint_tgs(context_, &hint);
  std::string plain, ticket;
  ASSERT_EQ(Decrypt(tgs_, 2, tgt, &plain), 0);
  EXPECT_EQ(plain, "the TGT");
  krb5_error_code code;
  const std::string sum = Checksum(web_, 17, "PAC", &code);
  ASSERT_EQ(code, 0);
  ASSERT_EQ(Encrypt(web_, 2, "the ticket", &ticket), 0);
  EXPECT_EQ(realm_.oracle->jobs(), before + 3) << "open, checksum, open again and seal";
  ExpectOpens(web_base_, 2, ticket, "the ticket");
  bool valid = false;
  EXPECT_EQ(Verify(Local(web_base_, enctype_), 17, "PAC", sum, &valid), 0);
  EXPECT_TRUE(valid);
}

TEST_P(CtsProviderTest, ATicketUnderAServiceKeyIsOpened) {
  std::string plain;
  const std::string ticket = Sealed(web_base_, 2, "evidence", enctype_);
  ASSERT_EQ(Decrypt(web_, 2, ticket, &plain), 0);
  EXPECT_EQ(plain, "evidence");
}

// A cross-realm key: class tgs, and a ticket without header.
TEST_P(CtsProviderTest, ATicketUnderACrossRealmKey) {
  const std::string base(FindEnctype(enctype_)->key_bytes, 'x');
  krb5_keyblock cross = Reference(
      realm_.AddKey(enctype_, "krbtgt/OTHER@EXAMPLE.COM", base, v1::KEY_CLASS_TGS), enctype_);
  const std::string tgt = Tgt();
  std::string plain, ticket;
  ASSERT_EQ(Decrypt(tgs_, 2, tgt, &plain), 0);
  ASSERT_EQ(Encrypt(cross, 2, "a referral", &ticket), 0);
  ExpectOpens(base, 2, ticket, "a referral");
  EndRequest();
  ASSERT_EQ(Decrypt(cross, 2, ticket, &plain), 0);
  EXPECT_EQ(plain, "a referral");
  krb5_free_keyblock_contents(context_, &cross);
}

TEST_P(CtsProviderTest, PacChecksumsAreMadeAndVerified) {
  krb5_error_code code;
  const std::string sum = Checksum(web_, 17, "PAC", &code);
  ASSERT_EQ(code, 0);
  bool valid = false;
  EXPECT_EQ(Verify(Local(web_base_, enctype_), 17, "PAC", sum, &valid), 0);
  EXPECT_TRUE(valid);
  EXPECT_EQ(Verify(web_, 17, "PAC", sum, &valid), 0);
  EXPECT_TRUE(valid);
  EXPECT_EQ(Verify(web_, 17, "other", sum, &valid), 0);
  EXPECT_FALSE(valid);
  // A checksum of another enctype's type.
  const std::string input = "PAC";
  const krb5_data data = View(input);
  krb5_checksum out = {};
  EXPECT_NE(krb5_c_make_checksum(context_, -24002, &web_, 17, &data, &out), 0);
}

TEST_P(CtsProviderTest, PiecesOfMessages) {
  const std::string tgt = Tgt();
  std::string plain, text = "in pieces";
  ASSERT_EQ(Decrypt(tgs_, 2, tgt, &plain), 0);
  std::string header(kConfounderBytes, '\0'), trailer(FindEnctype(enctype_)->mac_bytes, '\0');
  krb5_crypto_iov iov[3] = {{KRB5_CRYPTO_TYPE_HEADER, View(header)},
                            {KRB5_CRYPTO_TYPE_DATA, View(text)},
                            {KRB5_CRYPTO_TYPE_TRAILER, View(trailer)}};
  ASSERT_EQ(krb5_c_encrypt_iov(context_, &web_, 2, nullptr, iov, 3), 0);
  ExpectOpens(web_base_, 2, header + text + trailer, "in pieces");
  ASSERT_EQ(krb5_c_decrypt_iov(context_, &web_, 2, nullptr, iov, 3), 0);
  EXPECT_EQ(text, "in pieces");
}

TEST_P(CtsProviderTest, WhatTheKdcMustNotHaveItDoesNotGet) {
  EXPECT_FALSE(krb5_c_key_has_prf(&bob_));
  const std::string seed = "constant";
  std::string prf(64, '\0');
  const krb5_data input = View(seed);
  size_t length = 0;
  ASSERT_EQ(krb5_c_prf_length(context_, enctype_, &length), 0);
  krb5_data output = {KV5M_DATA, static_cast<unsigned>(length), prf.data()};
  EXPECT_NE(krb5_c_prf(context_, &bob_, const_cast<krb5_data*>(&input), &output), 0);
  std::string out;
  EXPECT_EQ(Encrypt(bob_, 1, "a timestamp", &out), KRB5KDC_ERR_POLICY);
  EXPECT_EQ(Decrypt(bob_, 3, Sealed(bob_base_, 3, "a reply", enctype_), &out), KRB5KDC_ERR_POLICY);
  EXPECT_EQ(realm_.oracle->jobs(), 0);
}

INSTANTIATE_TEST_SUITE_P(Enctypes, CtsProviderTest,
                         ::testing::Values(kEnctypeAes128Sha1, kEnctypeAes256Sha1,
                                           kEnctypeAes128Sha256, kEnctypeAes256Sha384));

TEST_F(ProviderTest, KeysThatNobodyHoldsAreNamed) {
  krb5_keyblock rc4 = Reference(user_handle_, ENCTYPE_ARCFOUR_HMAC);
  std::string plain;
  const krb5_error_code code = Decrypt(rc4, 1, std::string(60, 'm'), &plain);
  EXPECT_EQ(code, KRB5_BAD_ENCTYPE);
  EXPECT_THAT(Message(code), HasSubstr("enctype 23"));
  EXPECT_EQ(realm_.oracle->jobs(), 0);
  krb5_free_keyblock_contents(context_, &rc4);
}

TEST_F(ProviderTest, AnotherRealmInTheSameProcessIsRefused) {
  mpc_options options = realm_.Options();
  options.realm = "OTHER.ORG";
  const krb5_error_code code = provider_register(context_, &options);
  EXPECT_EQ(code, EINVAL);
  EXPECT_THAT(Message(code), HasSubstr("OTHER.ORG"));
}

}  // namespace
}  // namespace mpckdc::test
