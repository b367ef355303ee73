// SPDX-License-Identifier: Apache-2.0
#include "kdc-plugin/client/mpc_client.h"

#include <google/protobuf/text_format.h>

#include <atomic>
#include <bit>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/substitute.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kdc-plugin/client/text.h"
#include "kdc-plugin/tests/fake_realm.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/testing/cts.h"

namespace mpckdc::test {
namespace {

using ::testing::HasSubstr;

const uint8_t* U8(const std::string& s) { return reinterpret_cast<const uint8_t*>(s.data()); }
mpc_bytes Bytes(const std::string& s) { return {U8(s), s.size()}; }

struct Answer {
  mpc_verdict verdict = MPC_OK;
  std::string detail;
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

  std::string Preauth(const std::string& text = "timestamp") {
    return SealMessage(user_base_, 1, enroll::RandomIdentifier().substr(0, 12), "", text);
  }

  void SubmitLogin(const std::string& preauth, Inbox* inbox) {
    const std::string as_req = "the AS-REQ";
    const mpc_open open = {U8(user_), 1, Bytes(preauth), kEnctypeAes256Gcm};
    const mpc_seal seals[2] = {{U8(tgs_), 2, 200, kEnctypeAes256Gcm, {nullptr, 0}},
                               {U8(user_), 3, 300, kEnctypeAes256Gcm, {nullptr, 0}}};
    const mpc_make_mac mac = {U8(user_), 56, Bytes(as_req), kEnctypeAes256Gcm};
    const mpc_job job = {MPC_LOGIN, U8(user_), /*grant=*/0, &open, seals, 2, &mac, nullptr, 0, 0};
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
    mpc_client_request_tag(client_, job, seal, Bytes(ciphertext), Inbox::TagDone, &inbox);
    return inbox.Wait(1)[0];
  }
  // What the three servers are sent from now on.
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
    EXPECT_THAT(a.detail, HasSubstr(text));
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
  static std::mutex log_mutex_;
  static std::string log_;
};
std::mutex ClientTest::log_mutex_;
std::string ClientTest::log_;

TEST_F(ClientTest, LoginGivesKeystreamsTagsAndChecksum) {
  StartClient();
  const std::string preauth = Preauth("a timestamp");
  const Answer a = Login(preauth);
  ASSERT_EQ(a.verdict, MPC_OK) << a.detail;
  EXPECT_EQ(Xor(preauth.substr(13 + 16, a.open.size()), a.open), "a timestamp");
  EXPECT_EQ(a.headers[0].size(), 33u);
  EXPECT_EQ(a.headers[1], "");
  EXPECT_EQ(a.keystreams[0].size(), 216u);
  EXPECT_EQ(a.mac.substr(12),
            GcmEncrypt(UsageKey(user_base_, 56), a.mac.substr(0, 12), "the AS-REQ", "").tag);
  const std::string plain = "EncTicketPart";
  const std::string text = std::string(16, '\0') + plain;
  const std::string ciphertext = Xor(text, a.keystreams[0]);
  const Answer tag = Tag(a.id, 0, ciphertext);
  ASSERT_EQ(tag.verdict, MPC_OK) << tag.detail;
  std::string header, opened;
  EXPECT_TRUE(OpenMessage(tgs_base_, 2, a.nonces[0] + '\x21' + a.headers[0] + ciphertext + tag.mac,
                          &header, &opened));
  EXPECT_EQ(opened, plain);
}

TEST_F(ClientTest, UnanimousVerdictsAreToldApart) {
  StartClient();
  std::string wrong = Preauth();
  wrong.back() ^= 1;
  EXPECT_EQ(Login(wrong).verdict, MPC_BAD_TAG);
  const std::string twice = Preauth();
  EXPECT_EQ(Login(twice).verdict, MPC_OK);
  EXPECT_EQ(Login(twice).verdict, MPC_REPLAY);
  realm_.Answer(v1::VERDICT_CLOCK_SKEW);
  EXPECT_EQ(Login().verdict, MPC_CLOCK_SKEW);
  realm_.Answer(v1::VERDICT_REFUSED);
  EXPECT_EQ(Login().verdict, MPC_REFUSED);
}

TEST_F(ClientTest, OneServerAloneMakesNoWrongPassword) {
  StartClient();
  for (v1::Verdict v : {v1::VERDICT_BAD_TAG, v1::VERDICT_CLOCK_SKEW, v1::VERDICT_REPLAY,
                        v1::VERDICT_REFUSED, v1::VERDICT_UNKNOWN_HANDLE, v1::VERDICT_DEADLINE,
                        v1::VERDICT_INCONSISTENT, v1::VERDICT_QUOTA, v1::VERDICT_UNAVAILABLE,
                        v1::VERDICT_MALFORMED, v1::VERDICT_UNSPECIFIED}) {
    SCOPED_TRACE(v1::Verdict_Name(v));
    ExpectOutage(1, realm_.addresses[1], [v](v1::JobAnswer& a) { a.set_verdict(v); });
  }
}

// One server's quota is enough for a refusal, so what it says of it is, too.
TEST_F(ClientTest, OneServerThatWantsAProofIsEnough) {
  StartClient();
  realm_.parties[1]->behaviour.job = [](v1::JobAnswer& a) {
    a.set_verdict(v1::VERDICT_UNPROVED);
    a.set_detail("quota principal_failures");
  };
  const Answer a = Login();
  EXPECT_EQ(a.verdict, MPC_UNPROVED);
  EXPECT_THAT(a.detail, HasSubstr("UNPROVED: quota principal_failures"));
}

TEST_F(ClientTest, AnswersOfWrongSizeOrOtherNonceAreAnOutage) {
  StartClient();
  ExpectOutage(2, "wrong size", [](v1::JobAnswer& a) {
    a.mutable_seals(0)->mutable_keystream_share()->append(100, 'x');
  });
  ExpectOutage(2, "wrong size", [](v1::JobAnswer& a) { a.clear_opens(); });
  ExpectOutage(2, "nonce",
               [](v1::JobAnswer& a) { a.mutable_seals(1)->set_nonce(std::string(12, 'n')); });
}

// Calls f with each field of bytes that holds some, of the message and those in it.
void ForEachBytes(google::protobuf::Message& message,
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
std::string Alter(google::protobuf::Message& message, size_t at) {
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

bool NothingTaken(const Answer& a) {
  return a.open.empty() && a.plain.empty() && a.keystreams.empty() && a.messages.empty() &&
         a.mac.empty();
}

// Each byte of one server's answer: an outage that names it, and nothing is taken.
TEST_F(ClientTest, AServerThatAltersAByteOfItsAnswerIsNamed) {
  StartClient(10000);
  ASSERT_EQ(Login().verdict, MPC_OK);
  std::map<std::string, int> altered_bytes;
  for (size_t at = 0;; ++at) {
    const int liar = static_cast<int>(at % 3);
    std::string altered;
    realm_.parties[liar]->behaviour.job = [&](v1::JobAnswer& a) { altered = Alter(a, at); };
    const Answer a = Login();
    realm_.parties[liar]->behaviour.job = nullptr;
    if (altered.empty()) break;
    ++altered_bytes[altered];
    EXPECT_EQ(a.verdict, MPC_UNAVAILABLE) << altered << " " << at;
    EXPECT_THAT(a.detail, HasSubstr(realm_.addresses[liar])) << altered << " " << at;
    EXPECT_THAT(a.detail, HasSubstr("altered its answer")) << altered << " " << at;
    EXPECT_TRUE(NothingTaken(a)) << altered << " " << at;
  }
  EXPECT_EQ(altered_bytes["mpckdc.v1.OpenAnswer.keystream_share"], 9);
  EXPECT_EQ(altered_bytes["mpckdc.v1.SealAnswer.keystream_share"], 216 + 316);
  EXPECT_EQ(altered_bytes["mpckdc.v1.SealAnswer.header"], 33);
  EXPECT_EQ(altered_bytes["mpckdc.v1.SealAnswer.nonce"], 24);
  EXPECT_EQ(altered_bytes["mpckdc.v1.MakeMacAnswer.tag_share"], 16);
  EXPECT_EQ(altered_bytes["mpckdc.v1.MakeMacAnswer.nonce"], 12);
  EXPECT_EQ(altered_bytes["mpckdc.v1.JobAnswer.keys"], 64);
  EXPECT_EQ(Login().verdict, MPC_OK) << "clients may come again";
}

TEST_F(ClientTest, AServerThatAltersAByteOfATagIsNamed) {
  StartClient(10000);
  int altered_bytes = 0;
  for (size_t at = 0; at < 80; ++at) {
    const int liar = static_cast<int>(at % 3);
    const Answer a = Login();
    ASSERT_EQ(a.verdict, MPC_OK) << a.detail;
    realm_.parties[liar]->behaviour.tag = [&](v1::TagAnswer& t) {
      altered_bytes += !Alter(t, at).empty();
    };
    const Answer tag = Tag(a.id, 0, a.keystreams[0]);
    realm_.parties[liar]->behaviour.tag = nullptr;
    EXPECT_EQ(tag.verdict, MPC_UNAVAILABLE) << at;
    EXPECT_THAT(tag.detail, HasSubstr(realm_.addresses[liar])) << at;
    EXPECT_THAT(tag.detail, HasSubstr("altered its answer")) << at;
    EXPECT_EQ(tag.mac, "");
  }
  EXPECT_EQ(altered_bytes, 80);
}

// Numbers and texts: an answer to something else is none, and an OK says nothing more.
TEST_F(ClientTest, OtherFieldsOfAnAlteredAnswer) {
  StartClient(300);
  ASSERT_EQ(Login().verdict, MPC_OK);
  ExpectOutage(1, realm_.addresses[1], [](v1::JobAnswer& a) { a.set_id(a.id() + 1000); });
  ExpectOutage(1, realm_.addresses[1], [](v1::JobAnswer& a) { a.set_detail("a text"); });
  ExpectOutage(1, realm_.addresses[1], [](v1::JobAnswer& a) { a.clear_keys(); });
  ExpectOutage(1, realm_.addresses[1], [](v1::JobAnswer& a) { a.mutable_keys()->append("x"); });
  ExpectOutage(1, realm_.addresses[1], [](v1::JobAnswer& a) { a.add_seals(); });
  ExpectOutage(1, realm_.addresses[1],
               [](v1::JobAnswer& a) { a.mutable_seals()->SwapElements(0, 1); });
}

// Who contradicts both others is named alone; each is counted and logged.
TEST_F(ClientTest, TheLogCountsAndNamesWhoAlteredItsAnswer) {
  StartClient();
  ASSERT_EQ(Login().verdict, MPC_OK);
  const auto share = [](v1::JobAnswer& a) {
    (*a.mutable_seals(0)->mutable_keystream_share())[0] ^= 1;
  };
  ExpectOutage(0,
               "one of " + realm_.addresses[0] + " (party 0) and " + realm_.addresses[1] +
                   " (party 1) altered its answer",
               share);
  realm_.parties[0]->behaviour.job = nullptr;
  ExpectOutage(2, realm_.addresses[2] + " (party 2) altered its answer", [&](v1::JobAnswer& a) {
    share(a);
    (*a.mutable_keys())[0] ^= 1;
  });
  EXPECT_THAT(Logged(), HasSubstr("(party 1) altered its answer"));
  EXPECT_THAT(Logged(), HasSubstr("nothing of such answers was taken, 1 since"));
  EXPECT_THAT(Logged(), HasSubstr("nothing of such answers was taken, 2 since"));
}

TEST_F(ClientTest, ServerDownAtStartThenUp) {
  realm_.parties[1]->Stop();
  StartClient(1000);
  const Answer a = Login();
  EXPECT_EQ(a.verdict, MPC_UNAVAILABLE);
  EXPECT_THAT(a.detail, HasSubstr(realm_.addresses[1]));
  EXPECT_THAT(Logged(), HasSubstr(realm_.addresses[1]));
  realm_.parties[1]->Start();
  WaitUntilUp();
}

TEST_F(ClientTest, FirstLoginAfterARestartDoesNotWaitForTheBackoff) {
  realm_.parties[1]->Stop();
  StartClient(5000);
  const absl::Time down = absl::Now();
  while (absl::Now() < down + absl::Seconds(2)) {  // by then attempts are seconds apart
    const Answer a = Login();
    EXPECT_EQ(a.verdict, MPC_UNAVAILABLE) << "an outage is told, not waited for";
    absl::SleepFor(absl::Milliseconds(200));
  }
  EXPECT_LT(absl::Now() - down, absl::Seconds(4));
  realm_.parties[1]->Start();
  EXPECT_EQ(Login().verdict, MPC_OK) << Logged();
}

TEST_F(ClientTest, ServerLostInMidFlightFailsOnlyItsJobsAndComesBack) {
  StartClient(5000);
  ASSERT_EQ(Login().verdict, MPC_OK);
  realm_.parties[2]->behaviour.close_after_jobs = 1;
  const absl::Time start = absl::Now();
  const Answer a = Login();
  EXPECT_EQ(a.verdict, MPC_UNAVAILABLE);
  EXPECT_LT(absl::Now() - start, absl::Seconds(3)) << "must not wait for the deadline";
  EXPECT_THAT(a.detail, HasSubstr(realm_.addresses[2]));
  WaitUntilUp();
  EXPECT_EQ(realm_.parties[0]->behaviour.streams, 1);
  EXPECT_EQ(realm_.parties[2]->behaviour.streams, 2);
}

TEST_F(ClientTest, DeadlinePassesWhenAServerIsSilent) {
  StartClient(300);
  WaitUntilUp();
  realm_.parties[0]->behaviour.silent = true;
  const absl::Time start = absl::Now();
  const Answer a = Login();
  EXPECT_EQ(a.verdict, MPC_UNAVAILABLE);
  EXPECT_THAT(a.detail, HasSubstr("no answer within 300ms from " + realm_.addresses[0]));
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(290));
  EXPECT_LT(absl::Now() - start, absl::Seconds(2));
  realm_.parties[0]->behaviour.silent = false;
  WaitUntilUp();  // the silent connection was given up
  EXPECT_EQ(realm_.parties[0]->behaviour.streams, 2);
}

// One server answers, but not what it was asked, so that its connection is not given up. What the
// timer ends must leave locked memory then, not when the timer next has work.
TEST_F(ClientTest, JobsThatExpireLeaveNothingBehind) {
  StartClient(3000);
  WaitUntilUp();
  realm_.parties[2]->behaviour.job = [](v1::JobAnswer& a) { a.set_id(a.id() + 1'000'000); };
  const size_t before = GetSecretArenaStats().bytes_in_use;
  Inbox inbox;
  for (int i = 0; i < 100; ++i) SubmitLogin(Preauth(), &inbox);
  EXPECT_EQ(inbox.Wait(100)[99].verdict, MPC_UNAVAILABLE);
  absl::SleepFor(absl::Milliseconds(500));
  EXPECT_LE(GetSecretArenaStats().bytes_in_use, before + 4096);
}

// The others give up a little before us, so no job ever waits for the silent one's answer.
TEST_F(ClientTest, SilentConnectionIsGivenUpThoughTheOthersAnswer) {
  StartClient(500);
  WaitUntilUp();
  realm_.parties[0]->behaviour.silent = true;
  for (int other : {1, 2}) {
    realm_.parties[other]->behaviour.job = [](v1::JobAnswer& a) {
      a.set_verdict(v1::VERDICT_DEADLINE);
    };
  }
  const absl::Time end = absl::Now() + absl::Seconds(20);
  while (realm_.parties[0]->behaviour.streams < 2 && absl::Now() < end) {
    const Answer a = Login();
    EXPECT_EQ(a.verdict, MPC_UNAVAILABLE);
    absl::SleepFor(absl::Milliseconds(20));
  }
  EXPECT_GE(realm_.parties[0]->behaviour.streams, 2);
  EXPECT_EQ(realm_.parties[1]->behaviour.streams, 1) << "it answers, so it keeps its connection";
}

// Nothing is asked of an idle connection, and it stays.
TEST_F(ClientTest, IdleConnectionIsKept) {
  StartClient(200);
  WaitUntilUp();
  absl::SleepFor(absl::Milliseconds(700));
  EXPECT_EQ(Login().verdict, MPC_OK);
  for (const auto& party : realm_.parties) EXPECT_EQ(party->behaviour.streams, 1);
}

TEST_F(ClientTest, ManyJobsTravelInFewMessages) {
  StartClient(20000);
  WaitUntilUp();
  realm_.parties[0]->behaviour.messages = 0;
  constexpr int kJobs = 2000;
  Inbox inbox;
  for (int i = 0; i < kJobs; ++i) SubmitLogin(Preauth(), &inbox);
  for (const Answer& a : inbox.Wait(kJobs)) EXPECT_EQ(a.verdict, MPC_OK) << a.detail;
  EXPECT_LT(realm_.parties[0]->behaviour.messages, kJobs / 2);
}

TEST_F(ClientTest, ABurstIsOneMessage) {
  StartClient(20000);
  WaitUntilUp();
  for (const auto& party : realm_.parties) party->behaviour.messages = 0;
  constexpr int kJobs = 100;
  Inbox inbox;
  mpc_client_begin_burst(client_);
  for (int i = 0; i < kJobs; ++i) {
    mpc_client_begin_burst(client_);
    SubmitLogin(Preauth(), &inbox);
    mpc_client_end_burst(client_);
  }
  mpc_client_end_burst(client_);
  for (const Answer& a : inbox.Wait(kJobs)) EXPECT_EQ(a.verdict, MPC_OK) << a.detail;
  for (const auto& party : realm_.parties) EXPECT_EQ(party->behaviour.messages, 1);
}

TEST_F(ClientTest, SlowServerDoesNotMixUpAnswers) {
  StartClient(20000);
  WaitUntilUp();
  realm_.parties[1]->behaviour.delay_ms = 50;
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) {
        const std::string text = absl::StrCat("text ", t, ".", i);
        const std::string preauth = Preauth(text);
        const Answer a = Login(preauth);
        right += a.verdict == MPC_OK && Xor(preauth.substr(29, text.size()), a.open) == text;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 20);
}

TEST_F(ClientTest, RefusesServersThatDoNotBelongTogether) {
  struct Case {
    const char* name;
    std::function<void(v1::Welcome&)> change;
    const char* text;
  };
  for (const Case& c : std::vector<Case>{
           {"same party", [](v1::Welcome& w) { w.set_party(0); }, "says it is party 0"},
           {"no party", [](v1::Welcome& w) { w.set_party(7); }, "says it is party 7"},
           {"realm", [](v1::Welcome& w) { w.set_realm("OTHER"); }, "serves realm \"OTHER\""},
           {"cluster", [](v1::Welcome& w) { w.set_cluster(2); }, "cluster 2"},
           {"epoch", [](v1::Welcome& w) { w.set_epoch(9); }, "epoch 9"},
           {"version", [](v1::Welcome& w) { w.set_version(3); }, "protocol version 3"}}) {
    // The other two first: the third is the one that does not fit.
    realm_.parties[2]->behaviour.welcome = [&](v1::Welcome& w) {
      absl::SleepFor(absl::Milliseconds(100));
      c.change(w);
    };
    StartClient(1000);
    const Answer a = Login();
    EXPECT_EQ(a.verdict, MPC_UNAVAILABLE) << c.name;
    EXPECT_THAT(Logged(), HasSubstr(c.text)) << c.name;
    StopClient();
  }
}

TEST_F(ClientTest, RefusesAServerWithoutThePeerRole) {
  const auto identity = realm_.authority.Issue("kdc", "imposter", "--ip 127.0.0.1 --server");
  FakeParty imposter(2, kRealm, identity, realm_.oracle);
  imposter.Start();
  const std::string address = imposter.address();
  mpc_options options = realm_.Options(1000);
  options.servers[2] = address.c_str();
  StartClient(options);
  EXPECT_EQ(Login().verdict, MPC_UNAVAILABLE);
  EXPECT_EQ(imposter.behaviour.streams, 0);
  EXPECT_THAT(Logged(), HasSubstr(address));
}

TEST_F(ClientTest, RefusesToPlayTheKdcWithoutItsRole) {
  const auto admin = realm_.authority.Issue("admin", "kadmind");
  StartClient(realm_.Options(admin, 1000));
  EXPECT_EQ(Login().verdict, MPC_UNAVAILABLE);
  EXPECT_THAT(Logged(), HasSubstr("kdc"));
}

TEST_F(ClientTest, OversizedJobFailsAlone) {
  StartClient();
  WaitUntilUp();
  const Answer big = Login(Preauth(std::string(2 << 20, 'x')));
  EXPECT_EQ(big.verdict, MPC_UNAVAILABLE);
  EXPECT_THAT(big.detail, HasSubstr("bytes"));
  EXPECT_EQ(Login().verdict, MPC_OK);
}

TEST_F(ClientTest, TagIsGivenOnce) {
  StartClient();
  const Answer a = Login();
  ASSERT_EQ(a.verdict, MPC_OK);
  const std::string text(20, 'c');
  EXPECT_EQ(Tag(a.id, 1, text).verdict, MPC_OK);
  EXPECT_EQ(Tag(a.id, 1, text).verdict, MPC_REFUSED);
}

TEST_F(ClientTest, StopFailsWhatIsPending) {
  StartClient(30000);
  WaitUntilUp();
  realm_.parties[0]->behaviour.silent = true;
  Inbox inbox;
  for (int i = 0; i < 10; ++i) SubmitLogin(Preauth(), &inbox);
  StopClient();
  for (const Answer& a : inbox.Wait(10)) EXPECT_EQ(a.verdict, MPC_UNAVAILABLE);
}

// What the servers got before there were other enctypes, byte for byte.
TEST_F(ClientTest, GcmJobsAreTheSameForAllAndHoldNothingNew) {
  StartClient();
  std::vector<v1::Job> jobs;
  KeepJobs(&jobs);
  const std::string preauth = Preauth();
  const Answer a = Login(preauth);
  ASSERT_EQ(a.verdict, MPC_OK) << a.detail;
  v1::Job expected;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      absl::Substitute(R"(id: $0 operation: OPERATION_LOGIN deadline_ms: 1500 client: "$1"
                          opens { handle: "$1" usage: 1 message: "$2" }
                          seals { handle: "$3" usage: 2 max_plaintext: 200 }
                          seals { handle: "$1" usage: 3 max_plaintext: 300 }
                          make_macs { handle: "$1" usage: 56 data: "the AS-REQ" })",
                       a.id, absl::CEscape(user_), absl::CEscape(preauth), absl::CEscape(tgs_)),
      &expected));
  ASSERT_EQ(jobs.size(), 3u);
  for (const v1::Job& job : jobs) EXPECT_EQ(job.SerializeAsString(), expected.SerializeAsString());
}

