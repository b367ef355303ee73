// SPDX-License-Identifier: Apache-2.0
// For tests of the client library: fake servers, a client, and what it answers.
#ifndef KDC_PLUGIN_TESTS_CLIENT_FIXTURE_H_
#define KDC_PLUGIN_TESTS_CLIENT_FIXTURE_H_

#include <google/protobuf/message.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kdc-plugin/client/mpc_client.h"
#include "kdc-plugin/client/text.h"
#include "kdc-plugin/tests/fake_realm.h"

namespace mpckdc::test {

inline const uint8_t* U8(const std::string& s) {
  return reinterpret_cast<const uint8_t*>(s.data());
}
inline mpc_bytes Bytes(const std::string& s) { return {U8(s), s.size()}; }

struct Answer {
  mpc_verdict verdict = MPC_OK;
  std::string detail;
  bool outage = false;
  uint64_t id = 0;
  std::string open, plain;
  std::vector<std::string> nonces, headers, keystreams, messages;
  std::string mac;
};

// Collects results from any thread.
class Inbox {
 public:
  static void Done(void* arg, mpc_result* r) {
    Answer a;
    a.verdict = r->verdict;
    a.detail = r->detail;
    a.outage = r->outage != MPC_NO_OUTAGE;
    a.id = r->id;
    a.open = client::Copy(r->open_keystream);
    a.plain = client::Copy(r->open_plaintext);
    for (size_t i = 0; i < r->seal_count; ++i) {
      a.nonces.emplace_back(reinterpret_cast<const char*>(r->seals[i].nonce), 12);
      a.headers.push_back(client::Copy(r->seals[i].header));
      a.keystreams.push_back(client::Copy(r->seals[i].keystream));
      a.messages.push_back(client::Copy(r->seals[i].message));
    }
    a.mac.assign(reinterpret_cast<const char*>(r->mac), r->mac_size);
    mpc_result_free(r);
    static_cast<Inbox*>(arg)->Put(std::move(a));
  }
  static void TagDone(void* arg, mpc_verdict verdict, const uint8_t* tag, const char* detail) {
    Answer a;
    a.verdict = verdict;
    a.detail = detail;
    if (tag != nullptr) a.mac.assign(reinterpret_cast<const char*>(tag), MPC_TAG_BYTES);
    static_cast<Inbox*>(arg)->Put(std::move(a));
  }

  std::vector<Answer> Wait(size_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(30),
                                  [&] { return answers_.size() >= count; }));
    return answers_;
  }

 private:
  void Put(Answer a) {
    std::lock_guard<std::mutex> lock(mutex_);
    answers_.push_back(std::move(a));
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Answer> answers_;
};

class ClientTest : public ::testing::Test {
 protected:
  ClientTest()
      : user_base_(32, 'u'),
        tgs_base_(32, 't'),
        user_(realm_.AddKey("alice@EXAMPLE.COM", user_base_, v1::KEY_CLASS_USER)),
        tgs_(realm_.AddKey("krbtgt/EXAMPLE.COM@EXAMPLE.COM", tgs_base_, v1::KEY_CLASS_TGS)) {}
  ~ClientTest() override { StopClient(); }
  void TearDown() override { realm_.UnhookAll(); }

