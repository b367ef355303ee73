// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/clock_watch.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "mpc-server/agree/agreement.h"
#include "mpc-server/base/limits.h"

namespace mpckdc {
namespace {

size_t IndexOf(Neighbour neighbour) { return neighbour == Neighbour::kNext; }

std::string Rounded(absl::Duration d) {
  const absl::Duration half = absl::Milliseconds(d < absl::ZeroDuration() ? -50 : 50);
  return absl::FormatDuration(absl::Trunc(d + half, absl::Milliseconds(100)));
}

}  // namespace

void ClockWatch::Hear(Neighbour from, absl::Time theirs, absl::Time now) {
  const size_t index = IndexOf(from);
  const absl::Duration skew = skew_[index] = theirs - now;
  heard_at_[index] = now;
  status_->Update([&](EngineStatus& status) {
    (from == Neighbour::kNext ? status.skew_next : status.skew_prev) = skew;
  });
  // Told once, and again when it is well below.
  const bool large = Beyond(from, limits::kMaxPeerSkew);
  if (told_[index] == large || (!large && Beyond(from, limits::kMaxPeerSkew / 2))) return;
  told_[index] = large;
  observer_->OnPeerSkew(PartyAt(party_, from), skew);
}

bool ClockWatch::HeardBoth(absl::Time now) const {
  return std::all_of(heard_at_.begin(), heard_at_.end(), [now](absl::Time heard) {
    return now >= heard && now < heard + kSilence;
  });
}

bool ClockWatch::Confirmed(absl::Time now) const {
  return HeardBoth(now) && trouble_.empty() && !Beyond(Neighbour::kPrev, limit_) &&
         !Beyond(Neighbour::kNext, limit_);
}

bool ClockWatch::Beyond(Neighbour neighbour, absl::Duration limit) const {
  return absl::AbsDuration(skew_[IndexOf(neighbour)]) > limit;
}

// Two clocks against one: which one is wrong is clear enough to stop. When all three differ, nobody
// knows, and all stop. One peer alone cannot make a server doubt itself, but a follower takes the
// times of its seals from the leader.
ClockWatch::Suspicion ClockWatch::Suspect() const {
  if (Beyond(Neighbour::kPrev, limit_) && Beyond(Neighbour::kNext, limit_)) {
    return Suspicion::kAgainstBoth;
  }
  if (party_ != kLeader && Beyond(NeighbourOf(party_, kLeader), limit_)) {
    return Suspicion::kAgainstLeader;
  }
  return Suspicion::kNone;
}

std::string ClockWatch::NoNonces() const {
  if (party_ != kLeader) return "";  // Suspect() says all that it needs to know
  for (const Neighbour n : {Neighbour::kPrev, Neighbour::kNext}) {
    if (!Beyond(n, limit_)) continue;
    return absl::StrCat("the clock of party ", PartyAt(party_, n), " differs from the leader's by ",
                        Rounded(skew_[IndexOf(n)]), ": set the clocks (chrony)");
  }
  return "";
}

// The text stays that of the moment when the trouble began: it goes to the audit log when it
// changes, and the differences change with every message.
void ClockWatch::Judge() {
  const Suspicion found = Suspect();
  if (found == suspicion_) return;
  suspicion_ = found;
  trouble_.clear();
  if (found == Suspicion::kAgainstBoth) {
    trouble_ = absl::StrCat("this server's clock differs from both peers' by ", Rounded(-skew_[0]),
                            " and ", Rounded(-skew_[1]),
                            ": set it (chrony), until then no timestamp is judged");
  } else if (found == Suspicion::kAgainstLeader) {
    trouble_ = absl::StrCat("the leader's clock differs from this server's by ",
                            Rounded(skew_[IndexOf(NeighbourOf(party_, kLeader))]),
                            ": set the clocks (chrony)");
  }
  status_->Update([&](EngineStatus& status) { status.clock_suspect = !trouble_.empty(); });
}

}  // namespace mpckdc
