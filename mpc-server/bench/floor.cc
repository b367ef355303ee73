// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/floor.h"

#include <algorithm>

#include "mpc-server/base/clock.h"

namespace mpckdc::bench {

ChannelFloor::ChannelFloor(const BenchSetup& setup, const std::vector<size_t>& parts)
    : slots_(std::min(parts.size(), setup.slots)) {
  for (size_t p = 0; p < parts.size(); ++p) {
    Slot& slot = slots_[p % slots_.size()];
    const std::vector<size_t> sizes = RoundSizes(setup, parts[p]);
    slot.sizes.insert(slot.sizes.end(), sizes.begin(), sizes.end());
  }
  for (Slot& slot : slots_) {
    Cost cost = {slot.sizes.size(), 0, 0};
    for (size_t size : slot.sizes) cost.bytes_to_next += size;
    cost_ = Together(cost_, cost);
    if (slot.sizes.empty()) continue;
    const size_t largest = *std::max_element(slot.sizes.begin(), slot.sizes.end());
    for (int turn : {0, 1}) {
      slot.to_next[turn].resize(largest);
      slot.from_prev[turn].resize(largest);
    }
  }
}

// Collects the slot's round under way, if there is one, and posts its next.
absl::Status ChannelFloor::Step(PeerChannel& channel, Slot& slot, absl::Duration round_timeout) {
  if (slot.next > 0) {
    const size_t under_way = slot.next - 1;
    absl::Status s = channel.Collect(
        slot.id, absl::MakeSpan(slot.from_prev[under_way % 2]).first(slot.sizes[under_way]), {},
        SystemClock().Now() + round_timeout);
    if (!s.ok()) return s;
  }
  if (slot.next == slot.sizes.size()) return ++slot.next, absl::OkStatus();
  slot.id = id_;
  ++id_.round;
  const size_t now = slot.next++;
  return channel.Post(slot.id,
                      absl::MakeConstSpan(slot.to_next[now % 2]).first(slot.sizes[now]), {});
}

// The slots take turns, so rounds are collected in the order in which they were posted.
absl::Status ChannelFloor::RunBatch(PeerChannel& channel, uint32_t session, uint32_t batch,
                                    absl::Duration round_timeout) {
  id_ = {session, batch, 0, "floor"};
  for (Slot& slot : slots_) slot.next = 0;
  for (bool going = true; going;) {
    going = false;
    for (Slot& slot : slots_) {
      if (slot.next > slot.sizes.size()) continue;
      if (absl::Status s = Step(channel, slot, round_timeout); !s.ok()) return s;
      going = going || slot.next <= slot.sizes.size();
    }
  }
  return absl::OkStatus();
}

}  // namespace mpckdc::bench