TEST_F(ClientTest, PartsOfEnctypesThatNobodyHoldsAreNotSent) {
  StartClient();
  WaitUntilUp();
  const int before = realm_.oracle->jobs();
  const std::string text = "text";
  const mpc_open open = {U8(user_), 1, Bytes(text), 23};
  const mpc_make_mac mac = {U8(user_), 56, Bytes(text), 0};
  const mpc_seal no_plaintext = {U8(user_), 3, 4, kEnctypeAes256Sha1, {nullptr, 0}};
  const mpc_seal needless = {U8(user_), 3, 4, kEnctypeAes256Gcm, Bytes(text)};
  const uint8_t* user = U8(user_);
  for (const mpc_job& job :
       {mpc_job{MPC_LOGIN, user, 0, &open, nullptr, 0, nullptr, nullptr, 0, 0},
        mpc_job{MPC_LOGIN, user, 0, nullptr, nullptr, 0, &mac, nullptr, 0, 0},
        mpc_job{MPC_LOGIN, user, 0, nullptr, &no_plaintext, 1, nullptr, nullptr, 0, 0},
        mpc_job{MPC_LOGIN, user, 0, nullptr, &needless, 1, nullptr, nullptr, 0, 0}}) {
    const Answer a = Run(job);
    EXPECT_EQ(a.verdict, MPC_UNAVAILABLE);
    EXPECT_THAT(a.detail, HasSubstr("enctype"));
  }
  EXPECT_EQ(realm_.oracle->jobs(), before);
}

