// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/key_rounds.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/agree/confirm_view.h"
#include "mpc-server/agree/steps.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/compute/key_work.h"

namespace mpckdc {
namespace {

// Until a round that another server did not have is proposed again.
constexpr absl::Duration kRetry = absl::Milliseconds(20);

Digest HandleDigest(const Handle& handle) { return Sha256(AsText(handle)); }

VoteCode ReadCode(BatchRecords& records, const Handle& handle) {
  const absl::Status& read = records.Get(handle).status();
  if (read.ok()) return kVoteOk;
  return CodeOf(absl::IsNotFound(read) ? Verdict::kUnknownHandle : Verdict::kUnavailable);
}

void Finish(EngineState& state, const KeyRoundPtr& round, const absl::Status& status) {
  {
    const absl::MutexLock lock(&state.waiting.mu);
    state.waiting.key_rounds.remove(round);
  }
  round->Answer(status);
}

class Draw : public KeyRound {
 public:
  Draw(const TransactionId& txn, const KeyInfo& info, absl::Time deadline,
       JobEngine::DrawCallback done)
      : KeyRound(BatchKind::kDraw, txn, deadline),
        info_(info),
        digest_(DrawDigest(info)),
        done_(std::move(done)) {}

  std::vector<ProposalEntry> Entries(BatchRecords&) override {
    return {{group, 0, digest_, kVoteOk}};
  }
  std::vector<VoteCode> Vote(const std::vector<ProposalEntry>& entries, BatchRecords&) override {
    if (entries[0].digest != digest_) return {};
    return {kVoteOk};
  }
  absl::Status Run(EngineState& state, PeerSession& session, Ballot& ballot) override;
  void Answer(const absl::Status& status) override {
    if (done_) std::exchange(done_, nullptr)(status);
  }

 private:
  const KeyInfo info_;
  const Digest digest_;
  JobEngine::DrawCallback done_;
};

absl::Status Draw::Run(EngineState& state, PeerSession& session, Ballot& ballot) {
  if (ballot.agreed[0].code != kVoteOk) return absl::OkStatus();  // tried again
  session.rings->BeginBatch(ballot.proposal.number);
  ConfirmView confirm(ViewOf(ballot, ""));
  Cost cost;
  const absl::StatusOr<KeyRecord> record = DrawRecord(session.party(), info_, confirm, &cost);
  absl::Status status = record.status();
  if (record.ok()) status = state.store->Stage(group, {&*record, 1}, state.Now());
  Finish(state, ballot.key_round, status);
  return record.status();
}

class Verify : public KeyRound {
 public:
  Verify(const GroupId& request, std::vector<Handle> handles, absl::Time deadline,
         JobEngine::VerifyCallback done)
      : KeyRound(BatchKind::kVerify, request, deadline),
        handles_(std::move(handles)),
        done_(std::move(done)) {}

  std::vector<ProposalEntry> Entries(BatchRecords& records) override;
  std::vector<VoteCode> Vote(const std::vector<ProposalEntry>& entries,
                             BatchRecords& records) override;
  absl::Status Run(EngineState& state, PeerSession& session, Ballot& ballot) override;
  void Answer(const absl::Status& status) override {
    if (!done_) return;
    auto done = std::exchange(done_, nullptr);
    if (status.ok()) return done(std::move(results_));
    done(status);
  }

 private:
  std::string LeftOut(const Handle& handle, Ballot& ballot, const Agreed& agreed) const;

