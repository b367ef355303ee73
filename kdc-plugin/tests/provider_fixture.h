// SPDX-License-Identifier: Apache-2.0
// For tests of the provider: krb5's own entry points on a host of one request, against fake
// servers. What it seals is opened with libk5crypto's implementation of the enctype under the whole
// key, and the other way round.
#ifndef KDC_PLUGIN_TESTS_PROVIDER_FIXTURE_H_
#define KDC_PLUGIN_TESTS_PROVIDER_FIXTURE_H_

#include <krb5/krb5.h>
#include <krb5/remote_key_plugin.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"
#include "kdc-plugin/tests/fake_realm.h"

extern "C" {
#include "kdc-plugin/provider/provider.h"
}

namespace mpckdc::test {

// A host with one request at a time, whose waits block the thread. In a slice (a host's run through
// many requests) what is put off is begun when the request waits.
inline bool in_slice = false;
struct Token {
  std::mutex mutex;
  std::condition_variable changed;
  bool woken = false;
};
inline void* request_pointer = nullptr;
inline void** RequestSlot() { return &request_pointer; }
inline void* BeginWait() { return new Token; }
inline void Wait(void* token) {
  auto* t = static_cast<Token*>(token);
  if (in_slice) krb5_c_remote_key_flush();
  {
    std::unique_lock<std::mutex> lock(t->mutex);
    t->changed.wait(lock, [&] { return t->woken; });
  }
  delete t;
}
inline void Wake(void* token) {
  auto* t = static_cast<Token*>(token);
  std::lock_guard<std::mutex> lock(t->mutex);
  t->woken = true;
  t->changed.notify_all();
}
inline krb5_boolean FlushLater() { return in_slice; }
inline krb5_remote_key_source request_source;  // without an address: not known
inline bool prefers_stream;
inline krb5_boolean RequestSource(krb5_remote_key_source* source) {
  *source = request_source;
  return request_source.address != nullptr;
}
inline void PreferStream() { prefers_stream = true; }
inline const krb5_remote_key_host kHost = {KRB5_REMOTE_KEY_HOST_VERSION,
                                           BeginWait,
                                           Wait,
                                           Wake,
                                           RequestSlot,
                                           FlushLater,
                                           RequestSource,
                                           PreferStream};

inline krb5_data View(const std::string& s) {
  return {KV5M_DATA, static_cast<unsigned>(s.size()), const_cast<char*>(s.data())};
}

class ProviderTest : public ::testing::Test {
 protected:
  ProviderTest()
      : user_base_(32, 'u'),
        tgs_base_(32, 't'),
        user_handle_(realm_.AddKey("alice@EXAMPLE.COM", user_base_, v1::KEY_CLASS_USER)),
        tgs_handle_(realm_.AddKey("krbtgt/EXAMPLE.COM@EXAMPLE.COM", tgs_base_, v1::KEY_CLASS_TGS)) {
    if (krb5_init_secure_context(&context_) != 0) abort();
    // One process, one realm of servers: each test starts the provider anew.
    mpc_options options = realm_.Options(3000);
    options.log = NoteLine;
    const krb5_error_code code = provider_register(context_, &options, CONTEXTS_OF_DATABASES);
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
  void TearDown() override { realm_.UnhookAll(); }

  // Each line that the provider logs, in whichever thread.
  static void NoteLine(int /*priority*/, const char* text) {
    const absl::MutexLock lock(&log_mutex_);
    absl::StrAppend(&log_, text, "\n");
  }
  static std::string Logged() {
    const absl::MutexLock lock(&log_mutex_);
    return log_;
  }
  static void ForgetLog() {
    const absl::MutexLock lock(&log_mutex_);
    log_.clear();
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
  // which is moved and never copied: it is kept until the reply is sealed, as krb5kdc keeps it.)
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
        reply,   as_req.empty() ? nullptr : &request, finish_with_reply, nullptr, nullptr};
    krb5_c_remote_key_hint_as(context_, &hint);
  }
  // Of a client whom krb5kdc has proved by this element, and whose reply is under a key of its own.
  void HintProved(krb5_preauthtype type, const std::string& proof, const std::string& body,
                  size_t ticket) {
    const krb5_data request_body = View(body);
    const krb5_pa_data element = {
        KV5M_PA_DATA, type, static_cast<unsigned>(proof.size()),
        reinterpret_cast<krb5_octet*>(const_cast<char*>(proof.data()))};
    const krb5_remote_key_as_hint hint = {&user_,  nullptr, &tgs_,    ticket,       0,
                                          nullptr, 0,       &element, &request_body};
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
    for (const krb5_keyusage usage : {17, 64}) {
      const std::string sum = Checksum(remote, usage, "PAC");
      EXPECT_TRUE(Valid(local, usage, "PAC", sum));
      EXPECT_TRUE(Valid(remote, usage, "PAC", sum));
      EXPECT_FALSE(Valid(remote, usage, "other", sum));
    }
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
  static inline absl::Mutex log_mutex_;
  static inline std::string log_ ABSL_GUARDED_BY(log_mutex_);
};

}  // namespace mpckdc::test

#endif  // KDC_PLUGIN_TESTS_PROVIDER_FIXTURE_H_