// A client whose key is of 17 to 20, and krbtgt's of GCM.
class CtsClientTest : public ClientTest, public ::testing::WithParamInterface<int32_t> {
 protected:
  CtsClientTest()
      : base_(enctype_.key_bytes, 'c'),
        bob_(realm_.AddKey(GetParam(), "bob@EXAMPLE.COM", base_, v1::KEY_CLASS_USER)) {}

  std::string Preauth(const std::string& text) {
    return CtsSeal(enctype_, AsBytes(base_), 1, enroll::RandomIdentifier(), text);
  }
  Answer Begin(const std::string& preauth) {
    const std::string as_req = "the AS-REQ";
    const mpc_open open = {U8(bob_), 1, Bytes(preauth), GetParam()};
    const mpc_seal seal = {U8(tgs_), 2, 200, kEnctypeAes256Gcm, {nullptr, 0}};
    const mpc_make_mac mac = {U8(bob_), 56, Bytes(as_req), GetParam()};
    return Run({MPC_LOGIN, U8(bob_), /*grant=*/0, &open, &seal, 1, &mac, nullptr, 0, 0});
  }
  void SubmitReply(uint64_t grant, const std::string& text, Inbox* inbox) {
    const mpc_seal seal = {U8(bob_), 3, static_cast<uint32_t>(text.size()), GetParam(),
                           Bytes(text)};
    const mpc_job job = {MPC_SEAL_GRANTED, U8(bob_), grant, nullptr, &seal, 1,
                         nullptr,          nullptr,  0,     0};
    mpc_client_submit(client_, &job, Inbox::Done, inbox);
  }
  Answer Reply(uint64_t grant, const std::string& text) {
    Inbox inbox;
    SubmitReply(grant, text, &inbox);
    return inbox.Wait(1)[0];
  }

