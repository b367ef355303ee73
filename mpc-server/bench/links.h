// SPDX-License-Identifier: Apache-2.0
// The channels of a run.
#ifndef MPC_SERVER_BENCH_LINKS_H_
#define MPC_SERVER_BENCH_LINKS_H_

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpc-server/bench/setup.h"
#include "mpc-server/wire/peer_channel.h"
#include "mpc-server/wire/ring.h"
#include "mpc-server/wire/tls_channel.h"

namespace mpckdc::bench {

// f(0) to f(n - 1) at the same time, each on a thread of its own; the first error.
absl::Status AllAtOnce(size_t n, const std::function<absl::Status(size_t)>& f);

// One channel per ring. Shared, so that a channel may also be a part of something larger.
using RingsOfParty = std::vector<std::shared_ptr<PeerChannel>>;
using RingsOfThree = std::array<RingsOfParty, kParties>;

// One party's side of `peers.rings` connections per neighbour; not for Channel::kMemory. The
// certificates of `peers` are left alone where nothing is protected.
absl::StatusOr<RingsOfParty> ConnectRings(Channel channel, const TlsPeerOptions& peers,
                                          absl::Time deadline);

// All three parties' channels within this process. Of `tuning` sockets are tuned.
absl::StatusOr<RingsOfThree> ConnectInProcess(const BenchSetup& setup,
                                              const TlsPeerOptions& tuning);

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_LINKS_H_
