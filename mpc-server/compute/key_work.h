// SPDX-License-Identifier: Apache-2.0
//
// What the servers compute together about keys: drawing one that nobody ever sees, and checking
// that a key's records belong together. Each call is one batch; `first` runs in its first round.
#ifndef MPC_SERVER_COMPUTE_KEY_WORK_H_
#define MPC_SERVER_COMPUTE_KEY_WORK_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mpc-server/share/circuit.h"
#include "mpc-server/store/key_record.h"

namespace mpckdc {

// This server's record of a fresh uniformly random key with the usage keys of its class.
absl::StatusOr<KeyRecord> DrawRecord(PartyContext& party, const KeyInfo& info, Circuit& first,
                                     Cost* cost);

// Derives each record's usage keys from its base again; true where round keys and H of all usages
// equal those of the record. Nothing else is learned.
absl::StatusOr<std::vector<bool>> VerifyRecords(PartyContext& party,
                                                absl::Span<const KeyRecord* const> records,
                                                Circuit& first, Cost* cost);

}  // namespace mpckdc

#endif  // MPC_SERVER_COMPUTE_KEY_WORK_H_
