// SPDX-License-Identifier: Apache-2.0
// Keys, messages and what must come out of `mpc-bench hmac`, all from the setup's seed. Each lane
// has states of its own in memory, freshly shared; the keys repeat every kDistinctKeys lanes. A
// message begins with its lane and batch (InputOf() of workload.h), and goes on from the seed.
#ifndef MPC_SERVER_BENCH_HMAC_WORKLOAD_H_
#define MPC_SERVER_BENCH_HMAC_WORKLOAD_H_

#include <vector>

#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/bench/setup.h"
#include "mpc-server/circuit/hmac.h"
#include "mpc-server/share/replicated_share.h"

namespace mpckdc::bench {

// One party's lanes.
class HmacLanes {
 public:
  HmacLanes(const BenchSetup& setup, int party);
  // Writes the batch's number into every message.
  void SetBatch(uint32_t batch);
  absl::Span<const HmacLane> lanes() const { return lanes_; }
  size_t bytes() const;

 private:
  const size_t bytes_, blocks_;  // of a message
  SecretVector<SharedBlock> states_, shared_;
  std::vector<uint8_t> public_;
  std::vector<HmacLane> lanes_;
};

// What is verified: blocks of 16 bytes of the digests, numbered on from lane to lane. SHA-384's
// fourth block is no part of the digest.
std::vector<size_t> SampleOfDigests(const BenchSetup& setup);

// HMAC by OpenSSL: block `number` in that order, zeros behind the digest.
class HmacOracle {
 public:
  explicit HmacOracle(const BenchSetup& setup);
  Block Expected(size_t number, uint32_t batch) const;

 private:
  const BenchSetup setup_;
  const std::vector<std::vector<uint8_t>> keys_;
};

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_HMAC_WORKLOAD_H_
