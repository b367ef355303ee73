// SPDX-License-Identifier: Apache-2.0
#include "kdc-plugin/provider/armored.h"

#include <chrono>

namespace mpckdc {

armored_copy ArmoredRequests::See(uint64_t host, uint64_t request, uint64_t address, bool is_stream,
                                  absl::Duration now) {
  Forget(now);
  if (const auto it = requests_.find(request); it != requests_.end()) {
    First& first = it->second;
    if (first.address != address) return ARMORED_COPIED;
    if (!is_stream) return ARMORED_CLAIMED;
    if (first.again) return ARMORED_COPIED;
    first.again = true;
    return ARMORED_PROVED;
  }
  if (requests_.size() >= max_) return ARMORED_COPIED;
  size_t& of_host = of_host_[host];
  if (of_host >= max_of_host_) return ARMORED_COPIED;
  ++of_host;
  requests_[request] = {address, false};
  arrivals_.push_back({now, host, request});
  return ARMORED_PROVED;
}

void ArmoredRequests::Forget(absl::Duration now) {
  while (!arrivals_.empty() && now - arrivals_.front().when > kArmoredLife) {
    const Arrival& oldest = arrivals_.front();
    requests_.erase(oldest.request);
    if (const auto it = of_host_.find(oldest.host); --it->second == 0) of_host_.erase(it);
    arrivals_.pop_front();
  }
}

}  // namespace mpckdc

armored_copy armored_see(uint64_t host, uint64_t request, uint64_t address, int is_stream) {
  static auto* const seen = new mpckdc::ArmoredRequests;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return seen->See(host, request, address, is_stream != 0, absl::FromChrono(now));
}
