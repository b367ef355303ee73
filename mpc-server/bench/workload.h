// SPDX-License-Identifier: Apache-2.0
// Keys, inputs and what must come out, all from the setup's seed: each party makes its own shares,
// and whoever verifies knows the keys. Each lane has round keys of its own in memory, freshly
// shared; the keys themselves repeat every kDistinctKeys lanes, since expanding them is not what is
// measured.
#ifndef MPC_SERVER_BENCH_WORKLOAD_H_
#define MPC_SERVER_BENCH_WORKLOAD_H_

#include <array>
#include <vector>

#include "absl/types/span.h"
#include "mpc-server/bench/hmac_workload.h"
#include "mpc-server/bench/setup.h"
#include "mpc-server/share/replicated_share.h"

namespace mpckdc::bench {

inline constexpr size_t kDistinctKeys = 256;

// ChaCha20 under the seed: stream `number` of `purpose`.
enum class Stream : uint8_t { kKeys = 1, kSharing = 2, kText = 3, kReplyShares = 4 };
void DrawFromSeed(uint64_t seed, Stream purpose, uint64_t number, absl::Span<uint8_t> out);

// The block that lane `lane` encrypts in batch `batch`: both numbers, so that no batch's outputs
// can pass for another's.
//
//   byte  0          8         12        16
//         +----------+---------+---------+
//         |   lane   |  batch  |    0    |   in the machine's order
//         +----------+---------+---------+
Block InputOf(size_t lane, uint32_t batch);
void SetBatch(Block& input, uint32_t batch);

// From one lane's keys to the next one's. As in a server, where each key is an allocation of its
// own, they begin with a cache line.
inline constexpr size_t KeyStride(AesBits bits) { return (AesRoundKeys(bits) + 1) / 2 * 2; }
// One party's shares of the round keys of the lanes [first, first + lanes), one lane after the
// other, so far apart.
SecretVector<SharedBlock> SharesOfRoundKeys(const BenchSetup& setup, int party, size_t first,
                                           size_t lanes);

// AES by OpenSSL, or HMAC where the setup has it.
class Oracle {
 public:
  explicit Oracle(const BenchSetup& setup);
  Block Expected(size_t lane, uint32_t batch) const;

 private:
  const HmacOracle hmac_;
  const bool is_hmac_;
  AesBits bits_;
  std::vector<std::vector<uint8_t>> keys_;
};

// Lanes whose outputs are verified: all of a small batch, else the first and the last and many
// between.
inline constexpr size_t kVerifiedLanes = 1024;
std::vector<size_t> SampleOfLanes(size_t lanes);

// True if the three parties' output shares of `sample` are consistent and of the right values.
bool SharesAreRight(const Oracle& oracle, uint32_t batch, absl::Span<const size_t> sample,
                    const std::array<std::vector<SharedBlock>, kParties>& shares);

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_WORKLOAD_H_
