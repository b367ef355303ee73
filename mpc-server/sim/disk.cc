// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/sim/disk.h"

#include <utility>

namespace mpckdc::sim {

void SimDisk::Load(MemoryShareStore::State state) {
  if (control_.forgets_marks) state.mark = NonceMark{};
  if (control_.forgets_commits) {
    std::erase_if(state.keys, [](const auto& key) { return key.second.info.kvno > 1; });
  }
  memory_.Restore(std::move(state));
}

MemoryShareStore::State SimDisk::AfterCrash() {
  if (uncertain_.has_value() && dice_->Chance(0.5)) return *std::move(uncertain_);
  return memory_.Snapshot();
}

template <typename Result>
Result SimDisk::Write(const char* before, const char* after, absl::FunctionRef<Result()> write) {
  if (hook_ && hook_(before)) return absl::UnavailableError("the process was killed");
  if (fault_ == DiskFault::kFull) return absl::ResourceExhaustedError("disk full: simulated");
  const bool uncertain = std::exchange(fault_, DiskFault::kNone) == DiskFault::kUncertain;
  std::optional<MemoryShareStore::State> old;
  if (uncertain) old = memory_.Snapshot();
  Result result = write();
  if (uncertain) {
    uncertain_ = memory_.Snapshot();
    memory_.Restore(*std::move(old));
    return absl::UnavailableError("cannot commit to the share store: simulated EIO");
  }
  uncertain_.reset();
  if (hook_ && hook_(after)) return absl::UnavailableError("the process was killed");
  return result;
}

absl::Status SimDisk::Stage(const TransactionId& txn, absl::Span<const KeyRecord> records,
                            absl::Time now) {
  return Write<absl::Status>("disk: stage keys", "disk: staged keys",
                             [&] { return memory_.Stage(txn, records, now); });
}

absl::StatusOr<size_t> SimDisk::Commit(const TransactionId& txn, absl::Time now) {
  return Write<absl::StatusOr<size_t>>("disk: commit keys", "disk: committed keys",
                                       [&] { return memory_.Commit(txn, now); });
}

absl::StatusOr<size_t> SimDisk::Abort(const TransactionId& txn) {
  return Write<absl::StatusOr<size_t>>("disk: abort keys", "disk: aborted keys",
                                       [&] { return memory_.Abort(txn); });
}

absl::StatusOr<size_t> SimDisk::Delete(absl::Span<const Handle> handles) {
  if (control_.keeps_deleted) return handles.size();
  return Write<absl::StatusOr<size_t>>("disk: delete keys", "disk: deleted keys",
                                       [&] { return memory_.Delete(handles); });
}

absl::Status SimDisk::ReserveNonceMark(const NonceMark& mark) {
  return Write<absl::Status>("disk: raise nonce mark", "disk: raised nonce mark",
                             [&] { return memory_.ReserveNonceMark(mark); });
}

absl::Status SimDisk::AddReplayEntries(absl::Span<const ReplayEntry> entries) {
  if (control_.forgets_replays) return absl::OkStatus();
  return Write<absl::Status>("disk: write replays", "disk: wrote replays",
                             [&] { return memory_.AddReplayEntries(entries); });
}

// Not a step: it happens once a minute and loses nothing that is still needed.
absl::StatusOr<size_t> SimDisk::PruneReplayEntries(absl::Time now) {
  if (fault_ == DiskFault::kFull) return absl::ResourceExhaustedError("disk full: simulated");
  return memory_.PruneReplayEntries(now);
}

}  // namespace mpckdc::sim