  const std::vector<Handle> handles_;
  std::vector<VerifyResult> results_;  // of the first handles
  JobEngine::VerifyCallback done_;
};

std::vector<ProposalEntry> Verify::Entries(BatchRecords& records) {
  std::vector<ProposalEntry> entries;
  const size_t end = std::min(results_.size() + kVerifyKeysPerBatch, handles_.size());
  for (size_t i = results_.size(); i < end; ++i) {
    entries.push_back({group, i, HandleDigest(handles_[i]), ReadCode(records, handles_[i])});
  }
  return entries;
}

// All or none: a request that differs in one handle is another request.
std::vector<VoteCode> Verify::Vote(const std::vector<ProposalEntry>& entries,
                                   BatchRecords& records) {
  std::vector<VoteCode> codes;
  for (const ProposalEntry& entry : entries) {
    const size_t index = results_.size() + codes.size();
    if (entry.id != index || index >= handles_.size()) return {};
    if (entry.digest != HandleDigest(handles_[index])) return {};
    codes.push_back(ReadCode(records, handles_[index]));
  }
  return codes;
}

// Why a handle is left out of the computation; empty when it is not.
std::string Verify::LeftOut(const Handle& handle, Ballot& ballot, const Agreed& agreed) const {
  const absl::Status& own = ballot.records.Get(handle).status();
  if (!own.ok()) return std::string(own.message());
  if (agreed.code == kVoteOk) return "";
  return absl::StrCat("server ", agreed.by, " cannot read the record");
}

absl::Status Verify::Run(EngineState& state, PeerSession& session, Ballot& ballot) {
  for (const Agreed& agreed : ballot.agreed) {
    if (agreed.code == kVoteMissing) return absl::OkStatus();  // tried again
  }
  std::vector<VerifyResult> results;
  std::vector<size_t> computed;
  std::vector<const KeyRecord*> records;
  std::string facts;
  for (size_t i = 0; i < ballot.proposal.entries.size(); ++i) {
    const Handle& handle = handles_[ballot.proposal.entries[i].id];
    results.push_back({handle, false, LeftOut(handle, ballot, ballot.agreed[i])});
    if (!results.back().detail.empty()) continue;
    computed.push_back(i);
    records.push_back(ballot.records.Find(handle));
    const KeyInfo& info = records.back()->info;
    absl::StrAppend(&facts, HandleText(info.handle), ",", info.enctype, ",",
                    static_cast<int>(info.key_class), ";");
  }
  session.rings->BeginBatch(ballot.proposal.number);
  ConfirmView confirm(ViewOf(ballot, facts));
  Cost cost;
  const absl::StatusOr<std::vector<bool>> equal =
      VerifyRecords(session.party(), records, confirm, &cost);
  if (!equal.ok()) {
    Finish(state, ballot.key_round, equal.status());
    return equal.status();
  }
  for (size_t i = 0; i < computed.size(); ++i) {
    VerifyResult& result = results[computed[i]];
    result.consistent = (*equal)[i];
    if (!result.consistent) result.detail = "the key's records do not belong together";
  }
  results_.insert(results_.end(), results.begin(), results.end());
  next_try = absl::InfinitePast();
  if (results_.size() == handles_.size()) Finish(state, ballot.key_round, absl::OkStatus());
  return absl::OkStatus();
}

// A draw comes before a long verification's next batch.
KeyRoundPtr TakeDue(EngineState& state) {
  const absl::Time now = state.Now();
  const absl::MutexLock lock(&state.waiting.mu);
  for (const BatchKind kind : {BatchKind::kDraw, BatchKind::kVerify}) {
    for (const KeyRoundPtr& round : state.waiting.key_rounds) {
      if (round->kind != kind || round->next_try > now) continue;
      round->next_try = now + kRetry;
      return round;
    }
  }
  return nullptr;
}

void FailUntil(EngineState& state, absl::Time now, const char* why) {
  std::vector<KeyRoundPtr> failed;
  {
    const absl::MutexLock lock(&state.waiting.mu);
    state.waiting.key_rounds.remove_if([&](const KeyRoundPtr& round) {
      if (round->deadline > now) return false;
      failed.push_back(round);
      return true;
    });
  }
  for (const KeyRoundPtr& round : failed) round->Answer(absl::UnavailableError(why));
}

}  // namespace

KeyRoundPtr MakeDraw(const TransactionId& txn, const KeyInfo& info, absl::Time deadline,
                     JobEngine::DrawCallback done) {
  return std::make_shared<Draw>(txn, info, deadline, std::move(done));
}

KeyRoundPtr MakeVerify(const GroupId& request, std::vector<Handle> handles, absl::Time deadline,
                       JobEngine::VerifyCallback done) {
  return std::make_shared<Verify>(request, std::move(handles), deadline, std::move(done));
}

bool ProposeKeyRound(EngineState& state, Ballot& ballot) {
  ballot.key_round = TakeDue(state);
  if (ballot.key_round == nullptr) return false;
  ballot.proposal.kind = ballot.key_round->kind;
  ballot.proposal.entries = ballot.key_round->Entries(ballot.records);
  return true;
}

void VoteOnKeyRound(EngineState& state, Ballot& ballot) {
  const Proposal& proposal = ballot.proposal;
  if (proposal.entries.empty()) return;
  std::vector<KeyRoundPtr> rounds;
  {
    const absl::MutexLock lock(&state.waiting.mu);
    rounds.assign(state.waiting.key_rounds.begin(), state.waiting.key_rounds.end());
  }
  for (const KeyRoundPtr& round : rounds) {
    if (round->kind != proposal.kind || round->group != proposal.entries[0].group) continue;
    std::vector<VoteCode> codes = round->Vote(proposal.entries, ballot.records);
    if (codes.empty()) continue;
    ballot.key_round = round;
    ballot.codes = std::move(codes);
  }
}

void FailExpiredKeyRounds(EngineState& state, absl::Time now) {
  FailUntil(state, now,
            "the two other servers did not get the same request, or are not connected");
}

void FailAllKeyRounds(EngineState& state, const char* why) {
  FailUntil(state, absl::InfiniteFuture(), why);
}

}  // namespace mpckdc
