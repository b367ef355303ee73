// SPDX-License-Identifier: Apache-2.0
//
// Whether the three servers hold the same key. A record is three components, of which each server
// has two and each pair of servers shares one (P_i's a is P_{i+1}'s x ^ a):
//
//     component     a_0          a_1          a_2
//     held by       P0, P1       P1, P2       P2, P0
//
// With its opinion of a job each server says a tag of either component of each key that the job
// uses. Before anything is computed all three see which pairs differ, so they come to the same end:
// jobs with such a key are refused, the key and the server are named, and all other jobs run.
//
// A tag is keyed with what the pair alone knows: a component is a guess of a password away from a
// hash of what the third server holds. The third sees whether two tags are equal, and nothing else.
#ifndef MPC_SERVER_AGREE_RECORD_TAGS_H_
#define MPC_SERVER_AGREE_RECORD_TAGS_H_

#include <sodium.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/key/key_info.h"
#include "mpc-server/share/session.h"
#include "mpc-server/store/key_record.h"

namespace mpckdc {

// Eight bytes: they find what rots or was put back. Who lies about one can lie about any length.
using RecordTag = std::array<uint8_t, 8>;
struct RecordTags {
  RecordTag with_prev{}, with_next{};

  friend bool operator==(const RecordTags&, const RecordTags&) = default;
};
// Of the keys of one entry of a proposal, in their order.
using EntryTags = std::vector<RecordTags>;
inline constexpr size_t kMaxKeysOfEntry = limits::kMaxPartsPerJob + 1;  // the parts' and the client

// Whether the three speak of as many keys of an entry as it has, by this server's own job, whose
// digest is the same at all: who does not deviates.
absl::Status CheckCounts(int own_party, size_t keys, const std::array<size_t, kParties>& told);

// Makes them. It keeps its memory from one record to the next.
class RecordTagger {
 public:
  // Of both components and of the facts that shape a computation. `batch` tells the tags of one
  // session apart.
  RecordTags TagsOf(const KeyRecord& record, const PartyContext& party, uint32_t batch);

 private:
  void Split(const KeyRecord& record);
  RecordTag Tag(const Seed& key, absl::string_view facts, absl::Span<const Block> component);

  SecretVector<Block> mine_, prevs_;  // the a of this server and of the previous one
  Secret<crypto_generichash_state> state_;
};

// Where the three servers' tags of one key do not agree, for a sentence: "server 1's differs from
// both others'". Nullopt: they agree.
struct Difference {
  int party;  // whose it is, or the first of two
  std::string text;
};
std::optional<Difference> Compare(const std::array<RecordTags, kParties>& tags);

}  // namespace mpckdc

#endif  // MPC_SERVER_AGREE_RECORD_TAGS_H_
