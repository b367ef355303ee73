// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/party.h"

#include "absl/strings/str_cat.h"
#include "mpc-server/bench/usage.h"

namespace mpckdc::bench {

absl::StatusOr<std::unique_ptr<Party>> Party::Open(
    const BenchSetup& setup, int party, RingsOfParty rings,
    absl::Duration round_timeout) {
  std::unique_ptr<Party> p(new Party(setup));
  const ptrdiff_t each = RingsOfTeam(setup);
  for (int team = 0; team < Teams(setup); ++team) {
    const auto first = rings.begin() + team * each;
    p->workers_.push_back(std::make_unique<Worker>(setup, party, team,
                                                   RingsOfParty(first, first + each),
                                                   round_timeout));
    p->workers_.back()->StartOpen();
  }
  if (absl::Status s = p->WaitForAll(); !s.ok()) return s;
  return p;
}

absl::Status Party::WaitForAll() {
  absl::Status first;
  for (const auto& w : workers_) {
    absl::Status s = w->Wait();
    if (first.ok()) first = std::move(s);
  }
  return first;
}

absl::Status Party::MakeKeys() {
  for (const auto& w : workers_) w->StartKeys();
  return WaitForAll();
}

void Party::Start(Work work, uint32_t batches) {
  start_ns_ = MonotonicNs();
  for (const auto& w : workers_) w->StartRun(work, batches);
}

absl::StatusOr<PartyReport> Party::Finish() {
  if (absl::Status s = WaitForAll(); !s.ok()) return s;
  PartyReport report;
  report.start_ns = start_ns_;
  report.end_ns = MonotonicNs();
  for (const auto& w : workers_) report.workers.push_back(w->report());
  return report;
}

uint64_t Party::key_bytes() const {
  uint64_t sum = 0;
  for (const auto& w : workers_) sum += w->key_bytes();
  return sum;
}

absl::StatusOr<std::vector<SharedBlock>> Party::Outputs(absl::Span<const size_t> lanes) const {
  std::vector<SharedBlock> shares;
  for (size_t lane : lanes) {
    int w = 0;
    while (w + 1 < Teams(setup_) && lane >= FirstLane(setup_, w + 1)) ++w;
    const auto outputs = workers_[static_cast<size_t>(w)]->outputs();
    const size_t at = lane - FirstLane(setup_, w);
    if (at >= outputs.size()) {
      return absl::OutOfRangeError(absl::StrCat("there is no output of lane ", lane));
    }
    shares.push_back(outputs[at]);
  }
  return shares;
}

}  // namespace mpckdc::bench
