// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/sim/machine.h"

#include <cstring>
#include <utility>

namespace mpckdc::sim {

uint64_t Dice::Below(uint64_t n) {
  uint8_t bytes[8];
  random_.Fill(bytes);
  uint64_t value;
  std::memcpy(&value, bytes, 8);
  return value % n;
}

absl::Duration Dice::Between(absl::Duration a, absl::Duration b) {
  const auto span = static_cast<uint64_t>(absl::ToInt64Nanoseconds(b - a));
  return a + absl::Nanoseconds(static_cast<int64_t>(Below(span + 1)));
}

// ---- SimExecutor ----

void SimExecutor::Start(const std::string& name, absl::AnyInvocable<void()> body) {
  fiber_ = scheduler_->Spawn(name, std::move(body));
}

void SimExecutor::Join() {
  while (fiber_ != nullptr && !scheduler_->Done(fiber_)) {
    scheduler_->Sleep(absl::Milliseconds(1));
  }
}

void SimExecutor::Wait(absl::Mutex* mu, absl::Time deadline) {
  mu->Unlock();
  scheduler_->Wait(clock_->Global(deadline));
  mu->Lock();
}

void SimExecutor::Wake() {
  // Only a wait that is under way is ended: the body looks at its state before each wait.
  scheduler_->Wake(fiber_);
}

}  // namespace mpckdc::sim
