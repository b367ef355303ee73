// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/epoch_change.h"

#include <sodium.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpc-server/agree/epoch_agreement.h"
#include "mpc-server/agree/steps.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc {
namespace {

// Until a refresh is proposed again that another server does not want yet. One that failed cost a
// session: the pause doubles, so that logins have time in between.
constexpr absl::Duration kRetry = absl::Seconds(1), kLongestPause = absl::Seconds(10);
// The three do not end their session at the same moment, so it may take some tries to open the next.
constexpr absl::Duration kOpening = absl::Seconds(3);

// So long another triple may take to bring all three into the epoch that one has entered.
constexpr absl::Duration kPatience = absl::Seconds(1);

// Beside 1 to 8 of agreement.h, epoch_agreement.cc and hand_over.h.
constexpr char kLeavingMessage = 9;

// The same at all who want to leave an epoch, whoever asked them.
GroupId GroupOf(const StoreIdentity& identity, uint64_t from) {
  const Digest digest =
      Sha256(absl::StrCat("mpc-kdc refresh v1 ", identity.realm, " ", identity.cluster, " ", from));
  GroupId group;
  std::copy_n(digest.begin(), group.size(), group.begin());
  return group;
}

// Not before the records of the last refresh are written, and every key is back; nor soon after an
// attempt that failed.
bool MayRefresh(EngineState& state) {
  const EpochState epoch = state.store->Epoch();
  const absl::Time now = state.Now();
  const bool pauses = now < state.refresh_after && state.refresh_after <= now + kLongestPause;
  return !epoch.rewriting && !epoch.receiving && !pauses;
}

class RefreshRound : public KeyRound {
 public:
  RefreshRound(EngineState& state, uint64_t from, absl::Time deadline, JobEngine::DrawCallback done)
      : KeyRound(BatchKind::kRefresh, GroupOf(state.meta.identity, from), deadline),
        state_(state),
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
  VoteCode Code() const {
    return state_.store->Epoch().epoch == from_ && MayRefresh(state_) ? kVoteOk : kVoteMissing;
  }

