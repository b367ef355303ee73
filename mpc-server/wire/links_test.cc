// SPDX-License-Identifier: Apache-2.0
// Every kind of records through the same tests, and an attacker on the wire. Plain links pass the
// attacks that change nothing but content: that shows that the attacks happen.
#include <openssl/evp.h>
#include <sodium.h>

#include <atomic>
#include <barrier>
#include <cstdlib>
#include <new>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/testing/certificates.h"
#include "mpc-server/testing/channel_checks.h"
#include "mpc-server/testing/plain_link.h"
#include "mpc-server/testing/relay.h"
#include "mpc-server/wire/ring.h"
#ifdef MPCKDC_AEAD_LINK
#include "mpc-server/wire/record_cipher.h"
#endif

// This program's allocations by operator new; secrets have an arena of their own.
static std::atomic<size_t> g_allocations = 0;

void* operator new(size_t size) {
  ++g_allocations;
  void* const p = std::malloc(size);
  if (p == nullptr) std::abort();
  return p;
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }

namespace mpckdc {
namespace {

using testing::HasSubstr;

enum class Records { kTls, kAead, kPlain };
std::string RecordsName(const testing::TestParamInfo<Records>& info) {
  return info.param == Records::kTls ? "Tls" : info.param == Records::kAead ? "Aead" : "Plain";
}

std::vector<Records> Built() {
#ifdef MPCKDC_AEAD_LINK
  if (RecordCipher::Available()) return {Records::kTls, Records::kAead, Records::kPlain};
#endif
  return {Records::kTls, Records::kPlain};
}

using Channels = std::array<std::unique_ptr<PeerChannel>, 3>;

Channels ConnectPlainly(const std::array<TlsPeerOptions, 3>& options) {
  Channels channels;
  OnThreeThreads([&](int p) {
    auto connected = ConnectPlain(options[p], In(10));
    ASSERT_TRUE(connected.ok()) << connected.status();
    channels[p] = std::move(connected->front());
  });
  return channels;
}

class LinksTest : public testing::TestWithParam<Records> {
 protected:
  LinksTest() : options_(TestPeerOptions(ca_)) {}
  Channels Connect() {
    if (GetParam() == Records::kPlain) return ConnectPlainly(options_);
    for (TlsPeerOptions& o : options_) {
      o.records = GetParam() == Records::kAead ? PeerRecords::kAead : PeerRecords::kTls;
    }
    return ConnectThree(options_);
  }

