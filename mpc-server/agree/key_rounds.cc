// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/key_rounds.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/agree/confirm_view.h"
#include "mpc-server/agree/steps.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/status_macros.h"
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

bool AnyMissing(const Ballot& ballot) {
  return std::any_of(ballot.agreed.begin(), ballot.agreed.end(),
                     [](const Agreed& agreed) { return agreed.code == kVoteMissing; });
}

bool ComputesOnKeys(BatchKind kind) {
  return kind == BatchKind::kDraw || kind == BatchKind::kVerify;
}

void CountBatch(EngineState& state, CtsProtocol protocol) {
  state.status.Update([&](EngineStatus& status) {
    status.protocol = protocol;
    ++(protocol == CtsProtocol::kGarbled ? status.garbled_batches : status.replicated_batches);
  });
}

class KeyRoundRun : public BatchRun {
 public:
  KeyRoundRun(EngineState* state, std::unique_ptr<Ballot> ballot)
      : state_(*state), ballot_(std::move(ballot)) {}

  absl::Status Compute() override { return ballot_->key_round->Compute(); }
  absl::Status Finish(const absl::Status& computed) override {
    const KeyRoundPtr round = ballot_->key_round;
    round->Finish(state_, computed);
    if (computed.ok() && ComputesOnKeys(round->kind)) {
      CountBatch(state_, ballot_->proposal.protocol);
    }
    return computed;
  }

 private:
  EngineState& state_;
  const std::unique_ptr<Ballot> ballot_;
};

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
  CtsLoad LoadOf(const ProposalEntry&, BatchRecords&) const override {
    CtsLoad load;
    load.AddKey(info_, KeyTask::kDraw);
    return load;
  }
  bool Begin(BatchRings& rings, Ballot& ballot) override;
  absl::Status Compute() override;
  void Finish(EngineState& state, const absl::Status& computed) override;
  void Answer(const absl::Status& status) override {
    if (done_) std::exchange(done_, nullptr)(status);
  }

 private:
  const KeyInfo info_;
  const Digest digest_;
  JobEngine::DrawCallback done_;

  // Of the batch under way.
  PartyContext* party_ = nullptr;
  KeyProtocol by_;  // with the view
  std::optional<KeyRecord> record_;
};

bool Draw::Begin(BatchRings& rings, Ballot& ballot) {
  if (ballot.agreed[0].code != kVoteOk) return false;
  party_ = &rings.party();
  by_ = {ballot.proposal.protocol, ViewOf(ballot, "")};
  rings.rings.SetContext(by_.agreed);
  return true;
}

absl::Status Draw::Compute() {
  ConfirmView confirm(party_->party(), by_.agreed);
  Cost cost;
  ASSIGN_OR_RETURN(record_, DrawRecord(*party_, info_, by_, confirm, &cost));
  return absl::OkStatus();
}

void Draw::Finish(EngineState& state, const absl::Status& computed) {
  absl::Status status = computed;
  if (status.ok()) status = state.store->Stage(group, {&*record_, 1}, state.Now());
  record_.reset();
  EndKeyRound(state, *this, status);
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
  CtsLoad LoadOf(const ProposalEntry& entry, BatchRecords& records) const override;
  std::vector<Handle> HandlesOf(const ProposalEntry& entry) const override {
    return {handles_[entry.id]};
  }
  bool Begin(BatchRings& rings, Ballot& ballot) override;
  absl::Status Compute() override;
  void Finish(EngineState& state, const absl::Status& computed) override;
  void Answer(const absl::Status& status) override {
    if (!done_) return;
    auto done = std::exchange(done_, nullptr);
    if (status.ok()) return done(std::move(results_));
    done(status);
  }

 private:
  std::string LeftOut(const Handle& handle, Ballot& ballot, size_t entry) const;

  const std::vector<Handle> handles_;
  std::vector<VerifyResult> results_;  // of the first handles
  JobEngine::VerifyCallback done_;

  // Of the batch under way.
  PartyContext* party_ = nullptr;
  KeyProtocol by_;                         // with the view
  std::vector<VerifyResult> batch_;        // of the batch's handles
  std::vector<size_t> computed_;           // which of them are computed
  std::vector<const KeyRecord*> records_;  // their records, the ballot's
  std::vector<bool> equal_;                // and what came of it
};

