// SPDX-License-Identifier: Apache-2.0
//
// The oracle accepts what right servers yield and sees every byte that is not. Right answers are
// made by gcm_plain, which shares nothing with libk5crypto.
#include "integration-tests/storm/job_oracle.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "integration-tests/storm/kerberos.h"
#include "mpc-server/job/tgt_header.h"
#include "mpc-server/key/key_info.h"
#include "mpc-server/testing/gcm_plain.h"

namespace mpckdc::storm {
namespace {

constexpr int64_t kNow = 1790000000;
constexpr uint64_t kJob = 77;
constexpr int32_t kEnctype = -24001;

// An answer and all that it points to.
struct Answer {
  JobLogin login;
  mpc_result result = {};
  std::vector<uint8_t> open_keystream;

  void Link() { result.open_keystream = {open_keystream.data(), open_keystream.size()}; }
};

std::vector<uint8_t> Xor(Bytes a, Bytes b) {
  std::vector<uint8_t> out(a.begin(), a.end());
  for (size_t i = 0; i < out.size(); ++i) out[i] ^= b[i];
  return out;
}

GcmNonce NonceAt(int64_t seconds) {
  GcmNonce nonce = {0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 9};
  for (int i = 0; i < 4; ++i) nonce[i] = static_cast<uint8_t>(seconds >> (24 - 8 * i));
  return nonce;
}

class JobOracleTest : public testing::Test {
 protected:
  JobOracleTest() {
    base_.assign(16, 0x42);
    user_.principal = "alice";
    user_.key = *Key::FromBytes(kEnctype, base_);
  }

  Answer RightAnswer() {
    Answer a;
    JobLogin& login = a.login;
    login.user = &user_;
    login.principal = "alice@EXAMPLE.COM";
    const Encoded stamp = EncodeTimestamp(kNow * 1'000'000 + 5);
    login.timestamp.assign(stamp->data, stamp->data + stamp->length);
    login.preauth = PlainSeal(PlainUsageKey(base_, 1), NonceAt(1), {}, login.timestamp);
    login.as_request = {1, 2, 3};
    login.ticket_plain.assign(166, 't');
    login.reply_plain.assign(272, 'r');
    login.reply = PlainSeal(PlainUsageKey(base_, 3), NonceAt(kNow), {}, login.reply_plain);
    const std::string header =
        EncodeTgtHeader(NewTgtHeader(PrincipalIdOf(login.principal), kJob,
                                     absl::FromUnixSeconds(kNow), absl::Hours(1)));
    const std::vector<uint8_t> krbtgt(16, 0x99);
    login.ticket = PlainSeal(PlainUsageKey(krbtgt, 2), NonceAt(kNow),
                             {reinterpret_cast<const uint8_t*>(header.data()), header.size()},
                             login.ticket_plain);
    a.open_keystream = Xor(login.timestamp, Bytes(login.preauth).subspan(13 + 16));
    const std::vector<uint8_t> mac =
        PlainGmac(PlainUsageKey(base_, 56), NonceAt(kNow), login.as_request);
    std::copy(mac.begin(), mac.end(), a.result.mac);
    a.result.mac_size = mac.size();
    a.result.verdict = MPC_OK;
    a.result.id = kJob;
    a.Link();
    return a;
  }

