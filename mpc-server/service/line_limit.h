// SPDX-License-Identifier: Apache-2.0
//
// Lines that strangers can cause: a flood of them must not fill the disk. Thread-safe.
#ifndef MPC_SERVER_SERVICE_LINE_LIMIT_H_
#define MPC_SERVER_SERVICE_LINE_LIMIT_H_

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "mpc-server/base/limits.h"

namespace mpckdc {

// limits::kRefusalLinesPerSecond of one kind are written, the others counted.
class LineLimit {
 public:
  // Whether one more may be written. `left_out`: how many were not, in the second that ended.
  bool Take(int64_t second, size_t* left_out) {
    const std::lock_guard<std::mutex> lock(mutex_);
    *left_out = 0;
    if (second != second_) {
      if (lines_ > limits::kRefusalLinesPerSecond) {
        *left_out = lines_ - limits::kRefusalLinesPerSecond;
      }
      second_ = second;
      lines_ = 0;
    }
    return ++lines_ <= limits::kRefusalLinesPerSecond;
  }

 private:
  std::mutex mutex_;
  int64_t second_ = 0;
  size_t lines_ = 0;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_LINE_LIMIT_H_
