// SPDX-License-Identifier: Apache-2.0
// One party: its teams, started and waited for together.
#ifndef MPC_SERVER_BENCH_PARTY_H_
#define MPC_SERVER_BENCH_PARTY_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "mpc-server/bench/links.h"
#include "mpc-server/bench/worker.h"

namespace mpckdc::bench {

class Party {
 public:
  // One channel per ring, team after team. All three parties open at the same time.
  static absl::StatusOr<std::unique_ptr<Party>> Open(
      const BenchSetup& setup, int party, RingsOfParty rings,
      absl::Duration round_timeout);

  absl::Status MakeKeys();
  // Start() returns at once, Finish() when all batches are done. All three parties run the same.
  void Start(Work work, uint32_t batches);
  absl::StatusOr<PartyReport> Finish();

  uint64_t key_bytes() const;
  // This party's shares of the last batch's outputs in these lanes. Errors: no batch was run, or a
  // lane is not one of the batch's.
  absl::StatusOr<std::vector<SharedBlock>> Outputs(absl::Span<const size_t> lanes) const;

 private:
  explicit Party(const BenchSetup& setup) : setup_(setup) {}
  absl::Status WaitForAll();

  const BenchSetup setup_;
  std::vector<std::unique_ptr<Worker>> workers_;
  int64_t start_ns_ = 0;
};

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_PARTY_H_