  std::vector<uint8_t> base_;
  User user_;
};

TEST_F(JobOracleTest, RightIsRight) {
  const Answer a = RightAnswer();
  EXPECT_EQ(CompareWithOracle(a.login, a.result, kNow), "");
}

TEST_F(JobOracleTest, EveryAlterationIsSeen) {
  const std::pair<const char*, std::function<void(Answer&)>> alterations[] = {
      {"pre-authentication", [](Answer& a) { a.open_keystream[0] ^= 1; }},
      {"pre-authentication", [](Answer& a) { a.open_keystream.pop_back(); a.Link(); }},
      {"does not open the reply", [](Answer& a) { a.login.reply[13] ^= 1; }},    // zero block
      {"does not open the reply", [](Answer& a) { a.login.reply.back() ^= 1; }},  // tag
      {"does not open the reply", [](Answer& a) { a.login.reply_plain[5] ^= 1; }},
      {"checksum", [](Answer& a) { a.result.mac[20] ^= 1; }},
      {"checksum", [](Answer& a) { a.login.as_request[0] ^= 1; }},
      {"somebody else", [](Answer& a) { a.login.principal = "bob@EXAMPLE.COM"; }},
      {"another job", [](Answer& a) { a.result.id = kJob + 1; }},
      {"without a TGT header", [](Answer& a) { a.login.ticket[13] = 2; }},  // version
      {"no message", [](Answer& a) { a.login.ticket.resize(20); }},
  };
  for (const auto& [text, alter] : alterations) {
    Answer a = RightAnswer();
    alter(a);
    EXPECT_NE(CompareWithOracle(a.login, a.result, kNow).find(text), std::string::npos)
        << text << ": " << CompareWithOracle(a.login, a.result, kNow);
  }
  const Answer a = RightAnswer();
  EXPECT_NE(CompareWithOracle(a.login, a.result, kNow + 3600), "");
}

// Enctypes 17 to 20: what libk5crypto makes under the user's key is right, and nothing else.
TEST_F(JobOracleTest, TheOtherEnctypes) {
  for (const int32_t enctype : {17, 18, 19, 20}) {
    const std::vector<uint8_t> base(EnctypeKeyBytes(enctype), 0x42);
    User user;
    user.principal = "alice";
    user.key = *Key::FromBytes(enctype, base);
    const auto right = [&] {
      Answer a = RightAnswer();
      a.login.user = &user;
      uint8_t buffer[512];
      const Bytes reply =
          user.key.Encrypt(kUsageAsReply, a.login.reply_plain, absl::MakeSpan(buffer));
      a.login.reply.assign(reply.begin(), reply.end());
      a.open_keystream = a.login.timestamp;  // the plaintext
      a.result.open_keystream = {};
      int32_t type = 0;
      Bytes checksum;
      EXPECT_TRUE(user.key.Checksum(kUsageAsRequest, a.login.as_request, absl::MakeSpan(buffer),
                                    type, checksum));
      EXPECT_EQ(type, ChecksumTypeOf(enctype));
      std::copy(checksum.begin(), checksum.end(), a.result.mac);
      a.result.mac_size = checksum.size();
      return a;
    };
    const auto compare = [&](Answer& a) {
      a.result.open_plaintext = {a.open_keystream.data(), a.open_keystream.size()};
      return CompareWithOracle(a.login, a.result, kNow);
    };
    Answer a = right();
    EXPECT_EQ(compare(a), "") << enctype;
    const std::pair<const char*, void (*)(Answer&)> alterations[] = {
        {"pre-authentication", [](Answer& a) { a.open_keystream[3] ^= 1; }},
        {"pre-authentication", [](Answer& a) { a.open_keystream.pop_back(); }},
        {"does not open the reply", [](Answer& a) { a.login.reply.back() ^= 1; }},
        {"checksum", [](Answer& a) { a.result.mac[0] ^= 1; }},
        {"checksum", [](Answer& a) { a.result.mac_size = 28; }},
    };
    for (const auto& [text, alter] : alterations) {
      a = right();
      alter(a);
      EXPECT_NE(compare(a).find(text), std::string::npos) << text;
    }
  }
}

TEST_F(JobOracleTest, OpenedTickets) {
  Answer a = RightAnswer();
  std::vector<uint8_t> keystream =
      Xor(a.login.ticket_plain, Bytes(a.login.ticket).subspan(13 + kTgtHeaderBytes + 16));
  mpc_result opened = {};
  opened.open_keystream = {keystream.data(), keystream.size()};
  EXPECT_EQ(CompareOpenedTicket(a.login, opened), "");
  keystream[100] ^= 1;
  EXPECT_NE(CompareOpenedTicket(a.login, opened), "");
  keystream[100] ^= 1;
  opened.verdict = MPC_BAD_TAG;
  EXPECT_NE(CompareOpenedTicket(a.login, opened), "");
}

// The way from keystream and tag to the message is the enctype's.
TEST_F(JobOracleTest, MessagesArePutTogether) {
  const SecretBytes usage_key = PlainUsageKey(base_, 3);
  const std::vector<uint8_t> plain(40, 'p'), header = {7, 7};
  const std::vector<uint8_t> message = PlainSeal(usage_key, NonceAt(kNow), header, plain);
  std::vector<uint8_t> zero_and_plain(16 + plain.size());
  std::copy(plain.begin(), plain.end(), zero_and_plain.begin() + 16);
  const std::vector<uint8_t> keystream = Xor(zero_and_plain, Bytes(message).subspan(15));
  mpc_sealed seal = {};
  const GcmNonce nonce = NonceAt(kNow);
  std::copy(nonce.begin(), nonce.end(), seal.nonce);
  seal.header = {header.data(), header.size()};
  seal.keystream = {keystream.data(), keystream.size()};
  const std::vector<uint8_t> ciphertext = SealCiphertext(seal, plain);
  EXPECT_EQ(SealedMessage(seal, ciphertext, Bytes(message).last(16)), message);
}

}  // namespace
}  // namespace mpckdc::storm
