// SPDX-License-Identifier: Apache-2.0
//
// Keys that are listed some at a time, in the order of their handles, and written in that of their
// places. Those of each Add() are sorted by themselves, and Next() takes the least of all their
// beginnings: a million sorted at once, at the three servers in the same moment, would keep the
// logins waiting.
#ifndef MPC_SERVER_AGREE_PLACE_ORDER_H_
#define MPC_SERVER_AGREE_PLACE_ORDER_H_

#include <cstddef>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "mpc-server/store/share_store.h"

namespace mpckdc {

class PlaceOrder {
 public:
  // Before the first Next().
  void Add(std::vector<ShareStore::KeyPlace> some);
  // The next ones, `most` of them at most; nothing when all were taken.
  std::vector<Handle> Next(size_t most);
  size_t size() const { return size_; }  // of all that were added

 private:
  using Run = std::vector<ShareStore::KeyPlace>;
  struct Head {  // of a run: what it has next
    ShareStore::KeyPlace key;
    size_t run, next;
    bool operator>(const Head& other) const { return key > other.key; }
  };
  void Push(size_t run, size_t next);

  std::vector<Run> runs_;
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads_;
  size_t size_ = 0;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_AGREE_PLACE_ORDER_H_
