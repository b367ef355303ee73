// SPDX-License-Identifier: Apache-2.0
// The three parties as the measuring side sees them, wherever they run.
#ifndef MPC_SERVER_BENCH_PARTIES_H_
#define MPC_SERVER_BENCH_PARTIES_H_

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mpc-server/bench/links.h"
#include "mpc-server/bench/report.h"
#include "mpc-server/bench/setup.h"
#include "mpc-server/share/replicated_share.h"

namespace mpckdc::bench {

using OutputShares = std::array<std::vector<SharedBlock>, kParties>;

class Parties {
 public:
  virtual ~Parties() = default;
  // In this order: keys once, then runs. The parties are connected and idle before.
  virtual absl::Status MakeKeys() = 0;
  virtual absl::StatusOr<RunReport> Run(Work work, uint32_t batches) = 0;
  virtual absl::StatusOr<OutputShares> Outputs(absl::Span<const size_t> lanes) = 0;
  virtual absl::StatusOr<std::array<MemoryReport, kParties>> Memory() = 0;
};

// On threads of this process, over any channels.
absl::StatusOr<std::unique_ptr<Parties>> OpenOnThreads(const BenchSetup& setup, RingsOfThree rings,
                                                       absl::Duration round_timeout);

// Where child processes run. Without a prefix and addresses: here, on loopback.
struct ProcessOptions {
  std::string program;             // this program's file
  std::vector<std::string> launch;  // words before it; "{party}" becomes 0, 1, 2
  std::array<std::string, kParties> addresses;  // host:port at which each listens; empty: chosen
  LinkTuning tuning;
};
absl::StatusOr<std::unique_ptr<Parties>> OpenInProcesses(const BenchSetup& setup,
                                                         const ProcessOptions& options);

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_PARTIES_H_
