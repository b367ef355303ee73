// SPDX-License-Identifier: Apache-2.0
//
// A refresh of the shares, from the request to the next epoch (epoch_agreement.h draws it).
#ifndef MPC_SERVER_AGREE_EPOCH_CHANGE_H_
#define MPC_SERVER_AGREE_EPOCH_CHANGE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "mpc-server/agree/agreement.h"
#include "mpc-server/agree/key_rounds.h"

namespace mpckdc {

struct Ballot;
struct EngineState;
struct PeerSession;

// A request to leave share epoch `from`; `done` when that has happened.
KeyRoundPtr MakeRefresh(EngineState& state, uint64_t from, absl::Time deadline,
                        JobEngine::DrawCallback done);

// After the votes on a refresh: if all three want it, the session is to end for it.
void AgreeToRefresh(EngineState& state, Ballot& ballot);
// The session ends for a refresh: returns when all three know. Whoever closed its lines before
// would take the others' last votes from the third.
void LeaveTogether(EngineState& state, PeerSession& session);

// What this server claims of itself in the session that is about to open.
absl::StatusOr<EpochClaim> OwnClaim(EngineState& state);

// A wish that `party` be replaced; only one at a time. FailedPrecondition: another one is. The same
// one again takes the place of the first, whose caller may be gone: a tool that was killed and runs
// anew need not wait until that has expired at some of the three.
void AskToReplace(EngineState& state, int party, absl::Time deadline, JobEngine::DrawCallback done);
void FailExpiredReplace(EngineState& state, absl::Time now);

// After both greetings: brings this server into the session's epoch. An error ends the session.
// `refreshed`: the three went into a new one, as they had agreed in the session before.
absl::Status SettleEpoch(EngineState& state, PeerSession& session,
                         const std::array<EpochClaim, kParties>& claims, bool* refreshed);

}  // namespace mpckdc

#endif  // MPC_SERVER_AGREE_EPOCH_CHANGE_H_
