// SPDX-License-Identifier: Apache-2.0
//
// What a record keeps of a usage, from a base key in the clear, in blocks as shares have it; and
// AES under a key in the clear, by OpenSSL.
#ifndef MPC_SERVER_TESTING_USAGE_KEY_ORACLE_H_
#define MPC_SERVER_TESTING_USAGE_KEY_ORACLE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mpc-server/key/enctype.h"
#include "mpc-server/share/replicated_share.h"

namespace mpckdc {

std::vector<Block> BlocksOf(absl::Span<const uint8_t> bytes);  // the last one filled with zeros

// The round keys of a key of 16 or 32 bytes, as enrolment expands it; and one block under it.
std::vector<Block> PlainKeySchedule(absl::Span<const uint8_t> key);
Block PlainAes(absl::Span<const uint8_t> key, const Block& input, bool encrypt = true);

struct PlainUsage {
  std::vector<Block> round_keys;
  std::vector<Block> mac_states;  // 17 to 20
  Block h{};                      // gcm
};
PlainUsage PlainUsageOf(const Enctype& enctype, absl::Span<const uint8_t> base, uint32_t usage);

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_USAGE_KEY_ORACLE_H_
