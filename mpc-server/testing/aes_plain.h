// SPDX-License-Identifier: Apache-2.0
//
// The oracle: the circuit templates of AES run on plain bits.
#ifndef MPC_SERVER_TESTING_AES_PLAIN_H_
#define MPC_SERVER_TESTING_AES_PLAIN_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/circuit/aes/aes_circuit.h"
#include "mpc-server/share/replicated_share.h"

namespace mpckdc {

// key: 16 or 32 bytes.
SecretVector<Block> PlainKeySchedule(absl::Span<const uint8_t> key);
// One block under expanded keys (11 or 15).
Block PlainAes(absl::Span<const Block> round_keys, const Block& input);
Block PlainAesDecrypt(absl::Span<const Block> round_keys, const Block& input);

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_AES_PLAIN_H_
