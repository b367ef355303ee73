// SPDX-License-Identifier: Apache-2.0
//
// Drawing and verifying keys: one batch each, agreed on like batches of jobs.
#include <algorithm>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpc-server/agree/confirm_view.h"
#include "mpc-server/agree/engine_core.h"
#include "mpc-server/compute/key_work.h"

namespace mpckdc {
namespace {

// Time until key work that another server did not have is proposed again.
constexpr absl::Duration kKeyRetry = absl::Milliseconds(20);

Digest HandleDigest(const Handle& handle) {
  return Sha256({reinterpret_cast<const char*>(handle.data()), handle.size()});
}

template <typename Work>
std::vector<std::shared_ptr<Work>> TakeExpired(std::list<std::shared_ptr<Work>>& list,
                                               absl::Time now) {
  std::vector<std::shared_ptr<Work>> expired;
  for (auto it = list.begin(); it != list.end();) {
    if ((*it)->deadline <= now) {
      expired.push_back(*it);
      it = list.erase(it);
    } else {
      ++it;
    }
  }
  return expired;
}

const char kNotAtAll[] = "the two other servers did not get the same request, or are not connected";

}  // namespace

absl::Time JobEngine::Impl::NextKeyWork() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& draw : draws_) next = std::min(next, draw->next_try);
  for (const auto& verify : verifies_) next = std::min(next, verify->next_try);
  return next;
}

// ---- The leader's choice ----

bool JobEngine::Impl::PickKeyWork(Ballot& ballot) {
  const absl::Time now = clock_->Now();
  return PickDraw(ballot, now) || PickVerify(ballot, now);
}

bool JobEngine::Impl::PickDraw(Ballot& ballot, absl::Time now) {
  const absl::MutexLock lock(&mu_);
  for (const auto& draw : draws_) {
    if (draw->next_try > now) continue;
    draw->next_try = now + kKeyRetry;
    ballot.draw = draw;
    ballot.proposal.kind = BatchKind::kDraw;
    ballot.proposal.entries = {{draw->txn, 0, draw->digest, kVoteOk}};
    return true;
  }
  return false;
}

bool JobEngine::Impl::PickVerify(Ballot& ballot, absl::Time now) {
  {
    const absl::MutexLock lock(&mu_);
    for (const auto& verify : verifies_) {
      if (verify->next_try > now) continue;
      verify->next_try = now + kKeyRetry;
      ballot.verify = verify;
      break;
    }
  }
  if (ballot.verify == nullptr) return false;
  const WaitingVerify& verify = *ballot.verify;
  ballot.proposal.kind = BatchKind::kVerify;
  const size_t first = verify.results.size();
  const size_t end = std::min(first + kVerifyKeysPerBatch, verify.handles.size());
  for (size_t i = first; i < end; ++i) {
    const Handle& handle = verify.handles[i];
    ballot.proposal.entries.push_back(
        {verify.request, i, HandleDigest(handle), ReadCode(ballot.records, handle)});
  }
  return true;
}

// ---- The followers' opinion ----

void JobEngine::Impl::OpinionOnKeyWork(Ballot& ballot) {
  const Proposal& proposal = ballot.proposal;
  if (proposal.entries.empty()) return;
  const ProposalEntry& first = proposal.entries[0];
  {
    const absl::MutexLock lock(&mu_);
    for (const auto& draw : draws_) {
      if (draw->txn == first.group && draw->digest == first.digest) ballot.draw = draw;
    }
    for (const auto& verify : verifies_) {
      if (verify->request == first.group) ballot.verify = verify;
    }
  }
  if (proposal.kind == BatchKind::kVerify) return OpinionOnVerify(ballot);
  if (ballot.draw != nullptr) ballot.codes[0] = kVoteOk;
}

// All or none: a request that differs in one handle is another request.
void JobEngine::Impl::OpinionOnVerify(Ballot& ballot) {
  if (ballot.verify == nullptr) return;
  const std::vector<Handle>& handles = ballot.verify->handles;
  const std::vector<ProposalEntry>& entries = ballot.proposal.entries;
  std::vector<VoteCode> codes;
  for (size_t i = 0; i < entries.size(); ++i) {
    const size_t index = ballot.verify->results.size() + i;
    if (entries[i].id != index || index >= handles.size()) return;
    const Handle& handle = handles[index];
    if (entries[i].digest != HandleDigest(handle)) return;
    codes.push_back(ReadCode(ballot.records, handle));
  }
  ballot.codes = codes;
}

VoteCode JobEngine::Impl::ReadCode(BatchRecords& records, const Handle& handle) {
  const absl::Status& read = records.Get(handle).status();
  if (read.ok()) return kVoteOk;
  return CodeOf(absl::IsNotFound(read) ? Verdict::kUnknownHandle : Verdict::kUnavailable);
}