  void StartClient(uint32_t timeout_ms = 2000) { StartClient(realm_.Options(timeout_ms)); }
  void StartClient(mpc_options options) {
    {
      std::lock_guard<std::mutex> lock(log_mutex_);
      log_.clear();
    }
    options.log = +[](int, const char* text) {
      std::lock_guard<std::mutex> lock(log_mutex_);
      log_ += std::string(text) + "\n";
    };
    char* error = nullptr;
    client_ = mpc_client_start(&options, &error);
    ASSERT_NE(client_, nullptr) << error;
  }
  void StopClient() {
    if (client_ != nullptr) mpc_client_stop(client_);
    client_ = nullptr;
  }
  std::string Logged() {
    std::lock_guard<std::mutex> lock(log_mutex_);
    return log_;
  }
  // By now, or soon.
  void ExpectToLog(const std::string& text) {
    const absl::Time end = absl::Now() + absl::Seconds(20);
    while (Logged().find(text) == std::string::npos && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(50));
    }
    EXPECT_THAT(Logged(), ::testing::HasSubstr(text));
  }

  std::string Preauth(const std::string& text = "timestamp") {
    return SealMessage(user_base_, 1, enroll::RandomIdentifier().substr(0, 12), "", text);
  }

  void SubmitLogin(const std::string& preauth, Inbox* inbox) {
    const std::string as_req = "the AS-REQ";
    const mpc_open open = {U8(user_), 1, Bytes(preauth), kEnctypeAes256Gcm};
    const mpc_seal seals[2] = {{U8(tgs_), 2, 200, kEnctypeAes256Gcm, {nullptr, 0}},
                               {U8(user_), 3, 300, kEnctypeAes256Gcm, {nullptr, 0}}};
    const mpc_make_mac mac = {U8(user_), 56, Bytes(as_req), kEnctypeAes256Gcm};
    const mpc_job job = {MPC_LOGIN, U8(user_), /*grant=*/0, &open, seals, 2, &mac,
                         nullptr,   0,         0,           {},    {},    0};
    mpc_client_submit(client_, &job, Inbox::Done, inbox);
  }
  Answer Login(const std::string& preauth) {
    Inbox inbox;
    SubmitLogin(preauth, &inbox);
    return inbox.Wait(1)[0];
  }
  Answer Run(const mpc_job& job) {
    Inbox inbox;
    mpc_client_submit(client_, &job, Inbox::Done, &inbox);
    return inbox.Wait(1)[0];
  }
  Answer Tag(uint64_t job, uint32_t seal, const std::string& ciphertext) {
    Inbox inbox;
    mpc_client_request_tag(client_, job, seal, Bytes(ciphertext), 0, Inbox::TagDone, &inbox);
    return inbox.Wait(1)[0];
  }
  // What the three servers are sent from now on, until realm_.UnhookAll(). Then it may be read.
  void KeepJobs(std::vector<v1::Job>* jobs) {
    for (auto& party : realm_.parties) {
      party->behaviour.received = [this, jobs](const v1::Job& job) {
        std::lock_guard<std::mutex> lock(jobs_mutex_);
        jobs->push_back(job);
      };
    }
  }
  // A login fails, and `text` says why, when one server changes its answers so.
  void ExpectOutage(int party, const std::string& text,
                    std::function<void(v1::JobAnswer&)> change) {
    realm_.parties[party]->behaviour.job = change;
    const Answer a = Login();
    EXPECT_EQ(a.verdict, MPC_UNAVAILABLE) << text;
    EXPECT_THAT(a.detail, ::testing::HasSubstr(text));
  }
  Answer Login() { return Login(Preauth()); }

  // Logins until one succeeds; the connections are made in the background.
  void WaitUntilUp() {
    const absl::Time end = absl::Now() + absl::Seconds(15);
    while (Login().verdict != MPC_OK) {
      ASSERT_LT(absl::Now(), end) << Logged();
      absl::SleepFor(absl::Milliseconds(20));
    }
  }

  FakeRealm realm_;
  std::string user_base_, tgs_base_, user_, tgs_;
  mpc_client* client_ = nullptr;
  std::mutex jobs_mutex_;
  static inline std::mutex log_mutex_;
  static inline std::string log_;
};

// Calls f with each field of bytes that holds some, of the message and those in it.
inline void ForEachBytes(
    google::protobuf::Message& message,
    const std::function<void(const std::string& name, std::string& bytes)>& f) {
  using google::protobuf::FieldDescriptor;
  const auto* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->is_repeated()) {
      for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
        ForEachBytes(*reflection->MutableRepeatedMessage(&message, field, i), f);
      }
    } else if (field->type() == FieldDescriptor::TYPE_BYTES) {
      std::string bytes = reflection->GetString(message, field);
      f(std::string(field->full_name()), bytes);
      reflection->SetString(&message, field, bytes);
    }
  }
}

// Flips a bit of byte `at`, counted through all fields of bytes; "" when there are not so many.
inline std::string Alter(google::protobuf::Message& message, size_t at) {
  std::string altered;
  ForEachBytes(message, [&](const std::string& name, std::string& bytes) {
    if (at < bytes.size()) {
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
      altered = name;
      at = std::string::npos;
    } else if (at != std::string::npos) {
      at -= bytes.size();
    }
  });
  return altered;
}

inline bool NothingTaken(const Answer& a) {
  return a.open.empty() && a.plain.empty() && a.keystreams.empty() && a.messages.empty() &&
         a.mac.empty();
}

}  // namespace mpckdc::test

#endif  // KDC_PLUGIN_TESTS_CLIENT_FIXTURE_H_
