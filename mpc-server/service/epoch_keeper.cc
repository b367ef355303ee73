// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/epoch_keeper.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/service/log.h"

namespace mpckdc {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(500);
// A refresh ends no sooner: shares that somebody made for the epoch before are taken until then, so
// that an enrolment under way does not fail over it.
constexpr absl::Duration kAtLeast = absl::Seconds(5);
// Until what the disk refused is tried again.
constexpr absl::Duration kRetryDisk = absl::Seconds(10);
// The three clocks may differ, and one of the three servers may be down: so long a wish stands.
constexpr absl::Duration kWish = absl::Hours(1);
// What another triple waits for the one whose turn it is.
constexpr absl::Duration kTakeOver = absl::Minutes(10);

}  // namespace

EpochKeeper::EpochKeeper(ShareStore* store, JobEngine* engine, AuditLog* audit, Clock* clock,
                         absl::Duration every)
    : store_(*store), engine_(*engine), audit_(*audit), clock_(*clock), every_(every) {
  thread_ = std::thread([this] { Run(); });
}

void EpochKeeper::Stop() {
  {
    const absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

EpochProgress EpochKeeper::Progress() const {
  const absl::MutexLock lock(&mutex_);
  return progress_;
}

bool EpochKeeper::Pause(absl::Duration duration) {
  const absl::MutexLock lock(&mutex_);
  return !mutex_.AwaitWithTimeout(absl::Condition(&stopping_), duration);
}

// Said once, and in the status until it is over.
void EpochKeeper::SetTrouble(const absl::Status& status, const char* what) {
  const std::string text = status.ok() ? "" : absl::StrCat(what, ": ", status.message());
  const absl::MutexLock lock(&mutex_);
  if (text == progress_.trouble) return;
  progress_.trouble = text;
  if (!text.empty()) Log().error("{}", text);
}

void EpochKeeper::Run() {
  while (Pause(kTick)) {
    KeepFellows();
    if (!store_.Epoch().rewriting) {
      EraseOrAsk();
      continue;
    }
    const absl::StatusOr<bool> mine = MayWrite();
    if (mine.ok() && !*mine) continue;
    const absl::Status written = mine.ok() ? WriteRecords() : mine.status();
    SetTrouble(written, "the records of the last refresh cannot be written");
    if (!written.ok() && !Pause(kRetryDisk)) return;
  }
}

// ---- Other machines of the party ----

void EpochKeeper::KeepFellows() {
  if (!store_.shared()) return;
  engine_.Look();
  const absl::Time now = clock_.Now();
  if (now >= noted_ && now < noted_ + limits::kFellowNotes) return;
  const absl::Status noted = store_.NoteFellow(now);
  if (noted.ok()) noted_ = now;
  // A database that is not there says so elsewhere.
  if (!absl::IsUnavailable(noted)) SetTrouble(noted, "this machine is not one of its party's");
}

absl::StatusOr<bool> EpochKeeper::MayWrite() {
  if (!store_.shared()) return true;
  ASSIGN_OR_RETURN(const std::vector<Fellow> fellows, store_.Fellows());
  return IsForeman(fellows, store_.triple(), store_.Epoch().steward, clock_.Now());
}

absl::StatusOr<bool> EpochKeeper::AllFollowed() {
  if (!store_.shared()) return true;
  ASSIGN_OR_RETURN(const std::vector<Fellow> fellows, store_.Fellows());
  const absl::Time now = clock_.Now();
  const uint64_t epoch = store_.Epoch().epoch;
  const std::vector<int> behind = Behind(fellows, epoch, now);
  const std::string text =
      behind.empty()
          ? ""
          : absl::StrCat("the key of epoch ", epoch - 1, " is kept for the machines of triples ",
                         absl::StrJoin(behind, ", "), ", which are down");
  {
    const absl::MutexLock lock(&mutex_);
    if (progress_.waits != text && !text.empty()) Log().warn("{}", text);
    progress_.waits = text;
  }
  if (!behind.empty()) return false;
  for (const Fellow& fellow : fellows) {
    if (fellow.epoch < epoch) RETURN_IF_ERROR(store_.ForgetFellow(fellow.triple));
  }
  return true;
}

// ---- When to refresh ----

// The key of an epoch that is over may be left where the disk was full.
void EpochKeeper::EraseOrAsk() {
  const absl::Status erased = store_.EraseOldKeys();
  const bool failed = !erased.ok() && !absl::IsFailedPrecondition(erased);
  if (failed || erase_failed_) {
    SetTrouble(failed ? erased : absl::OkStatus(), "the key of an old share epoch cannot be erased");
  }
  erase_failed_ = failed;
  AskIfDue();
}

// All three ask themselves, by their own clocks; the engine waits until all have.
void EpochKeeper::AskIfDue() {
  const EpochState state = store_.Epoch();
  const absl::Time now = clock_.Now();
  if (every_ == absl::InfiniteDuration() || !store_.Meta().initialised) return;
  if (state.began == absl::UnixEpoch()) {
    // Of a store that is new, or from before there were refreshes.
    SetTrouble(store_.NoteEpochBegin(now), "the beginning of the share epoch cannot be noted");
    return;
  }
  // Another triple takes over only if the steward does not do it.
  const absl::Duration due =
      every_ + (state.steward == store_.triple() ? absl::ZeroDuration() : kTakeOver);
  if (now < state.began + due || (asked_for_ == state.epoch && now < ask_again_)) return;
  asked_for_ = state.epoch;
  ask_again_ = now + kWish;
  // Unavailable: a server is down, or does not refresh by itself. Another error is this server's
  // own.
  engine_.Refresh(state.epoch, now + kWish, [this](const absl::Status& status) {
    SetTrouble(absl::IsUnavailable(status) ? absl::OkStatus() : status,
               "the shares cannot be refreshed");
  });
}

absl::Status EpochKeeper::WriteSome(absl::Span<const Handle> handles) {
  ASSIGN_OR_RETURN(const size_t damaged, store_.Rewrite(handles));
  const absl::MutexLock lock(&mutex_);
  progress_.written += handles.size();
  progress_.damaged += damaged;
  return absl::OkStatus();
}

absl::Status EpochKeeper::WriteRecords() {
  ASSIGN_OR_RETURN(const std::vector<Handle> old, store_.OldKeys());
  {
    const absl::MutexLock lock(&mutex_);
    progress_ = {old.size(), 0, 0, progress_.trouble, progress_.waits};
  }
  for (size_t i = 0; i < old.size(); i += limits::kRefreshKeysPerWrite) {
    const absl::Time start = absl::Now();
    RETURN_IF_ERROR(WriteSome(absl::MakeConstSpan(old).subspan(i, limits::kRefreshKeysPerWrite)));
    const absl::Duration took = absl::Now() - start;
    if (!Pause(took * (100.0 / limits::kRefreshDuty - 1))) return absl::OkStatus();
  }
  RETURN_IF_ERROR(store_.RewriteStaged().status());
  const EpochState state = store_.Epoch();
  const absl::Time earliest = state.began + kAtLeast;
  const absl::Time now = clock_.Now();
  if (now < earliest && now >= state.began && !Pause(earliest - now)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const bool all_followed, AllFollowed());
  if (!all_followed) return absl::OkStatus();
  // Some may have been staged meanwhile as of the epoch before; none is committed as such.
  RETURN_IF_ERROR(store_.RewriteStaged().status());
  RETURN_IF_ERROR(store_.EndRefresh());
  const EpochProgress done = Progress();
  Log().info("share epoch {}: {} records written, {} damaged; the key of epoch {} is erased",
             state.epoch, done.written - done.damaged, done.damaged, state.epoch - 1);
  return audit_.Append("epoch", {{"epoch", state.epoch},
                                 {"written", done.written},
                                 {"damaged", done.damaged},
                                 {"erased", state.epoch - 1}});
}

}  // namespace mpckdc
