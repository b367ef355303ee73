// SPDX-License-Identifier: Apache-2.0
// What is measured: one configuration. The three parties are given the same one.
#ifndef MPC_SERVER_BENCH_SETUP_H_
#define MPC_SERVER_BENCH_SETUP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "mpc-server/base/isa.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/circuit/aes_batch.h"
#include "mpc-server/circuit/hmac.h"
#include "mpc-server/share/zero_shares.h"

namespace mpckdc::bench {

enum class Channel {
  kAead,    // AES-GCM records after a mutual TLS 1.3 handshake, as between servers that have them
  kTls,     // TLS's own records, as between servers that do not
  kTcp,     // no protection
  kMemory,  // queues of one process; parties on threads only
};
inline constexpr Channel kAllChannels[] = {Channel::kAead, Channel::kTls, Channel::kTcp,
                                           Channel::kMemory};
// What servers on machines like this one speak.
Channel DefaultChannel();
bool ChannelIsBuilt(Channel channel);
absl::string_view ChannelName(Channel channel);

enum class Placement { kProcesses, kThreads };  // where the three parties run
absl::string_view PlacementName(Placement placement);

absl::string_view SboxName(Sbox sbox);

// What a run does with each batch.
enum class Work {
  kAes,    // the protocol: AES, or HMAC or logins where the setup has them
  kFloor,  // the same messages in the same rounds, without computation
};
absl::string_view WorkName(Work work);

absl::string_view HashName(HashKind hash);
absl::string_view AdderName(Adder adder);

// HMACs instead of AES blocks: a lane is a message. One circuit on one ring, in one part.
struct HmacSetup {
  HashKind hash = HashKind::kSha1;
  Adder adder = Adder::kPrefix;
  bool shared = true;  // the messages are; else public
  size_t bytes = 300;  // of each message
};

// Whole logins under one of the enctypes 17 to 20 instead of AES blocks: a lane is a login
// (login_batch.h). One ring, one part.
struct LoginSetup {
  int32_t enctype = 18;
  bool checksum = true;  // usage 56
  Adder adder = Adder::kPrefix;
  size_t request_bytes = 200, reply_bytes = 255;  // AS-REQ; plaintext of the AS-REP's part
};

struct BenchSetup {
  Placement placement = Placement::kProcesses;
  Channel channel = DefaultChannel();
  size_t lanes = 16384;  // blocks (or messages) of one batch, over all workers
  int workers = 1;       // rings; each has a thread at every party and its share of the batch
  // Joined, the workers do one batch after the other together, as a server's do. Else each goes on
  // by itself with its share of the next.
  bool joined = false;
  size_t part_lanes = limits::kPartBlocks;  // of a part of a ring's share
  size_t slots = limits::kPartsUnderWay;    // parts of a ring under way at once
  Randomness randomness = Randomness::kKeyed;
  Isa isa = Isa::kPortable;
  Sbox sbox = Sbox::kThroughput;
  AesBits bits = AesBits::k128;
  std::optional<HmacSetup> hmac;
  std::optional<LoginSetup> login;
  uint64_t seed = 1;     // keys and their sharings follow from it
};

// A team is what does one batch after the other: all workers if they are joined, else each alone.
inline int Teams(const BenchSetup& s) { return s.joined ? 1 : s.workers; }
inline int RingsOfTeam(const BenchSetup& s) { return s.joined ? s.workers : 1; }
// The lanes of team `t` are [FirstLane(t), FirstLane(t + 1)).
inline size_t FirstLane(const BenchSetup& s, int t) {
  return s.lanes * static_cast<size_t>(t) / static_cast<size_t>(Teams(s));
}
inline size_t LanesOf(const BenchSetup& s, int t) { return FirstLane(s, t + 1) - FirstLane(s, t); }

inline AesCut CutOf(const BenchSetup& s) { return {s.part_lanes, s.slots, limits::kRingBlocks}; }
// The lanes of the parts of each ring that a team's batch of `lanes` uses, as AesBatch cuts them.
std::vector<std::vector<size_t>> PartsOfRings(const BenchSetup& setup, size_t lanes);

// Payload sizes of the rounds of a part of `lanes` blocks, in order.
std::vector<size_t> RoundSizes(const BenchSetup& setup, size_t lanes);

// What one batch of a team makes a party send.
struct DeclaredSends {
  Cost cost;            // as RunOverlapped() counts: rounds of the slot that has the most
  uint64_t frames = 0;  // of all slots and rings
};
DeclaredSends DeclaredOf(const BenchSetup& setup, size_t lanes);

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_SETUP_H_
