// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/lines.h"

#include <algorithm>

#include "mpc-server/base/limits.h"
#include "mpc-server/wire/ring.h"

namespace mpckdc {
namespace {

constexpr absl::Duration kRateLife = absl::Minutes(1);
// A rate is that of the line where so much passed since the last look. Of less it is how TCP
// begins.
constexpr uint64_t kTelling = 1 << 20;
// Batches of rounds hardly ever fill a line. A rate that was low for a moment, and because of which
// no tables are sent, would never be measured again: it counts double for each such time that it
// was not, until tables are tried, after which it is known.
constexpr absl::Duration kRateDoubted = absl::Minutes(5);

}  // namespace

void Lines::Look(const LineState& line, absl::Time now, Seen& seen, Rate& rate) {
  const bool tells = line.rate != 0 && line.sent >= seen.sent + kTelling;
  seen.sent = line.sent;
  if (!tells || line.rate == seen.last) return;
  seen.last = line.rate;
  if (line.rate < rate.best && absl::AbsDuration(now - rate.at) <= kRateLife) return;
  rate.best = line.rate;
  rate.at = now;
}

// A line that tables would take too long for is not tried again while the session lasts, since that
// would end it; the next session measures it.
uint64_t Lines::Believed(const Rate& rate, absl::Time now) {
  const int64_t doublings = absl::AbsDuration(now - rate.at) / kRateDoubted;
  if (rate.best == 0 || doublings == 0 || IsTooSlowForTables(rate.best)) return rate.best;
  uint64_t believed = rate.best;
  for (int64_t i = 0; i < doublings; ++i) {
    believed *= 2;
    if (believed >= limits::kGarbledTableBytesPerSecond) return 0;  // no bound any more
  }
  return believed;
}

// On new connections, whose bytes count from zero. Where the longest filler was not long no line is
// slow, whatever it was before, and the kernel has measured it.
void Lines::Tried(const LineTrial& trial, absl::Time now) {
  seen_ = {};
  if (!trial.any_slow) rates_ = {};
  // The others' count until they vote: the leader may choose before.
  if (trial.rate_of_next != 0) reports_[NextParty(party_)].prev.rate = trial.rate_of_next;
  if (trial.rate_of_prev != 0) reports_[PrevParty(party_)].prev.rate = trial.rate_of_prev;
  if (trial.rate_own != 0) rates_[0] = {trial.rate_own, now};
}

void Lines::Measure(const PeerChannel& agreement, const PeerChannel& tables, absl::Time now) {
  const auto measured = [&](Neighbour n) {
    const size_t at = n == Neighbour::kNext ? 1 : 0;
    Look(agreement.Line(n), now, seen_[at][0], rates_[at]);
    Look(tables.Line(n), now, seen_[at][1], rates_[at]);
    return LineState{agreement.Line(n).distance, Believed(rates_[at], now)};
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
