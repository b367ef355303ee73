// SPDX-License-Identifier: Apache-2.0
//
// What the three servers say to each other about a batch before it runs (frames of type
// kAgreement; doc/jobs.md draws the exchange). Integers are big-endian.
//
//   proposal, P0 to both:
//     1 (1) | kind (1) | protocol (1) | of gcm parts (1) | number (4) | time, microseconds since
//     1970 (8) | first nonce (12) | nonces (4) | entries (4) | each: group (16) | id (8) | digest
//     (32) | the leader's code (1) | keys (1) | each: tag with the previous party (8) | with the
//     next (8)
//   vote, P1 and P2 to both others:
//     2 (1) | number (4) | SHA-256 of the proposal (32) | time (8) | line to the previous party
//     | line to the next | entries (4) | each: code (1) | keys (1) | each: tag with the previous
//     party (8) | with the next (8)
//   line: distance one way, microseconds (4) | bytes per second, 0: unknown (8)
//
// The protocol is that of the batch's parts under keys of enctypes 17 to 20 (CtsProtocol): 1
// replicated, as in every batch without such parts, 2 garbled, in batches of kLongJobs only. That
// of the parts under gcm keys is 1 or, in batches of jobs, 2. As part of the proposal they are in
// the votes' hash of it and in the view that the batch confirms, so the three compute with the same
// ones.
//
// The keys are those that a computation of the entry would use; none where the code is not OK.
// Their tags are record_tags.h's business.
//
// A proposal without entries is the heartbeat; it is voted on like any other, so every link is
// exercised.
//
//   kind      group               id            digest
//   kJobs     KdcKey of the KDC   job id        JobDigest
//   kLongJobs the same, for the long ring (long_ring.h), which also computes the following
//   kDraw     transaction         0             DrawDigest           (one entry)
//   kVerify   request             index         SHA-256 of handle    (one entry per handle)
//   kRefresh  of the epoch left   the epoch     zeros                (one entry; epoch_change.h)
//   kHandOver of the session      0             zeros                (one entry; hand_over.h)
//   kCompare  request             index         CompareDigest        (one entry per old key)
//
// An entry that the leader itself refuses is proposed all the same, so that the others need not
// wait for its deadline to know.
#ifndef MPC_SERVER_AGREE_AGREEMENT_H_
#define MPC_SERVER_AGREE_AGREEMENT_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpc-server/agree/epoch_agreement.h"
#include "mpc-server/agree/record_tags.h"
#include "mpc-server/compute/protocol_choice.h"
#include "mpc-server/job/digest.h"
#include "mpc-server/job/job.h"
#include "mpc-server/key/key_info.h"
#include "mpc-server/store/share_store.h"
#include "mpc-server/wire/peer_channel.h"
#include "mpc-server/wire/ring.h"

