// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_AGREE_BALLOT_H_
#define MPC_SERVER_AGREE_BALLOT_H_

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/node_hash_map.h"
#include "absl/status/statusor.h"
#include "mpc-server/agree/agreement.h"
#include "mpc-server/agree/job_queue.h"
#include "mpc-server/store/share_store.h"

namespace mpckdc {

class KeyRound;  // key_rounds.h

// The key records of one batch, read from the store once each.
class BatchRecords {
 public:
  explicit BatchRecords(ShareStore* store) : store_(store) {}

  const absl::StatusOr<KeyRecord>& Get(const Handle& handle) {
    const auto [it, first] = records_.try_emplace(handle);
    if (first) it->second = store_->Get(handle);
    return it->second;
  }
  // nullptr unless the record was read and is good.
  const KeyRecord* Find(const Handle& handle) {
    const absl::StatusOr<KeyRecord>& record = Get(handle);
    return record.ok() ? &*record : nullptr;
  }
  const KeyInfo* FindInfo(const Handle& handle) {
    const KeyRecord* const record = Find(handle);
    return record != nullptr ? &record->info : nullptr;
  }

 private:
  ShareStore* const store_;
  absl::node_hash_map<Handle, absl::StatusOr<KeyRecord>> records_;  // stable addresses
};

// A proposal and what becomes of it (steps.h). Vectors have one element per entry.
struct Ballot {
  explicit Ballot(ShareStore* store) : records(store) {}

  Proposal proposal;
  std::string bytes;                  // the proposal as it was sent
  Digest hash{};                      // SHA-256 of them
  BatchRecords records;
  std::vector<WaitingJobPtr> jobs;    // what was proposed: null where it is not here
  std::shared_ptr<KeyRound> key_round;  // or a key round; null likewise
  std::vector<VoteCode> codes;        // this server's
  std::vector<std::string> details;   // why, where not OK
  std::array<std::string, kParties> votes;  // encoded; the leader's is empty
  std::vector<Agreed> agreed;         // after the votes
};

}  // namespace mpckdc

#endif  // MPC_SERVER_AGREE_BALLOT_H_
