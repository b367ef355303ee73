// SPDX-License-Identifier: Apache-2.0
// The three parties as the measuring side sees them, wherever they run.
#ifndef MPC_SERVER_BENCH_PARTIES_H_
#define MPC_SERVER_BENCH_PARTIES_H_

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mpc-server/bench/links.h"
#include "mpc-server/bench/messages.h"
#include "mpc-server/bench/setup.h"
#include "mpc-server/bench/workload.h"

namespace mpckdc::bench {

struct RunReport {
  std::array<PartyReport, kParties> parties;
  uint32_t batches = 0;
};

// They are connected and idle at first.
class Parties {
 public:
  virtual ~Parties() = default;

  // In this order: keys once, then runs.
  absl::Status MakeKeys();
  absl::StatusOr<RunReport> Run(Work work, uint32_t batches);
  absl::StatusOr<OutputShares> Outputs(absl::Span<const size_t> lanes);
  absl::StatusOr<std::array<MemoryReport, kParties>> Memory();

  // Of one command at the three (messages.h).
  using Answers = std::array<absl::StatusOr<json>, kParties>;
  virtual Answers Ask(const json& command) = 0;

 protected:
  template <class T>
  static absl::StatusOr<std::array<T, kParties>> All(const Answers& answers);
};

// On threads of this process, over any channels.
absl::StatusOr<std::unique_ptr<Parties>> OpenOnThreads(const BenchSetup& setup, RingsOfThree rings,
                                                       absl::Duration round_timeout);

// In processes of this program. Without a prefix and addresses: here, on loopback.
struct ProcessOptions {
  std::string program;             // this program's file
  std::vector<std::string> launch;  // words before it; "{party}" becomes 0, 1, 2
  std::array<std::string, kParties> addresses;  // host:port at which each listens; empty: chosen
  TlsPeerOptions tuning;                        // of sockets
  double round_timeout_s = 60;
};
absl::StatusOr<std::unique_ptr<Parties>> OpenInProcesses(const BenchSetup& setup,
                                                         const ProcessOptions& options);

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_PARTIES_H_
