// SPDX-License-Identifier: Apache-2.0
//
// Whether old keys are equal to staged ones (JobEngine::CompareKeys), for the password history. An
// entry of the batch is an old key, and reads the staged ones as well:
//
//     old key --- the staged keys of its principal and enctype: a bit each, opened to the servers
//
// Of each record only the base key and the facts about it take part, also in the tags by which the
// three find that they hold the same: a server may have reduced an old record to these
// (store/retired.h) when another has not.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpc-server/agree/confirm_view.h"
#include "mpc-server/agree/key_rounds.h"
#include "mpc-server/agree/steps.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/compute/key_work.h"

namespace mpckdc {
namespace {

class CompareRound : public KeyRound {
 public:
  CompareRound(ShareStore* store, CompareRequest request, absl::Time deadline,
               JobEngine::CompareCallback done)
      : KeyRound(BatchKind::kCompare, request.id, deadline),
        store_(*store),
        request_(std::move(request)),
        done_(std::move(done)) {}

  std::vector<ProposalEntry> Entries(BatchRecords& records) override;
  std::vector<VoteCode> Vote(const std::vector<ProposalEntry>& entries,
                             BatchRecords& records) override;
  CtsLoad LoadOf(const ProposalEntry&, BatchRecords&) const override { return {}; }
  // All staged keys in any case, so that the three name as many.
  std::vector<Handle> HandlesOf(const ProposalEntry& entry) const override {
    std::vector<Handle> handles = {request_.old[entry.id]};
    handles.insert(handles.end(), request_.staged.begin(), request_.staged.end());
    return handles;
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
  std::vector<VoteCode> ReadKeys(BatchRecords& records);
  void AddPairs(size_t entry, Ballot& ballot, std::string* facts);
  void LeaveOut(size_t entry, const Ballot& ballot);

  ShareStore& store_;
  const CompareRequest request_;
  JobEngine::CompareCallback done_;

  // Of the batch under way.
  std::vector<absl::Status> read_;  // of the old keys
  PartyContext* party_ = nullptr;
  KeyProtocol by_;              // with the view
  std::vector<KeyPair> pairs_;  // the records are the ballot's
  std::vector<size_t> of_;      // the old key of each pair
  std::vector<bool> equal_;     // and what came of it
  std::vector<CompareResult> results_;
  std::string trouble_;  // why there is no answer
};

// What takes part in a comparison. The class is the same whether the server has reduced the record
// or not.
KeyRecord BaseOf(const KeyRecord& record) {
  KeyRecord base;
  base.info = record.info;
  base.info.key_class = KeyClass::kUser;
  base.base = record.base;
  return base;
}

// Puts the records where the ballot finds them; a code for each old key.
std::vector<VoteCode> CompareRound::ReadKeys(BatchRecords& records) {
  bool staged_there = true;
  for (const Handle& handle : request_.staged) {
    const absl::StatusOr<KeyRecord> staged = store_.GetStaged(request_.txn, handle);
    // An old key under a new name is no new one (service/key_history.h).
    staged_there = staged_there && staged.ok() && !staged->copied.has_value();
    if (staged.ok()) records.Put(handle, BaseOf(*staged));
  }
  read_.clear();
  std::vector<VoteCode> codes;
  std::vector<absl::StatusOr<KeyRecord>> old = store_.GetMany(request_.old);
  for (size_t i = 0; i < old.size(); ++i) {
    if (old[i].ok() && !request_.first_owners.empty() &&
        old[i]->first_owner() != request_.first_owners[i]) {
      old[i] = absl::AbortedError(absl::StrCat("key ", HandleText(request_.old[i]),
                                               " was exchanged while it was to be compared"));
    }
    read_.push_back(old[i].status());
    if (old[i].ok()) records.Put(request_.old[i], BaseOf(*old[i]));
    const bool unknown = absl::IsNotFound(old[i].status());
    codes.push_back(old[i].ok() && staged_there
                        ? kVoteOk
                        : CodeOf(unknown ? Verdict::kUnknownHandle : Verdict::kUnavailable));
  }
  return codes;
}

std::vector<ProposalEntry> CompareRound::Entries(BatchRecords& records) {
  const std::vector<VoteCode> codes = ReadKeys(records);
  std::vector<ProposalEntry> entries;
  for (size_t i = 0; i < codes.size(); ++i) {
    entries.push_back(
        {group, i, CompareDigest(request_.txn, request_.old[i], request_.staged), codes[i]});
  }
  return entries;
}

std::vector<VoteCode> CompareRound::Vote(const std::vector<ProposalEntry>& entries,
                                         BatchRecords& records) {
  if (entries.size() != request_.old.size()) return {};
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].id != i) return {};
    if (entries[i].digest != CompareDigest(request_.txn, request_.old[i], request_.staged)) {
      return {};
    }
  }
  return ReadKeys(records);
}

