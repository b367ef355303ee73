// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/sim/disk.h"

#include <algorithm>
#include <string>

#include "mpc-server/base/status_macros.h"

namespace mpckdc::sim {
namespace {

namespace rf = record_format;

// The changes that are steps, as the share store names them. The others are rare, or lose nothing
// that is still needed, as dropping old replay entries does.
struct Steps {
  absl::string_view what;
  const char* before;
  const char* after;
} constexpr kSteps[] = {
    {"stage keys", "disk: stage keys", "disk: staged keys"},
    {"commit keys", "disk: commit keys", "disk: committed keys"},
    {"abort keys", "disk: abort keys", "disk: aborted keys"},
    {"delete keys", "disk: delete keys", "disk: deleted keys"},
    {"raise nonce mark", "disk: raise nonce mark", "disk: raised nonce mark"},
    {"write replays", "disk: write replays", "disk: wrote replays"},
    {"prepare a refresh", "disk: prepare a refresh", "disk: prepared a refresh"},
    {"enter an epoch", "disk: enter an epoch", "disk: entered an epoch"},
    {"abandon a refresh", "disk: abandon a refresh", "disk: abandoned a refresh"},
    {"refresh keys", "disk: refresh keys", "disk: refreshed keys"},
    {"end a refresh", "disk: end a refresh", "disk: ended a refresh"},
    {"prepare to join an epoch", "disk: prepare to join", "disk: prepared to join"},
    {"begin receiving keys", "disk: begin receiving", "disk: began receiving"},
    {"receive keys", "disk: receive keys", "disk: received keys"},
    {"end receiving keys", "disk: end receiving", "disk: ended receiving"},
    {"take the share epoch over", "disk: take over", "disk: took over"},
};

}  // namespace

MemoryEngine::State SimDisk::AfterCrash() {
  const bool happened = uncertain_.has_value() && dice_->Chance(0.5);
  MemoryEngine::State state = happened ? *uncertain_ : memory_->Snapshot();
  if (control_.forgets_marks) {
    auto meta = std::make_shared<MemoryEngine::Table>(*state[rf::kMeta]);
    meta->erase(rf::kNameMark);
    state[rf::kMeta] = std::move(meta);
  }
  if (control_.forgets_commits) {
    for (const rf::Table table : {rf::kKeys, rf::kRecords}) state[table] = at_start_[table];
  }
  return state;
}

absl::Status SimDisk::Write(absl::string_view what, Body body) {
  const auto* const step = std::find_if(std::begin(kSteps), std::end(kSteps),
                                        [what](const Steps& s) { return s.what == what; });
  const bool is_step = step != std::end(kSteps) && hook_;
  if (control_.forgets_replays && what == "write replays") return absl::OkStatus();
  if (dead_) return absl::UnavailableError("the process was killed");
  if (is_step && hook_(step->before)) return absl::UnavailableError("the process was killed");
  if (fault_ == DiskFault::kFull) return absl::ResourceExhaustedError("disk full: simulated");
  if (!is_step) return Change(what, body);
  if (std::exchange(fault_, DiskFault::kNone) == DiskFault::kUncertain) {
    return WriteUncertain(what, body);
  }
  const MemoryEngine::State old = memory_->Snapshot();
  const absl::Status written = Change(what, body);
  if (control_.keeps_deleted && what == "delete keys") memory_->Restore(old);
  uncertain_.reset();
  if (hook_(step->after)) return absl::UnavailableError("the process was killed");
  return written;
}

// A body may stop at a step of the key file, where another machine goes on: what it does first is
// a try, as of a transaction that is rolled back when another came before it.
absl::Status SimDisk::Change(absl::string_view what, Body body) {
  if (!shared_) return memory_->Write(what, body);
  MemoryEngine attempt(memory_->Snapshot());
  RETURN_IF_ERROR(attempt.Write(what, body));
  if (dead_) return absl::UnavailableError("the process was killed");
  committing_ = true;
  const absl::Status written = memory_->Write(what, body);
  committing_ = false;
  return written;
}

absl::Status SimDisk::WriteUncertain(absl::string_view what, Body body) {
  if (shared_) {
    if (dice_->Chance(0.5)) Change(what, body).IgnoreError();
    return absl::UnavailableError("the database's answer is lost: simulated");
  }
  MemoryEngine::State old = memory_->Snapshot();
  memory_->Write(what, body).IgnoreError();
  uncertain_ = memory_->Snapshot();
  memory_->Restore(std::move(old));
  return absl::UnavailableError("cannot commit to the share store: simulated EIO");
}

}  // namespace mpckdc::sim
