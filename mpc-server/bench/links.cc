// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/links.h"

#include <thread>

#include "mpc-server/base/status_macros.h"
#include "mpc-server/testing/certificates.h"
#include "mpc-server/testing/memory_channel.h"
#include "mpc-server/testing/plain_link.h"

namespace mpckdc::bench {
namespace {

constexpr absl::Duration kConnectTimeout = absl::Seconds(20);

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

absl::StatusOr<RingsOfParty> Shared(
    absl::StatusOr<std::vector<std::unique_ptr<PeerChannel>>> channels) {
  if (!channels.ok()) return channels.status();
  RingsOfParty shared;
  for (std::unique_ptr<PeerChannel>& c : *channels) shared.push_back(std::move(c));
  return shared;
}

}  // namespace

absl::Status AllAtOnce(size_t n, const std::function<absl::Status(size_t)>& f) {
  std::vector<absl::Status> statuses(n);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < n; ++i) threads.emplace_back([&, i] { statuses[i] = f(i); });
  for (std::thread& t : threads) t.join();
  for (const absl::Status& s : statuses) {
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::StatusOr<RingsOfParty> ConnectRings(Channel channel, const TlsPeerOptions& peers,
                                          absl::Time deadline) {
  if (channel == Channel::kTcp) return Shared(ConnectPlain(peers, deadline));
  TlsPeerOptions options = peers;
  options.records = channel == Channel::kAead ? PeerRecords::kAead : PeerRecords::kTls;
  ASSIGN_OR_RETURN(std::unique_ptr<TlsPeerConnector> connector, TlsPeerConnector::Create(options));
  return Shared(connector->ConnectAll(deadline));
}

absl::StatusOr<RingsOfThree> ConnectInProcess(const BenchSetup& setup,
                                              const TlsPeerOptions& tuning) {
  if (setup.channel == Channel::kMemory) return ConnectMemory(setup);
  TestCa ca;
  std::array<TlsPeerOptions, kParties> options = TestPeerOptions(ca);
  RingsOfThree rings;
  RETURN_IF_ERROR(AllAtOnce(kParties, [&](size_t p) {
    options[p].rings = setup.workers;
    options[p].socket_buffer_bytes = tuning.socket_buffer_bytes;
    options[p].tcp_congestion = tuning.tcp_congestion;
    auto own = ConnectRings(setup.channel, options[p], SystemClock().Now() + kConnectTimeout);
    if (own.ok()) rings[p] = *std::move(own);
    return own.status();
  }));
  return rings;
}

}  // namespace mpckdc::bench
