// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/place_order.h"

#include <algorithm>

namespace mpckdc {

void PlaceOrder::Add(std::vector<ShareStore::KeyPlace> some) {
  std::sort(some.begin(), some.end());
  size_ += some.size();
  runs_.push_back(std::move(some));
  Push(runs_.size() - 1, 0);
}

void PlaceOrder::Push(size_t run, size_t next) {
  if (next < runs_[run].size()) heads_.push({runs_[run][next], run, next + 1});
}

std::vector<Handle> PlaceOrder::Next(size_t most) {
  std::vector<Handle> handles;
  while (handles.size() < most && !heads_.empty()) {
    const Head head = heads_.top();
    heads_.pop();
    handles.push_back(head.key.handle);
    Push(head.run, head.next);
  }
  return handles;
}

}  // namespace mpckdc
