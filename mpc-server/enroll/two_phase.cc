// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/enroll/two_phase.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mpckdc::enroll {
namespace {

// The worst news decides the code: a refusal by one server is not repaired by trying again.
absl::Status FirstError(const std::array<absl::Status, 3>& results) {
  const absl::Status* chosen = nullptr;
  for (const absl::Status& s : results) {
    if (s.ok()) continue;
    const bool outage = absl::IsUnavailable(s) || absl::IsDeadlineExceeded(s);
    if (chosen == nullptr || (!outage && (absl::IsUnavailable(*chosen) ||
                                          absl::IsDeadlineExceeded(*chosen)))) {
      chosen = &s;
    }
  }
  return chosen == nullptr ? absl::OkStatus() : *chosen;
}

bool WorthRetrying(const absl::Status& s) {
  return absl::IsUnavailable(s) || absl::IsDeadlineExceeded(s) || absl::IsAborted(s);
}

// An unknown transaction has nothing staged, and a finished one nothing any more.
bool IsGone(const absl::Status& s) { return absl::IsNotFound(s) || absl::IsFailedPrecondition(s); }

}  // namespace

TwoPhase::~TwoPhase() {
  if (state_ == State::kStaged) Rollback().IgnoreError();
}

absl::Status TwoPhase::Begin() {
  if (state_ != State::kOpen) {
    return absl::FailedPreconditionError("the transaction was already staged");
  }
  state_ = State::kStaged;
  return absl::OkStatus();
}

absl::Status TwoPhase::Stage(const std::function<absl::Status(int party)>& call) {
  if (state_ != State::kStaged) {
    return absl::FailedPreconditionError("the transaction is not being staged");
  }
  const absl::Status s = FirstError(servers_->OnAll(call));
  return s.ok() ? s : RollbackAfter(s);
}

// The answer to a commit may be lost after the commit itself was not: committing again is answered
// with the same count.
absl::Status TwoPhase::CommitOne(int party, size_t expected) {
  absl::StatusOr<uint32_t> keys = absl::UnknownError("not tried");
  for (int attempt = 0; attempt < timeouts_.commit_attempts; ++attempt) {
    if (attempt > 0) servers_->Pause(timeouts_.commit_pause);
    keys = servers_->CommitKeys(party, timeouts_.commit);
    if (keys.ok() || !WorthRetrying(keys.status())) break;
  }
  if (!keys.ok()) return keys.status();
  if (*keys != expected) {
    return absl::DataLossError(absl::StrCat("server ", servers_->Name(party), " committed ", *keys,
                                            " keys of ", expected));
  }
  return absl::OkStatus();
}

absl::Status TwoPhase::Commit(size_t keys) {
  if (state_ != State::kStaged) {
    return absl::FailedPreconditionError("the transaction is not staged");
  }
  const absl::Status s =
      FirstError(servers_->OnAll([&](int party) { return CommitOne(party, keys); }));
  if (!s.ok()) return RollbackAfter(s);
  state_ = State::kCommitted;
  return absl::OkStatus();
}

// Abort first: what is aborted can no longer be committed by a request still under way. Then
// delete, since a commit may have come through although its answer did not.
absl::Status TwoPhase::Rollback() {
  if (state_ == State::kOpen || state_ == State::kFinished) {
    state_ = State::kFinished;
    return absl::OkStatus();
  }
  state_ = State::kFinished;
  const std::array<absl::Status, 3> results =
      servers_->OnAll([&](int party) -> absl::Status {
        absl::Status aborted = servers_->AbortKeys(party, timeouts_.cleanup);
        absl::Status deleted = servers_->DeleteKeys(party, timeouts_.cleanup);
        if (!aborted.ok() && !IsGone(aborted)) return aborted;
        if (!deleted.ok() && !IsGone(deleted)) return deleted;
        return absl::OkStatus();
      });
  std::vector<std::string> left;
  for (int party = 0; party < 3; ++party) {
    if (!results[party].ok()) left.push_back(servers_->Name(party));
  }
  if (left.empty()) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("unused shares may be left on ", absl::StrJoin(left, " and "),
                   "; nothing refers to them, mpc-admin doctor names them"));
}

absl::Status TwoPhase::RollbackAfter(const absl::Status& why) {
  const absl::Status rolled_back = Rollback();
  return absl::Status(
      why.code(), absl::StrCat(why.message(), "; no key was changed",
                               rolled_back.ok() ? "" : ", but ",
                               rolled_back.ok() ? "" : rolled_back.message()));
}

}  // namespace mpckdc::enroll
