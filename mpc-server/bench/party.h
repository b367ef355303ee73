// SPDX-License-Identifier: Apache-2.0
// One party: its channels and its teams, each with its rings; it answers the commands of
// messages.h.
#ifndef MPC_SERVER_BENCH_PARTY_H_
#define MPC_SERVER_BENCH_PARTY_H_

#include <functional>
#include <istream>
#include <memory>
#include <ostream>
#include <vector>

#include "absl/status/statusor.h"
#include "mpc-server/bench/messages.h"
#include "mpc-server/bench/options.h"
#include "mpc-server/bench/workload.h"
#include "mpc-server/wire/peer_channel.h"

namespace mpckdc::bench {

// f(0) to f(n - 1) at the same time, each on a thread of its own; the first error.
absl::Status AllAtOnce(size_t n, const std::function<absl::Status(size_t)>& f);

// One channel per ring. Shared, so that a channel may also be a part of something larger.
using RingsOfParty = std::vector<std::shared_ptr<PeerChannel>>;

// One party's side of `peers.rings` connections per neighbour; not for Channel::kMemory. The
// certificates of `peers` are left alone where nothing is protected.
absl::StatusOr<RingsOfParty> ConnectRings(Channel channel, const TlsPeerOptions& peers);

class Party {
 public:
  // The channels are those of team after team. All three parties open at the same time. Of what
  // the process uses, each of the `sharers` parties in it reports its part.
  static absl::StatusOr<std::unique_ptr<Party>> Open(const BenchSetup& setup, int party,
                                                     RingsOfParty rings,
                                                     absl::Duration round_timeout, int sharers);
  ~Party();

  // One command at a time; "run" at all three parties at the same time.
  absl::StatusOr<json> Answer(const json& command);

 private:
  class Team;
  explicit Party(const BenchSetup& setup, int sharers);
  absl::StatusOr<json> Run(const json& command);
  absl::StatusOr<json> Outputs(const json& command) const;

  const BenchSetup setup_;
  const int sharers_;
  const Workload workload_;
  std::vector<std::unique_ptr<Team>> teams_;
  uint64_t idle_bytes_ = 0;
};

// `mpc-bench party`: connects, then answers the commands until `in` ends. Returns the exit status.
int RunParty(const Options& options, std::istream& in, std::ostream& out);

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_PARTY_H_
