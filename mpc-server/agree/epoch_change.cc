// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/epoch_change.h"

#include <sodium.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpc-server/agree/epoch_agreement.h"
#include "mpc-server/agree/steps.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc {
namespace {

// Until a refresh is proposed again that another server does not want yet; that failed, with a
// session.
constexpr absl::Duration kRetry = absl::Seconds(1), kRetryFailed = absl::Seconds(10);

// The same at all who want to leave an epoch, whoever asked them.
GroupId GroupOf(const StoreIdentity& identity, uint64_t from) {
  const Digest digest = Sha256(absl::StrCat("mpc-kdc refresh v1 ", identity.realm, " ",
                                            identity.cluster, " ", from));
  GroupId group;
  std::copy_n(digest.begin(), group.size(), group.begin());
  return group;
}

class RefreshRound : public KeyRound {
 public:
  RefreshRound(EngineState& state, uint64_t from, absl::Time deadline,
               JobEngine::DrawCallback done)
      : KeyRound(BatchKind::kRefresh, GroupOf(state.meta.identity, from), deadline),
        store_(*state.store),
        from_(from),
        done_(std::move(done)) {}

  std::vector<ProposalEntry> Entries(BatchRecords&) override {
    return {{group, from_, Digest{}, Code()}};
  }
  std::vector<VoteCode> Vote(const std::vector<ProposalEntry>&, BatchRecords&) override {
    return {Code()};
  }
  CtsLoad LoadOf(const ProposalEntry&, BatchRecords&) const override { return {}; }
  // Nothing is computed for it.
  bool Begin(BatchRings&, Ballot&) override { return false; }
  absl::Status Compute() override { return absl::OkStatus(); }
  void Finish(EngineState&, const absl::Status&) override {}
  void Answer(const absl::Status& status) override {
    if (done_) std::exchange(done_, nullptr)(status);
  }

 private:
  // Not before the records of the last refresh are written.
  VoteCode Code() const {
    const EpochState now = store_.Epoch();
    return now.epoch == from_ && !now.rewriting ? kVoteOk : kVoteMissing;
  }

  ShareStore& store_;
  const uint64_t from_;
  JobEngine::DrawCallback done_;
};

// Answers those who wanted to leave an epoch that was left; after an error all.
void AnswerRefreshRounds(EngineState& state, const absl::Status& status) {
  const GroupId present = GroupOf(state.meta.identity, state.store->Epoch().epoch);
  std::vector<KeyRoundPtr> answered;
  {
    const absl::MutexLock lock(&state.waiting.mu);
    state.waiting.key_rounds.remove_if([&](const KeyRoundPtr& round) {
      if (round->kind != BatchKind::kRefresh || (status.ok() && round->group == present)) {
        return false;
      }
      answered.push_back(round);
      return true;
    });
  }
  for (const KeyRoundPtr& round : answered) round->Answer(status);
}

// Of the three servers' joint key, for this purpose.
RefreshSeed SeedOf(const PartyContext& party) {
  RefreshSeed seed;
  static_assert(sizeof(Seed) == crypto_kdf_KEYBYTES);
  crypto_kdf_derive_from_key(seed.Get().data(), seed.Get().size(), 1, "mpckdc-s",
                             party.JointKey().data());
  return seed;
}

absl::Status HearPrepared(EngineState& state, PeerSession& session, Neighbour from,
                          const std::string& expected) {
  ASSIGN_OR_RETURN(const Frame frame,
                   session.channel().Receive(from, state.Now() + limits::kPeerTimeout));
  if (frame.type == FrameType::kAgreement && AsText(frame.payload) == expected) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat("the ", NeighbourName(from),
                                          " speaks of another refresh than this server"));
}

absl::Status Enter(EngineState& state) {
  RETURN_IF_ERROR(state.store->EnterEpoch(state.Now()));
  state.observer->OnEpoch(state.store->Epoch());
  return absl::OkStatus();
}

absl::Status RefreshTogether(EngineState& state, PeerSession& session) {
  const PartyContext& party = session.party();
  const RefreshId id = party.session_id();
  const std::string prepared = EncodePrepared(id, state.store->Epoch().epoch + 1);
  if (const absl::Status made = state.store->PrepareEpoch(id, SeedOf(party)); !made.ok()) {
    // Whoever asked hears why. This server agrees to none until it is asked again: each attempt ends
    // a session.
    AnswerRefreshRounds(state, made);
    return absl::Status(made.code(),
                        absl::StrCat("cannot prepare a refresh of the shares: ", made.message()));
  }
  RETURN_IF_ERROR(session.SendToBoth(prepared));
  for (const Neighbour from : {Neighbour::kPrev, Neighbour::kNext}) {
    RETURN_IF_ERROR(HearPrepared(state, session, from, prepared));
  }
  return Enter(state);
}

absl::Status Take(EngineState& state, PeerSession& session, EpochStep step) {
  switch (step) {
    case EpochStep::kWait:
      return absl::OkStatus();
    case EpochStep::kStay:
      return state.store->AbandonEpoch();
    case EpochStep::kCatchUp:
      return Enter(state);
    case EpochStep::kRefresh:
      return RefreshTogether(state, session);
  }
  return absl::InternalError("no such step of epochs");
}

}  // namespace

KeyRoundPtr MakeRefresh(EngineState& state, uint64_t from, absl::Time deadline,
                        JobEngine::DrawCallback done) {
  return std::make_shared<RefreshRound>(state, from, deadline, std::move(done));
}

void AgreeToRefresh(EngineState& state, Ballot& ballot) {
  if (ballot.agreed[0].code == kVoteOk) {
    state.refresh_agreed = true;
  }
  if (ballot.key_round != nullptr) {
    ballot.key_round->next_try = state.Now() + (state.refresh_agreed ? kRetryFailed : kRetry);
  }
}

absl::Status SettleEpoch(EngineState& state, PeerSession& session,
                         const std::array<EpochClaim, kParties>& claims, bool* refreshed) {
  ASSIGN_OR_RETURN(const EpochStep step, ChooseEpochStep(claims, state.party));
  RETURN_IF_ERROR(Take(state, session, step));
  *refreshed = step == EpochStep::kRefresh;
  AnswerRefreshRounds(state, absl::OkStatus());
  return absl::OkStatus();
}

}  // namespace mpckdc
