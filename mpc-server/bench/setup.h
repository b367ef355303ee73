// SPDX-License-Identifier: Apache-2.0
// What is measured: one configuration. The three parties are given the same one.
#ifndef MPC_SERVER_BENCH_SETUP_H_
#define MPC_SERVER_BENCH_SETUP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mpc-server/base/isa.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/circuit/aes/aes_batch.h"
#include "mpc-server/circuit/hash/hmac.h"
#include "mpc-server/compute/batch_work.h"
#include "mpc-server/share/session.h"
#include "mpc-server/share/zero_shares.h"

namespace mpckdc::bench {

enum class Channel {
  kAead,    // AES-GCM records after a mutual TLS 1.3 handshake, as between servers that have them
  kTls,     // TLS's own records, as between servers that do not
  kTcp,     // no protection
  kMemory,  // queues of one process; parties on threads only
};
// What servers on machines like this one speak.
Channel DefaultChannel();
bool ChannelIsBuilt(Channel channel);

enum class Placement { kProcesses, kThreads };  // where the three parties run

// What a lane of the batch is.
enum class Unit {
  kBlock,  // of AES
  kHmac,   // one message
  kLogin,  // a whole login under one of the enctypes 17 to 20
};

// What a run does with each batch.
enum class Work {
  kLanes,  // the protocol
  kFloor,  // the same messages in the same rounds, without computation; of blocks only
};

// The names of values on the command line and in the output.
template <class T>
using Names = std::vector<std::pair<std::string, T>>;
inline const Names<Channel> kChannels = {{"aead", Channel::kAead},
                                         {"tls", Channel::kTls},
                                         {"tcp", Channel::kTcp},
                                         {"memory", Channel::kMemory}};
inline const Names<Placement> kPlacements = {{"processes", Placement::kProcesses},
                                             {"threads", Placement::kThreads}};
inline const Names<Work> kWorks = {{"aes", Work::kLanes}, {"floor", Work::kFloor}};
inline const Names<Randomness> kRandomnesses = {{"keyed", Randomness::kKeyed},
                                                {"exchanged", Randomness::kExchanged}};
inline const Names<Security> kSecurities = {{"semi-honest", Security::kSemiHonest},
                                            {"active", Security::kActive}};
inline const Names<HashKind> kHashes = {
    {"sha1", HashKind::kSha1}, {"sha256", HashKind::kSha256}, {"sha384", HashKind::kSha384}};
inline const Names<std::optional<Adder>> kAdderChoices = {{"auto", std::nullopt},
                                                          {"ripple", Adder::kRipple},
                                                          {"prefix", Adder::kPrefix},
                                                          {"fewest-rounds", Adder::kFewestRounds}};
inline const Names<std::optional<CtsProtocol>> kProtocolChoices = {
    {"auto", std::nullopt},
    {"replicated", CtsProtocol::kReplicated},
    {"garbled", CtsProtocol::kGarbled}};
inline const Names<std::optional<Sbox>> kSboxChoices = {
    {"auto", std::nullopt}, {"throughput", Sbox::kThroughput}, {"latency", Sbox::kLatency}};

template <class T>
std::string NameOf(const Names<T>& names, const T& value) {
  for (const auto& [name, named] : names) {
    if (named == value) return name;
  }
  return "?";
}

struct BenchSetup {
  Placement placement = Placement::kProcesses;
  Channel channel = DefaultChannel();
  Unit unit = Unit::kBlock;
  size_t lanes = 16384;  // of one batch, over all workers
  int workers = 1;       // rings; each has a thread at every party and its share of the batch
  // Joined, the workers do one batch after the other together, as a server's do. Else each goes on
  // by itself with its share of the next.
  bool joined = false;
  size_t chunk_lanes = limits::kChunkBlocks;  // of a chunk of a ring's share
  size_t slots = limits::kChunksUnderWay;     // chunks of a ring under way at once
  Randomness randomness = Randomness::kKeyed;
  Security security = Security::kSemiHonest;
  Isa isa = Isa::kPortable;
  std::optional<Sbox> sbox = {};  // none: by the batch's size, as the servers choose it
  AesBits bits = AesBits::k128;

  std::optional<Adder> adder = {};  // of hmacs and logins; none: as the servers choose it
  // For hmacs, which are one circuit on one ring, in one chunk.
  HashKind hash = HashKind::kSha1;
  bool shared_messages = true;  // else public
  size_t message_bytes = 300;
  // For logins, which have one ring.
  int32_t enctype = 18;
  std::optional<CtsProtocol> protocol = {};  // none: as the servers choose it
  bool checksum = true;         // usage 56
  size_t request_bytes = 200;   // AS-REQ
  size_t reply_bytes = 255;     // plaintext of the AS-REP's encrypted part

  uint64_t seed = 1;  // keys and their sharings follow from it
};

// A team is what does one batch after the other: all workers if they are joined, else each alone.
inline int Teams(const BenchSetup& s) { return s.joined ? 1 : s.workers; }
inline int RingsOfTeam(const BenchSetup& s) { return s.joined ? s.workers : 1; }
// The lanes of team `t` are [FirstLane(t), FirstLane(t + 1)).
inline size_t FirstLane(const BenchSetup& s, int t) {
  return s.lanes * static_cast<size_t>(t) / static_cast<size_t>(Teams(s));
}
inline size_t LanesOf(const BenchSetup& s, int t) { return FirstLane(s, t + 1) - FirstLane(s, t); }

// The S-box of a batch of blocks: what was asked for, or the servers' choice for a team's lanes.
Sbox SboxOf(const BenchSetup& setup);

inline AesCut CutOf(const BenchSetup& s) { return {s.chunk_lanes, s.slots, limits::kRingBlocks}; }
// The chunks of each ring that a team's batch uses.
inline std::vector<std::vector<size_t>> ChunksOf(const BenchSetup& s, size_t lanes) {
  return ChunksOfRings(CutOf(s), lanes, static_cast<size_t>(RingsOfTeam(s)));
}

// What one batch of a team makes a party send, proofs not counted.
struct DeclaredSends {
  Cost cost;            // as RunOverlapped() counts: rounds of the slot that has the most
  uint64_t frames = 0;  // of all slots and rings; of those to the previous party only Add()'s

  // What follows in a RunTogether() of its own. `to_prev`: rounds that send there.
  void Add(const BenchSetup& setup, const Cost& more, uint64_t to_prev);
};
// AES of so many blocks, `others` beside the first chunk.
DeclaredSends DeclaredOfBlocks(const BenchSetup& setup, AesBits bits, size_t blocks, Sbox sbox,
                               const Cost& others = {});

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_SETUP_H_
