// SPDX-License-Identifier: Apache-2.0
//
// Rounds about keys: drawing one, verifying some, comparing some. Each is a batch of its own,
// agreed on like a batch of jobs.
#ifndef MPC_SERVER_AGREE_KEY_ROUNDS_H_
#define MPC_SERVER_AGREE_KEY_ROUNDS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "mpc-server/agree/ballot.h"
#include "mpc-server/agree/batch_run.h"
#include "mpc-server/agree/job_engine.h"

namespace mpckdc {

struct Ballot;
struct EngineState;
struct BatchRings;

// What an administrator asked for, until it is answered. Belongs to the engine's thread from the
// moment when it waits.
class KeyRound {
 public:
  KeyRound(BatchKind kind, const GroupId& group, absl::Time deadline)
      : kind(kind), group(group), deadline(deadline) {}
  virtual ~KeyRound() = default;

  // The leader's proposal.
  virtual std::vector<ProposalEntry> Entries(BatchRecords& records) = 0;
  // A follower's codes for a proposal of this kind and group; empty: this is not what it asks for.
  virtual std::vector<VoteCode> Vote(const std::vector<ProposalEntry>& entries,
                                     BatchRecords& records) = 0;
  // What an entry of this round takes; nothing where its key cannot be read.
  virtual CtsLoad LoadOf(const ProposalEntry& entry, BatchRecords& records) const = 0;
  // The key that an entry of this round would read; none of a key that does not exist yet.
  virtual std::vector<Handle> HandlesOf(const ProposalEntry&) const { return {}; }
  // After all three had their say. False: it is left to be proposed again. True: Compute() and
  // Finish() follow, as of a BatchRun.
  virtual bool Begin(BatchRings& rings, Ballot& ballot) = 0;
  virtual absl::Status Compute() = 0;
  virtual void Finish(EngineState& state, const absl::Status& computed) = 0;
  // Calls the caller back, once.
  virtual void Answer(const absl::Status& status) = 0;

  const BatchKind kind;
  const GroupId group;  // transaction or request
  const absl::Time deadline;
  absl::Time next_try = absl::InfinitePast();
};
using KeyRoundPtr = std::shared_ptr<KeyRound>;

KeyRoundPtr MakeDraw(const TransactionId& txn, const KeyInfo& info, absl::Time deadline,
                     JobEngine::DrawCallback done);
KeyRoundPtr MakeVerify(const GroupId& request, std::vector<Handle> handles, absl::Time deadline,
                       JobEngine::VerifyCallback done);

KeyRoundPtr MakeCompare(ShareStore* store, CompareRequest request, absl::Time deadline,
                        JobEngine::CompareCallback done);  // compare_round.cc

// Answers the round and forgets it.
void EndKeyRound(EngineState& state, KeyRound& round, const absl::Status& status);

// The round as a batch of the long ring; null when it is left to be proposed again.
std::unique_ptr<BatchRun> BeginKeyRound(EngineState& state, BatchRings& rings,
                                        std::unique_ptr<Ballot> ballot);

// The leader puts a round that is due into the ballot, and how it is computed; false when there is
// none. `setting`: of the session.
bool ProposeKeyRound(EngineState& state, ProtocolSetting setting, Ballot& ballot);
// A follower looks for the proposed round and votes on it.
void VoteOnKeyRound(EngineState& state, Ballot& ballot);
// Answers those whose deadline has come; all, for another reason.
void FailExpiredKeyRounds(EngineState& state, absl::Time now);
void FailAllKeyRounds(EngineState& state, const std::string& why);

}  // namespace mpckdc

#endif  // MPC_SERVER_AGREE_KEY_ROUNDS_H_
