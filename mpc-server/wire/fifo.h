// SPDX-License-Identifier: Apache-2.0
// A queue whose memory stays when it empties: std::deque would allocate a block again and again.
// Internal to wire/.
#ifndef MPC_SERVER_WIRE_FIFO_H_
#define MPC_SERVER_WIRE_FIFO_H_

#include <cassert>
#include <cstddef>
#include <utility>
#include <vector>

namespace mpckdc {

template <class T>
class Fifo {
 public:
  bool empty() const { return head_ == items_.size(); }
  size_t size() const { return items_.size() - head_; }
  T& front() { return items_[head_]; }
  T& back() { return items_.back(); }
  T& operator[](size_t i) { return items_[head_ + i]; }

  void push(T item) {
    if (items_.size() == items_.capacity() && head_ > items_.size() / 2) {
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
    items_.push_back(std::move(item));
  }
  void pop() {
    assert(!empty());
    items_[head_] = T();
    if (++head_ == items_.size()) clear();
  }
  void clear() {
    items_.clear();
    head_ = 0;
  }

 private:
  std::vector<T> items_;
  size_t head_ = 0;  // those before it were popped
};

}  // namespace mpckdc

#endif  // MPC_SERVER_WIRE_FIFO_H_
