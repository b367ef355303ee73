// SPDX-License-Identifier: Apache-2.0
// A pseudorandom function of a SHA-256 hash: AES-128 in CBC-MAC. It is one for inputs of one fixed
// length (Bellare, Kilian, Rogaway, JCSS 61 (2000), section 3), and these have two blocks:
//
//     F(k, h) = AES(k, AES(k, h[0..15]) ^ h[16..31])
//
// All of the hash goes in: who can choose what is hashed cannot find two that agree in half of it.
#ifndef MPC_SERVER_SHARE_HASH_PRF_H_
#define MPC_SERVER_SHARE_HASH_PRF_H_

#include <array>
#include <cstdint>

#include "mpc-server/share/ctr_stream.h"

namespace mpckdc {

void HashPrf(const CtrFunctions& ctr, const CtrKey& key, const std::array<uint8_t, 32>& hash,
             uint8_t out[16]);

}  // namespace mpckdc

#endif  // MPC_SERVER_SHARE_HASH_PRF_H_
