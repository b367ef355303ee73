// SPDX-License-Identifier: Apache-2.0
//
// What a run has to tell: what happened when, how often, and what must not have happened.
#ifndef MPC_SERVER_SIM_JOURNAL_H_
#define MPC_SERVER_SIM_JOURNAL_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "mpc-server/sim/fibers.h"

namespace mpckdc::sim {

// Counts add up over seeds; names are sorted.
using Counts = std::map<std::string, uint64_t>;

struct Tallies {
  Counts steps;     // named step: how often a server came by
  Counts faults;    // "KIND at STEP", STEP "any moment" included
  Counts verdicts;  // of whole jobs; "absent" is a verdict here
  Counts events;    // logins, replays, enrolments, ...
};

struct Outcome : Tallies {
  std::vector<std::string> violations;  // empty: all is well
  std::vector<std::string> log;         // what happened when, for a failed seed

  uint64_t Event(const std::string& name) const {
    const auto it = events.find(name);
    return it == events.end() ? 0 : it->second;
  }
};

class Journal {
 public:
  explicit Journal(const Scheduler* scheduler)
      : scheduler_(scheduler), start_(scheduler->now()) {}

  void Log(const std::string& what) {
    const double at = absl::ToDoubleSeconds(scheduler_->now() - start_);
    outcome_.log.push_back(absl::StrFormat("%9.4f %s", at, what));
  }
  // After the first one the run goes on, so that the log shows what followed.
  void Violation(const std::string& what) {
    Log("VIOLATION: " + what);
    outcome_.violations.push_back(what);
  }
  void Count(const std::string& event) { ++outcome_.events[event]; }
  bool violated() const { return !outcome_.violations.empty(); }
  Outcome& outcome() { return outcome_; }

 private:
  const Scheduler* const scheduler_;
  const absl::Time start_;
  Outcome outcome_;
};

}  // namespace mpckdc::sim

#endif  // MPC_SERVER_SIM_JOURNAL_H_
