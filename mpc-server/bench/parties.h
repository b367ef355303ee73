// SPDX-License-Identifier: Apache-2.0
// The three parties as the measuring side sees them, wherever they run.
#ifndef MPC_SERVER_BENCH_PARTIES_H_
#define MPC_SERVER_BENCH_PARTIES_H_

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mpc-server/bench/messages.h"
#include "mpc-server/bench/options.h"
#include "mpc-server/bench/party.h"
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

  // The three parties' answers to one command (messages.h).
  using Answers = std::array<absl::StatusOr<json>, kParties>;
  virtual Answers Ask(const json& command) = 0;

 protected:
  template <class T>
  static absl::StatusOr<std::array<T, kParties>> All(const Answers& answers);
};

// All three parties' channels within this process, their sockets tuned as those of `tuning`.
using RingsOfThree = std::array<RingsOfParty, kParties>;
absl::StatusOr<RingsOfThree> ConnectInProcess(const BenchSetup& setup,
                                              const TlsPeerOptions& tuning);

// On threads of this process, over any channels.
absl::StatusOr<std::unique_ptr<Parties>> OpenOnThreads(const BenchSetup& setup, RingsOfThree rings,
                                                       absl::Duration round_timeout);

// In processes of `program`, this program's file. Without words to launch it and addresses: here,
// on loopback.
absl::StatusOr<std::unique_ptr<Parties>> OpenInProcesses(const BenchSetup& setup,
                                                         const std::string& program,
                                                         const Options& options);

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_PARTIES_H_
