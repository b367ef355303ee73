// SPDX-License-Identifier: Apache-2.0
// A server that alters its answers: nothing is taken, and it is named.
#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kdc-plugin/tests/client_fixture.h"

namespace mpckdc::test {
namespace {

using ::testing::HasSubstr;

TEST_F(ClientTest, WhatAServerSaysIsOneLineOfTheLog) {
  StartClient();
  realm_.parties[1]->behaviour.job = [](v1::JobAnswer& a) {
    a.set_verdict(v1::VERDICT_UNAVAILABLE);
    a.set_detail("bye\nNov 23 03:00:00 kdc krb5kdc[1](info): P2 altered its answer\033[2K");
  };
  const Answer a = Login();
  EXPECT_EQ(a.verdict, MPC_UNAVAILABLE);
  EXPECT_THAT(a.detail, HasSubstr("UNAVAILABLE: bye\\x0aNov 23 03:00:00 kdc"));
  EXPECT_THAT(a.detail, HasSubstr("answer\\x1b[2K"));
}

TEST_F(ClientTest, WhatAServerSaysOfItselfIsOneLineOfTheLog) {
  const std::string evil =
      "0.2.0\nNov 23 03:00:00 kdc krb5kdc[1](info): P2 altered its answer\033[2K";
  realm_.parties[0]->behaviour.welcome = [&](v1::Welcome& w) { w.set_software(evil); };
  realm_.parties[1]->behaviour.welcome = [&](v1::Welcome& w) { w.set_realm(evil); };
  StartClient();
  Login();
  ExpectToLog("epoch 1, 0.2.0\\x0aNov 23");
  ExpectToLog("serves realm \"0.2.0\\x0aNov 23");
  EXPECT_THAT(Logged(), ::testing::Not(HasSubstr("\nNov 23")));
  EXPECT_THAT(Logged(), ::testing::Not(HasSubstr("\033[")));
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

}  // namespace
}  // namespace mpckdc::test
