// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_AGREE_BALLOT_H_
#define MPC_SERVER_AGREE_BALLOT_H_

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/node_hash_map.h"
#include "absl/status/statusor.h"
#include "mpc-server/agree/agreement.h"
#include "mpc-server/agree/job_queue.h"
#include "mpc-server/agree/record_tags.h"
#include "mpc-server/store/share_store.h"

namespace mpckdc {

class KeyRound;  // key_rounds.h

// The key records of one batch, read from the store once each.
class BatchRecords {
 public:
  explicit BatchRecords(ShareStore* store) : store_(store) {}

  const absl::StatusOr<KeyRecord>& Get(const Handle& handle) {
    const auto [it, first] = records_.try_emplace(handle);
    if (first) it->second.record = store_->Get(handle);
    return it->second.record;
  }
  // A record that is not the store's committed one: a staged key's, or a part of one.
  const KeyRecord& Put(const Handle& handle, KeyRecord record) {
    return *(records_[handle] = {std::move(record), std::nullopt}).record;
  }
  // Reads those that were not read yet, all at once.
  void Prefetch(absl::Span<const Handle> handles) {
    std::vector<Handle> fresh;
    for (const Handle& handle : handles) {
      if (records_.try_emplace(handle).second) fresh.push_back(handle);
    }
    if (fresh.empty()) return;
    std::vector<absl::StatusOr<KeyRecord>> read = store_->GetMany(fresh);
    for (size_t i = 0; i < fresh.size(); ++i) records_[fresh[i]].record = std::move(read[i]);
  }
  // What this server says of the key in this batch; zeros of one that was not read.
  const RecordTags& Tags(const Handle& handle, const PartyContext& party, uint32_t batch) {
    const KeyRecord* const record = Find(handle);
    std::optional<RecordTags>& tags = records_[handle].tags;
    if (!tags) tags = record != nullptr ? tagger_.TagsOf(*record, party, batch) : RecordTags();
    return *tags;
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
  struct Entry {
    absl::StatusOr<KeyRecord> record;
    std::optional<RecordTags> tags;
  };
  ShareStore* const store_;
  RecordTagger tagger_;
  absl::node_hash_map<Handle, Entry> records_;  // stable addresses
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
  std::vector<std::vector<Handle>> handles;           // of the keys that each entry would use
  std::array<std::vector<EntryTags>, kParties> tags;  // what each server says of them
  std::array<std::string, kParties> votes;  // encoded; the leader's is empty
  std::vector<Agreed> agreed;         // after the votes
};

}  // namespace mpckdc

#endif  // MPC_SERVER_AGREE_BALLOT_H_