// ---- Running ----

absl::Status JobEngine::Impl::RunDraw(PeerSession& session, Ballot& ballot) {
  if (ballot.agreed[0].code != kVoteOk) return absl::OkStatus();  // tried again
  session.rings->BeginBatch(ballot.proposal.number);
  ConfirmView confirm(ViewOf(ballot, ""));
  Cost cost;
  const absl::StatusOr<KeyRecord> record =
      DrawRecord(session.party(), ballot.draw->info, confirm, &cost);
  absl::Status status = record.status();
  if (record.ok()) {
    const KeyRecord* const drawn = &*record;
    status = store_->Stage(ballot.draw->txn, absl::MakeConstSpan(drawn, 1), clock_->Now());
  }
  FinishDraw(ballot.draw, status);
  return record.status();
}

namespace {

// Why a handle of a verification is left out of the computation; empty when it is not.
std::string LeftOut(Ballot& ballot, size_t i) {
  const Handle& handle = ballot.verify->handles[ballot.proposal.entries[i].id];
  const absl::Status& own = ballot.records.Get(handle).status();
  if (!own.ok()) return std::string(own.message());
  if (ballot.agreed[i].code == kVoteOk) return "";
  return absl::StrCat("server ", ballot.agreed[i].by, " cannot read the record");
}

void AppendShape(const KeyRecord& record, std::string* facts) {
  absl::StrAppend(facts, HandleText(record.info.handle), ",", record.info.enctype, ",",
                  static_cast<int>(record.info.key_class), ";");
}

}  // namespace

absl::Status JobEngine::Impl::RunVerify(PeerSession& session, Ballot& ballot) {
  for (const Agreed& agreed : ballot.agreed) {
    if (agreed.code == kVoteMissing) return absl::OkStatus();  // tried again
  }
  std::vector<VerifyResult> results;
  std::vector<size_t> computed;
  std::vector<const KeyRecord*> records;
  std::string facts;
  for (size_t i = 0; i < ballot.proposal.entries.size(); ++i) {
    const Handle& handle = ballot.verify->handles[ballot.proposal.entries[i].id];
    results.push_back({handle, false, LeftOut(ballot, i)});
    if (!results.back().detail.empty()) continue;
    computed.push_back(i);
    records.push_back(ballot.records.Find(handle));
    AppendShape(*records.back(), &facts);
  }
  session.rings->BeginBatch(ballot.proposal.number);
  ConfirmView confirm(ViewOf(ballot, facts));
  Cost cost;
  const absl::StatusOr<std::vector<bool>> equal =
      VerifyRecords(session.party(), records, confirm, &cost);
  if (!equal.ok()) {
    FinishVerify(ballot.verify, equal.status());
    return equal.status();
  }
  for (size_t i = 0; i < computed.size(); ++i) {
    VerifyResult& result = results[computed[i]];
    result.consistent = (*equal)[i];
    if (!result.consistent) result.detail = "the key's records do not belong together";
  }
  WaitingVerify& verify = *ballot.verify;
  verify.results.insert(verify.results.end(), results.begin(), results.end());
  verify.next_try = absl::InfinitePast();
  if (verify.results.size() == verify.handles.size()) {
    FinishVerify(ballot.verify, absl::OkStatus());
  }
  return absl::OkStatus();
}

// ---- Ends ----

void JobEngine::Impl::FinishDraw(const std::shared_ptr<WaitingDraw>& draw,
                                 const absl::Status& status) {
  {
    const absl::MutexLock lock(&mu_);
    draws_.remove(draw);
  }
  if (draw->done) std::exchange(draw->done, nullptr)(status);
}

void JobEngine::Impl::FinishVerify(const std::shared_ptr<WaitingVerify>& verify,
                                   const absl::Status& status) {
  {
    const absl::MutexLock lock(&mu_);
    verifies_.remove(verify);
  }
  if (!verify->done) return;
  auto done = std::exchange(verify->done, nullptr);
  if (status.ok()) {
    done(std::move(verify->results));
  } else {
    done(status);
  }
}

void JobEngine::Impl::FailExpiredKeyWork(absl::Time now) {
  std::vector<std::shared_ptr<WaitingDraw>> draws;
  std::vector<std::shared_ptr<WaitingVerify>> verifies;
  {
    const absl::MutexLock lock(&mu_);
    draws = TakeExpired(draws_, now);
    verifies = TakeExpired(verifies_, now);
  }
  for (const auto& draw : draws) FinishDraw(draw, absl::UnavailableError(kNotAtAll));
  for (const auto& verify : verifies) FinishVerify(verify, absl::UnavailableError(kNotAtAll));
}

}  // namespace mpckdc