  const Enctype& enctype_ = *FindEnctype(GetParam());
  std::string base_, bob_;
};

TEST_P(CtsClientTest, LoginGivesPlaintextChecksumAndMessage) {
  StartClient();
  const Answer a = Begin(Preauth("a timestamp"));
  ASSERT_EQ(a.verdict, MPC_OK) << a.detail;
  EXPECT_EQ(a.plain, "a timestamp");
  EXPECT_EQ(a.open, "");
  EXPECT_EQ(a.keystreams[0].size(), 216u);
  EXPECT_EQ(a.messages[0], "");
  EXPECT_EQ(a.mac, CtsChecksum(enctype_, AsBytes(base_), 56, "the AS-REQ"));
  for (size_t size : {0, 1, 15, 16, 17, 32, 279}) {
    const std::string text(size, 'r');
    const Answer reply = Reply(a.id, text);
    ASSERT_EQ(reply.verdict, MPC_OK) << reply.detail;
    EXPECT_EQ(CtsOpen(enctype_, AsBytes(base_), 3, reply.messages[0]), text);
    EXPECT_EQ(reply.keystreams[0], "");
  }
}

TEST_P(CtsClientTest, AWrongPasswordIsTold) {
  StartClient();
  const std::string wrong = CtsSeal(enctype_, std::vector<uint8_t>(base_.size(), 'w'), 1,
                                    enroll::RandomIdentifier(), "a timestamp");
  EXPECT_EQ(Begin(wrong).verdict, MPC_BAD_TAG);
}

