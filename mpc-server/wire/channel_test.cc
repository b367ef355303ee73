// SPDX-License-Identifier: Apache-2.0
#include <openssl/ssl.h>

#include <atomic>
#include <barrier>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/testing/certificates.h"
#include "mpc-server/testing/channel_checks.h"
#include "mpc-server/testing/memory_channel.h"
#include "mpc-server/wire/ring.h"
#include "mpc-server/wire/socket.h"
#include "mpc-server/wire/tls_channel.h"

namespace mpckdc {
namespace {

using testing::HasSubstr;

TEST(FrameFormatTest, RoundTripAndLayout) {
  uint8_t bytes[kFrameHeaderSize];
  const FrameHeader h = {FrameType::kRound, 0x0102, 0x03040506, 0x0708090A, 0x0B0C0D0E};
  WriteFrameHeader(h, bytes);
  EXPECT_THAT(bytes, testing::ElementsAre(1, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14));
  FrameHeader back;
  ASSERT_TRUE(ReadFrameHeader(bytes, &back).ok());
  EXPECT_EQ(back, h);
}

TEST(FrameFormatTest, EveryTamperedByteIsRefused) {
  const FrameHeader h = {FrameType::kRound, 7, 8, 9, 10};
  for (size_t i = 0; i < kFrameHeaderSize; ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      uint8_t bytes[kFrameHeaderSize];
      WriteFrameHeader(h, bytes);
      bytes[i] ^= static_cast<uint8_t>(1 << bit);
      FrameHeader got;
      absl::Status s = ReadFrameHeader(bytes, &got);
      if (s.ok()) s = CheckFrameHeader(h, got);
      EXPECT_TRUE(absl::IsDataLoss(s)) << i << "." << bit;
    }
  }
}

TEST(FrameFormatTest, LengthLimits) {
  uint8_t bytes[kFrameHeaderSize];
  FrameHeader got;
  WriteFrameHeader({FrameType::kHello, 0, 0, 0, kMaxControlPayload + 1}, bytes);
  EXPECT_THAT(ReadFrameHeader(bytes, &got).ToString(), HasSubstr("limit"));
  WriteFrameHeader({FrameType::kRound, 0, 0, 0, kMaxRoundPayload}, bytes);
  EXPECT_TRUE(ReadFrameHeader(bytes, &got).ok());
}

TEST(FrameFormatTest, ControlFramesAreOfThisSessionAndOfNoBatch) {
  const FrameHeader good = {FrameType::kAgreement, 0, 8, 0, 10};
  EXPECT_TRUE(CheckControlHeader(8, good).ok());
  EXPECT_THAT(CheckControlHeader(9, good).ToString(), HasSubstr("session is 8, expected 9"));
  FrameHeader bad = good;
  bad.batch = 1;
  EXPECT_THAT(CheckControlHeader(8, bad).ToString(), HasSubstr("batch is 1"));
  bad = good;
  bad.round = 1;
  EXPECT_THAT(CheckControlHeader(8, bad).ToString(), HasSubstr("round is 1"));
  bad = good;
  bad.type = FrameType::kRound;
  EXPECT_THAT(CheckControlHeader(8, bad).ToString(), HasSubstr("expected a control frame"));
  bad.type = FrameType::kAbort;
  EXPECT_TRUE(CheckControlHeader(9, bad).ok());
  uint8_t bytes[kFrameHeaderSize];
  WriteFrameHeader(good, bytes);
  for (uint8_t unused : {0, 5, 8}) {
    bytes[1] = unused;
    EXPECT_THAT(ReadFrameHeader(bytes, &bad).ToString(), HasSubstr("unknown type"));
  }
}

TEST(MemoryChannelTest, RoundsInFlight) {
  for (int depth : {1, 4, 12}) {
    MemoryRing ring;
    CheckRoundsInFlight({&ring.channel(0), &ring.channel(1), &ring.channel(2)}, depth);
  }
}

TEST(MemoryChannelTest, RoundsAreCollectedInTheOrderOfPosting) {
  MemoryRing ring;
  PeerChannel& c = ring.channel(0);
  EXPECT_THAT(c.Collect({1, 2, 0, "a"}, {}, {}, In(1)).ToString(), HasSubstr("nothing is posted"));
  EXPECT_TRUE(absl::IsFailedPrecondition(c.Post({1, 2, 0, "a"}, {}, {})));
  PeerChannel& d = ring.channel(1);
  for (uint16_t r = 0; r < 2; ++r) ASSERT_TRUE(d.Post({1, 2, r, "a"}, {}, {}).ok());
  EXPECT_THAT(d.Collect({1, 2, 1, "b"}, {}, {}, In(1)).ToString(),
              HasSubstr("round 1 of batch 2, step \"b\": round 0 of batch 2 was posted before"));
}

TEST(MemoryChannelTest, ALineInMemoryHasNoLength) {
  MemoryRing ring;
  EXPECT_EQ(ring.channel(0).Line(Neighbour::kNext), LineState());
}

TEST(MemoryChannelTest, BehavesAsAChannel) {
  MemoryRing ring;
  CheckChannels({&ring.channel(0), &ring.channel(1), &ring.channel(2)});
}

TEST(MemoryChannelTest, TamperedHeaderIsRefusedByName) {
  MemoryRing ring;
  ring.SetInterceptor([](MemoryRing::Intercepted& m) {
    if (m.from == 0 && m.step == "some step") m.header[7] ^= 1;
  });
  OnThreeThreads([&](int p) {
    uint8_t buffer[4] = {};
    const absl::Status s = ring.channel(p).Exchange(
        {5, 1, 0, "some step"}, {buffer, absl::MakeSpan(buffer), {}, {}}, In(5));
    EXPECT_EQ(s.ok(), p != 1) << s;
    if (p == 1) {
      EXPECT_THAT(s.ToString(),
                  HasSubstr("prev (P0) in step \"some step\": frame header: session"));
    }
  });
}

TEST(MemoryChannelTest, DroppedFrameIsATimeoutThatNamesTheStep) {
  MemoryRing ring;
  ring.SetInterceptor([](MemoryRing::Intercepted& m) { m.drop = m.from == 2; });
  OnThreeThreads([&](int p) {
    uint8_t buffer[4] = {};
    const absl::Status s = ring.channel(p).Exchange(
        {5, 1, 0, "a step"}, {buffer, absl::MakeSpan(buffer), {}, {}}, In(0.2));
    EXPECT_EQ(absl::IsDeadlineExceeded(s), p == 0) << s;
  });
}

TEST(MemoryChannelTest, CloseEndsWaiting) {
  MemoryRing ring;
  std::thread closer([&] { ring.Close(); });
  EXPECT_TRUE(absl::IsUnavailable(ring.channel(0).Receive(Neighbour::kNext, In(20)).status()));
  closer.join();
}

// P1 comes with the certificate `uris`; returns what P0, which connects to it, says.
std::string ConnectTo(const std::vector<std::string>& uris, bool deny = false) {
  TestCa ca;
  auto options = TestPeerOptions(ca);
  const TestCa::Identity id = ca.Issue("other", uris);
  options[1].certificate_file = id.certificate_file;
  options[1].key_file = id.key_file;
  int asked = 0;
  options[0].denied = [&](const CertificateFingerprint&) { return ++asked, deny; };
  std::array<std::string, 3> texts;
  std::barrier all_tried(kParties);
  OnThreeThreads([&](int p) {
    auto connector = TlsPeerConnector::Create(options[p]);
    ASSERT_TRUE(connector.ok()) << connector.status();
    auto channel = (*connector)->Connect(In(0.7));
    texts[p] = channel.status().ToString();
    all_tried.arrive_and_wait();  // nobody hangs up while another still connects
  });
  EXPECT_GT(asked, 0);  // about P2's certificate if not about P1's
  return texts[0];
}

TEST(TlsConnectorTest, RolesAreRead) {
  EXPECT_EQ(ConnectTo({"spiffe://TEST/mpc/peer/p1"}), "OK");
  EXPECT_THAT(ConnectTo({"spiffe://TEST/mpc/kdc/p1"}), HasSubstr("names spiffe://TEST/mpc/kdc/p1"));
  EXPECT_THAT(ConnectTo({"spiffe://TEST/mpc/peer/p2"}), HasSubstr("expected"));
  EXPECT_THAT(ConnectTo({"spiffe://OTHER/mpc/peer/p1"}), HasSubstr("expected"));
  EXPECT_THAT(ConnectTo({"spiffe://TEST/mpc/peer/p1", "spiffe://TEST/mpc/admin/p1"}),
              HasSubstr("2 URI names"));
  EXPECT_THAT(ConnectTo({}), HasSubstr("0 URI names"));
  EXPECT_THAT(ConnectTo({"spiffe://TEST/mpc/peer/p1"}, true), HasSubstr("deny list"));
}

// A certificate that is denied while its connection lasts, or waits for the other rings.
TEST(TlsConnectorTest, DeniedLaterIsNoLongerGood) {
  TestCa ca;
  auto options = TestPeerOptions(ca);
  std::atomic<bool> deny = false;
  options[0].denied = [&](const CertificateFingerprint&) { return deny.load(); };
  std::array<std::unique_ptr<TlsPeerConnector>, 3> connectors;
  std::array<std::unique_ptr<PeerChannel>, 3> channels;
  OnThreeThreads([&](int p) {
    connectors[p] = TlsPeerConnector::Create(options[p]).value();
    channels[p] = connectors[p]->Connect(In(10)).value();
  });
  for (const auto& connector : connectors) EXPECT_TRUE(connector->StillGood().ok());
  deny = true;
  const absl::Status bad = connectors[0]->StillGood();
  EXPECT_TRUE(absl::IsPermissionDenied(bad)) << bad;
  EXPECT_THAT(bad.ToString(), HasSubstr("spiffe://TEST/mpc/peer/p1 (P1) is on this server's deny"));
  EXPECT_TRUE(connectors[1]->StillGood().ok());
}

TEST(TlsConnectorTest, DeniedWhileItWaitsIsDropped) {
  TestCa ca;
  auto options = TestPeerOptions(ca);
  std::atomic<bool> deny = false;
  options[0].denied = [&](const CertificateFingerprint&) { return deny.load(); };
  auto p0 = TlsPeerConnector::Create(options[0]).value();
  auto p1 = TlsPeerConnector::Create(options[1]).value();
  std::thread next([&] { p1->Connect(In(20)).IgnoreError(); });
  // P2 is missing; P1 is not.
  EXPECT_THAT(p0->Connect(In(1)).status().ToString(), testing::Not(HasSubstr("to next")));
  deny = true;
  EXPECT_THAT(p0->Connect(In(0.5)).status().ToString(),
              HasSubstr("no connection to next (P1): certificate of spiffe://TEST/mpc/peer/p1"));
  p1->Shutdown();
  next.join();
}

TEST(TlsConnectorTest, AnotherAuthorityIsRefused) {
  TestCa ca, other;
  auto options = TestPeerOptions(ca);
  const TestCa::Identity id = other.Issue("p1", {"spiffe://TEST/mpc/peer/p1"});
  options[1].certificate_file = id.certificate_file;
  options[1].key_file = id.key_file;
  OnThreeThreads([&](int p) {
    auto connector = TlsPeerConnector::Create(options[p]);
    ASSERT_TRUE(connector.ok());
    const absl::Status s = (*connector)->Connect(In(0.5)).status();
    EXPECT_TRUE(absl::IsDeadlineExceeded(s)) << s;
    if (p == 0) {
      EXPECT_THAT(s.ToString(), HasSubstr("no connection to next (P1): certificate verify failed"));
    }
  });
}

TEST(TlsConnectorTest, ExpiredCertificateIsRefused) {
  TestCa ca;
  auto options = TestPeerOptions(ca);
  const TestCa::Identity id = ca.Issue("p1", {"spiffe://TEST/mpc/peer/p1"}, -absl::Seconds(1));
  options[1].certificate_file = id.certificate_file;
  options[1].key_file = id.key_file;
  OnThreeThreads([&](int p) {
    auto connector = TlsPeerConnector::Create(options[p]);
    ASSERT_TRUE(connector.ok());
    EXPECT_FALSE((*connector)->Connect(In(0.5)).ok());
  });
}

TEST(TlsConnectorTest, MissingFilesAreNamed) {
  TestCa ca;
  auto options = TestPeerOptions(ca);
  options[0].key_file = "no-such-file.key";
  EXPECT_THAT(TlsPeerConnector::Create(options[0]).status().ToString(),
              HasSubstr("key no-such-file.key"));
}

TEST(TlsConnectorTest, ReconnectsAfterAPeerWasLost) {
  TestCa ca;
  const auto options = TestPeerOptions(ca);
  std::array<std::unique_ptr<TlsPeerConnector>, 3> connectors;
  for (int p = 0; p < kParties; ++p) connectors[p] = TlsPeerConnector::Create(options[p]).value();
  for (int time = 0; time < 3; ++time) {
    std::barrier all_connected(kParties);
    OnThreeThreads([&](int p) {
      auto channel = connectors[p]->Connect(In(10));
      all_connected.arrive_and_wait();
      ASSERT_TRUE(channel.ok()) << channel.status();
      if (p == time) return;  // this one goes away at once
      uint8_t b[4] = {};
      absl::Status s;
      for (uint16_t r = 0; r < 3 && s.ok(); ++r) {
        s = (*channel)->Exchange({1, 1, r, "x"}, {b, absl::MakeSpan(b), {}, {}}, In(5));
      }
      EXPECT_FALSE(s.ok());
    });
  }
}

// P1 waits for P0, which is alive and silent; P2 goes away. Waiting on would keep P1 in a session
// that is dead, and three such servers never meet again.
TEST(TlsChannelTest, WhoWaitsForOneNeighbourHearsTheOtherGo) {
  TestCa ca;
  auto channels = ConnectThree(TestPeerOptions(ca));
  std::thread leaving([&] {
    absl::SleepFor(absl::Milliseconds(50));
    channels[2].reset();
  });
  const absl::Time began = absl::Now();
  const absl::Status s = channels[1]->Receive(Neighbour::kPrev, In(10)).status();
  EXPECT_LT(absl::Now() - began, absl::Seconds(5));
  EXPECT_FALSE(absl::IsDeadlineExceeded(s)) << s;
  EXPECT_THAT(s.ToString(), HasSubstr("next (P2)"));
  leaving.join();
}

TEST(TlsConnectorTest, ShutdownEndsConnect) {
  TestCa ca;
  auto connector = TlsPeerConnector::Create(TestPeerOptions(ca)[0]).value();
  std::thread other([&] { connector->Shutdown(); });
  EXPECT_TRUE(absl::IsCancelled(connector->Connect(In(20)).status()));
  other.join();
}

TEST(TlsConnectorTest, TlsBelow13IsRefused) {
  TestCa ca;
  const auto options = TestPeerOptions(ca);
  auto connector = TlsPeerConnector::Create(options[1]).value();
  std::thread server([&] { connector->Connect(In(20)).IgnoreError(); });
  SSL_CTX* ctx = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_max_proto_version(ctx, TLS1_2_VERSION);
  SSL_CTX_use_certificate_chain_file(ctx, options[0].certificate_file.c_str());
  SSL_CTX_use_PrivateKey_file(ctx, options[0].key_file.c_str(), SSL_FILETYPE_PEM);
  SSL* ssl = SSL_new(ctx);
  BIO* bio = BIO_new_connect(options[1].listen.c_str());
  ASSERT_EQ(BIO_do_connect(bio), 1);
  SSL_set_bio(ssl, bio, bio);
  EXPECT_NE(SSL_connect(ssl), 1);
  SSL_free(ssl);
  SSL_CTX_free(ctx);
  connector->Shutdown();
  server.join();
}

}  // namespace
}  // namespace mpckdc
