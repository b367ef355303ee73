// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/wire/front_door.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/wire/callers.h"

namespace mpckdc {
namespace {

PeerAddress AddressOf(const std::string& host) {
  return PeerAddressesOf(absl::StrCat(host, ":1")).value().at(0);
}

TEST(PeerAddress, TheNetworkIsAllOfIpv4AndASiteOfIpv6) {
  EXPECT_EQ(NetworkOf(AddressOf("192.0.2.1")), AddressOf("192.0.2.1"));
  EXPECT_NE(NetworkOf(AddressOf("192.0.2.1")), NetworkOf(AddressOf("192.0.2.2")));
  EXPECT_EQ(NetworkOf(AddressOf("[2001:db8::1]")), NetworkOf(AddressOf("[2001:db8::2]")));
  EXPECT_EQ(NetworkOf(AddressOf("[2001:db8::1]")), NetworkOf(AddressOf("[2001:db8:0:1::1]")));
  EXPECT_NE(NetworkOf(AddressOf("[2001:db8::1]")), NetworkOf(AddressOf("[2001:db8:1::1]")));
  EXPECT_EQ(AddressOf("[::ffff:192.0.2.1]"), AddressOf("192.0.2.1"));
}

// Somebody connects from each of a site's networks, thousands of times in a handshake's time.
TEST(Callers, ASiteOfIpv6DoesNotPushOthersOut) {
  Callers<bool> callers(&SystemClock(), 0);
  callers.Add(true, AddressOf("[2001:db8:1::1]"), /*expected=*/false);
  for (int i = 0; i < 5000; ++i) {
    callers.Add(false, AddressOf(absl::StrCat("[2001:db8:2:", absl::Hex(i), "::1]")), false);
  }
  size_t honest = 0, all = 0;
  callers.ForEach([&](const bool& is_honest) { honest += is_honest, ++all; });
  EXPECT_EQ(honest, 1u);
  EXPECT_EQ(all, limits::kMaxCallersPerAddress + 1);
}

TEST(Acquaintances, AreKnownByTheirAddressAndTheOldestAreForgotten) {
  Acquaintances known;
  known.Meet("ipv4:192.0.2.1:4711");
  known.Meet("ipv6:%5B2001:db8::1%5D:4711");
  known.Meet("unix:");
  known.Meet("");
  EXPECT_TRUE(known.Knows(AddressOf("192.0.2.1")));
  EXPECT_TRUE(known.Knows(AddressOf("[2001:db8::1]")));
  EXPECT_FALSE(known.Knows(AddressOf("[2001:db8::2]")));
  for (size_t i = 0; i < limits::kMaxStreamsPerServer - 1; ++i) {
    known.Meet("ipv4:192.0.2.1:1");  // again and again
    known.Meet(absl::StrCat("ipv4:10.0.", i / 250, ".", i % 250, ":1"));
  }
  EXPECT_TRUE(known.Knows(AddressOf("192.0.2.1")));
  EXPECT_FALSE(known.Knows(AddressOf("[2001:db8::1]")));
}

class FrontDoorTest : public testing::Test {
 protected:
  void SetUp() override {
    door_ = FrontDoor::Open("127.0.0.1:0", &known_).value();
    door_->Start([this](Fd connection, int) {
      sockaddr_in from = {};
      socklen_t size = sizeof(from);
      getpeername(connection.get(), reinterpret_cast<sockaddr*>(&from), &size);
      if (PeerAddressOf(reinterpret_cast<sockaddr&>(from)) == kNewcomer) newcomer_is_in_ = true;
      admitted_.push_back(std::move(connection));
      ++count_;
    });
  }
  void TearDown() override { door_->Stop(); }

