// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/epoch_duties.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(500);
// Until what the disk refused is tried again.
constexpr absl::Duration kRetryDisk = absl::Seconds(10);
// Records that are computed at once, which takes about half a millisecond.
constexpr size_t kKeysPerRenewal = 16;

// What goes wrong, each by itself.
constexpr char kNotWritten[] = "the records of the last refresh cannot be written";
constexpr char kNotNoted[] = "this machine cannot tell the others of its party that it is up";
constexpr char kNotRefreshed[] = "the shares cannot be refreshed";
constexpr char kNotErased[] = "the key of an old share epoch cannot be erased";

}  // namespace

EpochDuties::EpochDuties(ShareStore* store, JobEngine* engine, Clock* clock,
                         const EpochDutyOptions& options, OnEnd ended, OnTrouble trouble)
    : store_(*store),
      engine_(*engine),
      clock_(*clock),
      options_(options),
      ended_(std::move(ended)),
      trouble_(std::move(trouble)) {}

EpochProgress EpochDuties::Progress() const {
  const absl::MutexLock lock(&mutex_);
  return progress_;
}

// Said once, and in the status until it is over: each duty ends its own trouble, not another's.
void EpochDuties::SetTrouble(const absl::Status& status, const char* what) {
  const std::string text = status.ok() ? "" : absl::StrCat(what, ": ", status.message());
  {
    const absl::MutexLock lock(&mutex_);
    std::string& before = troubles_[what];
    if (text == before) return;
    before = text;
    progress_.trouble = absl::StrJoin(troubles_, "", [](std::string* out, const auto& one) {
      absl::StrAppend(out, out->empty() || one.second.empty() ? "" : "; ", one.second);
    });
  }
  if (!text.empty()) trouble_(text);
}

absl::Duration EpochDuties::Step() {
  KeepFellows();
  const EpochState state = store_.Epoch();
  if (!state.rewriting || state.epoch != of_epoch_) BeginAnew();
  if (state.epoch != of_epoch_) {
    // It was refreshed, by whomever.
    SetTrouble(absl::OkStatus(), kNotRefreshed);
    SetTrouble(absl::OkStatus(), kNotErased);
  }
  of_epoch_ = state.epoch;
  if (!state.rewriting) {
    WriteNothing();
    EraseOrAsk();
    return kTick;
  }
  const absl::StatusOr<bool> mine = IsForeman();
  if (mine.ok() && !*mine) {
    WriteNothing();
    return kTick;
  }
  const absl::StatusOr<absl::Duration> pause = mine.ok() ? WriteStep() : mine.status();
  SetTrouble(pause.status(), kNotWritten);
  return pause.ok() ? *pause : kRetryDisk;
}

// ---- Other machines of the party ----

void EpochDuties::KeepFellows() {
  if (!store_.shared()) return;
  const absl::Time now = clock_.Now();
  if (now >= looked_ && now < looked_ + kTick / 2) return;  // between two writes of records
  looked_ = now;
  engine_.Look();
  if (now >= noted_ && now < noted_ + limits::kFellowNotes) return;
  const absl::Status noted = store_.NoteFellow(now);
  if (noted.ok()) noted_ = now;
  // A database that is not there says so elsewhere.
  if (!absl::IsUnavailable(noted)) SetTrouble(noted, kNotNoted);
}

absl::StatusOr<bool> EpochDuties::IsForeman() {
  if (!store_.shared()) return true;
  ASSIGN_OR_RETURN(const std::vector<Fellow> fellows, store_.Fellows());
  return mpckdc::IsForeman(fellows, store_.triple(), store_.Epoch().steward, clock_.Now());
}

// Whether every machine of the party has the epoch's key, or is gone for good.
absl::StatusOr<bool> EpochDuties::AllFollowed(const EpochState& state) {
  if (!store_.shared()) return true;
  ASSIGN_OR_RETURN(const std::vector<Fellow> fellows, store_.Fellows());
  // Gone by a clock that both other parties confirmed: one that is ahead by itself would erase what
  // machines that are up still need.
  const absl::Time confirmed = std::min(clock_.Now(), engine_.Status().clock_confirmed);
  const std::vector<int> behind = Behind(fellows, state.epoch, confirmed);
  {
    const absl::MutexLock lock(&mutex_);
    progress_.waits =
        behind.empty()
            ? ""
            : absl::StrCat("the key of epoch ", state.epoch - 1,
                           " is kept for the machines of triples ", absl::StrJoin(behind, ", "),
                           ", which do not have the new one: they are down, or "
                           "cannot write their key file (their logs say why)");
  }
  if (!behind.empty()) return false;
  for (const Fellow& fellow : fellows) {
    if (fellow.epoch < state.epoch) RETURN_IF_ERROR(store_.ForgetFellow(fellow.triple));
  }
  return true;
}

// The refresh has ended, or is another machine's: what this one waited for is over.
void EpochDuties::WriteNothing() {
  SetTrouble(absl::OkStatus(), kNotWritten);
  const absl::MutexLock lock(&mutex_);
  progress_.waits.clear();
}

// ---- When to refresh ----

