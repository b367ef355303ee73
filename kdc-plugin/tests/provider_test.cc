// SPDX-License-Identifier: Apache-2.0
//
// The provider behind krb5's own entry points, against fake servers. What it seals is opened with
// libk5crypto's implementation of the enctype under the whole key, and the other way round.
#include <krb5/krb5.h>
#include <krb5/remote_key_plugin.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kdc-plugin/tests/fake_realm.h"

#include "kdc-plugin/provider/armored.h"

extern "C" {
#include "kdc-plugin/provider/provider.h"
#include "kdc-plugin/provider/source.h"
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
krb5_remote_key_source request_source;  // without an address: not known
bool prefers_stream;
krb5_boolean RequestSource(krb5_remote_key_source* source) {
  *source = request_source;
  return request_source.address != nullptr;
}
void PreferStream() { prefers_stream = true; }
const krb5_remote_key_host kHost = {BeginWait,  Wait,          Wake,        RequestSlot,
                                    FlushLater, RequestSource, PreferStream};

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
    for (krb5_keyblock& key : references_) krb5_free_keyblock_contents(context_, &key);
    krb5_free_context(context_);
  }

  void EndRequest() {
    if (request_pointer != nullptr) krb5_c_remote_key_request_done(request_pointer);
    request_pointer = nullptr;
  }

  // Belongs to the fixture.
  krb5_keyblock Reference(const std::string& handle, krb5_enctype enctype = -24002) {
    krb5_keyblock key = {};
    const krb5_data data = View(handle);
    EXPECT_EQ(krb5_c_make_remote_key(context_, enctype, &data, &key), 0);
    references_.push_back(key);
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
  krb5_error_code MakeChecksum(const krb5_keyblock& key, int usage, const std::string& data,
                               std::string* out) {
    krb5_checksum sum = {};
    const krb5_data input = View(data);
    const krb5_error_code code = krb5_c_make_checksum(context_, 0, &key, usage, &input, &sum);
    EXPECT_EQ(sum.checksum_type, code == 0 ? ChecksumType(key.enctype) : 0);
    out->assign(reinterpret_cast<char*>(sum.contents), code == 0 ? sum.length : 0);
    krb5_free_checksum_contents(context_, &sum);
    return code;
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
  static krb5_cksumtype ChecksumType(krb5_enctype enctype) {
    if (enctype == kEnctypeAes128Sha1) return CKSUMTYPE_HMAC_SHA1_96_AES128;
    if (enctype == kEnctypeAes256Sha1) return CKSUMTYPE_HMAC_SHA1_96_AES256;
    return enctype;
  }

  // The same where it is to succeed. (A late tag is written to the place of what Seal() returns,
  // which is moved and never copied.)
  std::string Seal(const krb5_keyblock& key, int usage, const std::string& plain) {
    std::string message;
    const krb5_error_code code = Encrypt(key, usage, plain, &message);
    EXPECT_EQ(code, 0) << "usage " << usage << ": " << Message(code);
    return message;
  }
  std::string Open(const krb5_keyblock& key, int usage, const std::string& message) {
    std::string plain;
    const krb5_error_code code = Decrypt(key, usage, message, &plain);
    EXPECT_EQ(code, 0) << "usage " << usage << ": " << Message(code);
    return plain;
  }
  std::string Checksum(const krb5_keyblock& key, int usage, const std::string& data) {
    std::string sum;
    const krb5_error_code code = MakeChecksum(key, usage, data, &sum);
    EXPECT_EQ(code, 0) << "usage " << usage << ": " << Message(code);
    return sum;
  }
  bool Valid(const krb5_keyblock& key, int usage, const std::string& data,
             const std::string& checksum) {
    bool valid = false;
    const krb5_error_code code = Verify(key, usage, data, checksum, &valid);
    EXPECT_EQ(code, 0) << "usage " << usage << ": " << Message(code);
    return valid;
  }

  std::string Preauth(const std::string& text = "a timestamp") {
    return Seal(Local(user_base_), 1, text);
  }
  void HintAs(const std::string& preauth, size_t ticket, size_t reply,
              const std::string& as_req = "", bool finish_with_reply = false) {
    HintAs(user_, tgs_, preauth, ticket, reply, as_req, finish_with_reply);
  }
  void HintAs(const krb5_keyblock& client, const krb5_keyblock& service, const std::string& preauth,
              size_t ticket, size_t reply, const std::string& as_req = "",
              bool finish_with_reply = false) {
    const krb5_data cipher = View(preauth), request = View(as_req);
    const krb5_remote_key_as_hint hint = {
        &client, preauth.empty() ? nullptr : &cipher, &service,         ticket,
        reply,   as_req.empty() ? nullptr : &request, finish_with_reply};
    krb5_c_remote_key_hint_as(context_, &hint);
  }
  void HintTgs(const std::string& tgt, const krb5_keyblock& service) {
    const krb5_data cipher = View(tgt);
    const krb5_remote_key_tgs_hint hint = {&tgs_, &cipher, &service, 100};
    krb5_c_remote_key_hint_tgs(context_, &hint);
  }
  // A TGT under krbtgt's GCM key, by alice's login, which is over.
  std::string AlicesTgt() {
    const std::string preauth = Preauth();
    HintAs(preauth, 100, 100);
    EXPECT_EQ(Open(user_, 1, preauth), "a timestamp");
    std::string tgt = Seal(tgs_, 2, "the TGT");
    EndRequest();
    return tgt;
  }
  void ExpectChecksums(const krb5_keyblock& remote, const krb5_keyblock& local) {
    const std::string sum = Checksum(remote, 17, "PAC");
    EXPECT_TRUE(Valid(local, 17, "PAC", sum));
    EXPECT_TRUE(Valid(remote, 17, "PAC", sum));
    EXPECT_FALSE(Valid(remote, 17, "other", sum));
  }
  void ExpectNoPrf(const krb5_keyblock& key) {
    EXPECT_FALSE(krb5_c_key_has_prf(&key));
    const std::string constant = "constant";
    krb5_data seed = View(constant);
    size_t length = 0;
    ASSERT_EQ(krb5_c_prf_length(context_, key.enctype, &length), 0);
    std::string prf(length, '\0');
    krb5_data output = View(prf);
    EXPECT_NE(krb5_c_prf(context_, &key, &seed, &output), 0);
  }

  std::string Message(krb5_error_code code) {
    const char* text = krb5_get_error_message(context_, code);
    std::string copy = text;
    krb5_free_error_message(context_, text);
    return copy;
  }
  int Jobs() { return realm_.oracle->jobs(); }

  FakeRealm realm_;
  std::string user_base_, tgs_base_, user_handle_, tgs_handle_;
  krb5_context context_ = nullptr;
  krb5_keyblock user_ = {}, tgs_ = {};
  std::vector<krb5_keyblock> references_;
  static std::string log_;
};
std::string ProviderTest::log_;

TEST_F(ProviderTest, ALoginIsOneJob) {
  const std::string preauth = Preauth();
  HintAs(preauth, 100, 200, "the request");
  EXPECT_EQ(Open(user_, 1, preauth), "a timestamp");
  const std::string ticket = Seal(tgs_, 2, "ticket part");
  const std::string reply = Seal(user_, 3, std::string(200, 'r'));
  const std::string checksum = Checksum(user_, 56, "the request");
  EXPECT_EQ(Jobs(), 1);
  EXPECT_EQ(ticket.at(12), 33) << "a TGT has its header";
  EXPECT_EQ(Open(Local(tgs_base_), 2, ticket), "ticket part");
  EXPECT_EQ(Open(Local(user_base_), 3, reply), std::string(200, 'r'));
  EXPECT_TRUE(Valid(Local(user_base_), 56, "the request", checksum));
}

TEST_F(ProviderTest, InASliceNothingIsSentBeforeItsEnd) {
  const std::string preauth = Preauth();
  in_slice = true;
  HintAs(preauth, 100, 200);
  // This one is sent at once, so whatever the hint had sent would have come first.
  in_slice = false;
  EXPECT_EQ(Open(user_, 1, Preauth("another")), "another");
  EXPECT_EQ(Jobs(), 1);
  in_slice = true;
  EXPECT_EQ(Open(user_, 1, preauth), "a timestamp");
  const std::string ticket = Seal(tgs_, 2, "ticket part"), reply = Seal(user_, 3, "the reply");
  EXPECT_EQ(Jobs(), 2);
  EXPECT_EQ(Open(Local(tgs_base_), 2, ticket), "ticket part");
  EXPECT_EQ(Open(Local(user_base_), 3, reply), "the reply");
}

TEST_F(ProviderTest, ATicketIsFinishedWithItsReply) {
  const std::string preauth = Preauth();
  in_slice = true;
  HintAs(preauth, 100, 200, "", true);
  EXPECT_EQ(Open(user_, 1, preauth), "a timestamp");
  const std::string ticket = Seal(tgs_, 2, "ticket part");
  EXPECT_EQ(ticket.substr(ticket.size() - 16), std::string(16, '\0')) << "its tag was waited for";
  std::string opened;
  EXPECT_EQ(Decrypt(Local(tgs_base_), 2, ticket, &opened), KRB5KRB_AP_ERR_BAD_INTEGRITY);
  const std::string reply = Seal(user_, 3, "the reply");
  EXPECT_EQ(Open(Local(tgs_base_), 2, ticket), "ticket part");
  EXPECT_EQ(Open(Local(user_base_), 3, reply), "the reply");
}

TEST_F(ProviderTest, AnUnforeseenReplyFinishesTheTicketToo) {
  const std::string preauth = Preauth();
  HintAs(preauth, 100, 10, "", true);
  Open(user_, 1, preauth);
  const std::string ticket = Seal(tgs_, 2, "ticket part");
  Seal(user_, 3, std::string(50, 'r'));
  EXPECT_EQ(Open(Local(tgs_base_), 2, ticket), "ticket part");
}

TEST_F(ProviderTest, ATicketWithoutAReplyIsLeftAlone) {
  const std::string preauth = Preauth();
  HintAs(preauth, 100, 200, "", true);
  Open(user_, 1, preauth);
  const std::string ticket = Seal(tgs_, 2, "ticket part");
  const std::string unfinished = ticket;
  EndRequest();
  // The tag has come when a later job has been answered.
  Open(user_, 1, Preauth("the next"));
  EXPECT_EQ(ticket, unfinished);
}

TEST_F(ProviderTest, ARequestThatEndsBeforeItsSliceSendsNothing) {
  in_slice = true;
  HintAs(Preauth("given up"), 100, 200, "the request");
  EndRequest();
  krb5_c_remote_key_flush();
  EXPECT_EQ(Open(user_, 1, Preauth("the next")), "the next");
  EXPECT_EQ(Jobs(), 1);
}

TEST_F(ProviderTest, WhatWasNotForeseenGetsItsOwnJob) {
  const std::string preauth = Preauth();
  HintAs(preauth, 10, 10);
  Open(user_, 1, preauth);
  const std::string ticket = Seal(tgs_, 2, std::string(50, 't'));  // longer than the hint said
  Seal(user_, 3, std::string(50, 'r'));
  EXPECT_EQ(Checksum(user_, 56, "the request").size(), 28u);  // not announced
  EXPECT_EQ(Jobs(), 4);
  EXPECT_EQ(Open(Local(tgs_base_), 2, ticket), std::string(50, 't'));
}

TEST_F(ProviderTest, WithoutHintsEverythingWorks) {
  Open(user_, 1, Preauth());
  Seal(tgs_, 2, "ticket");
  Seal(user_, 3, "reply");
  EXPECT_EQ(Jobs(), 3);
}

TEST_F(ProviderTest, ASecondKeyOfTheClientMayBeTheRightOne) {
  const std::string preauth = Preauth();
  krb5_keyblock wrong =
      Reference(realm_.AddKey("alice@EXAMPLE.COM", std::string(32, 'o'), v1::KEY_CLASS_USER));
  HintAs(wrong, tgs_, preauth, 100, 100);
  std::string plain;
  EXPECT_EQ(Decrypt(wrong, 1, preauth, &plain), KRB5KRB_AP_ERR_BAD_INTEGRITY);
  Open(user_, 1, preauth);
  Seal(tgs_, 2, "ticket");
}

TEST_F(ProviderTest, LoginWithoutPreauthIsOneJobToo) {
  realm_.oracle->SetGate(user_handle_, v1::GATE_NONE);
  HintAs("", 100, 100, "the request");
  EXPECT_EQ(Jobs(), 0) << "nothing is sent before it is needed";
  Seal(tgs_, 2, "ticket");
  Seal(user_, 3, "reply");
  EXPECT_EQ(Jobs(), 1);
}

TEST_F(ProviderTest, ALocalReplyKeyNeedsAClientThatTheServersKnow) {
  const std::string service =
      realm_.AddKey("host/www@EXAMPLE.COM", std::string(16, 's'), v1::KEY_CLASS_USER,
                    v1::GATE_KDC_TRUSTED);
  const std::string own_key(32, 'l');
  std::string ticket;
  HintAs(Local(own_key), tgs_, "", 100, 0);
  EXPECT_EQ(Encrypt(tgs_, 2, "ticket", &ticket), KRB5KDC_ERR_POLICY);
  EndRequest();
  provider_note_client(reinterpret_cast<const uint8_t*>(service.data()));
  HintAs(Local(own_key), tgs_, "", 100, 0);
  Seal(tgs_, 2, "ticket");
  EXPECT_EQ(Jobs(), 1);
}

TEST_F(ProviderTest, ARepetitionAfterAnOutageIsNoAttack) {
  const std::string preauth = Preauth();
  std::string plain;
  realm_.Answer(v1::VERDICT_UNAVAILABLE);
  EXPECT_EQ(Decrypt(user_, 1, preauth, &plain), KRB5KDC_ERR_SVC_UNAVAILABLE);
  realm_.Answer(nullptr);
  EXPECT_EQ(Decrypt(user_, 1, preauth, &plain), KRB5KDC_ERR_SVC_UNAVAILABLE);
}

// This process is a new one to whom the client repeats what an old one has asked the servers.
TEST_F(ProviderTest, ARepetitionAfterARestartIsNoAttack) {
  const std::string preauth = Preauth();
  Open(user_, 1, preauth);
  EndRequest();
  std::string plain;
  const krb5_error_code code = Decrypt(user_, 1, preauth, &plain);
  EXPECT_EQ(code, KRB5KDC_ERR_SVC_UNAVAILABLE);
  EXPECT_THAT(Message(code), HasSubstr("verified this request before"));
  EXPECT_EQ(plain, "") << "a replay opens nothing";
}

// Neither a wrong password nor a replay, and the log says which quota.
TEST_F(ProviderTest, AQuotaIsAnOutageThatNamesItself) {
  const std::string preauth = Preauth();
  std::string plain;
  realm_.Answer([](v1::JobAnswer& a) {
    a.set_verdict(v1::VERDICT_QUOTA);
    a.set_detail("quota principal_logins (60/min burst 120) of alice is used up");
  });
  HintAs(preauth, 100, 100);
  const krb5_error_code code = Decrypt(user_, 1, preauth, &plain);
  EXPECT_EQ(code, KRB5KDC_ERR_SVC_UNAVAILABLE);
  EXPECT_THAT(Message(code),
              HasSubstr("QUOTA: quota principal_logins (60/min burst 120) of alice"));
  EXPECT_THAT(Message(code), HasSubstr("see [quota] in that server's mpc-server.toml"));
}

// ---- Where a request came from ----

// What the servers are told of a request's source.
class SourceTest : public ProviderTest {
 protected:
  struct Told {
    uint64_t source = 0;
    bool proved = false;
    friend bool operator==(const Told&, const Told&) = default;
  };
  SourceTest() {
    const std::string master(32, 'm');
    const krb5_keyblock key = Local(master, ENCTYPE_AES256_CTS_HMAC_SHA1_96);
    source_use_master_key(&key);
    realm_.parties[1]->behaviour.received = [this](const v1::Job& job) {
      const std::lock_guard<std::mutex> lock(mutex_);
      told_ = {job.source(), job.source_proved()};
    };
  }
  ~SourceTest() override {
    request_source = {};
    prefers_stream = false;
  }

  // Of a request that opens a ticket, and then another. `armored` is a new request unless given.
  Told TicketFrom(const std::string& address, bool stream, const char* armor = nullptr,
                  int armored = 0) {
    static int new_request = 1000;
    if (armored == 0) armored = ++new_request;
    krb5_address krb5_form = {KV5M_ADDRESS, address.size() == 4 ? ADDRTYPE_INET : ADDRTYPE_INET6,
                              static_cast<unsigned>(address.size()),
                              reinterpret_cast<krb5_octet*>(const_cast<char*>(address.data()))};
    request_source = {&krb5_form, stream, armor, {}};
    std::memcpy(request_source.armored, &armored, sizeof(armored));
    const Told first = OpenATicket();
    EXPECT_EQ(OpenATicket(), first) << "of one request";
    request_source = {};
    EndRequest();
    return first;
  }
  Told OpenATicket() {
    Open(tgs_, 2, Seal(Local(tgs_base_), 2, "a ticket"));
    const std::lock_guard<std::mutex> lock(mutex_);
    return told_;
  }

  std::mutex mutex_;
  Told told_;
};

TEST_F(SourceTest, ItIsOneOfAnAddressOrAHostAndNotTheAddress) {
  const std::string address = "\x0a\x01\x02\x03", network(8, 'n');
  const Told datagram = TicketFrom(address, false), stream = TicketFrom(address, true);
  EXPECT_FALSE(datagram.proved);
  EXPECT_TRUE(stream.proved);
  EXPECT_EQ(stream.source, datagram.source);
  EXPECT_NE(stream.source, 0u);
  EXPECT_NE(stream.source, 0x0a010203u);
  EXPECT_EQ(TicketFrom(std::string(10, '\0') + "\xff\xff" + address, true), stream) << "mapped";
  EXPECT_NE(TicketFrom("\x0a\x01\x02\x04", true), stream);
  const Told customer = TicketFrom(network + "12345678", true);
  EXPECT_EQ(TicketFrom(network + "abcdefgh", true), customer);
  EXPECT_NE(TicketFrom("another " + network, true), customer);
  const Told host = TicketFrom(address, false, "host/a@EXAMPLE.COM");
  EXPECT_TRUE(host.proved);
  EXPECT_NE(host.source, stream.source);
  EXPECT_EQ(TicketFrom("\x0a\x01\x02\x04", true, "host/a@EXAMPLE.COM"), host);
  EXPECT_NE(TicketFrom(address, false, "host/b@EXAMPLE.COM"), host);
}

TEST_F(SourceTest, AnArmoredRequestIsItsHostsOnce) {
  const std::string home = "\x0a\x01\x02\x03", elsewhere = "\x0a\x01\x02\x04";
  const char armor[] = "host/a@EXAMPLE.COM";
  const Told host = TicketFrom(home, false, armor, 1);
  EXPECT_TRUE(host.proved);
  EXPECT_EQ(TicketFrom(elsewhere, false, armor, 1), TicketFrom(elsewhere, false));
  EXPECT_EQ(TicketFrom(elsewhere, true, armor, 1), TicketFrom(elsewhere, true));
  EXPECT_EQ(TicketFrom(home, false, armor, 1), (Told{host.source, false})) << "anybody's datagram";
  EXPECT_EQ(TicketFrom(home, true, armor, 1), host) << "its own client, told to use TCP";
  EXPECT_EQ(TicketFrom(home, true, armor, 1), TicketFrom(home, true)) << "a neighbour's copy";
  EXPECT_EQ(TicketFrom(home, false, armor, 2), host);
}

TEST(ArmoredRequestsTest, NothingIsForgottenForAnother) {
  constexpr uint64_t kHost = 1, kOther = 2, kAddress = 3;
  constexpr absl::Duration kNow = absl::Hours(1);
  ArmoredRequests seen(/*max=*/10, /*max_of_host=*/4);
  EXPECT_EQ(seen.See(kHost, 100, kAddress, false, kNow), ARMORED_PROVED);
  for (uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(seen.See(kOther, 200 + i, kAddress, true, kNow), ARMORED_PROVED);
  }
  EXPECT_EQ(seen.See(kOther, 300, kAddress, true, kNow), ARMORED_COPIED) << "beyond its share";
  EXPECT_EQ(seen.See(kHost, 101, kAddress, true, kNow), ARMORED_PROVED);
  for (uint64_t i = 0; i < 10; ++i) seen.See(500 + i, 400 + i, kAddress, true, kNow);
  EXPECT_EQ(seen.size(), 10u);
  EXPECT_EQ(seen.See(kHost, 102, kAddress, true, kNow), ARMORED_COPIED) << "no room";
  EXPECT_EQ(seen.See(kHost, 100, kAddress, false, kNow + kArmoredLife), ARMORED_CLAIMED);
  // Its armor is no longer valid then, and krb5 refuses it.
  const absl::Duration later = kNow + kArmoredLife + absl::Seconds(1);
  EXPECT_EQ(seen.See(kOther, 300, kAddress, false, later), ARMORED_PROVED);
  EXPECT_EQ(seen.size(), 1u);
}

TEST_F(SourceTest, ALoginSaysItWithItsHint) {
  const std::string address(4, '1');
  krb5_address krb5_form = {KV5M_ADDRESS, ADDRTYPE_INET, 4,
                            reinterpret_cast<krb5_octet*>(const_cast<char*>(address.data()))};
  request_source = {&krb5_form, 1, nullptr, {}};
  const std::string preauth = Preauth();
  HintAs(preauth, 100, 100);
  Open(user_, 1, preauth);
  EXPECT_TRUE(told_.proved);
  EXPECT_EQ(told_, TicketFrom(address, true));
  EndRequest();
  Checksum(tgs_, 17, "PAC");
  EXPECT_EQ(told_.source, 0u) << "only what opens something says where it came from";
}

TEST_F(SourceTest, AHostThatKnowsNoneSaysNone) {
  Open(tgs_, 2, Seal(Local(tgs_base_), 2, "a ticket"));
  EXPECT_EQ(told_, Told());
}

TEST_F(SourceTest, WhatTcpWouldHelpIsTriedByTcp) {
  std::string plain;
  realm_.Answer(v1::VERDICT_QUOTA);
  EXPECT_EQ(Decrypt(user_, 1, Preauth("a"), &plain), KRB5KDC_ERR_SVC_UNAVAILABLE);
  EXPECT_FALSE(prefers_stream);
  EndRequest();
  realm_.Answer(v1::VERDICT_UNPROVED);
  const std::string preauth = Preauth("b");
  HintAs(preauth, 100, 100);
  EXPECT_EQ(Decrypt(user_, 1, preauth, &plain), KRB5KDC_ERR_SVC_UNAVAILABLE);
  EXPECT_TRUE(prefers_stream);
}

TEST_F(ProviderTest, GateIsTheServersDecision) {
  HintAs("", 100, 100);
  std::string ticket;
  const krb5_error_code code = Encrypt(tgs_, 2, "ticket", &ticket);
  EXPECT_EQ(code, KRB5KDC_ERR_POLICY);
  EXPECT_THAT(Message(code), HasSubstr("pre-authentication required"));
}

TEST_F(ProviderTest, TgsOpensAndReissuesInOneJob) {
  const std::string tgt = AlicesTgt();
  HintTgs(tgt, tgs_);
  EXPECT_EQ(Open(tgs_, 2, tgt), "the TGT");
  const std::string renewed = Seal(tgs_, 2, "a renewed TGT");
  EXPECT_EQ(Jobs(), 2);
  EXPECT_EQ(renewed.substr(12, 2), "\x21\x02") << "the header of one made from another";
  EXPECT_EQ(renewed.substr(14, 32), tgt.substr(14, 32)) << "origin is inherited";
}

TEST_F(ProviderTest, TgsWithUnknownTargetReissuesLater) {
  const std::string tgt = AlicesTgt();
  Open(tgs_, 2, tgt);
  EXPECT_EQ(Seal(tgs_, 2, "a renewed TGT").substr(14, 32), tgt.substr(14, 32));
}

TEST_F(ProviderTest, NoTicketForNobody) {
  std::string ticket;
  const krb5_error_code code = Encrypt(tgs_, 2, "ticket", &ticket);
  EXPECT_EQ(code, KRB5KDC_ERR_POLICY);
  EXPECT_THAT(Message(code), HasSubstr("mpc-admin enroll"));
  EXPECT_EQ(Jobs(), 0);
}

TEST_F(ProviderTest, PacChecksums) { ExpectChecksums(tgs_, Local(tgs_base_)); }

TEST_F(ProviderTest, OtherUsagesAreNotInTheTable) {
  std::string out;
  EXPECT_EQ(Encrypt(tgs_, 5, "data", &out), KRB5KDC_ERR_POLICY);
  EXPECT_EQ(Decrypt(user_, 4, Seal(Local(user_base_), 4, "data"), &out), KRB5KDC_ERR_POLICY);
  EXPECT_EQ(MakeChecksum(user_, 6, "data", &out), KRB5KDC_ERR_POLICY);
  ExpectNoPrf(user_);
  EXPECT_EQ(Jobs(), 0);
}

TEST_F(ProviderTest, ErrorsOfTheServers) {
  const std::map<v1::Verdict, krb5_error_code> codes = {
      {v1::VERDICT_BAD_TAG, KRB5KRB_AP_ERR_BAD_INTEGRITY},
      {v1::VERDICT_CLOCK_SKEW, KRB5KRB_AP_ERR_SKEW},
      {v1::VERDICT_REPLAY, KRB5KDC_ERR_SVC_UNAVAILABLE},
      {v1::VERDICT_REFUSED, KRB5KDC_ERR_POLICY},
      {v1::VERDICT_UNKNOWN_HANDLE, KRB5KDC_ERR_SVC_UNAVAILABLE},
      {v1::VERDICT_QUOTA, KRB5KDC_ERR_SVC_UNAVAILABLE},
      {v1::VERDICT_UNAVAILABLE, KRB5KDC_ERR_SVC_UNAVAILABLE}};
  std::string out;
  for (const auto& [verdict, code] : codes) {
    realm_.Answer(verdict);
    EXPECT_EQ(Decrypt(user_, 1, Preauth("t"), &out), code) << v1::Verdict_Name(verdict);
  }
  realm_.Answer(nullptr);
  realm_.parties[0]->behaviour.tag = [](v1::TagAnswer& a) {
    a.set_verdict(v1::VERDICT_UNAVAILABLE);
  };
  const std::string preauth = Preauth();
  HintAs(preauth, 100, 100);
  Open(user_, 1, preauth);
  EXPECT_EQ(Encrypt(tgs_, 2, "ticket", &out), KRB5KDC_ERR_SVC_UNAVAILABLE);
}

TEST_F(ProviderTest, AWrongPasswordOpensNothing) {
  const std::string preauth = Seal(Local(std::string(32, 'w')), 1, "a timestamp");
  HintAs(preauth, 100, 100);
  std::string plain;
  EXPECT_EQ(Decrypt(user_, 1, preauth, &plain), KRB5KRB_AP_ERR_BAD_INTEGRITY);
}

TEST_F(ProviderTest, ARequestMayEndBeforeItsJob) {
  for (auto& party : realm_.parties) party->behaviour.delay_ms = 100;
  HintAs(Preauth(), 100, 100);
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

  krb5_keyblock Own(const std::string& base) { return Local(base, enctype_); }
  std::string Preauth() { return Seal(Own(bob_base_), 1, "a timestamp"); }
  // A TGT under krbtgt's GCM key, by a login that is over.
  std::string Tgt() {
    Open(bob_, 1, Preauth());
    std::string tgt = Seal(tgs_, 2, "the TGT");
    EndRequest();
    return tgt;
  }

  const krb5_enctype enctype_;
  std::string bob_base_, web_base_, bob_handle_, web_handle_;
  krb5_keyblock bob_ = {}, web_ = {};
};

// Pre-authentication, ticket and checksum in the job of the hint, the reply when it exists; the
// ticket's tag leaves with the reply's job.
TEST_P(CtsProviderTest, ALoginIsTwoJobs) {
  const std::string preauth = Preauth(), text(279, 'r');
  in_slice = true;
  HintAs(bob_, tgs_, preauth, 100, text.size(), "the request", true);
  EXPECT_EQ(Open(bob_, 1, preauth), "a timestamp");
  const std::string checksum = Checksum(bob_, 56, "the request");
  const std::string ticket = Seal(tgs_, 2, "ticket part");
  EXPECT_EQ(ticket.substr(ticket.size() - 16), std::string(16, '\0')) << "its tag was waited for";
  EXPECT_EQ(Jobs(), 1);
  const std::string reply = Seal(bob_, 3, text);
  EXPECT_EQ(Jobs(), 2);
  // A busy machine may send to a party between the two; not to all three.
  int mixed = 0;
  for (const auto& party : realm_.parties) mixed += party->behaviour.mixed_messages;
  EXPECT_GE(mixed, 1);
  EXPECT_LE(mixed, 3);
  EXPECT_EQ(Open(Local(tgs_base_), 2, ticket), "ticket part");
  EXPECT_EQ(Open(Own(bob_base_), 3, reply), text);
  EXPECT_TRUE(Valid(Own(bob_base_), 56, "the request", checksum));
}

TEST_P(CtsProviderTest, WithoutHintsEverythingWorks) {
  Open(bob_, 1, Preauth());
  Seal(tgs_, 2, "ticket");
  const std::string reply = Seal(bob_, 3, "reply");
  const std::string checksum = Checksum(bob_, 56, "the request");  // not announced
  EXPECT_EQ(checksum.size(), FindEnctype(enctype_)->mac_bytes);
  EXPECT_EQ(Jobs(), 4);
  EXPECT_EQ(Open(Own(bob_base_), 3, reply), "reply");
}

TEST_P(CtsProviderTest, ALoginThatNeedsNoPreauth) {
  realm_.oracle->SetGate(bob_handle_, v1::GATE_NONE);
  HintAs(bob_, tgs_, "", 100, 100, "the request");
  EXPECT_EQ(Jobs(), 0) << "nothing is sent before it is needed";
  Seal(tgs_, 2, "ticket");
  const std::string reply = Seal(bob_, 3, "reply");
  EXPECT_EQ(Jobs(), 2);
  EXPECT_EQ(Open(Own(bob_base_), 3, reply), "reply");
  EndRequest();
  // The reply alone: the ticket's key is local.
  EXPECT_EQ(Open(Own(bob_base_), 3, Seal(bob_, 3, "reply")), "reply");
}

// A client that proves itself by one key and asks for the reply under another.
TEST_P(CtsProviderTest, TheGrantOfAnotherKeyPaysForTheHint) {
  std::atomic<int> refused{0};
  realm_.parties[0]->behaviour.job = [&](v1::JobAnswer& a) {
    refused += a.verdict() != v1::VERDICT_OK;
  };
  const std::string other(32, 'o');
  const krb5_keyblock gcm = Reference(realm_.AddKey("bob@EXAMPLE.COM", other, v1::KEY_CLASS_USER));
  Open(bob_, 1, Preauth());
  HintAs(gcm, tgs_, "", 100, 100, "the request");
  Seal(tgs_, 2, "ticket");
  const std::string reply = Seal(gcm, 3, "reply");
  EXPECT_EQ(Checksum(gcm, 56, "the request").size(), 28u);
  EXPECT_EQ(Jobs(), 2);
  EXPECT_EQ(refused, 0);
  EXPECT_EQ(Open(Local(other), 3, reply), "reply");
  realm_.parties[0]->behaviour.job = nullptr;
}

TEST_P(CtsProviderTest, OnlyAWrongKeyIsAWrongPassword) {
  std::string plain;
  const std::string wrong = Seal(Own(std::string(bob_base_.size(), 'x')), 1, "a timestamp");
  HintAs(bob_, tgs_, wrong, 100, 100);
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
  HintAs(bob_, tgs_, preauth, 100, 100, "", true);
  Open(bob_, 1, preauth);
  const std::string ticket = Seal(tgs_, 2, "ticket part");
  realm_.parties[2]->behaviour.job = [](v1::JobAnswer& a) {
    a.mutable_seals(0)->mutable_message_share()->pop_back();
  };
  std::string reply;
  EXPECT_EQ(Encrypt(bob_, 3, "the reply", &reply), KRB5KDC_ERR_SVC_UNAVAILABLE);
  EXPECT_EQ(reply, "");
}

TEST_P(CtsProviderTest, MessagesThatAreTooShortAreNotSent) {
  std::string plain;
  const size_t around = kConfounderBytes + FindEnctype(enctype_)->mac_bytes;
  EXPECT_EQ(Decrypt(web_, 2, std::string(around - 1, 'm'), &plain), KRB5_BAD_MSIZE);
  bool valid = true;
  const std::string tag(FindEnctype(enctype_)->mac_bytes - 1, 't');
  EXPECT_EQ(Verify(web_, 17, "PAC", tag, &valid), KRB5_BAD_MSIZE);
  EXPECT_FALSE(valid);
  EXPECT_EQ(Jobs(), 0);
  EXPECT_EQ(Decrypt(web_, 2, std::string(around, 'm'), &plain), KRB5KRB_AP_ERR_BAD_INTEGRITY);
}

// What kadmin/changepw's tickets are: made by AS.
TEST_P(CtsProviderTest, ATicketUnderAServiceKeyByAs) {
  const std::string preauth = Preauth();
  HintAs(bob_, web_, preauth, 100, 100, "", true);
  Open(bob_, 1, preauth);
  const std::string ticket = Seal(web_, 2, "the ticket"), reply = Seal(bob_, 3, "the reply");
  EXPECT_EQ(Jobs(), 3);
  EXPECT_EQ(Open(Own(web_base_), 2, ticket), "the ticket");
  EXPECT_EQ(Open(Own(bob_base_), 3, reply), "the reply");
}

TEST_P(CtsProviderTest, ATicketUnderAServiceKeyByTgs) {
  const std::string tgt = Tgt();
  const int before = Jobs();
  HintTgs(tgt, web_);
  EXPECT_EQ(Open(tgs_, 2, tgt), "the TGT");
  const std::string sum = Checksum(web_, 17, "PAC");
  const std::string ticket = Seal(web_, 2, "the ticket");
  EXPECT_EQ(Jobs(), before + 3) << "open, checksum, open again and seal";
  EXPECT_EQ(Open(Own(web_base_), 2, ticket), "the ticket");
  EXPECT_TRUE(Valid(Own(web_base_), 17, "PAC", sum));
}

TEST_P(CtsProviderTest, ATicketUnderAServiceKeyIsOpened) {
  EXPECT_EQ(Open(web_, 2, Seal(Own(web_base_), 2, "evidence")), "evidence");
}

// A cross-realm key: class tgs, and a ticket without header.
TEST_P(CtsProviderTest, ATicketUnderACrossRealmKey) {
  const std::string base(FindEnctype(enctype_)->key_bytes, 'x');
  const krb5_keyblock cross = Reference(
      realm_.AddKey(enctype_, "krbtgt/OTHER@EXAMPLE.COM", base, v1::KEY_CLASS_TGS), enctype_);
  Open(tgs_, 2, Tgt());
  const std::string ticket = Seal(cross, 2, "a referral");
  EXPECT_EQ(Open(Own(base), 2, ticket), "a referral");
  EndRequest();
  EXPECT_EQ(Open(cross, 2, ticket), "a referral");
}

TEST_P(CtsProviderTest, PacChecksumsAreMadeAndVerified) {
  ExpectChecksums(web_, Own(web_base_));
  // A checksum of another enctype's type.
  const std::string pac = "PAC";
  const krb5_data data = View(pac);
  krb5_checksum out = {};
  EXPECT_NE(krb5_c_make_checksum(context_, -24002, &web_, 17, &data, &out), 0);
}

TEST_P(CtsProviderTest, PiecesOfMessages) {
  Open(tgs_, 2, Tgt());
  std::string text = "in pieces";
  std::string header(kConfounderBytes, '\0'), trailer(FindEnctype(enctype_)->mac_bytes, '\0');
  krb5_crypto_iov iov[3] = {{KRB5_CRYPTO_TYPE_HEADER, View(header)},
                            {KRB5_CRYPTO_TYPE_DATA, View(text)},
                            {KRB5_CRYPTO_TYPE_TRAILER, View(trailer)}};
  ASSERT_EQ(krb5_c_encrypt_iov(context_, &web_, 2, nullptr, iov, 3), 0);
  EXPECT_EQ(Open(Own(web_base_), 2, header + text + trailer), "in pieces");
  ASSERT_EQ(krb5_c_decrypt_iov(context_, &web_, 2, nullptr, iov, 3), 0);
  EXPECT_EQ(text, "in pieces");
}

TEST_P(CtsProviderTest, WhatTheKdcMustNotHaveItDoesNotGet) {
  ExpectNoPrf(bob_);
  std::string out;
  EXPECT_EQ(Encrypt(bob_, 1, "a timestamp", &out), KRB5KDC_ERR_POLICY);
  EXPECT_EQ(Decrypt(bob_, 3, Seal(Own(bob_base_), 3, "a reply"), &out), KRB5KDC_ERR_POLICY);
  EXPECT_EQ(Jobs(), 0);
}

INSTANTIATE_TEST_SUITE_P(Enctypes, CtsProviderTest,
                         ::testing::Values(kEnctypeAes128Sha1, kEnctypeAes256Sha1,
                                           kEnctypeAes128Sha256, kEnctypeAes256Sha384));

TEST_F(ProviderTest, KeysThatNobodyHoldsAreNamed) {
  const krb5_keyblock rc4 = Reference(user_handle_, ENCTYPE_ARCFOUR_HMAC);
  std::string plain;
  const krb5_error_code code = Decrypt(rc4, 1, std::string(60, 'm'), &plain);
  EXPECT_EQ(code, KRB5_BAD_ENCTYPE);
  EXPECT_THAT(Message(code), HasSubstr("enctype 23"));
  EXPECT_EQ(Jobs(), 0);
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
