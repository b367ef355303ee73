// SPDX-License-Identifier: Apache-2.0
// Jobs of keys of 17 to 20.
#include <bit>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kdc-plugin/tests/client_fixture.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/testing/cts.h"

namespace mpckdc::test {
namespace {

using ::testing::HasSubstr;

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
    return Run(
        {MPC_LOGIN, U8(bob_), /*grant=*/0, &open, &seal, 1, &mac, nullptr, 0, 0, {}, {}, 0});
  }
  void SubmitReply(uint64_t grant, const std::string& text, Inbox* inbox) {
    const mpc_seal seal = {U8(bob_), 3, static_cast<uint32_t>(text.size()), GetParam(),
                           Bytes(text)};
    const mpc_job job = {MPC_SEAL_GRANTED, U8(bob_), grant, nullptr, &seal, 1,
                         nullptr,          nullptr,  0,     0, {}, {}, 0};
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

int BitsSet(const std::string& bytes) {
  int bits = 0;
  for (char c : bytes) bits += std::popcount(static_cast<uint8_t>(c));
  return bits;
}

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
  realm_.UnhookAll();
  ASSERT_EQ(jobs.size(), 3u);
  EXPECT_EQ(jobs[0].seals(0).max_plaintext(), 9u);
  for (v1::Job& job : jobs) ClearComponents(job);
  EXPECT_EQ(jobs[0].SerializeAsString(), jobs[1].SerializeAsString());
  EXPECT_EQ(jobs[0].SerializeAsString(), jobs[2].SerializeAsString());
}

INSTANTIATE_TEST_SUITE_P(Enctypes, CtsClientTest,
                         ::testing::Values(kEnctypeAes128Sha1, kEnctypeAes256Sha1,
                                           kEnctypeAes128Sha256, kEnctypeAes256Sha384));

}  // namespace
}  // namespace mpckdc::test
