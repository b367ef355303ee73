// SPDX-License-Identifier: Apache-2.0
// Strangers at the port between the servers: they have no certificate, they connect and are silent,
// or begin a handshake and go no further. The ring must form all the same.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <deque>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/testing/certificates.h"
#include "mpc-server/testing/channel_checks.h"
#include "mpc-server/wire/ring.h"
#include "mpc-server/wire/socket.h"
#include "mpc-server/wire/tls_channel.h"

namespace mpckdc {
namespace {

using testing::HasSubstr;

// The first message of a TLS handshake, as any client sends it; with `group`, for that alone.
std::string ClientHello(const char* group = nullptr) {
  SSL_CTX* ctx = SSL_CTX_new(TLS_client_method());
  if (group != nullptr) SSL_CTX_set1_groups_list(ctx, group);
  SSL* ssl = SSL_new(ctx);
  SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  SSL_connect(ssl);
  char* data = nullptr;
  const long size = BIO_get_mem_data(SSL_get_wbio(ssl), &data);
  std::string hello(data, static_cast<size_t>(size));
  SSL_free(ssl);
  SSL_CTX_free(ctx);
  return hello;
}

// Connects to a port so many times a second and keeps its connections.
class Strangers {
 public:
  struct Plan {
    int per_second = 100;
    int addresses = 1;     // from 127.0.1.0 on, in turn
    std::string first;     // what each says
    bool as_peer = false;  // from 127.0.0.1, where the servers are
  };
  Strangers(const std::string& target, Plan plan)
      : plan_(std::move(plan)), thread_([this, target] { Run(target); }) {}
  ~Strangers() {
    stop_ = true;
    thread_.join();
  }
  int connected() const { return connected_; }

 private:
  static constexpr size_t kKept = 6000;  // a flood of minutes has room

  void Run(const std::string& target) {
    std::string host, port;
    ASSERT_TRUE(SplitHostPort(target, &host, &port).ok());
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(std::stoi(port)));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const absl::Time began = absl::Now();
    for (int i = 0; !stop_; ++i) {
      const absl::Time due = began + i * absl::Seconds(1) / plan_.per_second;
      if (due > absl::Now()) absl::SleepFor(due - absl::Now());
      Connect(to, i);
      Speak();
    }
  }
  void Connect(const sockaddr_in& to, int number) {
    Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    ASSERT_TRUE(fd.valid());
    sockaddr_in from = {};
    from.sin_family = AF_INET;
    const uint32_t address = 0x7F000100 + static_cast<uint32_t>(number % plan_.addresses);
    from.sin_addr.s_addr = htonl(plan_.as_peer ? INADDR_LOOPBACK : address);
    ASSERT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&from), sizeof(from)), 0);
    const int rc = connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to));
    ASSERT_TRUE(rc == 0 || errno == EINPROGRESS) << strerror(errno);
    ++connected_;
    silent_.push_back(std::move(fd));
  }
  void Speak() {
    while (!silent_.empty() &&
           (plan_.first.empty() ||
            send(silent_.front().get(), plan_.first.data(), plan_.first.size(), MSG_NOSIGNAL) > 0 ||
            errno != EAGAIN)) {
      kept_.push_back(std::move(silent_.front()));
      silent_.pop_front();
      if (kept_.size() > kKept) kept_.pop_front();
    }
  }

  const Plan plan_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> connected_ = 0;
  std::deque<Fd> silent_, kept_;
  std::thread thread_;
};

// Three servers that connect as the engine does: in windows of a second, with pauses.
class Servers {
 public:
  // `prev_moved`: nobody's connections come from where [peers] says.
  explicit Servers(int rings = 2, bool prev_moved = false) : options_(TestPeerOptions(ca_)) {
    for (int p = 0; p < kParties; ++p) {
      if (prev_moved) options_[p].peers[PrevParty(p)] = "127.0.9.9:1";
      options_[p].rings = rings;
      connectors_[p] = TlsPeerConnector::Create(options_[p]).value();
    }
  }
  const std::string& port_of(int party) const { return options_[party].listen; }