  // Connects from this address; says one byte or nothing.
  void Come(const char* from, bool speak) {
    sockaddr_in source = {}, target = {};
    source.sin_family = target.sin_family = AF_INET;
    ASSERT_EQ(inet_pton(AF_INET, from, &source.sin_addr), 1);
    target.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    target.sin_port = htons(static_cast<uint16_t>(door_->port()));
    Fd fd(socket(AF_INET, SOCK_STREAM, 0));
    ASSERT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&source), sizeof(source)), 0);
    ASSERT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&target), sizeof(target)), 0);
    if (speak) {
      ASSERT_EQ(send(fd.get(), "x", 1, MSG_NOSIGNAL), 1);
    }
    here_.push_back(std::move(fd));
  }
  size_t CountIn(absl::Duration time) {
    absl::SleepFor(time);
    return count_;
  }
  bool WaitForCount(size_t count) {
    for (int i = 0; i < 200 && count_ < count; ++i) absl::SleepFor(absl::Milliseconds(10));
    return count_ >= count;
  }

  const PeerAddress kNewcomer = AddressOf("127.0.9.1");

  Acquaintances known_;
  std::atomic<bool> newcomer_is_in_ = false;
  std::atomic<size_t> count_ = 0;
  std::vector<Fd> admitted_;  // the door's thread's
  std::vector<Fd> here_;
  std::unique_ptr<FrontDoor> door_;
};

TEST_F(FrontDoorTest, WhoSaysNothingStaysOutside) {
  for (int i = 0; i < 20; ++i) Come("127.0.7.1", false);
  EXPECT_EQ(CountIn(absl::Milliseconds(300)), 0u);
  Come("127.0.7.1", true);
  EXPECT_TRUE(WaitForCount(1));
}

TEST_F(FrontDoorTest, StrangersOfOneAddressAreSoManyAndOthersComeIn) {
  constexpr size_t kMost = limits::kMaxCallersPerAddress;
  for (size_t i = 0; i < 2 * kMost; ++i) Come("127.0.7.1", true);
  EXPECT_TRUE(WaitForCount(kMost));
  EXPECT_EQ(CountIn(absl::Milliseconds(300)), kMost);
  Come("127.0.7.2", true);
  EXPECT_TRUE(WaitForCount(kMost + 1));
}

// They connect again and again; all that is admitted stays for a handshake's time. So long waits a
// caller too, and comes again, as gRPC does: on a busy machine its time may end just before theirs.
TEST_F(FrontDoorTest, FourAddressesMakeANewcomerWaitAndNoMore) {
  const auto strangers = [this](size_t count) {
    for (size_t i = 0; i < count; ++i) Come(absl::StrCat("127.0.7.", 1 + i % 4).c_str(), true);
  };
  strangers(2 * limits::kMaxStrangers);
  ASSERT_TRUE(WaitForCount(limits::kMaxStrangers));
  Come("127.0.9.1", true);
  EXPECT_EQ(CountIn(absl::Milliseconds(300)), limits::kMaxStrangers);
  const absl::Time end = absl::Now() + 6 * limits::kHandshakeTimeout;
  for (int step = 1; !newcomer_is_in_ && absl::Now() < end; ++step) {
    strangers(8);
    if (step % 10 == 0) Come("127.0.9.1", true);
    here_.erase(here_.begin(), here_.begin() + 8);
    absl::SleepFor(absl::Milliseconds(100));
  }
  EXPECT_TRUE(newcomer_is_in_);
}

TEST_F(FrontDoorTest, TheKnownHaveRoomWhenStrangersHaveNone) {
  known_.Meet("ipv4:127.0.8.1:1");
  constexpr size_t kMost = limits::kMaxStrangers;
  for (size_t i = 0; i < 2 * kMost; ++i) {
    Come(absl::StrCat("127.0.7.", 1 + i % 100).c_str(), true);
  }
  EXPECT_TRUE(WaitForCount(kMost));
  Come("127.0.9.1", true);
  EXPECT_EQ(CountIn(absl::Milliseconds(300)), kMost);
  Come("127.0.8.1", true);
  EXPECT_TRUE(WaitForCount(kMost + 1));
}

}  // namespace
}  // namespace mpckdc
