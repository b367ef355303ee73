// SPDX-License-Identifier: Apache-2.0
// Three parties on threads of this process.
#include <functional>
#include <thread>

#include "mpc-server/bench/parties.h"
#include "mpc-server/bench/party.h"
#include "mpc-server/bench/usage.h"

namespace mpckdc::bench {
namespace {

// f(p) for the three parties at once; the first error.
absl::Status AtAllThree(const std::function<absl::Status(int)>& f) {
  std::array<absl::Status, kParties> statuses;
  std::vector<std::thread> threads;
  for (int p = 0; p < kParties; ++p) {
    threads.emplace_back([&, p] { statuses[p] = f(p); });
  }
  for (std::thread& t : threads) t.join();
  for (const absl::Status& s : statuses) {
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

class ThreadParties : public Parties {
 public:
  absl::Status Open(const BenchSetup& setup, RingsOfThree rings, absl::Duration round_timeout) {
    absl::Status s = AtAllThree([&](int p) {
      auto party = Party::Open(setup, p, std::move(rings[p]), round_timeout);
      if (party.ok()) parties_[p] = *std::move(party);
      return party.status();
    });
    ResetResidentPeak();
    idle_bytes_ = ResidentBytes().now;
    return s;
  }

  absl::Status MakeKeys() override {
    return AtAllThree([&](int p) { return parties_[p]->MakeKeys(); });
  }

  absl::StatusOr<RunReport> Run(Work work, uint32_t batches) override {
    RunReport run;
    run.batches = batches;
    const Usage before = UsageOfProcess();
    absl::Status first;
    for (const auto& party : parties_) party->Start(work, batches);
    for (int p = 0; p < kParties; ++p) {
      absl::StatusOr<PartyReport> report = parties_[p]->Finish();
      if (report.ok()) run.parties[p] = *std::move(report);
      else if (first.ok()) first = report.status();
    }
    if (!first.ok()) return first;
    const Usage used = UsageOfProcess() - before;
    run.cpu_ns = used.cpu_ns;
    run.minor_faults = used.minor_faults;
    return run;
  }

  absl::StatusOr<OutputShares> Outputs(absl::Span<const size_t> lanes) override {
    OutputShares shares;
    for (int p = 0; p < kParties; ++p) {
      absl::StatusOr<std::vector<SharedBlock>> s = parties_[p]->Outputs(lanes);
      if (!s.ok()) return s.status();
      shares[p] = *std::move(s);
    }
    return shares;
  }

  absl::StatusOr<std::array<MemoryReport, kParties>> Memory() override {
    std::array<MemoryReport, kParties> memory;
    const uint64_t peak = ResidentBytes().peak;
    for (int p = 0; p < kParties; ++p) {
      memory[p] = {idle_bytes_ / kParties, peak / kParties, parties_[p]->key_bytes()};
    }
    return memory;
  }

 private:
  std::array<std::unique_ptr<Party>, kParties> parties_;
  uint64_t idle_bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Parties>> OpenOnThreads(const BenchSetup& setup, RingsOfThree rings,
                                                       absl::Duration round_timeout) {
  auto parties = std::make_unique<ThreadParties>();
  absl::Status s = parties->Open(setup, std::move(rings), round_timeout);
  if (!s.ok()) return s;
  return parties;
}

}  // namespace mpckdc::bench
