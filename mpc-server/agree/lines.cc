// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/lines.h"

#include <algorithm>

namespace mpckdc {
namespace {

constexpr absl::Duration kRateLife = absl::Minutes(1);
// A rate is that of the line where so much passed since the last look. Of less it is how TCP
// begins.
constexpr uint64_t kTelling = 1 << 20;
// Batches of rounds hardly ever fill a line. A rate that was low for a moment, and because of which
// no tables are sent, would never be measured again.
constexpr absl::Duration kRateForgotten = absl::Minutes(5);

}  // namespace

void Lines::Hear(uint64_t told, absl::Time now, Rate& rate) const {
  const absl::Duration age = absl::AbsDuration(now - rate.at);
  const bool is_news = told != 0 && told != rate.last;
  if (is_news && (told >= rate.best || age > kRateLife)) {
    rate.best = rate.last = told;
    rate.at = now;
  } else if (is_news) {
    rate.last = told;
  } else if (age > kRateForgotten) {
    rate.best = 0;
  }
}

void Lines::Measure(const PeerChannel& agreement, const PeerChannel& tables, absl::Time now) {
  const auto measured = [&](Neighbour n) {
    Rate& rate = rates_[n == Neighbour::kNext];
    const LineState line = tables.Line(n);
    const bool tells = line.sent >= rate.sent + kTelling;
    rate.sent = line.sent;
    Hear(tells ? line.rate : 0, now, rate);
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
