// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/wire/delay_line.h"

#include <algorithm>
#include <cassert>

namespace mpckdc::wire {

DelayLine::DelayLine(const Options& options)
    : options_(options),
      slab_(new uint8_t[options.slots * kSlotBytes]),  // not zeroed: unused pages are not made
      slots_(options.slots),
      queues_(static_cast<size_t>(options.ports)) {
  for (size_t i = options.slots; i > 0; --i) free_.push_back(static_cast<uint32_t>(i - 1));
  for (Queue& q : queues_) q.ring.resize(options.slots);
}

absl::Span<uint8_t> DelayLine::Room() {
  if (free_.empty()) return {};
  return absl::MakeSpan(&slab_[free_.back() * kSlotBytes], kSlotBytes);
}

void DelayLine::Send(int to, size_t size, size_t wire_bytes, int64_t now) {
  assert(!free_.empty() && size <= kSlotBytes);
  Queue& queue = queues_[static_cast<size_t>(to)];
  int64_t left = now;
  if (options_.bits_per_second > 0) {
    const int64_t begin = std::max(now, queue.port_free_at);
    longest_wait_ns_ = std::max(longest_wait_ns_, begin - now);
    left = begin + static_cast<int64_t>(8e9 * static_cast<double>(wire_bytes) /
                                        options_.bits_per_second);
    queue.port_free_at = left;
  }
  const uint32_t slot = free_.back();
  free_.pop_back();
  slots_[slot] = {size, left + options_.delay_ns};
  queue.ring[(queue.head + queue.size++) % queue.ring.size()] = slot;
  most_in_flight_ = std::max(most_in_flight_, ++in_flight_);
}

int64_t DelayLine::NextDue() const {
  const int port = Earliest();
  return port < 0 ? kNever : Head(port).due;
}

int DelayLine::Earliest() const {
  int best = -1;
  for (int port = 0; port < options_.ports; ++port) {
    if (queues_[static_cast<size_t>(port)].size == 0) continue;
    if (best < 0 || Head(port).due < Head(best).due) best = port;
  }
  return best;
}

DelayLine::Packet DelayLine::Head(int port) const {
  const Queue& queue = queues_[static_cast<size_t>(port)];
  const uint32_t slot = queue.ring[queue.head];
  const auto& [size, due] = slots_[slot];
  return {absl::MakeConstSpan(&slab_[slot * kSlotBytes], size), port, due};
}

void DelayLine::Pop(int port) {
  Queue& queue = queues_[static_cast<size_t>(port)];
  free_.push_back(queue.ring[queue.head]);
  queue.head = (queue.head + 1) % queue.ring.size();
  --queue.size;
  --in_flight_;
}

}  // namespace mpckdc::wire
