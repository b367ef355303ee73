// SPDX-License-Identifier: Apache-2.0
// Where a request came from, as the servers are told.
#include <cstring>
#include <mutex>
#include <string>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "kdc-plugin/provider/armored.h"
#include "kdc-plugin/tests/provider_fixture.h"

extern "C" {
#include "kdc-plugin/provider/source.h"
}

namespace mpckdc::test {
namespace {

// What the servers are told of a request's source.
class SourceTest : public ProviderTest {
 protected:
  struct Told {
    uint64_t source = 0;
    bool proved = false;
    friend bool operator==(const Told&, const Told&) = default;
  };
  SourceTest() {
    const std::string master(32, 'm');
    const krb5_keyblock key = Local(master, ENCTYPE_AES256_CTS_HMAC_SHA1_96);
    source_use_master_key(context_, &key);
    realm_.parties[1]->behaviour.received = [this](const v1::Job& job) {
      const std::lock_guard<std::mutex> lock(mutex_);
      told_ = {job.source(), job.source_proved()};
    };
  }
  ~SourceTest() override {
    source_forget(context_);
    request_source = {};
    prefers_stream = false;
  }

  // Of a request that opens a ticket, and then another. `armored` is a new request unless given.
  Told TicketFrom(const std::string& address, bool stream, const char* armor = nullptr,
                  int armored = 0) {
    static int new_request = 1000;
    if (armored == 0) armored = ++new_request;
    krb5_address krb5_form = {KV5M_ADDRESS, address.size() == 4 ? ADDRTYPE_INET : ADDRTYPE_INET6,
                              static_cast<unsigned>(address.size()),
                              reinterpret_cast<krb5_octet*>(const_cast<char*>(address.data()))};
    request_source = {&krb5_form, stream, armor, {}};
    std::memcpy(request_source.armored, &armored, sizeof(armored));
    const Told first = OpenATicket();
    EXPECT_EQ(OpenATicket(), first) << "of one request";
    request_source = {};
    EndRequest();
    return first;
  }
  Told OpenATicket() {
    Open(tgs_, 2, Seal(Local(tgs_base_), 2, "a ticket"));
    return LastTold();
  }
  Told LastTold() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return told_;
  }

