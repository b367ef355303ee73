// SPDX-License-Identifier: Apache-2.0
// How words are added on shares: bits against rounds.
#ifndef MPC_SERVER_CIRCUIT_HASH_ADDER_H_
#define MPC_SERVER_CIRCUIT_HASH_ADDER_H_

#include <cstdint>

namespace mpckdc {

enum class Adder : uint8_t {
  kRipple,        // a bit for each carry, a round for each position: large batches
  kPrefix,        // carry-save, then all carries in five rounds (64 bits: six): small batches
  kFewestRounds,  // two such additions where that is a round less: SHA-1 of a few messages
};
inline constexpr Adder kAdders[] = {Adder::kRipple, Adder::kPrefix, Adder::kFewestRounds};

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_HASH_ADDER_H_