// The key of an epoch that is over may be left where the disk was full.
void EpochDuties::EraseOrAsk() {
  const absl::Status erased = store_.EraseOldKeys();
  const bool failed = !erased.ok() && !absl::IsFailedPrecondition(erased);
  SetTrouble(failed ? erased : absl::OkStatus(), kNotErased);
  AskIfDue();
}

// An epoch that begins in the future was entered by a clock that was ahead: what it says would put
// the next refresh off for as long.
bool EpochDuties::IsDue(const EpochState& state, absl::Time now) const {
  const bool own_turn = state.steward == store_.triple();
  const absl::Duration every =
      options_.every + (own_turn ? absl::ZeroDuration() : options_.take_over);
  return now >= state.began + every || now + limits::kDefaultClockSkew < state.began;
}

// All three ask themselves, by their own clocks; the engine waits until all have.
void EpochDuties::AskIfDue() {
  const EpochState state = store_.Epoch();
  const absl::Time now = clock_.Now();
  if (options_.every == absl::InfiniteDuration() || !store_.Meta().initialised) return;
  if (state.began == absl::UnixEpoch()) {
    // Of a store that is new, or from before there were refreshes.
    SetTrouble(store_.NoteEpochBegin(now), "the beginning of the share epoch cannot be noted");
    return;
  }
  // A clock that was set back must not keep it from asking.
  const bool asked =
      asked_for_ == state.epoch && now < ask_again_ && ask_again_ <= now + options_.wish;
  if (asked || !IsDue(state, now)) return;
  asked_for_ = state.epoch;
  ask_again_ = now + options_.wish;
  // Unavailable: a server is down, or does not refresh by itself. Another error is this server's
  // own.
  engine_.Refresh(state.epoch, now + options_.wish, [this](const absl::Status& status) {
    SetTrouble(absl::IsUnavailable(status) ? absl::OkStatus() : status, kNotRefreshed);
  });
}

// ---- Writing ----

void EpochDuties::BeginAnew() {
  keys_ = {};
  list_from_ = Handle{};
  writing_.clear();
  renewals_ = {};
}

// The clock may be set meanwhile.
absl::Duration EpochDuties::PauseSince(absl::Time start) const {
  const absl::Duration took = std::clamp(clock_.Now() - start, absl::ZeroDuration(), kRetryDisk);
  return took * (100.0 / limits::kRefreshDuty - 1);
}

absl::StatusOr<absl::Duration> EpochDuties::WriteStep() {
  if (list_from_.has_value()) {
    ASSIGN_OR_RETURN(const absl::Duration pause, ListSome());
    if (list_from_.has_value()) return pause;
  }
  if (writing_.empty()) writing_ = keys_.Next(options_.keys_per_write);
  if (writing_.empty()) return End();
  return renewals_.records.size() < writing_.size() ? RenewSome() : WriteSome();
}

absl::StatusOr<absl::Duration> EpochDuties::ListSome() {
  const absl::Time start = clock_.Now();
  ASSIGN_OR_RETURN(auto some, store_.PlacesFrom(*list_from_, options_.keys_per_list));
  list_from_ = some.size() < options_.keys_per_list ? std::nullopt : NextHandle(some.back().handle);
  keys_.Add(std::move(some));
  const absl::MutexLock lock(&mutex_);
  progress_ = {keys_.size(), 0, 0, progress_.trouble, progress_.waits};
  return PauseSince(start);
}

// Few of what one write takes, then a pause: a login has hundreds of rounds, and each may wait for
// the core that this takes. A database costs a round trip or three however few it is asked for.
absl::Duration EpochDuties::RenewSome() {
  const absl::Time start = clock_.Now();
  const size_t most = store_.shared() ? writing_.size() : kKeysPerRenewal;
  store_.Renew(absl::MakeConstSpan(writing_).subspan(renewals_.records.size(), most), &renewals_);
  return PauseSince(start);
}

absl::StatusOr<absl::Duration> EpochDuties::WriteSome() {
  const absl::Time start = clock_.Now();
  ASSIGN_OR_RETURN(const ShareStore::Rewritten done, store_.Rewrite(writing_, renewals_));
  {
    const absl::MutexLock lock(&mutex_);
    progress_.written += writing_.size();
    progress_.damaged += done.damaged;
  }
  writing_.clear();
  renewals_ = {};
  return PauseSince(start);
}

// Some may have been staged meanwhile as of the epoch before; none is committed as such.
absl::StatusOr<absl::Duration> EpochDuties::End() {
  RETURN_IF_ERROR(store_.RewriteStaged().status());
  const EpochState state = store_.Epoch();
  const absl::Time earliest = state.began + options_.at_least;
  const absl::Time now = clock_.Now();
  if (now < earliest && now >= state.began) return earliest - now;
  ASSIGN_OR_RETURN(const bool all_followed, AllFollowed(state));
  if (!all_followed) return kTick;
  // Again: some may have been staged while this waited.
  RETURN_IF_ERROR(store_.RewriteStaged().status());
  RETURN_IF_ERROR(store_.EndRefresh());
  BeginAnew();
  RETURN_IF_ERROR(ended_(state, Progress()));
  return absl::ZeroDuration();
}

}  // namespace mpckdc