  EngineState& state_;
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

// Whether it was asked to leave the epoch in which it is. That is what it claims, whether the three
// have come to agree on it in a batch or not: a session that was lost meanwhile changes nothing.
bool WantsToRefresh(EngineState& state) {
  if (!MayRefresh(state)) return false;
  const GroupId present = GroupOf(state.meta.identity, state.store->Epoch().epoch);
  const absl::MutexLock lock(&state.waiting.mu);
  return std::any_of(state.waiting.key_rounds.begin(), state.waiting.key_rounds.end(),
                     [&](const KeyRoundPtr& round) {
                       return round->kind == BatchKind::kRefresh && round->group == present;
                     });
}

void NoteAttempt(EngineState& state, const absl::Status& taken) {
  const absl::Duration longer = std::clamp(state.refresh_pause * 2, kRetry, kLongestPause);
  state.refresh_pause = taken.ok() ? absl::ZeroDuration() : longer;
  state.refresh_after = state.Now() + state.refresh_pause;
}

// Of the three servers' joint key, for this purpose.
RefreshSeed SeedOf(const PartyContext& party) {
  RefreshSeed seed;
  static_assert(sizeof(Seed) == crypto_kdf_KEYBYTES);
  crypto_kdf_derive_from_key(seed.Get().data(), seed.Get().size(), 1, "mpckdc-s",
                             party.once().joint.Get().data());
  return seed;
}

absl::Status HearPrepared(EngineState& state, PeerSession& session, Neighbour from,
                          const std::string& expected) {
  ASSIGN_OR_RETURN(const Frame frame,
                   session.channel().Receive(from, state.Now() + limits::kPeerTimeout));
  if (frame.type == FrameType::kAgreement && AsText(frame.payload) == expected) {
    return absl::OkStatus();
  }
  return absl::DataLossError(
      absl::StrCat("the ", NeighbourName(from), " speaks of another refresh than this server"));
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
    // Whoever asked hears why. This server agrees to none until it is asked again: each attempt
    // ends a session.
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

// Of the two who are not replaced: what only they know.
RefreshSeed SeedWithout(const PartyContext& party, int newcomer) {
  const Neighbour other =
      PartyAt(party.party(), Neighbour::kNext) == newcomer ? Neighbour::kPrev : Neighbour::kNext;
  RefreshSeed seed;
  crypto_kdf_derive_from_key(seed.Get().data(), seed.Get().size(), 1, "mpckdc-t",
                             party.once().With(other).Get().data());
  return seed;
}

// The step kReplace: the two go into a new epoch, `into`, which the newcomer joins.
absl::Status ReplaceTogether(EngineState& state, PeerSession& session,
                             const std::array<EpochClaim, kParties>& claims) {
  const int newcomer = *Receiver(claims);
  const PartyContext& party = session.party();
  const RefreshId id = party.session_id();
  const uint64_t into = claims[(newcomer + 1) % kParties].epoch + 1;
  RETURN_IF_ERROR(state.party == newcomer
                      ? state.store->PrepareJoin(id, into)
                      : state.store->PrepareEpoch(id, SeedWithout(party, newcomer)));
  const std::string prepared = EncodePrepared(id, into);
  RETURN_IF_ERROR(session.SendToBoth(prepared));
  for (const Neighbour from : {Neighbour::kPrev, Neighbour::kNext}) {
    RETURN_IF_ERROR(HearPrepared(state, session, from, prepared));
  }
  return Enter(state);
}

// Then each has what the session before found out.
bool AllAgreed(const std::array<EpochClaim, kParties>& claims) {
  return std::all_of(claims.begin(), claims.end(), [](const EpochClaim& c) { return c.agreed; });
}

void AnswerReplace(EngineState& state, const absl::Status& status) {
  std::shared_ptr<JobEngine::DrawCallback> done;
  {
    const absl::MutexLock lock(&state.waiting.mu);
    if (state.waiting.replace.has_value()) done = state.waiting.replace->done;
    state.waiting.replace.reset();
  }
  if (done != nullptr) (*done)(status);
}

// Of the disk or the key file; not of the lines to the others.
bool IsOwnTrouble(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) || absl::IsResourceExhausted(status) ||
         absl::IsPermissionDenied(status);
}

// Since when others are behind, whom another triple brings along.
void NoteBehind(EngineState& state, const absl::StatusOr<EpochStep>& step) {
  if (absl::IsUnavailable(step.status())) {
    if (!state.behind_since.has_value()) state.behind_since = state.Now();
  } else if (step.ok() && *step != EpochStep::kTakeOver) {
    state.behind_since.reset();
  }
}

absl::Status Take(EngineState& state, PeerSession& session,
                  const std::array<EpochClaim, kParties>& claims, EpochStep step) {
  switch (step) {
    case EpochStep::kWait:
      return absl::OkStatus();
    case EpochStep::kStay:
      return state.store->AbandonEpoch();
    case EpochStep::kCatchUp:
      return Enter(state);
    case EpochStep::kRefresh:
      return RefreshTogether(state, session);
    case EpochStep::kReplace:
      return ReplaceTogether(state, session, claims);
    case EpochStep::kTakeOver:
      return state.store->TakeOver();
  }
  return absl::InternalError("no such step of epochs");
}

}  // namespace

absl::StatusOr<EpochClaim> OwnClaim(EngineState& state) {
  RETURN_IF_ERROR(state.store->ReloadEpoch());
  EpochClaim claim = ClaimOf(state.store->Epoch(), WantsToRefresh(state));
  claim.agreed = state.refresh_agreed;
  ASSIGN_OR_RETURN(claim.empty, state.store->IsEmpty());
  claim.catch_up = state.wants_keys && claim.receiving;
  // A clock that was set back makes nobody wait.
  claim.insists = state.behind_since.has_value() &&
                  absl::AbsDuration(state.Now() - *state.behind_since) >= kPatience;
  const absl::MutexLock lock(&state.waiting.mu);
  if (state.waiting.replace.has_value()) {
    claim.replace = static_cast<uint8_t>(state.waiting.replace->party + 1);
  }
  return claim;
}

void AskToReplace(EngineState& state, int party, absl::Time deadline,
                  JobEngine::DrawCallback done) {
  absl::Status status;
  if (state.party == party && state.store->Epoch().receiving) return done(absl::OkStatus());
  if (state.party == party) {
    const absl::StatusOr<bool> empty = state.store->IsEmpty();
    status = empty.status();
    if (empty.ok() && !*empty) {
      status = absl::FailedPreconditionError(
          "this server has keys, or was initialised: what is replaced begins with an empty store. "
          "Stop it, move its data directory away and start it again");
    }
  }
  std::shared_ptr<JobEngine::DrawCallback> before;
  if (status.ok()) {
    const absl::MutexLock lock(&state.waiting.mu);
    std::optional<ReplaceWish>& wish = state.waiting.replace;
    if (wish.has_value() && wish->party != party) {
      status = absl::FailedPreconditionError("this server was asked already to replace a party");
    } else {
      if (wish.has_value()) before = wish->done;
      wish = {party, deadline, std::make_shared<JobEngine::DrawCallback>(std::move(done))};
    }
  }
  if (!status.ok()) return done(status);
  if (before != nullptr) (*before)(absl::UnavailableError("this server was asked again"));
  state.executor->Wake();
}

void FailExpiredReplace(EngineState& state, absl::Time now) {
  {
    const absl::MutexLock lock(&state.waiting.mu);
    if (!state.waiting.replace.has_value() || state.waiting.replace->deadline > now) return;
  }
  AnswerReplace(state,
                absl::UnavailableError(
                    "the three servers did not come together to replace it: see the logs; all "
                    "three must be up, asked for the same party, that party's store empty, and "
                    "the last refresh written"));
}

KeyRoundPtr MakeRefresh(EngineState& state, uint64_t from, absl::Time deadline,
                        JobEngine::DrawCallback done) {
  return std::make_shared<RefreshRound>(state, from, deadline, std::move(done));
}

void AgreeToRefresh(EngineState& state, Ballot& ballot) {
  if (ballot.agreed[0].code == kVoteOk) {
    state.refresh_agreed = true;
    state.refresh_until = state.Now() + kOpening;
  }
  if (ballot.key_round != nullptr) ballot.key_round->next_try = state.Now() + kRetry;
}

// Who does not hear the others knows all the same, since they knew before they closed.
void LeaveTogether(EngineState& state, PeerSession& session) {
  if (!session.SendToBoth(std::string(1, kLeavingMessage)).ok()) return;
  for (const Neighbour from : {Neighbour::kPrev, Neighbour::kNext}) {
    if (!session.channel().Receive(from, state.Now() + limits::kPeerTimeout).ok()) return;
  }
}

absl::Status SettleEpoch(EngineState& state, PeerSession& session,
                         const std::array<EpochClaim, kParties>& claims, bool* refreshed) {
  const bool agreed = std::exchange(state.refresh_agreed, false);
  state.took_over = false;
  const absl::StatusOr<EpochStep> step =
      ChooseEpochStep(claims, state.party, state.store->triple());
  NoteBehind(state, step);
  const absl::Status taken = step.ok() ? Take(state, session, claims, *step) : step.status();
  if (step.ok() && *step == EpochStep::kRefresh) NoteAttempt(state, taken);
  for (const auto& party : session.parties) party->ForgetOnceKeys();
  if (step.ok() && *step == EpochStep::kReplace && IsOwnTrouble(taken)) {
    // Told to whoever asked; after the others' trouble it is tried again.
    AnswerReplace(state, taken);
  }
  RETURN_IF_ERROR(taken);
  if (*step == EpochStep::kTakeOver) {
    state.took_over = true;
    state.refresh_agreed = agreed;
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(CheckSettled(claims));
  *refreshed = *step == EpochStep::kRefresh && AllAgreed(claims);
  AnswerRefreshRounds(state, absl::OkStatus());
  DropHandOvers(state);
  const std::optional<int> receiver = Receiver(claims);
  if (receiver.has_value() && IsSteward(claims, state.store->triple())) {
    state.wants_keys = false;
    {
      const absl::MutexLock lock(&state.waiting.mu);
      state.waiting.key_rounds.push_back(MakeHandOver(state, session, *receiver));
    }
    AnswerReplace(state, absl::OkStatus());
  }
  return absl::OkStatus();
}

}  // namespace mpckdc
