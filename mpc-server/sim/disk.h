// SPDX-License-Identifier: Apache-2.0
//
// One server's simulated disk: an engine of the share store. Each change is whole or not there, as
// LMDB promises; it is two named steps, before and after it is durable, and may fail.
#ifndef MPC_SERVER_SIM_DISK_H_
#define MPC_SERVER_SIM_DISK_H_

#include <functional>
#include <optional>
#include <utility>

#include "mpc-server/sim/machine.h"
#include "mpc-server/testing/memory_engine.h"

namespace mpckdc::sim {

enum class DiskFault {
  kNone,
  kFull,       // every write fails and changes nothing
  kUncertain,  // the next write fails; a process started later may find it done all the same
};

// Controls of the harness: what the invariants must see.
struct DiskControl {
  bool forgets_marks = false;    // across a restart
  bool forgets_replays = false;  // at once
  bool forgets_commits = false;  // across a restart
  bool keeps_deleted = false;    // a deletion says yes and does nothing
};

class SimDisk : public KvEngine {
 public:
  // True: the process was killed at the step.
  using StepHook = std::function<bool(const char* step)>;

  SimDisk(MemoryEngine::State state, Dice* dice, const DiskControl& control)
      : at_start_(state), memory_(std::move(state)), dice_(dice), control_(control) {}

  void SetStepHook(StepHook hook) { hook_ = std::move(hook); }
  void SetFault(DiskFault fault) { fault_ = fault; }
  MemoryEngine::State Snapshot() const { return memory_.Snapshot(); }
  // What a process started after a crash now would find.
  MemoryEngine::State AfterCrash();

  absl::StatusOr<std::unique_ptr<const KvTxn>> BeginRead() const override {
    return memory_.BeginRead();
  }
  absl::Status Write(absl::string_view what, Body body) override;

 private:
  absl::Status WriteUncertain(absl::string_view what, Body body);

  const MemoryEngine::State at_start_;
  MemoryEngine memory_;
  Dice* const dice_;
  const DiskControl control_;
  StepHook hook_;
  DiskFault fault_ = DiskFault::kNone;
  std::optional<MemoryEngine::State> uncertain_;  // with the write that "failed"
};

}  // namespace mpckdc::sim

#endif  // MPC_SERVER_SIM_DISK_H_