int BitsSet(const std::string& bytes) {
  int bits = 0;
  for (char c : bytes) bits += std::popcount(static_cast<uint8_t>(c));
  return bits;
}

// The plaintext is always the same and as far from random as can be.
TEST_P(CtsClientTest, NoServerLearnsAnythingOfAPlaintext) {
  StartClient(20000);
  const Answer a = Begin(Preauth("a timestamp"));
  ASSERT_EQ(a.verdict, MPC_OK) << a.detail;
  constexpr size_t kJobs = 200;
  const std::string text(64, '\0');
  Inbox inbox;
  for (size_t i = 0; i < kJobs; ++i) SubmitReply(a.id, text, &inbox);
  for (const Answer& reply : inbox.Wait(kJobs)) ASSERT_EQ(reply.verdict, MPC_OK) << reply.detail;
  const auto all = realm_.oracle->plaintext_shares();
  ASSERT_EQ(all.size(), kJobs);
  std::set<std::string> different;
  for (size_t server = 0; server < 3; ++server) {
    int bits = 0;
    for (const auto& shares : all) {
      bits += BitsSet(shares[server]);
      different.insert(shares[server]);
      EXPECT_EQ(Xor(Xor(shares[0], shares[1]), shares[2]), text);
    }
    // Half of 102,400 fair bits are set, within six deviations of 160.
    EXPECT_NEAR(bits, 51200, 960) << "server " << server;
  }
  EXPECT_EQ(different.size(), 3 * kJobs) << "no share comes twice, none is the plaintext";
}