  // How long they took; `limit` when they did not meet.
  absl::Duration Meet(absl::Duration limit, absl::Duration window = absl::Seconds(1),
                      absl::Duration pause = absl::Milliseconds(170)) {
    Part();
    const absl::Time began = absl::Now();
    OnThreeThreads([&](int p) {
      while (channels_[p].empty() && absl::Now() < began + limit) {
        auto connected = connectors_[p]->ConnectAll(absl::Now() + window);
        if (connected.ok()) {
          channels_[p] = *std::move(connected);
        } else {
          absl::SleepFor(pause * p);
        }
      }
    });
    const absl::Duration took = absl::Now() - began;
    for (const auto& c : channels_) {
      if (c.empty()) return limit;
    }
    return took;
  }
  void Part() {
    for (auto& c : channels_) c.clear();
  }

 private:
  std::array<TlsPeerConnector::Channels, 3> channels_;
  TestCa ca_;
  std::array<TlsPeerOptions, 3> options_;
  std::array<std::unique_ptr<TlsPeerConnector>, 3> connectors_;
};

struct Siege {
  std::string name;
  Strangers::Plan plan;
  int rings = 2;
  bool prev_moved = false;
};
void PrintTo(const Siege& siege, std::ostream* out) { *out << siege.name; }

class HeldShutTest : public testing::TestWithParam<Siege> {};

INSTANTIATE_TEST_SUITE_P(
    Sieges, HeldShutTest,
    testing::Values(Siege{"Idle", {100, 1, "", false}}, Siege{"IdleFast", {2000, 1, "", false}},
                    Siege{"FromEverywhere", {1000, 200, "", false}},
                    Siege{"OneByte", {100, 1, std::string(1, '\x16'), false}},
                    Siege{"HalfAHandshake", {300, 3, ClientHello(), false}},
                    Siege{"Heaviest", {1000, 200, ClientHello("ffdhe8192"), false}, 2, true},
                    Siege{"HeaviestOfAPeer", {100, 1, ClientHello("ffdhe8192"), true}},
                    Siege{"AddressOfAPeer", {100, 1, "", true}},
                    Siege{"ManyRings", {100, 1, "", false}, 16},
                    Siege{"MovedPeer", {1000, 1, "", false}, 2, true},
                    Siege{"MovedPeerFromEverywhere", {1000, 200, "", false}, 2, true}),
    [](const auto& info) { return info.param.name; });

TEST_P(HeldShutTest, TheRingForms) {
  Servers servers(GetParam().rings, GetParam().prev_moved);
  Strangers strangers(servers.port_of(1), GetParam().plan);
  absl::SleepFor(absl::Seconds(1));  // the listen queue is full of them
  const absl::Duration took = servers.Meet(absl::Seconds(20));
  std::printf("[ FIGURE   ] %s: %d strangers, the ring formed after %s\n", GetParam().name.c_str(),
              strangers.connected(), absl::FormatDuration(took).c_str());
  EXPECT_LT(took, absl::Seconds(3));
  EXPECT_GT(strangers.connected(), GetParam().plan.per_second / 2);
}

// Nobody accepts while a session lasts: strangers gather in front of the port.
TEST(HeldShut, TheRingFormsAgainAfterASession) {
  Servers servers;
  ASSERT_LT(servers.Meet(absl::Seconds(10)), absl::Seconds(10));
  Strangers strangers(servers.port_of(1), {1000, 20, "", false});
  absl::SleepFor(absl::Seconds(2));
  EXPECT_LT(servers.Meet(absl::Seconds(20)), absl::Seconds(3));
}

// In windows that are over before a handshake is.
TEST(HeldShut, WhatIsUnderWayOrFinishedIsKeptAcrossWindows) {
  Servers servers;
  EXPECT_LT(servers.Meet(absl::Seconds(10), absl::ZeroDuration(), absl::Milliseconds(1)),
            absl::Seconds(3));
}

}  // namespace
}  // namespace mpckdc
