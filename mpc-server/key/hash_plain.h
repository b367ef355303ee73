// SPDX-License-Identifier: Apache-2.0
//
// The compression functions on plain bytes, for keys that are in one place: at enrolment and in
// tests. No branch and no address depends on a value.
#ifndef MPC_SERVER_KEY_HASH_PLAIN_H_
#define MPC_SERVER_KEY_HASH_PLAIN_H_

#include <cstdint>

#include "absl/types/span.h"
#include "mpc-server/key/hash_kind.h"

namespace mpckdc {

// The first state of SHA-1, SHA-256, SHA-384: HashStateBytes(hash) bytes, big-endian words.
absl::Span<const uint8_t> HashInitialState(HashKind hash);

// state: HashStateBytes(hash) bytes, big-endian words, replaced by the new state. block:
// HashBlockBytes(hash) bytes.
void CompressPlain(HashKind hash, absl::Span<uint8_t> state, const uint8_t* block);

// The public words of a schedule, K_t + W_t of one block: HashSteps(hash) big-endian words of 4 or
// 8 bytes.
void PublicSchedule(HashKind hash, const uint8_t* block, uint8_t* out);

}  // namespace mpckdc

#endif  // MPC_SERVER_KEY_HASH_PLAIN_H_
