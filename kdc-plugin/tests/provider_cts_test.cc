// SPDX-License-Identifier: Apache-2.0
// Clients and services whose keys are of 17 to 20.
#include <sodium.h>

#include <atomic>
#include <mutex>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "kdc-plugin/tests/provider_fixture.h"

namespace mpckdc::test {
namespace {

// A client and a service whose keys are of 17 to 20; krbtgt's is of GCM.
class CtsProviderTest : public ProviderTest, public ::testing::WithParamInterface<int32_t> {
 protected:
  CtsProviderTest()
      : enctype_(GetParam()),
        bob_base_(FindEnctype(enctype_)->key_bytes, 'b'),
        web_base_(FindEnctype(enctype_)->key_bytes, 'w'),
        bob_handle_(realm_.AddKey(enctype_, "bob@EXAMPLE.COM", bob_base_, v1::KEY_CLASS_USER)),
        web_handle_(
            realm_.AddKey(enctype_, "HTTP/web@EXAMPLE.COM", web_base_, v1::KEY_CLASS_SERVICE)) {
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

// A server was restarted between the two jobs, or the triple is gone: the pre-authentication gives
// the rest of its grant again.
TEST_P(CtsProviderTest, AReplyWhoseGrantWasLostIsSealedUnderItsNextOne) {
  const std::string preauth = Preauth(), text(279, 'r');
  std::atomic<uint64_t> lost{0};
  for (auto& party : realm_.parties) {
    party->behaviour.received = [&](const v1::Job& job) {
      uint64_t none = 0;
      if (job.operation() == v1::OPERATION_SEAL_GRANTED) {
        lost.compare_exchange_strong(none, job.id());
      }
    };
    party->behaviour.job = [&](v1::JobAnswer& a) {
      if (a.id() == lost) a.set_verdict(v1::VERDICT_REFUSED);
    };
  }
  HintAs(bob_, tgs_, preauth, 100, text.size(), "the request", true);
  EXPECT_EQ(Open(bob_, 1, preauth), "a timestamp");
  Checksum(bob_, 56, "the request");
  const std::string ticket = Seal(tgs_, 2, "ticket part");
  EXPECT_EQ(Open(Own(bob_base_), 3, Seal(bob_, 3, text)), text);
  realm_.UnhookAll();
  EXPECT_NE(lost, 0u);
  EXPECT_EQ(Jobs(), 4) << "the login, the reply, the pre-authentication again, the reply";
}

// Once: what is refused by the rules is refused again.
TEST_P(CtsProviderTest, AReplyThatIsRefusedIsTriedTwice) {
  const std::string preauth = Preauth();
  HintAs(bob_, tgs_, preauth, 100, 100, "the request", true);
  Open(bob_, 1, preauth);
  Checksum(bob_, 56, "the request");
  std::set<uint64_t> seals;
  std::mutex mutex;
  for (auto& party : realm_.parties) {
    party->behaviour.received = [&](const v1::Job& job) {
      const std::lock_guard<std::mutex> lock(mutex);
      if (job.operation() == v1::OPERATION_SEAL_GRANTED) seals.insert(job.id());
    };
    party->behaviour.job = [&](v1::JobAnswer& a) {
      const std::lock_guard<std::mutex> lock(mutex);
      if (seals.contains(a.id())) a.set_verdict(v1::VERDICT_REFUSED);
    };
  }
  std::string reply;
  EXPECT_EQ(Encrypt(bob_, 3, std::string(100, 'r'), &reply), KRB5KDC_ERR_POLICY);
  realm_.UnhookAll();
  EXPECT_EQ(seals.size(), 2u);
}

// A checksum of so much would make the whole login malformed.
TEST_P(CtsProviderTest, ARequestTooLongForAChecksumIsJudgedAllTheSame) {
  const std::string preauth = Preauth(), request(MPC_MAX_CTS_REQUEST_BYTES + 1, 'r');
  HintAs(bob_, tgs_, preauth, 100, 100, request);
  EXPECT_EQ(Open(bob_, 1, preauth), "a timestamp");
  const std::string ticket = Seal(tgs_, 2, "ticket");
  std::string sum;
  EXPECT_EQ(MakeChecksum(bob_, 56, request, &sum), KRB5KRB_ERR_FIELD_TOOLONG);
  EXPECT_EQ(Jobs(), 1);
}

TEST_P(CtsProviderTest, WhatIsTooLongIsNotSent) {
  const std::string ticket(MPC_MAX_CTS_TICKET_BYTES + 1, '\0'), reply(MPC_MAX_CTS_BYTES + 1, 'r');
  std::string out;
  HintAs(bob_, tgs_, reply, 100, 100, "the request");
  EXPECT_EQ(Decrypt(bob_, 1, reply, &out), KRB5_BAD_MSIZE);
  EndRequest();
  EXPECT_EQ(Decrypt(bob_, 2, ticket, &out), KRB5KRB_ERR_FIELD_TOOLONG);
  EXPECT_EQ(Encrypt(bob_, 2, ticket, &out), KRB5KRB_ERR_FIELD_TOOLONG);
  EXPECT_EQ(Encrypt(bob_, 3, reply, &out), KRB5KRB_ERR_FIELD_TOOLONG);
  EXPECT_EQ(Jobs(), 0);
}

TEST_P(CtsProviderTest, WithoutHintsEverythingWorks) {
  Open(bob_, 1, Preauth());
  const std::string ticket = Seal(tgs_, 2, "ticket");
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
  const std::string ticket = Seal(tgs_, 2, "ticket");
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
  const std::string ticket = Seal(tgs_, 2, "ticket");
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

}  // namespace
}  // namespace mpckdc::test