std::vector<ProposalEntry> Verify::Entries(BatchRecords& records) {
  std::vector<ProposalEntry> entries;
  const size_t end = std::min(results_.size() + kVerifyKeysPerBatch, handles_.size());
  records.Prefetch(absl::MakeConstSpan(handles_).subspan(results_.size(), end - results_.size()));
  for (size_t i = results_.size(); i < end; ++i) {
    entries.push_back({group, i, HandleDigest(handles_[i]), ReadCode(records, handles_[i])});
  }
  return entries;
}

// All or none: a request that differs in one handle is another request.
std::vector<VoteCode> Verify::Vote(const std::vector<ProposalEntry>& entries,
                                   BatchRecords& records) {
  std::vector<VoteCode> codes;
  records.Prefetch(absl::MakeConstSpan(handles_).subspan(results_.size(), entries.size()));
  for (const ProposalEntry& entry : entries) {
    const size_t index = results_.size() + codes.size();
    if (entry.id != index || index >= handles_.size()) return {};
    if (entry.digest != HandleDigest(handles_[index])) return {};
    codes.push_back(ReadCode(records, handles_[index]));
  }
  return codes;
}

CtsLoad Verify::LoadOf(const ProposalEntry& entry, BatchRecords& records) const {
  CtsLoad load;
  const KeyInfo* const info = records.FindInfo(handles_[entry.id]);
  if (info != nullptr) load.AddKey(*info, KeyTask::kVerify);
  return load;
}

// Why a handle is left out of the computation; empty when it is not.
std::string Verify::LeftOut(const Handle& handle, Ballot& ballot, size_t entry) const {
  const Agreed& agreed = ballot.agreed[entry];
  const absl::Status& own = ballot.records.Get(handle).status();
  if (!own.ok()) return std::string(own.message());
  if (agreed.code == kVoteOk) return "";
  if (agreed.records_differ) return ballot.details[entry];
  return absl::StrCat("server ", agreed.by,
                      " cannot read the record, or refuses the batch's protocol");
}

bool Verify::Begin(BatchRings& rings, Ballot& ballot) {
  if (AnyMissing(ballot)) return false;
  batch_.clear();
  computed_.clear();
  records_.clear();
  std::string facts;
  for (size_t i = 0; i < ballot.proposal.entries.size(); ++i) {
    const Handle& handle = handles_[ballot.proposal.entries[i].id];
    batch_.push_back({handle, false, LeftOut(handle, ballot, i)});
    if (!batch_.back().detail.empty()) continue;
    computed_.push_back(i);
    records_.push_back(ballot.records.Find(handle));
    const KeyInfo& info = records_.back()->info;
    absl::StrAppend(&facts, HandleText(info.handle), ",", info.enctype, ",",
                    static_cast<int>(info.key_class), ";");
  }
  party_ = &rings.party();
  by_ = {ballot.proposal.protocol, ViewOf(ballot, facts)};
  rings.rings.SetContext(by_.agreed);
  return true;
}

absl::Status Verify::Compute() {
  ConfirmView confirm(party_->party(), by_.agreed);
  Cost cost;
  ASSIGN_OR_RETURN(equal_, VerifyRecords(*party_, records_, by_, confirm, &cost));
  return absl::OkStatus();
}

void Verify::Finish(EngineState& state, const absl::Status& computed) {
  if (!computed.ok()) return EndKeyRound(state, *this, computed);
  for (size_t i = 0; i < computed_.size(); ++i) {
    VerifyResult& result = batch_[computed_[i]];
    result.consistent = equal_[i];
    if (!result.consistent) result.detail = "the key's records do not belong together";
  }
  results_.insert(results_.end(), batch_.begin(), batch_.end());
  next_try = absl::InfinitePast();
  if (results_.size() == handles_.size()) EndKeyRound(state, *this, absl::OkStatus());
}

// Those of a follower for keys that it may not compute as the leader proposes.
void RefuseProtocol(EngineState& state, Ballot& ballot) {
  const Proposal& proposal = ballot.proposal;
  if (!ComputesOnKeys(proposal.kind)) return;
  CtsLoad all;
  for (size_t i = 0; i < proposal.entries.size(); ++i) {
    if (ballot.codes[i] != kVoteOk || proposal.entries[i].code != kVoteOk) continue;
    const CtsLoad load = ballot.key_round->LoadOf(proposal.entries[i], ballot.records);
    all.Add(load);
    Judgement opinion = CheckProtocol(proposal.protocol, load, all, state.protocol());
    ballot.codes[i] = CodeOf(opinion.verdict);
    ballot.details[i] = std::move(opinion.detail);
  }
}

