// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/lines.h"

#include <algorithm>

namespace mpckdc {
namespace {

constexpr absl::Duration kRateLife = absl::Minutes(1);
// A rate is that of the line where so much passed since the last look. Of less it is how TCP
// begins.
constexpr uint64_t kTelling = 1 << 20;

}  // namespace

void Lines::Measure(const PeerChannel& agreement, const PeerChannel& tables, absl::Time now) {
  const auto measured = [&](Neighbour n) {
    Rate& rate = rates_[n == Neighbour::kNext];
    const LineState of_tables = tables.Line(n);
    const bool old = absl::AbsDuration(now - rate.at) > kRateLife;
    const bool tells = of_tables.rate != 0 && of_tables.sent >= rate.sent + kTelling;
    rate.sent = of_tables.sent;
    if (tells && (of_tables.rate >= rate.best || old)) rate = {of_tables.rate, now, rate.sent};
    return LineState{agreement.Line(n).distance, rate.best};
  };
  reports_[party_] = {measured(Neighbour::kPrev), measured(Neighbour::kNext)};
  status_.Update([&](EngineStatus& status) {
    status.line_prev = own().prev;
    status.line_next = own().next;
  });
}

FarthestLine Lines::Farthest() const {
  FarthestLine farthest;
  for (const LineReport& report : reports_) {
    for (const LineState& line : {report.prev, report.next}) {
      farthest.distance = std::max(farthest.distance, line.distance);
      if (line.rate == 0) continue;
      farthest.rate = farthest.rate == 0 ? line.rate : std::min(farthest.rate, line.rate);
    }
  }
  return farthest;
}

}  // namespace mpckdc
