// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/enroll/transaction.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"

namespace mpckdc::enroll {
namespace {

// Packages of one StageKeys call: about 3 KB each, gRPC messages are at most 4 MiB.
constexpr int kPackagesPerCall = 512;

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

KeyTransaction::KeyTransaction(AdminServers* servers, TransactionTimeouts timeouts)
    : servers_(servers), timeouts_(timeouts), id_(RandomIdentifier()) {}

KeyTransaction::~KeyTransaction() {
  if (state_ == State::kStaged) Rollback().IgnoreError();
}

absl::Status KeyTransaction::Check(const v1::KeyInfo& info) const {
  if (state_ != State::kOpen) {
    return absl::FailedPreconditionError("the transaction was already staged");
  }
  if (std::find(handles_.begin(), handles_.end(), info.handle()) != handles_.end()) {
    return absl::InvalidArgumentError("a handle occurs twice in one transaction");
  }
  return CheckKeyInfo(info, servers_->realm());
}

absl::Status KeyTransaction::Add(const v1::KeyInfo& info, absl::Span<const uint8_t> base,
                                 const PackageSigner& signer) {
  if (absl::Status s = Check(info); !s.ok()) return s;
  absl::StatusOr<SealedTriple> packages =
      BuildPackages(info, base, servers_->target(), id_, signer);
  if (!packages.ok()) return packages.status();
  for (int party = 0; party < 3; ++party) {
    *stage_[party].add_packages() = std::move((*packages)[party]);
  }
  handles_.push_back(info.handle());
  return absl::OkStatus();
}

absl::Status KeyTransaction::AddDrawn(const v1::KeyInfo& info) {
  if (absl::Status s = Check(info); !s.ok()) return s;
  drawn_.push_back(info);
  handles_.push_back(info.handle());
  return absl::OkStatus();
}

absl::Status KeyTransaction::StageShared() {
  const int total = stage_[0].packages_size();
  for (int start = 0; start < total; start += kPackagesPerCall) {
    const int end = std::min(start + kPackagesPerCall, total);
    absl::Status s = FirstError(servers_->OnAll([&](int party, AdminClient& server) {
      v1::StageKeysRequest request;
      request.set_transaction(id_);
      for (int i = start; i < end; ++i) *request.add_packages() = stage_[party].packages(i);
      return server.StageKeys(request, timeouts_.stage);
    }));
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status KeyTransaction::StageDrawn() {
  for (const v1::KeyInfo& info : drawn_) {
    v1::DrawKeyRequest request;
    request.set_transaction(id_);
    *request.mutable_info() = info;
    absl::Status s = FirstError(servers_->OnAll([&](int, AdminClient& server) {
      return server.DrawKey(request, timeouts_.draw);
    }));
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status KeyTransaction::Stage() {
  if (state_ != State::kOpen) {
    return absl::FailedPreconditionError("the transaction was already staged");
  }
  if (handles_.empty()) return absl::InvalidArgumentError("the transaction has no keys");
  state_ = State::kStaged;
  if (absl::Status s = StageShared(); !s.ok()) return FailAndRollback(std::move(s));
  if (absl::Status s = StageDrawn(); !s.ok()) return FailAndRollback(std::move(s));
  return absl::OkStatus();
}

// The answer to a commit may be lost after the commit itself was not: committing again is answered
// with the same count.
absl::Status KeyTransaction::CommitOne(AdminClient& server) const {
  absl::StatusOr<uint32_t> keys = absl::UnknownError("not tried");
  for (int attempt = 0; attempt < timeouts_.commit_attempts; ++attempt) {
    if (attempt > 0) absl::SleepFor(timeouts_.commit_pause);
    keys = server.CommitKeys(id_, timeouts_.commit);
    if (keys.ok() || !WorthRetrying(keys.status())) break;
  }
  if (!keys.ok()) return keys.status();
  if (*keys != handles_.size()) {
    return absl::DataLossError(absl::StrCat("server ", server.name(), " committed ", *keys,
                                            " keys of ", handles_.size()));
  }
  return absl::OkStatus();
}

absl::Status KeyTransaction::Commit() {
  if (state_ != State::kStaged) {
    return absl::FailedPreconditionError("the transaction is not staged");
  }
  absl::Status s = FirstError(
      servers_->OnAll([&](int, AdminClient& server) { return CommitOne(server); }));
  if (!s.ok()) return FailAndRollback(std::move(s));
  state_ = State::kCommitted;
  return absl::OkStatus();
}

absl::Status KeyTransaction::Run() {
  if (absl::Status s = Stage(); !s.ok()) return s;
  return Commit();
}

// Abort first: what is aborted can no longer be committed by a request still under way. Then
// delete, since a commit may have come through although its answer did not.
absl::Status KeyTransaction::Rollback() {
  if (state_ == State::kOpen || state_ == State::kFinished) {
    state_ = State::kFinished;
    return absl::OkStatus();
  }
  state_ = State::kFinished;
  const std::array<absl::Status, 3> results =
      servers_->OnAll([&](int, AdminClient& server) -> absl::Status {
        absl::Status aborted = server.AbortKeys(id_, timeouts_.cleanup).status();
        absl::Status deleted = server.DeleteKeys(handles_, timeouts_.cleanup).status();
        if (!aborted.ok() && !IsGone(aborted)) return aborted;
        if (!deleted.ok() && !IsGone(deleted)) return deleted;
        return absl::OkStatus();
      });
  std::vector<std::string> left;
  for (int party = 0; party < 3; ++party) {
    if (!results[party].ok()) left.push_back(servers_->at(party).name());
  }
  if (left.empty()) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("unused shares may be left on ", absl::StrJoin(left, " and "),
                   "; nothing refers to them, mpc-admin doctor names them"));
}

absl::Status KeyTransaction::FailAndRollback(absl::Status why) {
  const absl::Status rolled_back = Rollback();
  return absl::Status(
      why.code(), absl::StrCat(why.message(), "; no key was changed",
                               rolled_back.ok() ? "" : ", but ",
                               rolled_back.ok() ? "" : rolled_back.message()));
}

}  // namespace mpckdc::enroll
