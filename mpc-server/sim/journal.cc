// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/sim/journal.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mpckdc::sim {

void Journal::Log(const std::string& what) {
  const double at = absl::ToDoubleSeconds(scheduler_->now() - start_);
  outcome_.log.push_back(absl::StrFormat("%9.4f %s", at, what));
}

void Journal::Violation(const std::string& what) {
  Log(absl::StrCat("VIOLATION: ", what));
  outcome_.violations.push_back(what);
}

}  // namespace mpckdc::sim
