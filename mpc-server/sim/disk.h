// SPDX-License-Identifier: Apache-2.0
//
// One server's simulated disk: an engine of the share store. Each change is whole or not there, as
// LMDB promises; it is two named steps, before and after it is durable, and may fail. Or one
// machine's connection to a database that it shares with another machine of its party.
#ifndef MPC_SERVER_SIM_DISK_H_
#define MPC_SERVER_SIM_DISK_H_

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "mpc-server/sim/machine.h"
#include "mpc-server/store/fellows.h"
#include "mpc-server/testing/memory_engine.h"

namespace mpckdc::sim {

enum class DiskFault {
  kNone,
  kFull,       // every write fails and changes nothing
  kUncertain,  // the next write fails; a process started later may find it done all the same. Of a
               // database: its answer is lost, and it may be done already
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
      : at_start_(state),
        memory_(std::make_shared<MemoryEngine>(std::move(state))),
        dice_(dice),
        control_(control) {}
  // On the party's database, by a machine of this name.
  SimDisk(std::shared_ptr<MemoryEngine> database, const MachineName& name, Dice* dice)
      : memory_(std::move(database)), dice_(dice), shared_(true), name_(name) {}

  void SetStepHook(StepHook hook) { hook_ = std::move(hook); }
  void SetFault(DiskFault fault) { fault_ = fault; }
  // The process is gone: nothing of it reaches the database any more.
  void Die() { dead_ = true; }
  // Its transaction is being committed: that is one moment.
  bool committing() const { return committing_; }
  MemoryEngine::State Snapshot() const { return memory_->Snapshot(); }
  // What a process started after a crash now would find.
  MemoryEngine::State AfterCrash();

  absl::StatusOr<std::unique_ptr<const KvTxn>> BeginRead() const override {
    if (shared_) return memory_->BeginSharedRead();
    return memory_->BeginRead();
  }
  bool remote() const override { return shared_; }
  std::array<uint8_t, 16> Name() const override { return name_; }
  absl::Status Write(absl::string_view what, Body body) override;

 private:
  absl::Status Change(absl::string_view what, Body body);
  absl::Status WriteUncertain(absl::string_view what, Body body);

  const MemoryEngine::State at_start_;
  const std::shared_ptr<MemoryEngine> memory_;
  Dice* const dice_;
  const DiskControl control_ = {};
  const bool shared_ = false;
  const MachineName name_{};
  bool dead_ = false;
  bool committing_ = false;
  StepHook hook_;
  DiskFault fault_ = DiskFault::kNone;
  std::optional<MemoryEngine::State> uncertain_;  // with the write that "failed"
};

}  // namespace mpckdc::sim

#endif  // MPC_SERVER_SIM_DISK_H_