namespace mpckdc {

inline constexpr int kLeader = 0;

// A leader that has nothing to propose proposes nothing, so often: the heartbeat.
inline constexpr absl::Duration kHeartbeat = absl::Seconds(1);
// After so many heartbeats that did not come a follower gives the leader up, and a peer's clock
// counts as unknown.
inline constexpr absl::Duration kSilence = absl::Seconds(3);

// Where `other` sits beside `party`, and who sits there.
constexpr Neighbour NeighbourOf(int party, int other) {
  return other == NextParty(party) ? Neighbour::kNext : Neighbour::kPrev;
}
constexpr int PartyAt(int party, Neighbour side) {
  return side == Neighbour::kNext ? NextParty(party) : PrevParty(party);
}

using GroupId = std::array<uint8_t, 16>;

// A KDC session in proposals: the first 16 bytes of SHA-256(name length (2) | name | session), so
// that no KDC can take another's session id.
GroupId KdcKey(const KdcIdentity& kdc);
Digest DrawDigest(const KeyInfo& info);
// Of an old key, and of the staged ones with which it is compared.
Digest CompareDigest(const TransactionId& txn, const Handle& old, absl::Span<const Handle> staged);

enum class BatchKind : uint8_t {
  kJobs = 1,
  kDraw = 2,
  kVerify = 3,
  kLongJobs = 4,
  kRefresh = 5,
  kHandOver = 6,
  kCompare = 7,
};
inline constexpr uint64_t kLastBatchKind = 7;
constexpr bool IsOfJobs(BatchKind kind) {
  return kind == BatchKind::kJobs || kind == BatchKind::kLongJobs;
}
constexpr bool IsLong(BatchKind kind) { return kind != BatchKind::kJobs; }

// What one server says about one entry: it does not have it (yet), or its verdict.
using VoteCode = uint8_t;
inline constexpr VoteCode kVoteMissing = 0;
constexpr VoteCode CodeOf(Verdict verdict) { return static_cast<VoteCode>(verdict); }
inline constexpr VoteCode kVoteOk = CodeOf(Verdict::kOk);

inline constexpr size_t kVerifyKeysPerBatch = 128;

struct ProposalEntry {
  GroupId group{};
  uint64_t id = 0;
  Digest digest{};
  VoteCode code = kVoteOk;  // the leader's
  EntryTags keys{};         // the same

  friend bool operator==(const ProposalEntry&, const ProposalEntry&) = default;
};

struct Proposal {
  BatchKind kind = BatchKind::kJobs;
  CtsProtocol protocol = CtsProtocol::kReplicated;
  CtsProtocol of_gcm = CtsProtocol::kReplicated;
  uint32_t number = 0;
  absl::Time time;
  Nonce first_nonce{};
  uint32_t nonces = 0;  // as many as the entries may need
  std::vector<ProposalEntry> entries;
};

// What a server has measured of its two lines (lines.h).
struct LineReport {
  LineState prev, next;

  friend bool operator==(const LineReport&, const LineReport&) = default;
};

struct Vote {
  uint32_t number = 0;
  Digest proposal{};
  absl::Time time;
  LineReport lines;
  std::vector<VoteCode> codes;
  std::vector<EntryTags> keys{};  // as many as codes, or none at all
};

std::string EncodeProposal(const Proposal& proposal);
std::string EncodeVote(const Vote& vote);

// DataLoss for anything that the encoders do not produce: another version of the program may. An
// entry that occurs twice is a deviation of the leader's.
absl::StatusOr<Proposal> DecodeProposal(absl::string_view bytes);
absl::StatusOr<Vote> DecodeVote(absl::string_view bytes);

// The same at every server, from the three codes of an entry. kVoteMissing: try again later; `by`
// is the party that decided.
struct Agreed {
  VoteCode code = kVoteMissing;
  int by = 0;
  bool records_differ = false;  // what decided; by then says whose, if it is one's
};
Agreed Combine(const std::array<VoteCode, 3>& codes);

// What a server tells its neighbours in the session's hello:
//   6 (1) | nonce mark (12) | time (8) | max_renewable_life in seconds (8)
//   | clock_skew in microseconds (8) | ProtocolSetting (1) | share epoch (8) | refresh by which it
//   began (16) | flags (1): 1 wants a refresh, 2 busy, 4 empty, 8 receiving, 16 all three agreed to
//   one in the session before, 32 wants keys, 64 insists | party to replace, and 1 (1) | steward
//   (1) | prepared (1): 0, or 1 and that refresh (16)
struct Greeting {
  Nonce mark{};
  absl::Time time;
  absl::Duration max_renewable_life;
  absl::Duration clock_skew;
  ProtocolSetting protocol = ProtocolSetting::kAuto;
  EpochClaim epoch{};
};
std::string EncodeGreeting(const Greeting& greeting);
absl::StatusOr<Greeting> DecodeGreeting(absl::string_view bytes);

}  // namespace mpckdc

#endif  // MPC_SERVER_AGREE_AGREEMENT_H_