void CompareRound::AddPairs(size_t entry, Ballot& ballot, std::string* facts) {
  const KeyRecord* const old = ballot.records.Find(request_.old[entry]);
  for (const Handle& handle : request_.staged) {
    const KeyRecord* const staged = ballot.records.Find(handle);
    if (staged->info.enctype != old->info.enctype) continue;
    if (staged->info.principal_id != old->info.principal_id) continue;
    pairs_.push_back({old, staged});
    of_.push_back(entry);
    absl::StrAppend(facts, HandleText(old->info.handle), ",", HandleText(handle), ",",
                    old->info.enctype, ";");
  }
}

// One that this server does not have may be gone at all three; who asked sees that by all answers.
void CompareRound::LeaveOut(size_t entry, const Ballot& ballot) {
  CompareResult& result = results_[entry];
  const absl::Status& own = read_[entry];
  if (absl::IsNotFound(own)) {
    result.comparison = Comparison::kUnknown;
    result.detail = std::string(own.message());
    return;
  }
  if (!trouble_.empty()) return;
  const Agreed& agreed = ballot.agreed[entry];
  trouble_ = !own.ok() ? std::string(own.message())
             : agreed.records_differ
                 ? ballot.details[entry]
                 : absl::StrCat("server ", agreed.by, " cannot read key ",
                                HandleText(request_.old[entry]), " or a staged one");
}

bool CompareRound::Begin(BatchRings& rings, Ballot& ballot) {
  pairs_.clear();
  of_.clear();
  results_.clear();
  trouble_.clear();
  for (const Agreed& agreed : ballot.agreed) {
    if (agreed.code == kVoteMissing) return false;
  }
  std::string facts;
  for (size_t i = 0; i < request_.old.size(); ++i) {
    results_.push_back({request_.old[i], Comparison::kDifferent, ""});
    if (ballot.agreed[i].code == kVoteOk) {
      AddPairs(i, ballot, &facts);
    } else {
      LeaveOut(i, ballot);
    }
  }
  party_ = &rings.party();
  by_ = {CtsProtocol::kReplicated, ViewOf(ballot, facts)};
  rings.rings.SetContext(by_.agreed);
  return true;
}

absl::Status CompareRound::Compute() {
  ConfirmView confirm(party_->party(), by_.agreed);
  Cost cost;
  ASSIGN_OR_RETURN(equal_, CompareBases(*party_, pairs_, confirm, &cost));
  return absl::OkStatus();
}

void CompareRound::Finish(EngineState& state, const absl::Status& computed) {
  if (!computed.ok()) return EndKeyRound(state, *this, computed);
  if (!trouble_.empty()) return EndKeyRound(state, *this, absl::UnavailableError(trouble_));
  for (size_t p = 0; p < pairs_.size(); ++p) {
    if (equal_[p]) results_[of_[p]].comparison = Comparison::kEqual;
  }
  EndKeyRound(state, *this, absl::OkStatus());
}

}  // namespace

KeyRoundPtr MakeCompare(ShareStore* store, CompareRequest request, absl::Time deadline,
                        JobEngine::CompareCallback done) {
  return std::make_shared<CompareRound>(store, std::move(request), deadline, std::move(done));
}

}  // namespace mpckdc
