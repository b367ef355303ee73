// SPDX-License-Identifier: Apache-2.0
// The messages of a batch on one ring and nothing else: the same sizes, rounds and overlap as the
// protocol's, from and into buffers that nobody computes or reads. What it costs is the least that
// this channel needs for these messages.
#ifndef MPC_SERVER_BENCH_FLOOR_H_
#define MPC_SERVER_BENCH_FLOOR_H_

#include <vector>

#include "absl/status/status.h"
#include "mpc-server/bench/setup.h"
#include "mpc-server/wire/peer_channel.h"

namespace mpckdc::bench {

class ChannelFloor {
 public:
  // The ring's parts, in order (PartsOfRings()).
  ChannelFloor(const BenchSetup& setup, const std::vector<size_t>& parts);

  absl::Status RunBatch(PeerChannel& channel, uint32_t session, uint32_t batch,
                        absl::Duration round_timeout);
  const Cost& cost_of_batch() const { return cost_; }

 private:
  // Two sets of buffers in turn, like the runner's.
  struct Slot {
    std::vector<size_t> sizes;  // of all its rounds, part after part
    size_t next = 0;
    RoundId id;
    SecretBytes to_next[2], from_prev[2];
  };
  absl::Status Step(PeerChannel& channel, Slot& slot, absl::Duration round_timeout);

  std::vector<Slot> slots_;
  Cost cost_;
  RoundId id_;  // of the next round to post
};

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_FLOOR_H_
