// SPDX-License-Identifier: Apache-2.0
//
// Random numbers of a seed for several threads: an engine's rings, or those who ask for jobs. Which of
// them gets which numbers goes by who comes first.
#ifndef MPC_SERVER_TESTING_LOCKED_RANDOM_H_
#define MPC_SERVER_TESTING_LOCKED_RANDOM_H_

#include <cstdint>

#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "mpc-server/base/random_source.h"

namespace mpckdc {

class LockedRandom : public RandomSource {
 public:
  explicit LockedRandom(uint64_t seed) : random_(seed) {}
  void Fill(absl::Span<uint8_t> out) override {
    absl::MutexLock lock(&mu_);
    random_.Fill(out);
  }

 private:
  absl::Mutex mu_;
  SeededRandomForTest random_ ABSL_GUARDED_BY(mu_);
};

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_LOCKED_RANDOM_H_
