// SPDX-License-Identifier: Apache-2.0
// What the lanes of a batch are: keys, inputs and what must come out, all from the setup's seed.
// Each party makes its own shares, and whoever verifies knows the keys. Each lane has keys of its
// own in memory; their values repeat every kDistinctKeys lanes, since expanding them is not what is
// measured.
#ifndef MPC_SERVER_BENCH_WORKLOAD_H_
#define MPC_SERVER_BENCH_WORKLOAD_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "mpc-server/bench/setup.h"
#include "mpc-server/share/replicated_share.h"
#include "mpc-server/share/rings.h"

namespace mpckdc::bench {

// The lanes [first, first + lanes) at one party, of one team.
class TeamWork {
 public:
  virtual ~TeamWork() = default;
  // Batch `batch` of the rings' sessions, from 1 on. `cost` grows by what was exchanged.
  virtual absl::Status Run(Rings& rings, uint32_t batch, Cost* cost) = 0;
  // What came out of the last batch: Workload::outputs_per_lane blocks of each lane.
  virtual absl::Span<const SharedBlock> outputs() const { return {}; }
  virtual size_t key_bytes() const { return 0; }  // of keys and inputs, which a server has anyway
};

struct Workload {
  size_t outputs_per_lane = 1;
  size_t most_verified_lanes = 1024;
  // What one batch of a team costs one party.
  std::function<DeclaredSends(size_t lanes)> declared;
  std::function<std::unique_ptr<TeamWork>(int party, size_t first, size_t lanes)> make_team;
  // Whether a lane's outputs, joined, are what OpenSSL gives.
  std::function<bool(size_t lane, uint32_t batch, absl::Span<const Block> outputs)> is_right;
};

Workload WorkloadOf(const BenchSetup& setup);
Workload BlockWorkload(const BenchSetup& setup);  // aes_workload.cc
Workload HmacWorkload(const BenchSetup& setup);
Workload LoginWorkload(const BenchSetup& setup);

// The messages of blocks without computation (floor.cc). The sessions of its rings must have
// Randomness::kKeyed: its messages have what is exchanged.
std::unique_ptr<TeamWork> MakeFloor(const BenchSetup& setup, size_t lanes);
// Payload sizes of the rounds of a chunk of `lanes` blocks, in order.
std::vector<size_t> RoundSizes(const BenchSetup& setup, size_t lanes);

// What one batch makes a party send, all teams together. Rounds are those of one.
DeclaredSends DeclaredOfAll(const BenchSetup& setup);

// ---- From the seed ----

using Bytes = std::vector<uint8_t>;
inline constexpr size_t kDistinctKeys = 256;

// ChaCha20 under the seed: stream `number` of `purpose`.
enum class Stream : uint8_t { kKeys = 1, kSharing = 2, kText = 3 };
Bytes Draw(const BenchSetup& setup, Stream purpose, uint64_t number, size_t bytes);
inline Bytes KeyOf(const BenchSetup& setup, size_t lane, size_t bytes) {
  return Draw(setup, Stream::kKeys, lane % kDistinctKeys, bytes);
}

// What lane `lane` begins with in batch `batch`: both numbers, so that no batch's outputs can pass
// for another's.
//
//   byte  0          8         12        16
//         +----------+---------+---------+
//         |   lane   |  batch  |    0    |   in the machine's order
//         +----------+---------+---------+
Block InputOf(size_t lane, uint32_t batch);

// This party's shares of `values`, from stream `number` of Stream::kSharing.
void ShareInto(const BenchSetup& setup, int party, uint64_t number, absl::Span<const Block> values,
               SharedBlock* out);

// ---- Verification ----

// The first lane and the last and many between; all of a small batch.
std::vector<size_t> SampleOfLanes(size_t lanes, size_t most);

using OutputShares = std::array<std::vector<SharedBlock>, kParties>;
// True if the three parties' output shares of `sample` are consistent and of the right values.
bool SharesAreRight(const Workload& workload, uint32_t batch, absl::Span<const size_t> sample,
                    const OutputShares& shares);

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_WORKLOAD_H_
