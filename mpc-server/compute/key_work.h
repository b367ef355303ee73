// SPDX-License-Identifier: Apache-2.0
//
// What the servers compute together about keys: drawing one that nobody ever sees, checking that a
// key's records belong together, comparing two. Each call is one batch; `first` runs in its first
// round.
//
// The first two in rounds, hundreds to thousands of them for however many keys, or as a garbled
// circuit (garbled_keys.h): which one, the three have agreed on.
#ifndef MPC_SERVER_COMPUTE_KEY_WORK_H_
#define MPC_SERVER_COMPUTE_KEY_WORK_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mpc-server/base/sha256.h"
#include "mpc-server/circuit/checks.h"
#include "mpc-server/compute/protocol_choice.h"
#include "mpc-server/share/circuit.h"
#include "mpc-server/store/key_record.h"

namespace mpckdc {

struct KeyProtocol {
  CtsProtocol protocol = CtsProtocol::kReplicated;
  Digest agreed{};  // of garbled work: see NextGarbledRun()
};

// This server's record of a fresh uniformly random key with the usage keys of its class.
absl::StatusOr<KeyRecord> DrawRecord(PartyContext& party, const KeyInfo& info,
                                     const KeyProtocol& by, Circuit& first, Cost* cost);

// Derives each record's usage keys from its base again; true where round keys and H of all usages
// equal those of the record. Nothing else is learned.
absl::StatusOr<std::vector<bool>> VerifyRecords(PartyContext& party,
                                                absl::Span<const KeyRecord* const> records,
                                                const KeyProtocol& by, Circuit& first, Cost* cost);

// Two keys of one enctype, of which it is asked whether they are the same.
struct KeyPair {
  const KeyRecord* one;
  const KeyRecord* other;
};

// Rounds and bytes of CompareBases() without what `first` takes; the bits that are opened are one
// per pair: whether its two base keys are equal.
constexpr Cost CostOfCompare(size_t pairs) { return CostOfZeroCheck(pairs); }

// True where the two base keys of a pair are equal. Nothing else is learned, and usage keys are not
// looked at. In rounds, of which there are so few that nothing is gained by a garbled circuit.
absl::StatusOr<std::vector<bool>> CompareBases(PartyContext& party, absl::Span<const KeyPair> pairs,
                                               Circuit& first, Cost* cost);

}  // namespace mpckdc

#endif  // MPC_SERVER_COMPUTE_KEY_WORK_H_
