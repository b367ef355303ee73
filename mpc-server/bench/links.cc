// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/links.h"

#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/transport/memory_channel.h"
#include "mpc-server/transport/socket.h"
#include "mpc-server/transport/test_certificates.h"

namespace mpckdc::bench {
namespace {

constexpr absl::Duration kConnectTimeout = absl::Seconds(20);
constexpr int kMaxPort = 65535;

// Keeps listening sockets on `rings` ports from a free one on; empty: some port was taken.
absl::StatusOr<std::vector<Fd>> HoldPorts(int rings) {
  std::vector<Fd> held;
  absl::StatusOr<Fd> first = ListenOn("127.0.0.1:0", {});
  if (!first.ok()) return first.status();
  const int port = LocalPort(*first);
  held.push_back(*std::move(first));
  for (int r = 1; r < rings; ++r) {
    absl::StatusOr<Fd> next = port + r > kMaxPort
                                  ? absl::OutOfRangeError("no port above")
                                  : ListenOn(absl::StrCat("127.0.0.1:", port + r), {});
    if (!next.ok()) return std::vector<Fd>();
    held.push_back(*std::move(next));
  }
  return held;
}

absl::StatusOr<RingsOfThree> ConnectMemory(const BenchSetup& setup) {
  RingsOfThree rings;
  for (int w = 0; w < setup.workers; ++w) {
    const auto ring = std::make_shared<MemoryRing>();
    for (int p = 0; p < kParties; ++p) {
      rings[p].push_back(std::shared_ptr<PeerChannel>(ring, &ring->channel(p)));
    }
  }
  return rings;
}

}  // namespace

absl::StatusOr<std::string> MovePort(absl::string_view host_port, int by) {
  std::string host, port;
  if (absl::Status s = SplitHostPort(host_port, &host, &port); !s.ok()) return s;
  int number = 0;
  if (!absl::SimpleAtoi(port, &number) || number < 1 || number + by > kMaxPort) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", host_port, "\": the port must be a number from 1 to ", kMaxPort - by));
  }
  const bool six = host.find(':') != std::string::npos;
  return absl::StrCat(six ? "[" : "", host, six ? "]" : "", ":", number + by);
}

absl::StatusOr<RingsOfParty> ConnectRings(const TlsPeerOptions& peers, int rings,
                                          absl::Time deadline) {
  RingsOfParty channels;
  for (int r = 0; r < rings; ++r) {
    TlsPeerOptions options = peers;
    absl::StatusOr<std::string> listen = MovePort(peers.listen, r);
    if (!listen.ok()) return listen.status();
    options.listen = *listen;
    for (std::string& address : options.peers) {
      absl::StatusOr<std::string> moved = MovePort(address, r);
      if (!moved.ok()) return moved.status();
      address = *moved;
    }
    absl::StatusOr<std::unique_ptr<TlsPeerConnector>> connector = TlsPeerConnector::Create(options);
    if (!connector.ok()) return connector.status();
    absl::StatusOr<std::unique_ptr<PeerChannel>> channel = (*connector)->Connect(deadline);
    if (!channel.ok()) return channel.status();
    channels.push_back(*std::move(channel));
  }
  return channels;
}

absl::StatusOr<std::array<std::string, kParties>> FreeLoopbackAddresses(int rings) {
  constexpr int kTries = 50;
  std::array<std::string, kParties> addresses;
  std::vector<std::vector<Fd>> held;  // all at once, so that the three differ
  for (std::string& address : addresses) {
    for (int tries = 0; address.empty(); ++tries) {
      absl::StatusOr<std::vector<Fd>> ports = HoldPorts(rings);
      if (!ports.ok()) return ports.status();
      if (!ports->empty()) {
        address = absl::StrCat("127.0.0.1:", LocalPort(ports->front()));
        held.push_back(*std::move(ports));
      } else if (tries == kTries) {
        return absl::UnavailableError(absl::StrCat("no ", rings, " free ports in a row"));
      }
    }
  }
  return addresses;
}

absl::StatusOr<RingsOfThree> ConnectInProcess(const BenchSetup& setup, const LinkTuning& tuning) {
  if (setup.channel == Channel::kMemory) return ConnectMemory(setup);
  absl::StatusOr<std::array<std::string, kParties>> addresses =
      FreeLoopbackAddresses(setup.workers);
  if (!addresses.ok()) return addresses.status();
  TestCa ca;
  std::array<TlsPeerOptions, 3> options = TestPeerOptions(ca);
  std::array<absl::StatusOr<RingsOfParty>, kParties> connected;
  std::vector<std::thread> threads;
  for (int p = 0; p < kParties; ++p) {
    options[p].listen = (*addresses)[p];
    options[p].peers = *addresses;
    options[p].socket_buffer_bytes = tuning.socket_buffer_bytes;
    options[p].tcp_congestion = tuning.congestion;
    threads.emplace_back([&, p] {
      connected[p] =
          ConnectRings(options[p], setup.workers, SystemClock().Now() + kConnectTimeout);
    });
  }
  for (std::thread& t : threads) t.join();
  RingsOfThree rings;
  for (int p = 0; p < kParties; ++p) {
    if (!connected[p].ok()) return connected[p].status();
    rings[p] = *std::move(connected[p]);
  }
  return rings;
}

}  // namespace mpckdc::bench
