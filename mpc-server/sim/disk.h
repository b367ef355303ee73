// SPDX-License-Identifier: Apache-2.0
//
// One server's simulated disk: the share store of memory_share_store.h, each write of which is two
// named steps, before and after it is durable, and may fail.
#ifndef MPC_SERVER_SIM_DISK_H_
#define MPC_SERVER_SIM_DISK_H_

#include <functional>
#include <optional>
#include <string>

#include "mpc-server/sim/machine.h"
#include "mpc-server/testing/memory_share_store.h"

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
  bool keeps_deleted = false;    // Delete() says yes and does nothing
};

class SimDisk : public ShareStore {
 public:
  // True: the process was killed at the step.
  using StepHook = std::function<bool(const char* step)>;

  SimDisk(const StoreIdentity& identity, Dice* dice, const DiskControl& control)
      : memory_(identity), dice_(dice), control_(control) {}

  void SetStepHook(StepHook hook) { hook_ = std::move(hook); }
  void SetFault(DiskFault fault) { fault_ = fault; }
  void Load(MemoryShareStore::State state);
  // What a process started after a crash now would find.
  MemoryShareStore::State AfterCrash();
  const MemoryShareStore& memory() const { return memory_; }

  StoreMeta Meta() const override { return memory_.Meta(); }
  absl::StatusOr<bool> MarkInitialised() override { return memory_.MarkInitialised(); }
  absl::Status Stage(const TransactionId& txn, absl::Span<const KeyRecord> records,
                     absl::Time now) override;
  absl::StatusOr<size_t> Commit(const TransactionId& txn, absl::Time now) override;
  absl::StatusOr<size_t> Abort(const TransactionId& txn) override;
  absl::StatusOr<size_t> ExpireStaged(absl::Time before) override {
    return memory_.ExpireStaged(before);
  }
  absl::StatusOr<KeyRecord> Get(const Handle& handle) const override { return memory_.Get(handle); }
  absl::StatusOr<KeyRecord> GetStaged(const TransactionId& txn,
                                      const Handle& handle) const override {
    return memory_.GetStaged(txn, handle);
  }
  absl::StatusOr<size_t> Delete(absl::Span<const Handle> handles) override;
  absl::Status SetGate(absl::Span<const Handle> handles, Gate gate) override {
    return memory_.SetGate(handles, gate);
  }
  absl::Status ForEach(KeyState state, Visitor visit) const override {
    return memory_.ForEach(state, visit);
  }
  absl::Status ForEachFrom(const Handle& first, Visitor visit) const override {
    return memory_.ForEachFrom(first, visit);
  }
  absl::StatusOr<size_t> Count(KeyState state) const override { return memory_.Count(state); }
  absl::StatusOr<NonceMark> ReadNonceMark() const override { return memory_.ReadNonceMark(); }
  absl::Status ReserveNonceMark(const NonceMark& mark) override;
  absl::Status AddReplayEntries(absl::Span<const ReplayEntry> entries) override;
  absl::Status LoadReplayEntries(absl::FunctionRef<void(const ReplayEntry&)> visit) const override {
    return memory_.LoadReplayEntries(visit);
  }
  absl::StatusOr<size_t> PruneReplayEntries(absl::Time now) override;
  absl::StatusOr<SecretBytes> ReadItem(absl::string_view name) const override {
    return memory_.ReadItem(name);
  }
  absl::Status WriteItem(absl::string_view name, absl::Span<const uint8_t> value) override {
    return memory_.WriteItem(name, value);
  }

 private:
  template <typename Result>
  Result Write(const char* before, const char* after, absl::FunctionRef<Result()> write);

  MemoryShareStore memory_;
  Dice* const dice_;
  const DiskControl control_;
  StepHook hook_;
  DiskFault fault_ = DiskFault::kNone;
  std::optional<MemoryShareStore::State> uncertain_;  // with the write that "failed"
};

}  // namespace mpckdc::sim

#endif  // MPC_SERVER_SIM_DISK_H_
