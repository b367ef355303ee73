// SPDX-License-Identifier: Apache-2.0
//
// What many runs add up to: on one line of JSON, in the journal of a resumable series, and as text.
#ifndef MPC_SERVER_SIM_REPORT_H_
#define MPC_SERVER_SIM_REPORT_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "mpc-server/sim/journal.h"

namespace mpckdc::sim {

struct Report : Tallies {
  uint64_t first = 0;  // of a chunk of consecutive seeds; 0 in a sum of several
  uint64_t seeds = 0;
  std::map<uint64_t, std::string> failures;  // seed: its first violation, or how it crashed

  void Add(uint64_t seed, const Outcome& outcome);
  void Add(const Report& other);

  std::string ToJson() const;
  static absl::StatusOr<Report> FromJson(const std::string& line);

  // Totals, verdicts, and a table of faults by step.
  std::string Summary() const;
};

}  // namespace mpckdc::sim

#endif  // MPC_SERVER_SIM_REPORT_H_