TEST_P(CtsClientTest, AnswersOfWrongSizeAreAnOutage) {
  StartClient();
  const Answer good = Begin(Preauth("first"));
  ASSERT_EQ(good.verdict, MPC_OK) << good.detail;
  const auto expect_wrong_size = [&](auto ask, std::vector<void (*)(v1::JobAnswer&)> changes) {
    for (const auto change : changes) {
      realm_.parties[1]->behaviour.job = change;
      const Answer a = ask();
      EXPECT_EQ(a.verdict, MPC_UNAVAILABLE);
      EXPECT_THAT(a.detail, HasSubstr("wrong size"));
    }
  };
  expect_wrong_size(
      [&] { return Begin(Preauth("a timestamp")); },
      {[](v1::JobAnswer& a) { a.mutable_opens(0)->mutable_plaintext_share()->append("x"); },
       [](v1::JobAnswer& a) { a.mutable_opens(0)->clear_plaintext_share(); },
       [](v1::JobAnswer& a) { a.mutable_opens(0)->set_keystream_share("keystream"); },
       [](v1::JobAnswer& a) { a.mutable_make_macs(0)->mutable_tag_share()->pop_back(); },
       [](v1::JobAnswer& a) { a.mutable_make_macs(0)->set_nonce(std::string(12, 'n')); },
       [](v1::JobAnswer& a) { a.mutable_seals(0)->set_message_share("a message"); }});
  expect_wrong_size(
      [&] { return Reply(good.id, "the reply"); },
      {[](v1::JobAnswer& a) { a.mutable_seals(0)->mutable_message_share()->append("x"); },
       [](v1::JobAnswer& a) { a.mutable_seals(0)->clear_message_share(); },
       [](v1::JobAnswer& a) { a.mutable_seals(0)->set_header("header"); },
       [](v1::JobAnswer& a) { a.mutable_seals(0)->set_keystream_share("keystream"); }});
}