  std::mutex mutex_;
  Told told_;
};

TEST_F(SourceTest, ItIsOneOfAnAddressOrAHostAndNotTheAddress) {
  const std::string address = "\x0a\x01\x02\x03", network(8, 'n');
  const Told datagram = TicketFrom(address, false), stream = TicketFrom(address, true);
  EXPECT_FALSE(datagram.proved);
  EXPECT_TRUE(stream.proved);
  EXPECT_EQ(stream.source, datagram.source);
  EXPECT_NE(stream.source, 0u);
  EXPECT_NE(stream.source, 0x0a010203u);
  EXPECT_EQ(TicketFrom(std::string(10, '\0') + "\xff\xff" + address, true), stream) << "mapped";
  EXPECT_NE(TicketFrom("\x0a\x01\x02\x04", true), stream);
  const Told customer = TicketFrom(network + "12345678", true);
  EXPECT_EQ(TicketFrom(network + "abcdefgh", true), customer);
  EXPECT_NE(TicketFrom("another " + network, true), customer);
  const Told host = TicketFrom(address, false, "host/a@EXAMPLE.COM");
  EXPECT_TRUE(host.proved);
  EXPECT_NE(host.source, stream.source);
  EXPECT_EQ(TicketFrom("\x0a\x01\x02\x04", true, "host/a@EXAMPLE.COM"), host);
  EXPECT_NE(TicketFrom(address, false, "host/b@EXAMPLE.COM"), host);
}

TEST_F(SourceTest, AnArmoredRequestIsItsHostsOnce) {
  const std::string home = "\x0a\x01\x02\x03", elsewhere = "\x0a\x01\x02\x04";
  const char armor[] = "host/a@EXAMPLE.COM";
  const Told host = TicketFrom(home, false, armor, 1);
  EXPECT_TRUE(host.proved);
  EXPECT_EQ(TicketFrom(elsewhere, false, armor, 1), TicketFrom(elsewhere, false));
  EXPECT_EQ(TicketFrom(elsewhere, true, armor, 1), TicketFrom(elsewhere, true));
  EXPECT_EQ(TicketFrom(home, false, armor, 1), (Told{host.source, false})) << "anybody's datagram";
  EXPECT_EQ(TicketFrom(home, true, armor, 1), host) << "its own client, told to use TCP";
  EXPECT_EQ(TicketFrom(home, true, armor, 1), TicketFrom(home, true)) << "a neighbour's copy";
  EXPECT_EQ(TicketFrom(home, false, armor, 2), host);
}

TEST_F(SourceTest, ALoginSaysItWithItsHint) {
  const std::string address(4, '1');
  krb5_address krb5_form = {KV5M_ADDRESS, ADDRTYPE_INET, 4,
                            reinterpret_cast<krb5_octet*>(const_cast<char*>(address.data()))};
  request_source = {&krb5_form, 1, nullptr, {}};
  const std::string preauth = Preauth();
  HintAs(preauth, 100, 100);
  Open(user_, 1, preauth);
  const Told login = LastTold();
  EXPECT_TRUE(login.proved);
  EXPECT_EQ(TicketFrom(address, true), login);
  EndRequest();
  Checksum(tgs_, 17, "PAC");
  EXPECT_EQ(LastTold().source, 0u) << "only what opens something, and a login, says where it came from";
}

TEST_F(SourceTest, AHostThatKnowsNoneSaysNone) {
  Open(tgs_, 2, Seal(Local(tgs_base_), 2, "a ticket"));
  EXPECT_EQ(LastTold(), Told());
}

TEST_F(SourceTest, WhatTcpWouldHelpIsTriedByTcp) {
  std::string plain;
  realm_.Answer(v1::VERDICT_QUOTA);
  EXPECT_EQ(Decrypt(user_, 1, Preauth("a"), &plain), KRB5KDC_ERR_SVC_UNAVAILABLE);
  EXPECT_FALSE(prefers_stream);
  EndRequest();
  realm_.Answer(v1::VERDICT_UNPROVED);
  const std::string preauth = Preauth("b");
  HintAs(preauth, 100, 100);
  EXPECT_EQ(Decrypt(user_, 1, preauth, &plain), KRB5KDC_ERR_SVC_UNAVAILABLE);
  EXPECT_TRUE(prefers_stream);
}

TEST(ArmoredRequestsTest, NothingIsForgottenForAnother) {
  constexpr uint64_t kHost = 1, kOther = 2, kAddress = 3;
  constexpr absl::Duration kNow = absl::Hours(1);
  ArmoredRequests seen(/*max=*/10, /*max_of_host=*/4);
  EXPECT_EQ(seen.See(kHost, 100, kAddress, false, kNow), ARMORED_PROVED);
  for (uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(seen.See(kOther, 200 + i, kAddress, true, kNow), ARMORED_PROVED);
  }
  EXPECT_EQ(seen.See(kOther, 300, kAddress, true, kNow), ARMORED_COPIED) << "beyond its share";
  EXPECT_EQ(seen.See(kHost, 101, kAddress, true, kNow), ARMORED_PROVED);
  for (uint64_t i = 0; i < 10; ++i) seen.See(500 + i, 400 + i, kAddress, true, kNow);
  EXPECT_EQ(seen.size(), 10u);
  EXPECT_EQ(seen.See(kHost, 102, kAddress, true, kNow), ARMORED_COPIED) << "no room";
  EXPECT_EQ(seen.See(kHost, 100, kAddress, false, kNow + kArmoredLife), ARMORED_CLAIMED);
  // Its armor is no longer valid then, and krb5 refuses it.
  const absl::Duration later = kNow + kArmoredLife + absl::Seconds(1);
  EXPECT_EQ(seen.See(kOther, 300, kAddress, false, later), ARMORED_PROVED);
  EXPECT_EQ(seen.size(), 1u);
}

}  // namespace
}  // namespace mpckdc::test