  TestCa ca_;
  std::array<TlsPeerOptions, 3> options_;
};

INSTANTIATE_TEST_SUITE_P(Records, LinksTest, testing::ValuesIn(Built()), RecordsName);

TEST_P(LinksTest, BehavesAsAChannel) {
  const Channels c = Connect();
  CheckChannels({c[0].get(), c[1].get(), c[2].get()});
}

TEST_P(LinksTest, RoundsInFlight) {
  for (int depth : {1, 4, 12}) {
    options_ = TestPeerOptions(ca_);
    const Channels c = Connect();
    CheckRoundsInFlight({c[0].get(), c[1].get(), c[2].get()}, depth);
  }
}

TEST_P(LinksTest, TheKernelHasMeasuredTheLines) {
  const Channels c = Connect();
  CheckRoundsInFlight({c[0].get(), c[1].get(), c[2].get()}, 12);
  for (const auto& channel : c) {
    for (const Neighbour n : {Neighbour::kPrev, Neighbour::kNext}) {
      const LineState line = channel->Line(n);
      EXPECT_GT(line.distance, absl::ZeroDuration());
      EXPECT_LT(line.distance, absl::Milliseconds(100)) << "on this machine";
    }
  }
}

TEST_P(LinksTest, FailuresInFlight) {
  const Channels c = Connect();
  CheckFailuresInFlight({c[0].get(), c[1].get(), c[2].get()});
}

TEST_P(LinksTest, SteadyStateDoesNotAllocate) {
  const Channels c = Connect();
  size_t before = 0;
  std::barrier all(kParties);
  OnThreeThreads([&](int p) {
    std::vector<uint8_t> out(300'000, 1), in(out.size());
    for (uint16_t r = 0; r < 400; ++r) {
      if (r == 200) {
        all.arrive_and_wait();
        if (p == 0) before = g_allocations;
        all.arrive_and_wait();
      }
      const RoundId first = {1, 1, static_cast<uint16_t>(2 * r), "x"};
      const RoundId second = {1, 1, static_cast<uint16_t>(2 * r + 1), "x"};
      const size_t n = r % 3 == 0 ? 100 : out.size();
      ASSERT_TRUE(c[p]->Post(first, {out.data(), n}, {}).ok());
      ASSERT_TRUE(c[p]->Post(second, {out.data(), 500}, {}).ok());
      ASSERT_TRUE(c[p]->Collect(first, {in.data(), n}, {}, In(10)).ok());
      ASSERT_TRUE(c[p]->Collect(second, {in.data(), 500}, {}, In(10)).ok());
    }
    all.arrive_and_wait();
    if (p == 0) {
      EXPECT_EQ(g_allocations - before, 0u);
    }
    all.arrive_and_wait();
  });
}

// ---- The attacker on the wire from P0 to P1 ----

struct Outcome {
  int good = 0;          // frames that P1 took
  bool altered = false;  // one of them was not as sent
  std::string error;     // the first one
};

class AttackTest : public LinksTest {
 protected:
  // P0 sends four control frames that differ in content only; the second is attacked.
  Outcome Run(Attack attack) {
    options_ = TestPeerOptions(ca_);
    TestRelay relay(options_[1].listen, GetParam() == Records::kPlain ? 0 : 16);
    options_[0].peers[1] = relay.address();
    const Channels c = Connect();
    const int tls_before = relay.tls_records();
    Outcome outcome;
    for (int i = 0; i < 4; ++i) {
      const SecretBytes content(200, static_cast<uint8_t>(i));
      if (i == 1) relay.Arm(attack);
      const absl::Status sent = c[0]->Send(Neighbour::kNext, FrameType::kAgreement, content);
      EXPECT_TRUE(sent.ok() || i > 1) << sent;  // the attacker may have ended the connection
      if (i == 0) outcome.good += Take(*c[1], content, &outcome);
    }
    for (int i = 1; i < 4 && outcome.error.empty(); ++i) {
      outcome.good += Take(*c[1], SecretBytes(200, static_cast<uint8_t>(i)), &outcome);
    }
    EXPECT_EQ(relay.frames() > 0, GetParam() != Records::kTls);
    EXPECT_EQ(relay.tls_records() > tls_before, GetParam() == Records::kTls);
    return outcome;
  }

 private:
  static bool Take(PeerChannel& channel, const SecretBytes& expected, Outcome* outcome) {
    absl::StatusOr<Frame> frame = channel.Receive(Neighbour::kPrev, In(2));
    if (frame.ok()) outcome->altered |= frame->payload != expected;
    if (!frame.ok()) outcome->error = frame.status().ToString();
    return frame.ok();
  }
};

INSTANTIATE_TEST_SUITE_P(Records, AttackTest, testing::ValuesIn(Built()), RecordsName);

TEST_P(AttackTest, NoAttackNoError) {
  const Outcome o = Run(Attack::kNone);
  EXPECT_EQ(o.error, "");
  EXPECT_EQ(o.good, 4);
  EXPECT_FALSE(o.altered);
}

// The attacks happen: without protection they go through.
TEST_P(AttackTest, WithoutProtectionTheyGoThrough) {
  if (GetParam() != Records::kPlain) GTEST_SKIP() << "protected";
  EXPECT_THAT(Run(Attack::kFlipHeader).error, HasSubstr("frame header: session"));
  for (Attack attack :
       {Attack::kFlipPayload, Attack::kFlipEnd, Attack::kReplay, Attack::kReorder}) {
    const Outcome o = Run(attack);
    EXPECT_TRUE(o.altered);
    EXPECT_EQ(o.error, "");
    EXPECT_EQ(o.good, 4);
  }
  const Outcome dropped = Run(Attack::kDrop);
  EXPECT_TRUE(dropped.altered);
  EXPECT_THAT(dropped.error, HasSubstr("nothing received"));
}

TEST_P(AttackTest, EveryChangeOnTheWireIsRefused) {
  if (GetParam() == Records::kPlain) GTEST_SKIP() << "not protected";
  for (Attack attack : {Attack::kFlipHeader, Attack::kFlipPayload, Attack::kFlipEnd,
                        Attack::kReplay, Attack::kReorder, Attack::kDrop}) {
    SCOPED_TRACE(static_cast<int>(attack));
    const Outcome o = Run(attack);
    EXPECT_FALSE(o.altered);
    EXPECT_EQ(o.good, attack == Attack::kReplay ? 2 : 1);
    EXPECT_THAT(o.error, HasSubstr("prev (P0) in step \"receive\""));
    if (GetParam() == Records::kAead) {
      EXPECT_THAT(o.error, HasSubstr("record refused: its tag is wrong"));
    } else if (attack != Attack::kFlipHeader) {
      EXPECT_THAT(o.error, HasSubstr("bad record mac"));
    }
  }
}

TEST_P(AttackTest, ARecordCutShortIsALostConnection) {
  const Outcome o = Run(Attack::kTruncate);
  EXPECT_EQ(o.good, 1);
  EXPECT_FALSE(o.altered);
  EXPECT_THAT(o.error, HasSubstr("UNAVAILABLE"));
  if (GetParam() == Records::kAead) {
    EXPECT_THAT(o.error, HasSubstr("closed inside a frame"));
  }
}

// A megabyte, of which most arrived and was decrypted before the tag told.
TEST_P(AttackTest, NothingOfARefusedRoundIsLeftBehind) {
  if (GetParam() != Records::kAead) GTEST_SKIP() << "TLS verifies each of its records alone";
  TestRelay relay(options_[1].listen);
  options_[0].peers[1] = relay.address();
  const Channels c = Connect();
  std::vector<uint8_t> out(1 << 20, 0xAB), in(out.size(), 0);
  relay.Arm(Attack::kFlipEnd);
  ASSERT_TRUE(c[0]->Post({1, 1, 0, "big"}, out, {}).ok());
  std::thread sender([&] { c[0]->Collect({1, 1, 0, "big"}, {}, {}, In(5)).IgnoreError(); });
  ASSERT_TRUE(c[1]->Post({1, 1, 0, "big"}, {}, {}).ok());
  const absl::Status s = c[1]->Collect({1, 1, 0, "big"}, absl::MakeSpan(in), {}, In(5));
  sender.join();
  EXPECT_TRUE(absl::IsDataLoss(s)) << s;
  EXPECT_TRUE(in == std::vector<uint8_t>(in.size(), 0));
}

// ---- Agreeing on records and rings ----

std::array<std::string, 3> ConnectTexts(const std::array<TlsPeerOptions, 3>& options) {
  std::array<std::string, 3> texts;
  std::barrier all_tried(kParties);
  OnThreeThreads([&](int p) {
    auto connector = TlsPeerConnector::Create(options[p]);
    ASSERT_TRUE(connector.ok()) << connector.status();
    auto channels = (*connector)->ConnectAll(In(1));
    texts[p] = channels.status().ToString();
    all_tried.arrive_and_wait();
  });
  return texts;
}

TEST(AgreementTest, AutoFindsWhatBothHave) {
  TestCa ca;
  for (PeerRecords other : {PeerRecords::kAuto, PeerRecords::kTls}) {
    auto options = TestPeerOptions(ca);
    options[1].records = other;
    TestRelay relay(options[1].listen);
    options[0].peers[1] = relay.address();
    auto c = ConnectThree(options);
    ASSERT_TRUE(c[0]->Send(Neighbour::kNext, FrameType::kHello, {}).ok());
    ASSERT_TRUE(c[1]->Receive(Neighbour::kPrev, In(5)).ok());
    EXPECT_EQ(relay.frames() == 1, other == PeerRecords::kAuto && Built().size() == 3);
  }
}

TEST(AgreementTest, NothingInCommonIsSaidAtBothEnds) {
  if (Built().size() < 3) GTEST_SKIP() << "this machine has no aead to insist on";
  TestCa ca;
  auto options = TestPeerOptions(ca);
  options[0].records = PeerRecords::kAead;
  options[1].records = PeerRecords::kTls;
  const auto texts = ConnectTexts(options);
  EXPECT_THAT(texts[0], HasSubstr("no connection to next (P1): no record protection in common"));
  EXPECT_THAT(texts[1], HasSubstr("no connection from prev (P0): no record protection in common"));
}

TEST(AgreementTest, RingsAreConnectedByNumber) {
  TestCa ca;
  auto options = TestPeerOptions(ca);
  std::barrier all_done(kParties);  // nobody hangs up while another still receives
  OnThreeThreads([&](int p) {
    options[p].rings = 3;
    auto connector = TlsPeerConnector::Create(options[p]);
    ASSERT_TRUE(connector.ok()) << connector.status();
    EXPECT_THAT((*connector)->Connect(In(10)).status().ToString(), HasSubstr("ConnectAll()"));
    auto channels = (*connector)->ConnectAll(In(10));
    ASSERT_TRUE(channels.ok()) << channels.status();
    ASSERT_EQ(channels->size(), 3u);
    for (uint8_t ring = 0; ring < 3; ++ring) {
      const uint8_t mine[1] = {ring};
      ASSERT_TRUE((*channels)[ring]->Send(Neighbour::kNext, FrameType::kHello, mine).ok());
    }
    for (uint8_t ring = 0; ring < 3; ++ring) {
      absl::StatusOr<Frame> frame = (*channels)[ring]->Receive(Neighbour::kPrev, In(5));
      ASSERT_TRUE(frame.ok()) << frame.status();
      EXPECT_EQ(frame->payload[0], ring);
    }
    all_done.arrive_and_wait();
  });
}

TEST(AgreementTest, AnotherNumberOfRingsIsSaidAtBothEnds) {
  TestCa ca;
  auto options = TestPeerOptions(ca);
  options[0].rings = 2;
  options[1].rings = 3;
  options[2].rings = 3;
  const auto texts = ConnectTexts(options);
  EXPECT_THAT(texts[0],
              HasSubstr("peer has 3 rings (engine workers, and one for long work), we have 2"));
  EXPECT_THAT(
      texts[1],
      HasSubstr("(P0): peer has 2 rings (engine workers, and one for long work), we have 3"));
  options[0].rings = 0;
  EXPECT_THAT(TlsPeerConnector::Create(options[0]).status().ToString(), HasSubstr("1 to 64"));
}

// ---- The records' cipher against OpenSSL's ----

#ifdef MPCKDC_AEAD_LINK
struct Sealed {
  std::vector<uint8_t> text, tag = std::vector<uint8_t>(16);
};

Sealed ByOpenSsl(const RecordKey& key, uint64_t record, absl::Span<const uint8_t> header,
                 const std::vector<uint8_t>& plain) {
  uint8_t nonce[12];
  std::copy(std::begin(key.iv), std::end(key.iv), nonce);
  for (int i = 0; i < 8; ++i) nonce[4 + i] ^= static_cast<uint8_t>(record >> (56 - 8 * i));
  Sealed out;
  out.text.resize(plain.size());
  int n = 0;
  EVP_CIPHER_CTX* const c = EVP_CIPHER_CTX_new();
  EVP_EncryptInit_ex(c, EVP_aes_128_gcm(), nullptr, key.key, nonce);
  EVP_EncryptUpdate(c, nullptr, &n, header.data(), static_cast<int>(header.size()));
  EVP_EncryptUpdate(c, out.text.data(), &n, plain.data(), static_cast<int>(plain.size()));
  EVP_EncryptFinal_ex(c, nullptr, &n);
  EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, 16, out.tag.data());
  EVP_CIPHER_CTX_free(c);
  return out;
}

TEST(RecordCipherTest, EqualsOpenSslInPiecesOfAnySize) {
  if (!RecordCipher::Available()) GTEST_SKIP() << "no AES instructions";
  RecordKey raw;
  for (size_t i = 0; i < sizeof(raw); ++i) reinterpret_cast<uint8_t*>(&raw)[i] = uint8_t(31 * i);
  const Secret<RecordKey> key(raw);
  const uint64_t first = 0x0102030405060708;
  RecordCipher sealer(key, first), opener(key, first);
  const std::vector<uint8_t> header(16, 9);
  uint64_t record = first;
  for (size_t size : {0, 1, 15, 16, 17, 255, 256, 767, 768, 4096, 65536, 100003}) {
    std::vector<uint8_t> plain(size), text(size), tag(16);
    for (size_t i = 0; i < size; ++i) plain[i] = static_cast<uint8_t>(i * i >> 3);
    ASSERT_TRUE(sealer.Begin(header).ok());
    const size_t cut = size / 3 / 16 * 16;
    if (cut > 0) sealer.Seal(text.data(), plain.data(), cut);
    if (size > cut) sealer.Seal(text.data() + cut, plain.data() + cut, size - cut);
    sealer.FinishSeal(tag.data());
    const Sealed expected = ByOpenSsl(raw, record++, header, plain);
    EXPECT_EQ(text, expected.text) << size;
    EXPECT_EQ(tag, expected.tag) << size;
    ASSERT_TRUE(opener.Begin(header).ok());
    if (size > 0) opener.Open(absl::MakeSpan(text));
    EXPECT_TRUE(opener.FinishOpen(tag.data()));
    EXPECT_EQ(text, plain);
  }
}

// After 1000 bytes here: the records 0 to 3 of 300 bytes under one key, then the next one.
TEST(RecordCipherTest, TheKeyChangesAfterItsShare) {
  if (!RecordCipher::Available()) GTEST_SKIP() << "no AES instructions";
  RecordKey raw;
  for (size_t i = 0; i < sizeof(raw); ++i) reinterpret_cast<uint8_t*>(&raw)[i] = uint8_t(77 * i);
  RecordKey next;
  crypto_kdf_derive_from_key(reinterpret_cast<uint8_t*>(&next), sizeof(next), 1, "mpcpeer1",
                             raw.chain);
  const Secret<RecordKey> key(raw);
  RecordCipher sealer(key, 0, 1000), opener(key, 0, 1000), keeps_its_key(key);
  const std::vector<uint8_t> header(16, 2), plain(300, 5);
  for (uint64_t record = 0; record < 6; ++record) {
    std::vector<uint8_t> text(plain.size()), tag(16);
    ASSERT_TRUE(sealer.Begin(header).ok());
    sealer.Seal(text.data(), plain.data(), plain.size());
    sealer.FinishSeal(tag.data());
    EXPECT_EQ(tag, ByOpenSsl(record < 4 ? raw : next, record, header, plain).tag) << record;
    std::vector<uint8_t> copy = text;
    ASSERT_TRUE(opener.Begin(header).ok() && keeps_its_key.Begin(header).ok());
    opener.Open(absl::MakeSpan(text));
    EXPECT_TRUE(opener.FinishOpen(tag.data()));
    EXPECT_EQ(text, plain);
    keeps_its_key.Open(absl::MakeSpan(copy));
    EXPECT_EQ(keeps_its_key.FinishOpen(tag.data()), record < 4);
  }
}

TEST(RecordCipherTest, NoRecordNumberIsUsedTwice) {
  if (!RecordCipher::Available()) GTEST_SKIP() << "no AES instructions";
  RecordCipher cipher(Secret<RecordKey>(), UINT64_MAX);
  const std::vector<uint8_t> header(16);
  EXPECT_TRUE(cipher.Begin(header).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(cipher.Begin(header)));
  EXPECT_TRUE(absl::IsResourceExhausted(cipher.Begin(header)));
}
#endif

}  // namespace
}  // namespace mpckdc
