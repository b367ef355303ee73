// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_ENROLL_HASH_STATE_H_
#define MPC_SERVER_ENROLL_HASH_STATE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "mpc-server/hash/hash_kind.h"
#include "mpc-server/secret/secret.h"

namespace mpckdc::enroll {

// The hash function's state after its first block: HashStateBytes(hash) bytes, big-endian words as
// FIPS 180-4 numbers them. `block` has HashBlockBytes(hash) bytes.
SecretBytes StateAfterBlock(HashKind hash, absl::Span<const uint8_t> block);

}  // namespace mpckdc::enroll

#endif  // MPC_SERVER_ENROLL_HASH_STATE_H_
