// SPDX-License-Identifier: Apache-2.0
// How the AES S-box is cut into rounds (sbox.h).
#ifndef MPC_SERVER_CIRCUIT_AES_SBOX_VARIANT_H_
#define MPC_SERVER_CIRCUIT_AES_SBOX_VARIANT_H_

namespace mpckdc {

enum class Sbox {
  kThroughput,  // 17 bits, 4 rounds: the least traffic
  kLatency,     // 22 bits, 3 rounds: for batches whose time is the number of messages
};

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_AES_SBOX_VARIANT_H_