// Shares of plaintexts and of whole messages.
TEST_P(CtsClientTest, AnAlteredByteIsSeen) {
  StartClient(10000);
  const Answer good = Begin(Preauth("first"));
  ASSERT_EQ(good.verdict, MPC_OK) << good.detail;
  const auto expect_named = [&](int liar, auto ask, std::function<void(v1::JobAnswer&)> change) {
    realm_.parties[liar]->behaviour.job = change;
    const Answer a = ask();
    realm_.parties[liar]->behaviour.job = nullptr;
    EXPECT_EQ(a.verdict, MPC_UNAVAILABLE);
    EXPECT_THAT(a.detail, HasSubstr(realm_.addresses[liar]));
    EXPECT_THAT(a.detail, HasSubstr("altered its answer"));
    EXPECT_TRUE(NothingTaken(a));
  };
  for (int liar = 0; liar < 3; ++liar) {
    expect_named(
        liar, [&] { return Begin(Preauth("a timestamp")); },
        [](v1::JobAnswer& a) { a.mutable_opens(0)->mutable_plaintext_share()->back() ^= 4; });
    expect_named(
        liar, [&] { return Reply(good.id, "the reply"); },
        [](v1::JobAnswer& a) { a.mutable_seals(0)->mutable_message_share()->back() ^= 4; });
  }
}

