// SPDX-License-Identifier: Apache-2.0
// Jobs of keys of GCM and what comes of them: keystreams, tags, verdicts; what is not sent.
#include <google/protobuf/text_format.h>

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/substitute.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kdc-plugin/tests/client_fixture.h"

namespace mpckdc::test {
namespace {

using ::testing::HasSubstr;

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
  EXPECT_EQ(Login(twice).verdict, MPC_OK) << "as if its answer was lost";
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
  realm_.UnhookAll();
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
       {mpc_job{MPC_LOGIN, user, 0, &open, nullptr, 0, nullptr, nullptr, 0, 0, {}, {}, 0},
        mpc_job{MPC_LOGIN, user, 0, nullptr, nullptr, 0, &mac, nullptr, 0, 0, {}, {}, 0},
        mpc_job{MPC_LOGIN, user, 0, nullptr, &no_plaintext, 1, nullptr, nullptr, 0, 0, {}, {}, 0},
        mpc_job{MPC_LOGIN, user, 0, nullptr, &needless, 1, nullptr, nullptr, 0, 0, {}, {}, 0}}) {
    const Answer a = Run(job);
    EXPECT_EQ(a.verdict, MPC_UNAVAILABLE);
    EXPECT_THAT(a.detail, HasSubstr("enctype"));
  }
  EXPECT_EQ(realm_.oracle->jobs(), before);
}

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
  ASSERT_EQ(mpc_admin_delete_keys(&options, key.principal, handles, 1, nullptr, 0, &error), 0)
      << error;
  EXPECT_EQ(realm_.oracle->Base(handle), "");
  realm_.parties[1]->Stop();
  memset(key.handle, 'j', sizeof(key.handle));
  ASSERT_EQ(mpc_admin_store_keys(&options, &key, 1, &error), -1);
  EXPECT_THAT(error, HasSubstr(realm_.addresses[1]));
  mpc_text_free(error);
}

// ATTACK. Who knows the password changes it while an administrator has the principal's gate narrowed: the
// keys whose gate he has set are the old ones then.
TEST_F(ClientTest, AGateThatIsNarrowedWhileKeysAreStoredHolds) {
  const auto admin = realm_.authority.Issue("admin", "kadmind");
  const mpc_options options = realm_.Options(admin);
  const std::string base(32, 'b'), old_handle(16, 'h'), new_handle(16, 'i');
  mpc_new_key key = {};
  memset(key.handle, 'h', sizeof(key.handle));
  key.principal = "bob@EXAMPLE.COM";
  key.kvno = 3;
  key.enctype = -24002;
  key.key_class = MPC_CLASS_USER;
  key.key = Bytes(base);
  char* error = nullptr;
  ASSERT_EQ(mpc_admin_store_keys(&options, &key, 1, &error), 0) << error;
  memset(key.handle, 'i', sizeof(key.handle));
  realm_.parties[1]->set_fault([&](enroll::FakeAdminServer::When when, const std::string& call) {
    if (call == "CommitKeys" && when == enroll::FakeAdminServer::When::kBefore) {
      realm_.oracle->SetGate(old_handle, v1::GATE_PKINIT);
    }
    return grpc::Status::OK;
  });
  EXPECT_EQ(mpc_admin_store_keys(&options, &key, 1, &error), -1);
  EXPECT_THAT(error == nullptr ? "" : error, HasSubstr("the gate of the keys of bob"));
  mpc_text_free(error);
  EXPECT_EQ(realm_.oracle->Base(new_handle), "") << "a password where a certificate is to be shown";
  EXPECT_EQ(realm_.oracle->Base(old_handle), base);
  realm_.parties[1]->set_fault(nullptr);
  error = nullptr;
  ASSERT_EQ(mpc_admin_store_keys(&options, &key, 1, &error), 0) << error;
  EXPECT_EQ(realm_.oracle->Keys()[new_handle].gate(), v1::GATE_PKINIT);
}

// Where the three do not agree on the gate of the present keys, the new ones have the strictest: no
// server alone, which lies or missed an administrator's word, makes it wider; nor does it take a
// certificate's gate away.
TEST_F(ClientTest, NewKeysHaveTheStrictestGate) {
  const auto admin = realm_.authority.Issue("admin", "kadmind");
  const mpc_options options = realm_.Options(admin);
  const std::string base(32, 'b');
  char next = 'a';
  const auto gate_of_next = [&] {
    mpc_new_key key = {};
    memset(key.handle, next, sizeof(key.handle));
    key.principal = "alice@EXAMPLE.COM";
    key.kvno = 3;
    key.enctype = -24002;
    key.key_class = MPC_CLASS_USER;
    key.key = Bytes(base);
    char* error = nullptr;
    EXPECT_EQ(mpc_admin_store_keys(&options, &key, 1, &error), 0) << error;
    const std::string handle(16, next++);
    const v1::Gate gate = realm_.oracle->Keys()[handle].gate();
    realm_.oracle->DeleteKey(handle);
    return gate;
  };
  const auto say = [&](int party, std::optional<v1::Gate> gate) {
    realm_.parties[party]->behaviour.listed = [gate](v1::ListKeysReply& reply) {
      if (!gate.has_value()) return reply.clear_keys();
      for (v1::KeyInfo& key : *reply.mutable_keys()) key.set_gate(*gate);
    };
  };
  struct Case {
    v1::Gate all;
    std::optional<v1::Gate> one;  // nothing: it says that there is no key
    v1::Gate want;
  };
  for (const Case& c : {
           Case{v1::GATE_PKINIT, v1::GATE_PKINIT, v1::GATE_PKINIT},
           Case{v1::GATE_NONE, v1::GATE_NONE, v1::GATE_NONE},
           Case{v1::GATE_PKINIT, v1::GATE_NONE, v1::GATE_PKINIT},
           Case{v1::GATE_PKINIT, v1::GATE_TIMESTAMP_OR_PKINIT, v1::GATE_PKINIT},
           Case{v1::GATE_PKINIT, std::nullopt, v1::GATE_PKINIT},
           Case{v1::GATE_TIMESTAMP, v1::GATE_KDC_TRUSTED, v1::GATE_TIMESTAMP},
           Case{v1::GATE_TIMESTAMP_OR_PKINIT, v1::GATE_NONE, v1::GATE_TIMESTAMP},
           Case{v1::GATE_KDC_TRUSTED, std::nullopt, v1::GATE_TIMESTAMP},
           Case{v1::GATE_NONE, v1::GATE_PKINIT, v1::GATE_PKINIT},
       }) {
    for (int lying = 0; lying < 3; ++lying) {
      for (int party = 0; party < 3; ++party) {
        say(party, party == lying ? c.one : std::optional(c.all));
      }
      EXPECT_EQ(gate_of_next(), c.want) << "server " << lying << " says "
                                        << (c.one ? v1::Gate_Name(*c.one) : "nothing")
                                        << ", the others " << v1::Gate_Name(c.all);
    }
  }
}

}  // namespace
}  // namespace mpckdc::test
