// SPDX-License-Identifier: Apache-2.0
// What is measured: one configuration. The three parties are given the same one.
#ifndef MPC_SERVER_BENCH_SETUP_H_
#define MPC_SERVER_BENCH_SETUP_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "mpc-server/circuit/aes_circuit.h"
#include "mpc-server/randomness/isa.h"

namespace mpckdc::bench {

enum class Channel {
  kTls,     // mutual TLS 1.3, as between servers
  kMemory,  // queues of one process; parties on threads only
};
inline constexpr Channel kAllChannels[] = {Channel::kTls, Channel::kMemory};
absl::string_view ChannelName(Channel channel);

enum class Placement { kProcesses, kThreads };  // where the three parties run
absl::string_view PlacementName(Placement placement);

absl::string_view SboxName(Sbox sbox);

// What a run does with each batch.
enum class Work {
  kAes,    // the protocol
  kFloor,  // the same messages in the same rounds, without computation
};
absl::string_view WorkName(Work work);

struct BenchSetup {
  Placement placement = Placement::kProcesses;
  Channel channel = Channel::kTls;
  size_t lanes = 16384;  // blocks of one batch, over all workers
  int workers = 1;       // rings; each has a thread at every party and its part of the batch
  Isa isa = Isa::kPortable;
  Sbox sbox = Sbox::kThroughput;
  AesBits bits = AesBits::k128;
  uint64_t seed = 1;     // keys and their sharings follow from it
};

// The lanes of worker `w` are [FirstLane(w), FirstLane(w + 1)).
inline size_t FirstLane(const BenchSetup& s, int w) {
  return s.lanes * static_cast<size_t>(w) / static_cast<size_t>(s.workers);
}
inline size_t LanesOf(const BenchSetup& s, int w) { return FirstLane(s, w + 1) - FirstLane(s, w); }

// Payload sizes of the rounds of one batch of `lanes` blocks, in order: what AesEncrypt sends.
std::vector<size_t> RoundSizes(AesBits bits, Sbox sbox, size_t lanes);

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_SETUP_H_
