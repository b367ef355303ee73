// SPDX-License-Identifier: Apache-2.0
//
// The machines of one party, each an mpc-server with a triple of its own, all on one store. What
// they must know of each other they leave there, as the items `worker/TRIPLE`:
//
//     version (1) | name (16) | seen (8, microseconds) | epoch (8)
//
// `name` is drawn at a machine's first start; `epoch` the share epoch whose store key it holds.
// Each writes its own anew every few seconds. By them the machines agree, without a word to each
// other, on who writes the records of a refresh, and on when nobody needs the old epoch's key any
// more.
#ifndef MPC_SERVER_STORE_FELLOWS_H_
#define MPC_SERVER_STORE_FELLOWS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpc-server/base/secret.h"

namespace mpckdc {

using MachineName = std::array<uint8_t, 16>;

struct Fellow {
  int triple = 0;
  MachineName name{};
  absl::Time seen;     // by its clock
  uint64_t epoch = 0;  // whose key it holds
};
SecretBytes EncodeFellow(const Fellow& fellow);
absl::StatusOr<Fellow> DecodeFellow(int triple, absl::Span<const uint8_t> plain);

// By clocks that differ by no more than the realm's do.
bool IsUp(const Fellow& fellow, absl::Time now);
// It was away for so long that nobody waits for it: it gets the store key from its administrator.
bool IsGone(const Fellow& fellow, absl::Time now);

// Whether the machine of `triple` does what one of them has to do: the steward's if it is up, else
// the first that is.
bool IsForeman(absl::Span<const Fellow> all, int triple, int steward, absl::Time now);
// Those who may still need the key of the epoch before `epoch`.
std::vector<int> Behind(absl::Span<const Fellow> all, uint64_t epoch, absl::Time now);

// The names of their items; -1: the name is of another item.
std::string FellowItem(int triple);
int TripleOfItem(absl::string_view name);

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_FELLOWS_H_
