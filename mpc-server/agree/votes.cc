// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/steps.h"

#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/share/deviation.h"

namespace mpckdc {
namespace {

// The leader knows what it told the voter, a follower does not know what the leader did.
Suspects WhoContradicts(const EngineState& state, int voter) {
  return state.party == kLeader ? Suspects::One(voter) : Suspects::Neighbours(state.party);
}

absl::Status ReceiveVote(EngineState& state, PeerSession& session, int voter, Ballot& ballot,
                         std::vector<VoteCode>* codes) {
  const Neighbour from = NeighbourOf(state.party, voter);
  ASSIGN_OR_RETURN(Frame frame,
                   session.channel().Receive(from, state.Now() + limits::kPeerTimeout));
  ballot.votes[voter] = std::string(AsText(frame.payload));
  ASSIGN_OR_RETURN(Vote vote, DecodeVote(ballot.votes[voter]));
  state.clocks.Hear(from, vote.time, state.Now());
  state.lines.Hear(voter, vote.lines);
  if (vote.number != ballot.proposal.number || vote.proposal != ballot.hash) {
    return Deviation(
        WhoContradicts(state, voter),
        absl::StrCat("agreement: party ", voter, " votes on proposal ", vote.number,
                     " and was told another one than this server's ", ballot.proposal.number));
  }
  const size_t entries = ballot.proposal.entries.size();
  if (vote.codes.size() != entries) {
    return Deviation(Suspects::One(voter),
                     absl::StrCat("agreement: party ", voter, " votes on ", vote.codes.size(),
                                  " entries of ", entries));
  }
  *codes = std::move(vote.codes);
  ballot.tags[voter] = std::move(vote.keys);
  return absl::OkStatus();
}

}  // namespace

absl::Status ReceiveVotes(EngineState& state, PeerSession& session, Ballot& ballot) {
  std::array<std::vector<VoteCode>, kParties> codes;
  for (const ProposalEntry& entry : ballot.proposal.entries) {
    codes[kLeader].push_back(entry.code);
    if (state.party != kLeader) ballot.tags[kLeader].push_back(entry.keys);
  }
  for (int party = 0; party < kParties; ++party) {
    if (party == kLeader) continue;
    if (party == state.party) {
      codes[party] = ballot.codes;
      continue;
    }
    RETURN_IF_ERROR(ReceiveVote(state, session, party, ballot, &codes[party]));
  }
  state.clocks.Judge();
  state.sealing.Tell();
  for (size_t i = 0; i < ballot.proposal.entries.size(); ++i) {
    const Agreed agreed = Combine({codes[0][i], codes[1][i], codes[2][i]});
    ballot.agreed.push_back(agreed);
    // Who says the same says why itself.
    if (agreed.code == kVoteOk || agreed.code == codes[state.party][i]) continue;
    ballot.details[i] = absl::StrCat("server ", agreed.by, " said ",
                                     VerdictName(static_cast<Verdict>(agreed.code)));
  }
  return CompareRecords(state, ballot);
}

Digest ViewOf(const Ballot& ballot, const std::string& facts) {
  std::string view("mpc-kdc view v1");
  view.push_back('\0');
  for (const std::string* told : {&ballot.bytes, &ballot.votes[1], &ballot.votes[2], &facts}) {
    absl::StrAppend(&view, AsText(Sha256(*told)));
  }
  return Sha256(view);
}

}  // namespace mpckdc
