// SPDX-License-Identifier: Apache-2.0
//
// A pre-auth message that was accepted, kept until no server's clock accepts it any more, and who
// may present it again meanwhile: whoever presented it first, for as long as its grant lives, and
// for what the grant still pays for (judge/budget.h).
//
//     key    expiry (8) | handle (16) | nonce (12)
//     value  claimant (16) | since (8) | tickets (1) | replies (1) | checksums (1) | zero (1) |
//            ticket key (16)
//
// A value of any other length, such as the empty one that older programs wrote, is nobody's claim.
#ifndef MPC_SERVER_STORE_REPLAY_ENTRY_H_
#define MPC_SERVER_STORE_REPLAY_ENTRY_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "mpc-server/key/key_info.h"

namespace mpckdc {

using Claimant = std::array<uint8_t, 16>;  // a hash of a KDC's name; all zero: nobody

struct ReplayClaim {
  Claimant claimant{};
  absl::Time since = absl::UnixEpoch();
  uint8_t tickets = 0, replies = 0, checksums = 0;  // of the grant, that are paid out
  Handle ticket_key{};  // of the first ticket; all zero when there is none

  friend bool operator==(const ReplayClaim&, const ReplayClaim&) = default;
};

struct ReplayEntry {
  Handle handle{};
  std::array<uint8_t, 12> nonce{};
  absl::Time expires;
  ReplayClaim claim{};

  friend bool operator==(const ReplayEntry&, const ReplayEntry&) = default;
};

std::string ReplayKey(const ReplayEntry& entry);
// Greater than the keys of all entries that expire before, and of no other.
std::string ReplayKeysUntil(absl::Time expires);
std::string EncodeReplayClaim(const ReplayClaim& claim);

ReplayClaim DecodeReplayClaim(absl::string_view value);
ReplayEntry ReplayEntryOf(absl::string_view key, absl::string_view value);

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_REPLAY_ENTRY_H_