// The parts of a job differ from server to server only in the shares.
TEST_P(CtsClientTest, OnlyTheSharesDiffer) {
  StartClient();
  const Answer good = Begin(Preauth("first"));
  ASSERT_EQ(good.verdict, MPC_OK) << good.detail;
  std::vector<v1::Job> jobs;
  KeepJobs(&jobs);
  ASSERT_EQ(Reply(good.id, "the reply").verdict, MPC_OK);
  ASSERT_EQ(jobs.size(), 3u);
  EXPECT_EQ(jobs[0].seals(0).max_plaintext(), 9u);
  for (v1::Job& job : jobs) ClearComponents(job);
  EXPECT_EQ(jobs[0].SerializeAsString(), jobs[1].SerializeAsString());
  EXPECT_EQ(jobs[0].SerializeAsString(), jobs[2].SerializeAsString());
}

INSTANTIATE_TEST_SUITE_P(Enctypes, CtsClientTest,
                         ::testing::Values(kEnctypeAes128Sha1, kEnctypeAes256Sha1,
                                           kEnctypeAes128Sha256, kEnctypeAes256Sha384));

TEST_F(ClientTest, AdminStoresKeysOnAllThreeAndDeletesThem) {
  const auto admin = realm_.authority.Issue("admin", "kadmind");
  const mpc_options options = realm_.Options(admin);
  const std::string base(32, 'b');
  mpc_new_key key = {};
  memset(key.handle, 'h', sizeof(key.handle));
  key.principal = "bob@EXAMPLE.COM";
  key.kvno = 3;
  key.enctype = -24002;
  key.key_class = MPC_CLASS_USER;
  key.key = Bytes(base);
  char* error = nullptr;
  ASSERT_EQ(mpc_admin_store_keys(&options, &key, 1, &error), 0) << error;
  const std::string handle(16, 'h');
  EXPECT_EQ(realm_.oracle->Base(handle), base);
  EXPECT_EQ(realm_.oracle->Keys()[handle].gate(), v1::GATE_TIMESTAMP);
  // The next key of the principal keeps its gate.
  realm_.oracle->SetGate(handle, v1::GATE_NONE);
  memset(key.handle, 'i', sizeof(key.handle));
  ASSERT_EQ(mpc_admin_store_keys(&options, &key, 1, &error), 0) << error;
  EXPECT_EQ(realm_.oracle->Keys()[std::string(16, 'i')].gate(), v1::GATE_NONE);
  uint8_t handles[1][16];
  memset(handles, 'h', sizeof(handles));
  ASSERT_EQ(mpc_admin_delete_keys(&options, handles, 1, &error), 0) << error;
  EXPECT_EQ(realm_.oracle->Base(handle), "");
  realm_.parties[1]->Stop();
  memset(key.handle, 'j', sizeof(key.handle));
  ASSERT_EQ(mpc_admin_store_keys(&options, &key, 1, &error), -1);
  EXPECT_THAT(error, HasSubstr(realm_.addresses[1]));
  mpc_text_free(error);
}

}  // namespace
}  // namespace mpckdc::test
