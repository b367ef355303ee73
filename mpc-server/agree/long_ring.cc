// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/long_ring.h"

#include <cassert>
#include <utility>

#include "mpc-server/base/secret.h"

namespace mpckdc {

void LongRing::Start(const std::string& name) {
  thread_.Start(name, [this] { Main(); });
}

void LongRing::Stop() {
  {
    const absl::MutexLock lock(&mu_);
    ending_ = true;
  }
  thread_.Wake();
  thread_.Join();
}

void LongRing::Give(std::unique_ptr<BatchRun> run) {
  assert(!busy());
  run_ = std::move(run);
  {
    const absl::MutexLock lock(&mu_);
    given_ = run_.get();
  }
  thread_.Wake();
}

absl::Status LongRing::FinishComputed() {
  absl::Status computed;
  {
    const absl::MutexLock lock(&mu_);
    if (!done_) return absl::OkStatus();
    done_ = false;
    computed = std::move(computed_);
  }
  const std::unique_ptr<BatchRun> run = std::move(run_);
  return run->Finish(computed);
}

absl::Status LongRing::WaitAndFinish() {
  if (!busy()) return absl::OkStatus();
  {
    const absl::MutexLock lock(&mu_);
    while (!done_) engine_.Wait(&mu_, absl::InfiniteFuture());
  }
  return FinishComputed();
}

void LongRing::Main() {
  while (true) {
    BatchRun* run;
    {
      const absl::MutexLock lock(&mu_);
      while (given_ == nullptr && !ending_) thread_.Wait(&mu_, absl::InfiniteFuture());
      if (given_ == nullptr) return;
      run = given_;
    }
    absl::Status computed = run->Compute();
    WipeStack();
    {
      const absl::MutexLock lock(&mu_);
      computed_ = std::move(computed);
      given_ = nullptr;
      done_ = true;
    }
    engine_.Wake();
  }
}

}  // namespace mpckdc
