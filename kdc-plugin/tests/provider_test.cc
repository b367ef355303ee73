// SPDX-License-Identifier: Apache-2.0
// Jobs and tickets under keys of GCM, hinted and not; errors, checksums.
#include <atomic>
#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kdc-plugin/tests/provider_fixture.h"

namespace {
thread_local bool no_memory = false;
}

// The linker puts it in the place of calloc().
extern "C" void* __real_calloc(size_t count, size_t size);
extern "C" void* __wrap_calloc(size_t count, size_t size) {
  return no_memory ? nullptr : __real_calloc(count, size);
}

namespace mpckdc::test {
namespace {

// While it lives, this thread's requests get no memory.
struct NoMemory {
  NoMemory() { no_memory = true; }
  ~NoMemory() { no_memory = false; }
};

using ::testing::HasSubstr;

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

// Its functions stand at other places of the table, or are not there.
TEST_F(ProviderTest, AHostOfAnotherVersionIsRefused) {
  krb5_remote_key_host other = kHost;
  other.version++;
  const mpc_options options = realm_.Options(3000);
  provider_unregister();
  krb5_c_set_remote_key_host(&other);
  EXPECT_EQ(provider_register(context_, &options, CONTEXTS_OF_DATABASES), KRB5_PLUGIN_VER_NOTSUPP);
  EXPECT_FALSE(krb5_c_have_remote_keys());
  krb5_c_set_remote_key_host(&kHost);
  EXPECT_EQ(provider_register(context_, &options, CONTEXTS_OF_DATABASES), 0);
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

// As krb5kdc does when a mechanism replaces the reply key after the first hint.
TEST_F(ProviderTest, AnotherHintMayFinishTheTicketAtOnce) {
  const std::string preauth = Preauth();
  HintAs(preauth, 100, 100, "", /*finish_with_reply=*/true);
  EXPECT_EQ(Open(user_, 1, preauth), "a timestamp");
  HintAs("", 100, 0);
  const std::string ticket = Seal(tgs_, 2, "the TGT");
  EXPECT_EQ(Open(Local(tgs_base_), 2, ticket), "the TGT");
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
  const std::string ticket = Seal(tgs_, 2, "ticket");
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
  const std::string ticket = Seal(tgs_, 2, "ticket");
}

TEST_F(ProviderTest, LoginWithoutPreauthIsOneJobToo) {
  realm_.oracle->SetGate(user_handle_, v1::GATE_NONE);
  HintAs("", 100, 100, "the request");
  EXPECT_EQ(Jobs(), 0) << "nothing is sent before it is needed";
  const std::string ticket = Seal(tgs_, 2, "ticket");
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
  ticket = Seal(tgs_, 2, "ticket");
  EXPECT_EQ(Jobs(), 1);
}

TEST_F(ProviderTest, ARepetitionAfterAnOutageIsNoAttack) {
  const std::string preauth = Preauth();
  std::string plain;
  realm_.Answer(v1::VERDICT_UNAVAILABLE);
  EXPECT_EQ(Decrypt(user_, 1, preauth, &plain), KRB5KDC_ERR_SVC_UNAVAILABLE);
  realm_.Answer(nullptr);
  EXPECT_EQ(Open(user_, 1, preauth), "a timestamp");
}

// This process is a new one to whom the client repeats what an old one has asked the servers. They
// judge it again, once.
TEST_F(ProviderTest, ARepetitionAfterARestartIsNoAttack) {
  const std::string preauth = Preauth("a timestamp");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Open(user_, 1, preauth), "a timestamp");
    EndRequest();
  }
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

TEST_F(ProviderTest, GateIsTheServersDecision) {
  HintAs("", 100, 100);
  std::string ticket;
  const krb5_error_code code = Encrypt(tgs_, 2, "ticket", &ticket);
  EXPECT_EQ(code, KRB5KDC_ERR_PREAUTH_REQUIRED) << "krb5kdc asks the client for one";
  EXPECT_THAT(Message(code), HasSubstr("pre-authentication required"));
}

// What the KDC verified itself, or what was verified and is refused all the same, is no question of
// pre-authentication.
TEST_F(ProviderTest, ARefusalAfterAPreauthIsPolicy) {
  const std::string preauth = Preauth();
  realm_.Answer(v1::VERDICT_REFUSED);
  HintAs(preauth, 100, 100);
  std::string out;
  EXPECT_EQ(Decrypt(user_, 1, preauth, &out), KRB5KDC_ERR_POLICY);
}

TEST_F(ProviderTest, ARequestTooLongForAChecksumIsJudgedAllTheSame) {
  const std::string request(MPC_MAX_GCM_BYTES + 1, 'r'), preauth = Preauth();
  HintAs(preauth, 100, 100, request);
  EXPECT_EQ(Open(user_, 1, preauth), "a timestamp");
  std::string sum;
  const krb5_error_code code = MakeChecksum(user_, 56, request, &sum);
  EXPECT_EQ(code, KRB5KRB_ERR_FIELD_TOOLONG);
  EXPECT_THAT(Message(code),
              HasSubstr("of 65537 bytes; the MPC servers take at most 65536"));
  EXPECT_EQ(Jobs(), 1);
  // Of the longest there is one, in the same job.
  EndRequest();
  const std::string longest(MPC_MAX_GCM_BYTES, 'r'), another = Preauth("another");
  HintAs(another, 100, 100, longest);
  Open(user_, 1, another);
  EXPECT_TRUE(Valid(Local(user_base_), 56, longest, Checksum(user_, 56, longest)));
  EXPECT_EQ(Jobs(), 2);
}

// A stranger's "ticket" may be as long as a request over TCP. Asked about it the servers would call the whole
// job malformed, which the log takes for another version of theirs, and the client for an outage.
TEST_F(ProviderTest, WhatIsTooLongIsNotSent) {
  const std::string ticket(MPC_MAX_GCM_BYTES + 1, '\0');
  HintTgs(ticket, tgs_);
  std::string out;
  krb5_error_code code = Decrypt(tgs_, 2, ticket, &out);
  EXPECT_EQ(code, KRB5KRB_ERR_FIELD_TOOLONG);
  EXPECT_THAT(Message(code), HasSubstr("opening a ticket: of 65537 bytes"));
  EndRequest();
  HintAs(ticket, 100, 100, "the request");
  EXPECT_EQ(Decrypt(user_, 1, ticket, &out), KRB5_BAD_MSIZE) << "a wrong password, and no outage";
  EndRequest();
  code = Encrypt(tgs_, 2, ticket, &out);
  EXPECT_EQ(code, KRB5KRB_ERR_FIELD_TOOLONG);
  EXPECT_THAT(Message(code), HasSubstr("sealing a ticket"));
  EXPECT_EQ(Jobs(), 0);
}

TEST_F(ProviderTest, APreauthIsJudgedBesideATicketThatIsTooLong) {
  const std::string preauth = Preauth();
  HintAs(preauth, MPC_MAX_GCM_BYTES + 1, 100);
  EXPECT_EQ(Open(user_, 1, preauth), "a timestamp");
  EXPECT_EQ(Jobs(), 1);
}

// Without memory a request is not known, and so neither is whose ticket is asked for. That is an
// outage, and nothing that a client did wrong.
TEST_F(ProviderTest, WithoutMemoryKeysAreOutOfReach) {
  const std::string preauth = Preauth();
  std::string out;
  {
    const NoMemory here;
    EXPECT_EQ(Decrypt(user_, 1, preauth, &out), KRB5KDC_ERR_SVC_UNAVAILABLE);
  }
  EndRequest();
  HintAs(preauth, 100, 100);
  Open(user_, 1, preauth);
  EndRequest();  // as if there had been no memory for it
  {
    const NoMemory here;
    EXPECT_EQ(Encrypt(tgs_, 2, "ticket", &out), KRB5KDC_ERR_SVC_UNAVAILABLE);
    EXPECT_EQ(Encrypt(user_, 3, "reply", &out), KRB5KDC_ERR_SVC_UNAVAILABLE);
    EXPECT_EQ(MakeChecksum(user_, 56, "request", &out), KRB5KDC_ERR_SVC_UNAVAILABLE);
  }
  EXPECT_THAT(Logged(), HasSubstr("out of memory"));
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

// The triple that has the job went away before it gave the tags.
class LostTagTest : public ProviderTest {
 protected:
  // The next tags that are asked for are not given.
  void LoseTags(int count) {
    left_ = count;
    realm_.parties[0]->behaviour.tag = [this](v1::TagAnswer& a) {
      if (left_-- > 0) a.set_verdict(v1::VERDICT_UNAVAILABLE);
    };
  }
  std::atomic<int> left_{0};
};

TEST_F(LostTagTest, ATicketIsSealedAgain) {
  const std::string preauth = Preauth();
  HintAs(preauth, 100, 200);
  EXPECT_EQ(Open(user_, 1, preauth), "a timestamp");
  LoseTags(1);
  EXPECT_EQ(Open(Local(tgs_base_), 2, Seal(tgs_, 2, "ticket part")), "ticket part");
  EXPECT_EQ(Open(Local(user_base_), 3, Seal(user_, 3, "the reply")), "the reply");
  EXPECT_EQ(Jobs(), 2);
}

TEST_F(LostTagTest, ATicketAndItsReplyAreSealedAgain) {
  const std::string preauth = Preauth(), text(90, 't');
  in_slice = true;
  HintAs(preauth, 100, 200, "", true);
  Open(user_, 1, preauth);
  LoseTags(2);
  const std::string ticket = Seal(tgs_, 2, text), unfinished = ticket;
  const std::string reply = Seal(user_, 3, "the reply");
  EXPECT_LE(left_, 0) << "none was lost: nothing was tested";
  EXPECT_NE(ticket.substr(0, 12), unfinished.substr(0, 12)) << "another nonce, another keystream";
  EXPECT_EQ(Open(Local(tgs_base_), 2, ticket), text);
  EXPECT_EQ(Open(Local(user_base_), 3, reply), "the reply");
  EXPECT_EQ(Jobs(), 3);
}

TEST_F(LostTagTest, AServiceTicketOfATgsReqIsSealedAgain) {
  const std::string tgt = AlicesTgt();
  const int before = Jobs();
  HintTgs(tgt, tgs_);
  EXPECT_EQ(Open(tgs_, 2, tgt), "the TGT");
  LoseTags(1);
  EXPECT_EQ(Open(Local(tgs_base_), 2, Seal(tgs_, 2, "another")), "another");
  EXPECT_EQ(Jobs(), before + 2);
}

// The job's grant is lost as well: the pre-authentication is opened once more for it.
TEST_F(LostTagTest, TheGrantIsRegained) {
  const std::string preauth = Preauth();
  HintAs(preauth, 100, 200);
  Open(user_, 1, preauth);
  LoseTags(1);
  std::atomic<int> refuse{3};
  realm_.Answer([&](v1::JobAnswer& a) {
    if (refuse-- > 0) a.set_verdict(v1::VERDICT_REFUSED);
  });
  EXPECT_EQ(Open(Local(tgs_base_), 2, Seal(tgs_, 2, "ticket part")), "ticket part");
  EXPECT_EQ(Open(Local(user_base_), 3, Seal(user_, 3, "the reply")), "the reply");
  realm_.Answer(nullptr);
}

// What is lost with an outage is not refused: who is told of a policy gives up.
TEST_F(LostTagTest, ALossThatTheGrantDoesNotCoverIsAnOutage) {
  const std::string preauth = Preauth();
  HintAs(preauth, 100, 200);
  Open(user_, 1, preauth);
  LoseTags(1);
  realm_.Answer(v1::VERDICT_REFUSED);  // "the grant is used up", and REPLAY in its place
  std::string out;
  EXPECT_EQ(Encrypt(tgs_, 2, "ticket part", &out), KRB5KDC_ERR_SVC_UNAVAILABLE);
  realm_.Answer(nullptr);
}

// A server was restarted, which has forgotten the grant, and another one is down by now.
TEST_F(LostTagTest, AGrantThatCannotBeRegainedIsAnOutage) {
  const std::string preauth = Preauth();
  Open(user_, 1, preauth);
  std::atomic<int> refuse{3};
  realm_.Answer([&](v1::JobAnswer& a) {
    a.set_verdict(refuse-- > 0 ? v1::VERDICT_REFUSED : v1::VERDICT_DEADLINE);
  });
  std::string out;
  EXPECT_EQ(Encrypt(tgs_, 2, "ticket part", &out), KRB5KDC_ERR_SVC_UNAVAILABLE);
  realm_.Answer(nullptr);
}

// Nothing was lost: the servers' rules are told as such.
TEST_F(LostTagTest, ARefusalStaysOne) {
  const std::string preauth = Preauth();
  Open(user_, 1, preauth);
  realm_.Answer([&](v1::JobAnswer& a) {
    if (a.seals_size() > 0) a.set_verdict(v1::VERDICT_REFUSED);
  });
  std::string out;
  EXPECT_EQ(Encrypt(tgs_, 2, "ticket part", &out), KRB5KDC_ERR_POLICY);
  realm_.Answer(nullptr);
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

TEST_F(ProviderTest, KeysThatNobodyHoldsAreNamed) {
  const krb5_keyblock rc4 = Reference(user_handle_, ENCTYPE_ARCFOUR_HMAC);
  std::string plain;
  const krb5_error_code code = Decrypt(rc4, 1, std::string(60, 'm'), &plain);
  EXPECT_EQ(code, KRB5_BAD_ENCTYPE);
  EXPECT_THAT(Message(code), HasSubstr("enctype 23"));
  EXPECT_EQ(Jobs(), 0);
}

}  // namespace
}  // namespace mpckdc::test
