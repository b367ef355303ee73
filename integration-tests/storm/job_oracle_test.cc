// SPDX-License-Identifier: Apache-2.0
//
// The oracle accepts what right servers yield and sees every byte that is not. Right answers are
// made by gcm_plain, which shares nothing with libk5crypto.
#include "integration-tests/storm/job_oracle.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "integration-tests/storm/kerberos.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/job/ticket_header.h"
#include "mpc-server/key/key_info.h"
#include "mpc-server/key/nonce.h"
#include "mpc-server/testing/gcm_plain.h"

namespace mpckdc::storm {
namespace {

constexpr int64_t kNow = 1790000000;
constexpr uint64_t kJob = 77;
constexpr int32_t kEnctype = -24001;

struct Answer {
  JobLogin login;
  mpc_result result = {};
  std::vector<uint8_t> opened;  // the keystream, or of enctypes 17 to 20 the plaintext
};

std::vector<uint8_t> Xor(Bytes a, Bytes b) {
  std::vector<uint8_t> out(a.begin(), a.end());
  for (size_t i = 0; i < out.size(); ++i) out[i] ^= b[i];
  return out;
}

GcmNonce NonceAt(int64_t seconds) { return JoinNonce({static_cast<uint32_t>(seconds), 1, 9}); }

class JobOracleTest : public testing::Test {
 protected:
  JobOracleTest() { UseKeyOf(kEnctype); }

  void UseKeyOf(int32_t enctype) {
    base_.assign(EnctypeKeyBytes(enctype), 0x42);
    user_.principal = "alice";
    user_.key = *Key::FromBytes(enctype, base_);
  }
  bool IsGcm() const { return user_.key.enctype() == kEnctype; }

  // As right servers answer.
  Answer RightAnswer() {
    Answer a;
    JobLogin& login = a.login;
    login.user = &user_;
    login.principal = "alice@EXAMPLE.COM";
    const Encoded stamp = EncodeTimestamp(kNow * 1'000'000 + 5);
    login.timestamp.assign(stamp->data, stamp->data + stamp->length);
    login.as_request = {1, 2, 3};
    login.ticket_plain.assign(166, 't');
    login.reply_plain.assign(272, 'r');
    const std::string header = EncodeTicketHeader(NewTicketHeader(
        PrincipalIdOf(login.principal), kJob, absl::FromUnixSeconds(kNow), absl::Hours(1)));
    const std::vector<uint8_t> krbtgt(16, 0x99);
    login.ticket =
        PlainSeal(PlainUsageKey(krbtgt, 2), NonceAt(kNow), AsBytes(header), login.ticket_plain);
    a.result.verdict = MPC_OK;
    a.result.id = kJob;
    IsGcm() ? SealWithGcm(a) : SealWithLibrary(a);
    return a;
  }

  std::string Compare(Answer& a, int64_t now = kNow) {
    (IsGcm() ? a.result.open_keystream : a.result.open_plaintext) = {a.opened.data(),
                                                                     a.opened.size()};
    return CompareWithOracle(a.login, a.result, now);
  }

  std::vector<uint8_t> base_;
  User user_;

 private:
  void SealWithGcm(Answer& a) {
    JobLogin& login = a.login;
    login.preauth = PlainSeal(PlainUsageKey(base_, 1), NonceAt(1), {}, login.timestamp);
    login.reply = PlainSeal(PlainUsageKey(base_, 3), NonceAt(kNow), {}, login.reply_plain);
    a.opened = Xor(login.timestamp, Bytes(login.preauth).subspan(13 + 16));
    const std::vector<uint8_t> mac =
        PlainGmac(PlainUsageKey(base_, 56), NonceAt(kNow), login.as_request);
    std::copy(mac.begin(), mac.end(), a.result.mac);
    a.result.mac_size = mac.size();
  }

  // Enctypes 17 to 20: what libk5crypto makes under the user's key is right.
  void SealWithLibrary(Answer& a) {
    uint8_t buffer[512];
    const Bytes reply =
        user_.key.Encrypt(kUsageAsReply, a.login.reply_plain, absl::MakeSpan(buffer));
    a.login.reply.assign(reply.begin(), reply.end());
    a.opened = a.login.timestamp;
    const Checksum checksum = user_.key.MakeChecksum(kUsageAsRequest, a.login.as_request);
    EXPECT_EQ(checksum->checksum_type, ChecksumTypeOf(user_.key.enctype()));
    std::copy_n(checksum->contents, checksum->length, a.result.mac);
    a.result.mac_size = checksum->length;
  }
};

TEST_F(JobOracleTest, RightIsRightAndEveryAlterationIsSeen) {
  const std::pair<const char*, void (*)(Answer&)> alterations[] = {
      {"pre-authentication", [](Answer& a) { a.opened[0] ^= 1; }},
      {"pre-authentication", [](Answer& a) { a.opened[3] ^= 1; }},
      {"pre-authentication", [](Answer& a) { a.opened.pop_back(); }},
      {"does not open the reply", [](Answer& a) { a.login.reply[13] ^= 1; }},     // zero block
      {"does not open the reply", [](Answer& a) { a.login.reply.back() ^= 1; }},  // tag
      {"does not open the reply", [](Answer& a) { a.login.reply_plain[5] ^= 1; }},
      {"checksum", [](Answer& a) { a.result.mac[0] ^= 1; }},
      {"checksum", [](Answer& a) { a.result.mac[a.result.mac_size - 8] ^= 1; }},
      {"checksum", [](Answer& a) { a.result.mac_size = a.result.mac_size == 28 ? 27 : 28; }},
      {"checksum", [](Answer& a) { a.login.as_request[0] ^= 1; }},
      {"somebody else", [](Answer& a) { a.login.principal = "bob@EXAMPLE.COM"; }},
      {"another job", [](Answer& a) { a.result.id = kJob + 1; }},
      {"without a header", [](Answer& a) { a.login.ticket[13] = 3; }},  // version
      {"no message", [](Answer& a) { a.login.ticket.resize(20); }},
  };
  for (const int32_t enctype : {kEnctype, 17, 18, 19, 20}) {
    UseKeyOf(enctype);
    Answer right = RightAnswer();
    EXPECT_EQ(Compare(right), "") << enctype;
    EXPECT_NE(Compare(right, kNow + 3600), "") << enctype;
    for (const auto& [text, alter] : alterations) {
      Answer a = RightAnswer();
      alter(a);
      const std::string wrong = Compare(a);
      EXPECT_NE(wrong.find(text), std::string::npos) << enctype << " " << text << ": " << wrong;
    }
  }
}

TEST_F(JobOracleTest, OpenedTickets) {
  Answer a = RightAnswer();
  std::vector<uint8_t> keystream =
      Xor(a.login.ticket_plain, Bytes(a.login.ticket).subspan(13 + kTicketHeaderBytes + 16));
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
  std::ranges::copy(NonceAt(kNow), seal.nonce);
  seal.header = {header.data(), header.size()};
  seal.keystream = {keystream.data(), keystream.size()};
  const std::vector<uint8_t> ciphertext = SealCiphertext(seal, plain);
  EXPECT_EQ(SealedMessage(seal, ciphertext, Bytes(message).last(16)), message);
}

}  // namespace
}  // namespace mpckdc::storm
