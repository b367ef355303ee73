// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/judge/known_sources.h"

#include <algorithm>

namespace mpckdc {
namespace {

constexpr absl::Duration kPruneEvery = absl::Hours(1);

bool TooOld(absl::Duration used, absl::Duration now) {
  return now - used > limits::kKnownSourceLife;
}

}  // namespace

void KnownSources::Learn(const PrincipalId& principal, uint64_t source, absl::Duration now) {
  if (principals_.size() >= max_principals_ && !principals_.contains(principal)) {
    ForgetEighth(principals_, [](const auto& entry) { return LastUse(entry.second); });
  }
  Places& places = principals_[principal];
  auto place = std::find_if(places.begin(), places.end(),
                            [source](const Place& p) { return p.source == source; });
  if (place == places.end() && places.size() < limits::kKnownSources) {
    places.emplace_back();
    place = std::prev(places.end());
  } else if (place == places.end()) {
    place = std::min_element(places.begin(), places.end(),
                             [](const Place& a, const Place& b) { return a.used < b.used; });
  }
  place->source = source;
  place->used = now;
}

TokenBucket* KnownSources::Find(const PrincipalId& principal, uint64_t source, absl::Duration now) {
  const auto it = principals_.find(principal);
  if (it == principals_.end()) return nullptr;
  for (Place& place : it->second) {
    if (place.source == source) return TooOld(place.used, now) ? nullptr : &place.failures;
  }
  return nullptr;
}

void KnownSources::ChangeRate(const Rate& from, const Rate& to, absl::Duration now) {
  for (auto& [id, places] : principals_) {
    for (Place& place : places) place.failures.Change(from, to, now);
  }
}

// Whole principals: a place that is too old is not found, and is the first to make room.
void KnownSources::Prune(absl::Duration now) {
  if (now - pruned_ < kPruneEvery) return;
  pruned_ = now;
  absl::erase_if(principals_,
                 [now](const auto& entry) { return TooOld(LastUse(entry.second), now); });
}

absl::Duration KnownSources::LastUse(const Places& places) {
  absl::Duration last;
  for (const Place& place : places) last = std::max(last, place.used);
  return last;
}

}  // namespace mpckdc
