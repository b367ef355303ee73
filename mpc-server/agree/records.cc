// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "mpc-server/agree/steps.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc {
namespace {

// Those whose records the entry's computation would read.
std::vector<Handle> HandlesOfEntry(const Ballot& ballot, size_t i) {
  if (!IsOfJobs(ballot.proposal.kind))
    return ballot.key_round->HandlesOf(ballot.proposal.entries[i]);
  return HandlesOf(ballot.jobs[i]->job);
}

}  // namespace

void TagRecords(PeerSession& session, const std::vector<VoteCode>& codes, Ballot& ballot) {
  const size_t entries = ballot.proposal.entries.size();
  std::vector<EntryTags>& mine = ballot.tags[session.party().party()];
  ballot.handles.resize(entries);
  mine.resize(entries);
  for (size_t i = 0; i < entries; ++i) {
    if (codes[i] != kVoteOk) continue;
    ballot.handles[i] = HandlesOfEntry(ballot, i);
    for (const Handle& handle : ballot.handles[i]) {
      mine[i].push_back(ballot.records.Tags(handle, session.party(), ballot.proposal.number));
    }
  }
}

absl::Status CompareRecords(EngineState& state, Ballot& ballot) {
  for (size_t i = 0; i < ballot.agreed.size(); ++i) {
    if (ballot.agreed[i].code != kVoteOk) continue;
    RETURN_IF_ERROR(CheckCounts(
        state.party, ballot.handles[i].size(),
        {ballot.tags[0][i].size(), ballot.tags[1][i].size(), ballot.tags[2][i].size()}));
    for (size_t key = 0; key < ballot.handles[i].size(); ++key) {
      const Handle& handle = ballot.handles[i][key];
      const std::optional<Difference> found =
          Compare({ballot.tags[0][i][key], ballot.tags[1][i][key], ballot.tags[2][i][key]});
      const std::string text = state.different.Note(*ballot.records.FindInfo(handle), found);
      if (text.empty()) continue;
      ballot.agreed[i] = {CodeOf(Verdict::kUnavailable), found->party, true};
      ballot.details[i] = text;
    }
  }
  return absl::OkStatus();
}

}  // namespace mpckdc