// A draw, a comparison and a refresh come before a long verification's next batch.
KeyRoundPtr TakeDue(EngineState& state) {
  const absl::Time now = state.Now();
  const absl::MutexLock lock(&state.waiting.mu);
  for (const BatchKind kind : {BatchKind::kDraw, BatchKind::kCompare, BatchKind::kRefresh,
                               BatchKind::kHandOver, BatchKind::kVerify}) {
    for (const KeyRoundPtr& round : state.waiting.key_rounds) {
      if (round->kind != kind || round->next_try > now) continue;
      round->next_try = now + kRetry;
      return round;
    }
  }
  return nullptr;
}

void FailUntil(EngineState& state, absl::Time now, const std::string& why) {
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

void EndKeyRound(EngineState& state, KeyRound& round, const absl::Status& status) {
  {
    const absl::MutexLock lock(&state.waiting.mu);
    state.waiting.key_rounds.remove_if([&](const KeyRoundPtr& r) { return r.get() == &round; });
  }
  round.Answer(status);
}

KeyRoundPtr MakeDraw(const TransactionId& txn, const KeyInfo& info, absl::Time deadline,
                     JobEngine::DrawCallback done) {
  return std::make_shared<Draw>(txn, info, deadline, std::move(done));
}

KeyRoundPtr MakeVerify(const GroupId& request, std::vector<Handle> handles, absl::Time deadline,
                       JobEngine::VerifyCallback done) {
  return std::make_shared<Verify>(request, std::move(handles), deadline, std::move(done));
}

std::unique_ptr<BatchRun> BeginKeyRound(EngineState& state, BatchRings& rings,
                                        std::unique_ptr<Ballot> ballot) {
  // Null where this server did not get the request: then it is missing in the vote.
  if (ballot->key_round == nullptr) return nullptr;
  if (!ballot->key_round->Begin(rings, *ballot)) {
    // What one of the three refuses is not proposed again.
    if (!AnyMissing(*ballot)) {
      EndKeyRound(state, *ballot->key_round, absl::UnavailableError(ballot->details[0]));
    }
    return nullptr;
  }
  ballot->key_round->next_try = absl::InfiniteFuture();  // not again while it is computed
  rings.rings.BeginBatch(ballot->proposal.number);
  return std::make_unique<KeyRoundRun>(&state, std::move(ballot));
}

bool ProposeKeyRound(EngineState& state, ProtocolSetting setting, Ballot& ballot) {
  ballot.key_round = TakeDue(state);
  if (ballot.key_round == nullptr) return false;
  std::vector<ProposalEntry> entries = ballot.key_round->Entries(ballot.records);
  // What this server is not ready for itself is looked at again later (TakeDue): to the two others
  // a leader that proposes it would be one that breaks the protocol.
  if (std::any_of(entries.begin(), entries.end(),
                  [](const ProposalEntry& entry) { return entry.code == kVoteMissing; })) {
    ballot.key_round = nullptr;
    return false;
  }
  ballot.proposal.kind = ballot.key_round->kind;
  if (!ComputesOnKeys(ballot.proposal.kind)) {
    ballot.proposal.entries = std::move(entries);
    return true;
  }
  std::vector<CtsLoad> loads;
  for (const ProposalEntry& entry : entries) {
    loads.push_back(entry.code == kVoteOk ? ballot.key_round->LoadOf(entry, ballot.records)
                                          : CtsLoad());
  }
  const KeyChoice choice = ChooseKeys(loads, state.lines.Farthest(), setting);
  entries.resize(choice.taken);
  ballot.proposal.protocol = choice.protocol;
  ballot.proposal.entries = std::move(entries);
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
    RefuseProtocol(state, ballot);
  }
}

void FailExpiredKeyRounds(EngineState& state, absl::Time now) {
  FailUntil(state, now,
            "not computed in time: the two other servers did not get the same request, are not "
            "connected or are too slow; see mpc-admin status");
}

void FailAllKeyRounds(EngineState& state, const std::string& why) {
  FailUntil(state, absl::InfiniteFuture(), why);
}

}  // namespace mpckdc
